"""The model service of throughput.py: answers after a fixed time, and little else.

A process of its own, without a framework: what it costs must not be what is measured. It reads
as much of HTTP as the clients here write: requests with a length, on connections that stay open.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any

_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_VECTOR = [1.0, *([0.0] * 383)]


def minimal(schema: dict[str, Any], top: dict[str, Any]) -> Any:
    """Return the least value that has a schema, of a list one item."""
    if "$ref" in schema:
        return minimal(top["$defs"][schema["$ref"].rsplit("/", 1)[-1]], top)
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[-1]
    if "anyOf" in schema:
        return minimal(schema["anyOf"][0], top)
    if schema.get("type") == "object":
        return {k: minimal(v, top) for k, v in schema.get("properties", {}).items()}
    if schema.get("type") == "array":  # one, so that an answer cites what it rests on
        return [minimal(schema.get("items", {}), top)]
    plain = {"integer": 1, "number": 1.0, "boolean": True, "null": None}
    return plain.get(schema.get("type", ""), "as the text says")


def answer(path: bytes, body: bytes) -> bytes:
    """Return the body of an answer."""
    request = json.loads(body)
    if path.endswith(b"/embeddings"):
        given = request["input"] if isinstance(request["input"], list) else [request["input"]]
        rows = [
            {"object": "embedding", "index": n, "embedding": _VECTOR} for n in range(len(given))
        ]
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        reply = {"object": "list", "data": rows, "model": request["model"], "usage": usage}
        return json.dumps(reply).encode()
    form = request.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema")
    text = (
        "Marta Quill, as the text says." if schema is None else json.dumps(minimal(schema, schema))
    )
    if request.get("logprobs"):  # deepeval, which asks for a form in its words alone
        text = '{"score": 8, "reason": "as the text says"}'
    elif b'\\"verdict\\"' in body:  # ragas, likewise
        text = '{"reason": "as the text says", "verdict": 1}'
    message: dict[str, object] = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    if request.get("tools"):  # as other libraries ask for a form
        tool = request["tools"][0]["function"]
        given = json.dumps(minimal(tool["parameters"], tool["parameters"]))
        called = {"name": tool["name"], "arguments": given}
        message["content"] = None
        message["tool_calls"] = [{"id": "t", "type": "function", "function": called}]
        choice["finish_reason"] = "tool_calls"
    usage = {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520}
    reply = {"id": "x", "object": "chat.completion", "created": 1, "model": request["model"]}
    return json.dumps({**reply, "choices": [choice], "usage": usage}).encode()


class Service(asyncio.Protocol):
    """One connection."""

    latency_s = 0.0
    calls = 0
    first_at: float | None = None
    """When the first call since the count was last asked for came in, on the machine's clock."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end]
            found = _LENGTH.search(head)
            size = end + 4 + (int(found.group(1)) if found else 0)
            if len(self._held) < size:
                return
            body, self._held = self._held[end + 4 : size], self._held[size:]
            path = head.split(b" ", 2)[1]
            if path == b"/calls":
                self._write(json.dumps([Service.calls, Service.first_at]).encode())
                Service.first_at = None
                continue
            Service.calls += 1
            Service.first_at = Service.first_at or time.monotonic()
            reply = answer(path, body)
            asyncio.get_running_loop().call_later(Service.latency_s, self._write, reply)

    def _write(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        if not self._transport.is_closing():
            self._transport.write(head % len(body) + body)


async def main(latency_s: float) -> None:
    """Serve until the process is ended."""
    Service.latency_s = latency_s
    server = await asyncio.get_running_loop().create_server(Service, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
