"""An OpenAI-compatible server on 127.0.0.1, for tests that need real HTTP.

It answers ``POST /v1/chat/completions`` (whole or streamed) and ``POST /v1/embeddings``, records
each call that it sees and fails on request. In the test process::

    with running_server(faults=lambda n, request: Fault(status=429) if n == 1 else None) as server:
        ...  # clients talk to server.base_url
        assert server.totals()["chat"].failed_calls == 1

Tokens are counted by a rule of its own: the words between white space, and 3 more for each chat
message. Tokens that a client sends as integers count one each.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from socket import IPPROTO_TCP, SHUT_RDWR, TCP_NODELAY, create_server, socket
from typing import Any, Literal, Union

import numpy as np
import uvicorn
from numpy.typing import NDArray
from pydantic import Field, create_model
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

ENDPOINTS = {"/v1/chat/completions": "chat", "/v1/embeddings": "embeddings"}
MALFORMED_JSON = '{"reason": "the text breaks off he'
WORDS_PER_CHUNK = 4
ERRORS: dict[int, tuple[str, str | None, str]] = {  # status: type, code, message
    400: ("invalid_request_error", None, "The request is not valid."),
    # litellm reads this message, not the code, to tell a wrong key from a wrong request.
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: test."),
    404: ("invalid_request_error", "model_not_found", "There is no such model."),
    429: ("requests", "rate_limit_exceeded", "Too many requests."),
    500: ("server_error", None, "The server had an error."),
    503: ("server_error", "service_unavailable", "The server is overloaded."),
    529: ("overloaded_error", None, "Overloaded."),
}

Json = dict[str, Any]
Reply = Callable[[Json], str]
Outcome = Literal["open", "answered", "error", "cut", "client-gone"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one call; fields combine.

    An error ``status`` comes with a body as OpenAI's, whose ``code`` and ``message`` can be given,
    and with the header ``retry-after`` (seconds, or as it is) or ``retry-after-ms``. Before it
    there are ``hang_s`` seconds of silence. ``endless_s``: one byte of the answer at a time for so
    long, and never its end. ``disconnect``: no answer at all, or half of a streamed one (a call
    that does not stream then gets none). ``content`` and ``refusal`` stand in place of the reply;
    ``cached_tokens`` in the usage, unless that is left out. ``ramble``: words until the request's
    ``max_tokens`` (1,000 without one) after those of ``content``, ended by ``length``, as a small
    model does. ``thoughts`` come apart from the content, as ``reasoning_content``. ``usage``
    stands in place of the figures of the same names; None leaves one out. ``param`` is named by an
    error. ``reason_told`` stands in place of why the reply ends. ``raw`` is sent as it is in place
    of every body, and costs nothing; ``location`` stands in its headers.
    """

    status: int | None = None
    code: str | None = None
    message: str | None = None
    retry_after_s: float | None = None
    retry_after_ms: float | None = None
    retry_after: str | None = None
    endless_s: float = 0.0
    hang_s: float = 0.0
    disconnect: Literal["before", "mid-stream"] | None = None
    content: str | None = None
    refusal: str | None = None
    omit_usage: bool = False
    cached_tokens: int | None = None
    ramble: bool = False
    thoughts: str | None = None
    usage: Json | None = None
    param: str | None = None
    raw: str | bytes | None = None
    location: str | None = None
    reason_told: str | None = None

    @property
    def reason(self) -> str:
        """Why a reply with this fault ends."""
        return self.reason_told or ("length" if self.ramble else "stop")


FaultPlan = Callable[[int, Json], Fault | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One call as the server saw it.

    ``status`` is the HTTP status sent, None when none was. Tokens are what an answer cost,
    0 without one; a stream cut half-way costs its prompt and the words sent. Times are seconds
    of `time.monotonic`; ``finished_s`` is taken just before the last byte is sent, so that a
    client that has its answer finds its call recorded. ``request_sha256`` is over the whole
    request with sorted keys: equal requests have equal ones.
    """

    sequence: int
    endpoint: str
    model: str
    stream: bool
    request_sha256: str
    messages: tuple[Json, ...]
    retry_count: int | None
    arrived_s: float
    finished_s: float | None = None
    status: int | None = None
    outcome: Outcome = "open"
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the calls to one endpoint; a failed call is a finished one without an answer."""

    calls: int
    failed_calls: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the server answers; see `running_server`."""

    reply: Reply
    faults: FaultPlan | None = None
    latency_s: float | Callable[[Json], float] = 0.0
    vector_size: int = 384


def offline_reply() -> Reply:
    """Return a reply function that asks the project's rule-based model.

    A request with a JSON schema gets the JSON text that the model writes for that schema.
    """
    from graphrag_llm.completion import create_completion
    from graphrag_llm.config import ModelConfig

    model: Any = create_completion(
        ModelConfig(type="offline", model_provider="offline", model="rules")
    )

    def reply(request: Json) -> str:
        wanted: Json = request.get("response_format") or {}
        arguments: Json = {"messages": request["messages"]}
        if wanted.get("type") == "json_schema":
            asked: Json = wanted["json_schema"]
            arguments["response_format"] = _model_of(asked["schema"], asked.get("name", "Reply"))
        elif wanted.get("type") == "json_object":
            arguments["response_format_json_object"] = True
        return str(model.completion(**arguments).content)

    return reply


class LocalServer:
    """A running server: where it listens, what it saw, how it answers.

    ``behaviour`` may be replaced at any time and holds for the calls that arrive later.
    Everything here may be read from any thread.
    """

    def __init__(self, port: int, behaviour: Behaviour) -> None:
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.behaviour = behaviour
        self._lock = threading.Lock()
        self._records: dict[int, Record] = {}
        self._in_flight = 0
        self._max_in_flight = 0

    @property
    def records(self) -> list[Record]:
        """The calls so far in the order of arrival, those in flight included."""
        with self._lock:
            return list(self._records.values())

    @property
    def max_in_flight(self) -> int:
        """The most calls that were ever being answered at one time."""
        with self._lock:
            return self._max_in_flight

    def totals(self, after: int = 0) -> dict[str, Totals]:
        """Sum up the calls to ``chat`` and ``embeddings`` whose sequence is above `after`."""
        return totals_of([record for record in self.records if record.sequence > after])

    def arrive(self, endpoint: str, request: Json, retry_count: int | None) -> Record:
        """Record a call that has just come in."""
        canonical = json.dumps(request, sort_keys=True, ensure_ascii=False)
        with self._lock:
            record = Record(
                sequence=len(self._records) + 1,
                endpoint=endpoint,
                model=str(request.get("model")),
                stream=bool(request.get("stream")),
                request_sha256=hashlib.sha256(canonical.encode()).hexdigest(),
                messages=tuple(request.get("messages", ())),
                retry_count=retry_count,
                arrived_s=time.monotonic(),
            )
            self._in_flight += 1
            self._max_in_flight = max(self._max_in_flight, self._in_flight)
            self._records[record.sequence] = record
        return record

    def finish(self, record: Record, outcome: Outcome, status: int | None, usage: Json) -> None:
        """Record how a call ended; `usage` is empty when it cost nothing."""
        with self._lock:
            self._in_flight -= 1
            done = replace(
                record,
                finished_s=time.monotonic(),
                outcome=outcome,
                status=status,
                prompt_tokens=usage.get("prompt_tokens", 0),
                completion_tokens=usage.get("completion_tokens", 0),
            )
            self._records[record.sequence] = done


@contextlib.contextmanager
def running_server(
    reply: Reply | None = None,
    *,
    faults: FaultPlan | None = None,
    latency_s: float | Callable[[Json], float] = 0.0,
    vector_size: int = 384,
    port: int = 0,
) -> Generator[LocalServer]:
    """Serve from a thread of this process until the block ends; ``port`` 0 is any free one.

    ``reply`` gives the text for a chat request (None: `offline_reply`) on the server's thread, so a
    slow one holds up other calls; where it raises, the call gets status 400, which clients do not
    try again. ``faults`` is asked for each call with its number (from 1, over both endpoints) and
    its body: of chat with ``messages``, of embeddings with ``input``. Embeddings have the length
    ``vector_size`` unless a request gives ``dimensions``. ``latency_s`` passes before each answer.
    """
    behaviour = Behaviour(reply or offline_reply(), faults, latency_s, vector_size)
    listener = create_server(("127.0.0.1", port), backlog=512)
    # asyncio does so only for sockets that name their protocol. Without it the second part of an
    # answer waits for the client's acknowledgement of the first, which takes 40 ms.
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    local = LocalServer(listener.getsockname()[1], behaviour)
    app = _App(local)
    # A pooled connection that the server drops at random would be a fault nobody planned.
    options: Json = {"ws": "none", "lifespan": "off", "timeout_keep_alive": 3600}
    with running_app(app, listener, app.close_waiting, http=_OpenProtocol, **options):
        yield local


@contextlib.contextmanager
def running_app(
    app: Any, listener: socket, at_end: Callable[[], None] = lambda: None, **options: Any
) -> Generator[None]:
    """Serve an ASGI application from a thread until the block ends, which does ``at_end`` first."""
    config = uvicorn.Config(app, log_config=None, access_log=False, **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the local server did not start")
            time.sleep(0.002)
        yield
    finally:
        server.should_exit = True
        at_end()
        thread.join()


def totals_of(records: list[Record]) -> dict[str, Totals]:
    """Sum up records by endpoint: ``chat`` and ``embeddings``, both always there."""
    sums: dict[str, Totals] = {}
    for endpoint in ("chat", "embeddings"):
        calls = [record for record in records if record.endpoint == endpoint]
        sums[endpoint] = Totals(
            calls=len(calls),
            failed_calls=sum(call.outcome not in ("open", "answered") for call in calls),
            prompt_tokens=sum(call.prompt_tokens for call in calls),
            output_tokens=sum(call.completion_tokens for call in calls),
        )
    return sums


class _OpenProtocol(H11Protocol):
    """Gives each request its connection, so that a fault can close it."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "connection": transport}


@dataclass(slots=True)
class _Exchange:
    """One request on its connection, and what was decided about it."""

    scope: Scope
    receive: Receive
    send: Send
    request: Json
    record: Record
    fault: Fault

    @property
    def connection(self) -> asyncio.Transport:
        return self.scope["state"]["connection"]

    async def respond(self, status: int, body: Json, headers: dict[str, str]) -> None:
        await JSONResponse(body, status, headers)(self.scope, self.receive, self.send)

    async def close(self) -> None:
        """Close the connection after what was written, and wait until it is closed."""
        self.connection.close()
        await self.receive()


class _App:
    """The ASGI application."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._waiting: set[asyncio.Transport] = set()
        self._closing = False

    def close_waiting(self) -> None:
        """End the calls that wait for their time to answer; safe from another thread."""
        self._closing = True
        for connection in self._waiting.copy():
            with contextlib.suppress(OSError):  # the client was quicker
                connection.get_extra_info("socket").shutdown(SHUT_RDWR)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = Request(scope, receive)
        endpoint = ENDPOINTS.get(http.url.path)
        if endpoint is None or http.method != "POST":
            body, headers = _error(Fault(404, "unknown_url", "There is no such URL."))
            await JSONResponse(body, 404, headers)(scope, receive, send)
            return
        request: Json = await http.json()
        retries = http.headers.get("x-stainless-retry-count")
        record = self._server.arrive(endpoint, request, None if retries is None else int(retries))
        exchange = _Exchange(scope, receive, send, request, record, Fault())
        try:
            await self._answer(exchange, self._server.behaviour)
        except Exception as error:  # of a reply, fault or latency function: the test's own
            message = f"{type(error).__name__}: {error}"
            await self._refuse(exchange, Fault(400, "test_function", message))

    async def _answer(self, exchange: _Exchange, how: Behaviour) -> None:
        record, request = exchange.record, exchange.request
        if how.faults is not None:
            exchange.fault = how.faults(record.sequence, request) or Fault()
        fault = exchange.fault
        latency_s = how.latency_s(request) if callable(how.latency_s) else how.latency_s
        if not await self._wait(exchange, latency_s + fault.hang_s):
            self._server.finish(record, "client-gone", None, {})
        elif fault.disconnect == "before" or (fault.disconnect and not record.stream):
            self._server.finish(record, "cut", None, {})
            await exchange.close()
        elif fault.raw is not None:
            self._server.finish(record, "error", fault.status or 200, {})
            headers = {} if fault.location is None else {"location": fault.location}
            answer = Response(fault.raw, fault.status or 200, headers, "application/json")
            await answer(exchange.scope, exchange.receive, exchange.send)
        elif fault.status is not None:
            await self._refuse(exchange, fault)
        elif fault.endless_s:
            await self._dribble(exchange)
        elif record.endpoint == "embeddings":
            await self._complete(exchange, *_embeddings(request, how.vector_size))
        else:
            if fault.ramble:
                text = _ramble(fault.content or "", request)
            else:
                text = fault.refusal or fault.content
                text = how.reply(request) if text is None else text
            written = text if fault.thoughts is None else f"{fault.thoughts} {text}"
            usage = _chat_usage(request, written, fault.cached_tokens) | (fault.usage or {})
            usage = {name: figure for name, figure in usage.items() if figure is not None}
            if record.stream:
                await self._stream(exchange, text, usage)
            else:
                said = {"content": text, "refusal": None}
                if fault.refusal:
                    said = {"content": None, "refusal": text}
                if fault.thoughts is not None:
                    said["reasoning_content"] = fault.thoughts
                message = {"role": "assistant", **said}
                choice = {"index": 0, "message": message, "finish_reason": fault.reason}
                body = _envelope(record, "chat.completion", [choice])
                await self._complete(exchange, body, usage)

    async def _dribble(self, exchange: _Exchange) -> None:
        """Send blanks, which JSON allows before a value, until the time or the client is over."""
        headers = [(b"content-type", b"application/json")]
        await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
        ends_at = time.monotonic() + exchange.fault.endless_s
        while time.monotonic() < ends_at and not self._closing:
            await exchange.send({"type": "http.response.body", "body": b" ", "more_body": True})
            if exchange.connection.is_closing():
                break
            await asyncio.sleep(0.02)
        self._server.finish(exchange.record, "client-gone", 200, {})
        await exchange.close()

    async def _wait(self, exchange: _Exchange, seconds: float) -> bool:
        """Wait, and say whether the client is still there; it leaves by closing its end."""
        if seconds <= 0:
            return True
        self._waiting.add(exchange.connection)
        try:
            async with asyncio.timeout(0 if self._closing else seconds):
                await exchange.receive()
            return False
        except TimeoutError:
            return not self._closing
        finally:
            self._waiting.discard(exchange.connection)

    async def _refuse(self, exchange: _Exchange, fault: Fault) -> None:
        assert fault.status is not None
        self._server.finish(exchange.record, "error", fault.status, {})
        await exchange.respond(fault.status, *_error(fault))

    async def _complete(self, exchange: _Exchange, body: Json, usage: Json) -> None:
        shown = {} if exchange.fault.omit_usage else {"usage": usage}
        self._server.finish(exchange.record, "answered", 200, usage)
        await exchange.respond(200, {**body, **shown}, {})

    async def _stream(self, exchange: _Exchange, text: str, usage: Json) -> None:
        record = exchange.record
        options: Json = exchange.request.get("stream_options") or {}
        asked_for_usage = bool(options.get("include_usage")) and not exchange.fault.omit_usage
        extra: Json = {"usage": None} if asked_for_usage else {}

        async def send(chunk: Json | str, last: bool = False) -> None:
            data = chunk if isinstance(chunk, str) else json.dumps({**extra, **chunk})
            event = {"type": "http.response.body", "body": f"data: {data}\n\n".encode()}
            await exchange.send({**event, "more_body": not last})

        def chunk(delta: Json, finish_reason: str | None = None) -> Json:
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            return _envelope(record, "chat.completion.chunk", [choice])

        pieces = re.findall(rf"(?:\s*\S+){{1,{WORDS_PER_CHUNK}}}\s*|\s+", text)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(chunk({"role": "assistant", "content": ""}))
        if exchange.fault.disconnect:
            sent = pieces[: len(pieces) // 2]
            for piece in sent:
                await send(chunk({"content": piece}))
            cost = {**usage, "completion_tokens": _words("".join(sent))}
            self._server.finish(record, "cut", 200, cost)
            await exchange.close()
            return
        if exchange.fault.thoughts is not None:
            await send(chunk({"reasoning_content": exchange.fault.thoughts}))
        field = "refusal" if exchange.fault.refusal else "content"
        for piece in pieces:
            await send(chunk({field: piece}))
        await send(chunk({}, exchange.fault.reason))
        if asked_for_usage:
            await send({**_envelope(record, "chat.completion.chunk", []), "usage": usage})
        gone = exchange.connection.is_closing()
        self._server.finish(record, "client-gone" if gone else "answered", 200, usage)
        await send("[DONE]", last=True)


def _ramble(begin: str, request: Json) -> str:
    bound = int(request.get("max_tokens") or request.get("max_completion_tokens") or 1000)
    return " ".join([*begin.split(), *(f"and{n}" for n in range(bound))][:bound])


def _envelope(record: Record, kind: str, choices: list[Json]) -> Json:
    return {
        "id": f"chatcmpl-{record.sequence}",
        "object": kind,
        "created": int(time.time()),
        "model": record.model,
        "choices": choices,
    }


def _error(fault: Fault) -> tuple[Json, dict[str, str]]:
    kind, code, message = ERRORS.get(fault.status or 500, ERRORS[500])
    error = {"type": kind, "param": fault.param, "code": fault.code or code}
    error["message"] = fault.message or message
    wait = {"retry-after": fault.retry_after_s, "retry-after-ms": fault.retry_after_ms}
    headers = {name: f"{value:g}" for name, value in wait.items() if value is not None}
    if fault.retry_after is not None:
        headers["retry-after"] = fault.retry_after
    return {"error": error}, headers


def _words(text: str) -> int:
    return len(text.split())


def _text(content: str | list[Json] | None) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return content or ""


def _chat_usage(request: Json, reply: str, cached_tokens: int | None) -> Json:
    prompt = sum(_words(_text(message.get("content"))) + 3 for message in request["messages"])
    usage: Json = {"prompt_tokens": prompt, "completion_tokens": _words(reply)}
    usage["total_tokens"] = prompt + usage["completion_tokens"]
    if cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached_tokens}
    return usage


def _embeddings(request: Json, vector_size: int) -> tuple[Json, Json]:
    """Return the answer's body and usage for one text, many, or the same as token numbers."""
    given = request["input"]
    single = isinstance(given, str) or (bool(given) and isinstance(given[0], int))
    texts: list[str] = [
        text if isinstance(text, str) else " ".join(map(str, text))
        for text in ([given] if single else given)
    ]
    size = int(request.get("dimensions") or vector_size)
    data: list[Json] = []
    for index, text in enumerate(texts):
        vector = embed(text, size)
        encoded = request.get("encoding_format") == "base64"
        shown = base64.b64encode(vector.tobytes()).decode() if encoded else vector.tolist()
        data.append({"object": "embedding", "index": index, "embedding": shown})
    tokens = sum(_words(text) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": request.get("model")}, usage


def embed(text: str, size: int) -> NDArray[np.float32]:
    """Return the unit vector, shape (size,), that the server gives a text: its words, hashed.

    The same text gives the same vector in every process; texts that share words are near.
    """
    vector = np.zeros(size, dtype="<f4")
    for word in text.lower().split() or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        for half in (digest[:4], digest[4:]):
            # Only additions, so that words can't cancel out to a zero vector.
            vector[int.from_bytes(half, "little") % size] += 1
    return (vector / np.linalg.norm(vector)).astype("<f4")


def _model_of(schema: Json, name: str, root: Json | None = None) -> Any:
    """Return the type that a JSON schema describes: models, lists, choices and plain values."""
    top = schema if root is None else root
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return _model_of(top["$defs"][name], name, top)
    if "enum" in schema or "const" in schema:
        return Literal[tuple(schema.get("enum", [schema.get("const")]))]
    if "anyOf" in schema:
        choices = tuple(_model_of(choice, name, top) for choice in schema["anyOf"])
        return Union[choices]  # noqa: UP007
    kind = schema.get("type")
    if kind == "array":
        return list[_model_of(schema.get("items", {}), name, top)]
    if kind == "object" and "properties" in schema:
        fields: Json = {
            key: (_model_of(value, key, top), Field(description=value.get("description")))
            for key, value in schema["properties"].items()
        }
        return create_model(
            str(schema.get("title", name)), __doc__=schema.get("description"), **fields
        )
    plain = {"integer": int, "number": float, "boolean": bool, "null": None, "object": dict}
    return plain.get(kind, str)
