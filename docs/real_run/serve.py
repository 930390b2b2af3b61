"""Serve a GGUF file that you name, with the chat interface of OpenAI, on port 8199.

Requests that come together share each step of the model; a reply is the likeliest word each time.
"""

import json
import queue
import sys
import threading
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openvino_genai

END, END_OF_TEXT = 151645, 151643  # the tokens of Qwen2.5 that end a reply

scheduler = openvino_genai.SchedulerConfig()
scheduler.cache_size = 3  # GB
scheduler.enable_prefix_caching = True  # the beginning of a prompt that comes again is kept
scheduler.max_num_batched_tokens = 2048
scheduler.max_num_seqs = 32
options = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": 2}
model = openvino_genai.ContinuousBatchingPipeline(sys.argv[1], scheduler, "CPU", options)
tokenizer = model.get_tokenizer()
waiting: queue.Queue[tuple[str, Any, Future[Any]]] = queue.Queue()


def generate() -> None:
    """Take what waits into the batch, take a step, hand out what is complete; for ever."""
    running: list[tuple[Any, Future[Any]]] = []
    n_taken = 0
    while True:
        while not running or not waiting.empty():
            prompt, config, reply = waiting.get()
            n_taken += 1
            running.append((model.add_request(n_taken, prompt, config), reply))
        model.step()
        for handle, reply in [*running]:
            if handle.get_status() != openvino_genai.GenerationStatus.RUNNING:
                running.remove((handle, reply))
                reply.set_result(handle.read_all()[0])


def configure(request: dict[str, Any]) -> Any:
    """Return how a reply to a request is made: its length and the schema that it keeps to."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = request.get("max_completion_tokens") or request.get("max_tokens") or 512
    config.do_sample = config.apply_chat_template = False
    config.set_eos_token_id(END)
    config.stop_token_ids = {END, END_OF_TEXT}
    form = request.get("response_format") or {}
    if form.get("type") == "json_schema":
        schema = json.dumps(form["json_schema"]["schema"])
        config.structured_output_config = openvino_genai.StructuredOutputConfig(json_schema=schema)
    return config


class Handler(BaseHTTPRequestHandler):
    """Answers one request, whole or as a stream of one piece."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = [
            {"role": each["role"], "content": each["content"]} for each in request["messages"]
        ]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        reply: Future[Any] = Future()
        waiting.put((prompt, configure(request), reply))
        output = reply.result()
        text = tokenizer.decode([t for t in output.generated_ids if t not in (END, END_OF_TEXT)])
        full = output.finish_reason == openvino_genai.GenerationFinishReason.LENGTH
        end = {"index": 0, "finish_reason": "length" if full else "stop"}
        n_prompt, n_reply = tokenizer.encode(prompt).input_ids.shape[1], len(output.generated_ids)
        usage = {"prompt_tokens": n_prompt, "completion_tokens": n_reply}
        usage["total_tokens"] = n_prompt + n_reply
        about = {"id": "reply", "created": 0, "model": request["model"]}
        message = {"role": "assistant", "content": text}
        if request.get("stream"):
            about["object"] = "chat.completion.chunk"
            parts = [{**about, "choices": [{**end, "delta": message}]}]
            parts.append({**about, "choices": [], "usage": usage})
            body = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
        else:
            about["object"] = "chat.completion"
            whole = {**about, "choices": [{**end, "message": message}], "usage": usage}
            body = json.dumps(whole)
        kind = "text/event-stream" if request.get("stream") else "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


threading.Thread(target=generate, daemon=True).start()
print("http://127.0.0.1:8199", flush=True)
ThreadingHTTPServer(("127.0.0.1", 8199), Handler).serve_forever()
