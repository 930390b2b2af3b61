"""SmolLM2-135M-Instruct behind llama.cpp's server, and a proxy that notes every call to it.

The server runs in a process of its own, at low priority. What a call cost is read from the
server's own answer on its way through, so that it can be held against what a client counted.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import create_server
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from support.openai_server import running_app

_SERVE = Path(__file__).with_name("serve.py")
_START_S = 60.0
CONTEXT_TOKENS = 4096
SETTINGS = """\
completion_models:
  default_completion_model:
    model_provider: openai
    model: smollm2
    api_base: BASE
    api_key: none-needed
    retry: {type: immediate, max_retries: 2}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 384}
vector_store: {vector_size: 384}
chunking: {type: tokens, size: 80, overlap: 10, encoding_model: o200k_base}
extract_graph: {entity_types: [person, place], max_gleanings: 0}
concurrent_requests: 2
local_search: {max_context_tokens: 300}
basic_search: {max_context_tokens: 300}
tog_search:
  max_context_tokens: 300
  depth: 1
  width: 2
  max_relations_per_entity: 3
  max_answer_tokens: 60
"""
EVALUATION = {
    "dataset": {"path": "questions.json"},
    "indexes": {"clock": "clock"},
    "methods": ["tog", "basic"],
    "metrics": ["correctness", "completeness"],
    "max_output_tokens": 40,
    "judge": {"max_output_tokens": 40},
    "concurrency": 4,  # more than the server has places, so that calls wait for it
    "timeout_s": 400,
}
"""Settings and an evaluation that are small enough for two busy cores."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the server answered it; tokens are its own usage figures, 0 without an answer."""

    request: dict[str, Any]
    status: int
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    content: str


@dataclass
class RealModel:
    """The running model: where to ask it, and what it was asked so far."""

    base_url: str
    server_url: str
    calls: list[Call] = field(default_factory=list[Call])

    def answered(self) -> list[Call]:
        """Return the calls that were answered."""
        return [call for call in self.calls if call.status == 200]


@contextlib.contextmanager
def real_model(context_tokens: int) -> Generator[RealModel]:
    """Serve the model, each of its two slots with half of the context, until the block ends."""
    command = [sys.executable, str(_SERVE), str(context_tokens)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=partial(os.nice, 5),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address.startswith("http"):
                raise RuntimeError(
                    "llama.cpp's server did not start; run tests/real_model/serve.py"
                )
            _wait_until_healthy(address)
            with _recording_proxy(address) as model:
                yield model
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_healthy(address: str) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health").status_code == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"llama.cpp's server was not ready within {_START_S:g} s")


@contextlib.contextmanager
def _recording_proxy(address: str) -> Generator[RealModel]:
    listener = create_server(("127.0.0.1", 0))
    model = RealModel(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", address)
    client: httpx.AsyncClient

    async def forward(request: Request) -> Response:
        body = await request.body()
        asked: dict[str, Any] = json.loads(body)
        asking = asyncio.create_task(client.post("/v1/chat/completions", content=body))
        while not asking.done():
            await asyncio.wait({asking}, timeout=0.2)
            if await request.is_disconnected():  # given up: the server must not go on with it
                asking.cancel()
                return Response(status_code=499)
        answer = asking.result()
        told: dict[str, Any] = answer.json()
        choice = (told.get("choices") or [{}])[0]
        usage = told.get("usage") or {}
        model.calls.append(
            Call(
                request=asked,
                status=answer.status_code,
                finish_reason=choice.get("finish_reason"),
                prompt_tokens=usage.get("prompt_tokens", 0),
                completion_tokens=usage.get("completion_tokens", 0),
                content=(choice.get("message") or {}).get("content") or "",
            )
        )
        return Response(answer.content, answer.status_code, media_type="application/json")

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        nonlocal client
        async with httpx.AsyncClient(base_url=address, timeout=600) as client:
            yield

    app = Starlette(
        routes=[Route("/v1/chat/completions", forward, methods=["POST"])], lifespan=lifespan
    )
    with running_app(app, listener):
        yield model
