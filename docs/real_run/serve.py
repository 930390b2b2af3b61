"""Serve a GGUF file that you name, with the chat interface of OpenAI, on port 8199."""

import sys
import time

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"qwen2.5-coder-1.5b-instruct-q4_k_m"}
params.hostnames = ["127.0.0.1"]
params.port = 8199
params.n_ctx = 49152
params.n_parallel = 12  # each keeps the beginning of a prompt that comes again
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
