"""Serve a folder as a language model: each request is written there, and its reply is waited for.

    python docs/large_run/serve.py FOLDER [--port 8198] [--replies FILE]

A request becomes FOLDER/asked/NNNN.txt, its messages and, where a form is asked for, its JSON
schema. Whoever answers writes FOLDER/replies/NNNN.txt. The same request is asked once. FILE, lines
of JSON with "request" and "reply", as requests.jsonl beside this file, answers what it holds, so a
run whose requests are the same is repeated without anybody. Tokens are those of o200k_base in the
messages and the reply; what answered may count otherwise.
"""

import argparse
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from graphrag.query.client.tokens import default_encoding

Json = dict[str, Any]
POLL_S = 0.5


def write_out(request: Json) -> str:
    """Return what is asked, as it is read: each message, and the form of the reply."""
    parts = [f"[{m['role']}]\n{m['content']}" for m in request["messages"]]
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema:
        parts.append(f"[form of the reply: JSON of this schema]\n{json.dumps(schema)}")
    return "\n\n".join(parts)


class Service(ThreadingHTTPServer):
    """Answers from a folder, and from replies that are known."""

    request_queue_size = 512

    def __init__(self, folder: Path, port: int, known: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._asked, self._replies = folder / "asked", folder / "replies"
        for path in (self._asked, self._replies):
            path.mkdir(parents=True, exist_ok=True)
        self._known, self._lock = known, threading.Lock()
        self._encoding = default_encoding()
        self._places = {
            path.read_text(encoding="utf-8"): path for path in sorted(self._asked.glob("*.txt"))
        }

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return len(self._encoding.encode(text, disallowed_special=()))

    def reply(self, asked: str) -> str:
        """Return the reply to what is asked, as soon as it is there."""
        if asked in self._known:
            return self._known[asked]
        with self._lock:
            place = self._places.get(asked)
            if place is None:
                place = self._asked / f"{len(self._places) + 1:04}.txt"
                part = place.with_suffix(".part")
                part.write_text(asked, encoding="utf-8")
                part.replace(place)
                self._places[asked] = place
        answer = self._replies / place.name
        while not answer.is_file():
            time.sleep(POLL_S)
        time.sleep(POLL_S)  # written whole
        return answer.read_text(encoding="utf-8").strip()


class Handler(BaseHTTPRequestHandler):
    """Answers chat completions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a chat completion, also one that is to be streamed."""
        service = cast("Service", self.server)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = service.reply(write_out(request))
        said = "\n\n".join(str(message["content"]) for message in request["messages"])
        counts = service.count(said), service.count(text)
        usage = {"prompt_tokens": counts[0], "completion_tokens": counts[1]}
        usage["total_tokens"] = sum(counts)
        streams = bool(request.get("stream"))
        body: Json = {"id": "0", "created": 0, "model": request["model"]}
        body["object"] = "chat.completion.chunk" if streams else "chat.completion"
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "delta" if streams else "message": message}
        if streams:
            parts = [{**body, "choices": [choice]}, {**body, "choices": [], "usage": usage}]
            lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
            data = "".join([*lines, "data: [DONE]\n\n"]).encode()
        else:
            data = json.dumps({**body, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        kind = "text/event-stream" if streams else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main(given: argparse.Namespace) -> None:
    """Serve until it is ended."""
    known: dict[str, str] = {}
    if given.replies is not None:
        for line in given.replies.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            known[row["request"]] = row["reply"]
    service = Service(given.folder, given.port, known)
    sys.stdout.write(f"http://127.0.0.1:{given.port}/v1, {len(known)} replies known\n")
    sys.stdout.flush()
    service.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8198)
    parser.add_argument("--replies", type=Path, metavar="FILE")
    main(parser.parse_args())
