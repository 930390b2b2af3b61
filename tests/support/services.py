"""Services of OpenAI's interface that are not OpenAI: what they refuse, and how their models think.

Each is a plan of faults and a way to reply for ``openai_server``; what it refuses is refused as the
service itself does it. They reply with what the embedded models say, in a form that is asked for as
a schema or in words.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from support.openai_server import Fault, Json, Reply, offline_reply

SCHEMA_IN_WORDS = "JSON schema:\n"
THOUGHT = "Hmm, zzthought: the user asks\nfor a name.\n\nThe texts say Oswin? No"
"""Thoughts over line breaks; ``zzthought`` stands in nothing else."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service.

    ``refuse`` returns the error of a chat request, or None; ``dress`` writes the model's thoughts
    around its answer; ``more`` goes wrong with each answer.
    """

    refuse: Callable[[Json], Fault | None] = lambda request: None
    dress: Callable[[str], str] = lambda answer: answer
    more: Fault = field(default_factory=Fault)

    def plan(self, _: int, request: Json) -> Fault | None:
        """Return the fault of one request, as the server asks for it."""
        if "messages" not in request:
            return None
        return self.refuse(request) or self.more

    def reply(self) -> Reply:
        """Return what replies to chat requests."""
        answer = offline_reply()
        return lambda request: self.dress(answer(with_system(read_form(request))))


def read_form(request: Json) -> Json:
    """Return a request that asks for the schema which another one asks for in words."""
    *before, last = request["messages"]
    text, marked, schema = str(last["content"]).rpartition(SCHEMA_IN_WORDS)
    form: Json = request.get("response_format") or {}
    if not marked or form.get("type") == "json_schema":
        return request
    asked = {"schema": json.loads(schema), "name": "Reply"}
    messages = [*before, {**last, "content": text.rpartition("\n\n")[0]}]
    wanted = {"type": "json_schema", "json_schema": asked}
    return {**request, "messages": messages, "response_format": wanted}


def with_system(request: Json) -> Json:
    """Return a request with its instructions apart from the question, where they stand in one."""
    first, *others = request["messages"]
    system, parted, question = str(first["content"]).rpartition("\n\n")
    if others or not parted or not system.lstrip().startswith(_INSTRUCTIONS):
        return request
    parts = (("system", system), ("user", question))
    return {**request, "messages": [{"role": role, "content": text} for role, text in parts]}


def has_system(request: Json) -> bool:
    """Say whether a request has instructions beside the user's messages."""
    return any(message["role"] == "system" for message in request["messages"])


def form_of(request: Json) -> str | None:
    """Return the type of the form that a request asks for."""
    form: Json = request.get("response_format") or {}
    return form.get("type")


def refusing(
    name: str, message: str, status: int = 400, **how: str
) -> Callable[[Json], Fault | None]:
    """Return a refusal of every request that has a parameter."""
    return lambda request: Fault(status, message=message, **how) if name in request else None


def refusing_forms(message: str, *forms: str, status: int = 400) -> Callable[[Json], Fault | None]:
    """Return a refusal of every request that asks for one of these forms."""
    return lambda r: Fault(status, message=message) if form_of(r) in forms else None


def raw_error(body: object, status: int = 400) -> Fault:
    """Return an error whose body isn't shaped as OpenAI's."""
    return Fault(status, raw=body if isinstance(body, str) else json.dumps(body))


def _refuse_any(*refusals: Callable[[Json], Fault | None]) -> Callable[[Json], Fault | None]:
    return lambda request: next((f for refuse in refusals if (f := refuse(request))), None)


def _only_one_temperature(request: Json) -> Fault | None:
    if request.get("temperature") in (None, 1):
        return None
    message = (
        "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default "
        "(1) value is supported."
    )
    return Fault(400, "unsupported_value", message, param="temperature")


_MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead."
)

_INSTRUCTIONS = ("---Role---", "You look for", "You answer", "You search")
_NO_SYSTEM = "Unsupported value: 'messages[0].role' does not support 'system' with this model."

REFUSING: Mapping[str, Service] = {
    "DeepSeek: json_schema": Service(
        refusing_forms("This response_format type is unavailable now", "json_schema")
    ),
    "Groq: json_schema": Service(
        refusing_forms("This model does not support response format `json_schema`", "json_schema")
    ),
    "any response_format": Service(
        refusing("response_format", "response_format is not supported", param="response_format")
    ),
    "any form, without a name": Service(refusing("response_format", "Bad request.")),
    "OpenRouter: 404": Service(
        refusing(
            "response_format",
            "No endpoints found that support the requested parameters: response_format",
            404,
        )
    ),
    "llama.cpp: 500": Service(
        lambda r: (
            raw_error({"error": {"code": 500, "message": "Unsupported JSON schema"}}, 500)
            if form_of(r) == "json_schema"
            else None
        )
    ),
    "reasoning model: temperature": Service(_only_one_temperature),
    "Zhipu: temperature, in Chinese": Service(
        lambda r: (
            raw_error({"error": {"code": "1210", "message": "temperature 参数非法。"}})
            if r.get("temperature") == 0
            else None
        )
    ),
    "temperature, without a name": Service(
        lambda r: Fault(400, message="Bad request.") if r.get("temperature") == 0 else None
    ),
    "reasoning model: max_tokens": Service(
        refusing("max_tokens", _MAX_TOKENS, code="unsupported_parameter", param="max_tokens")
    ),
    "everything at once": Service(
        _refuse_any(
            refusing("response_format", "response_format is not supported"),
            _only_one_temperature,
            refusing("max_tokens", _MAX_TOKENS),
            refusing("max_completion_tokens", "max_completion_tokens: Extra inputs are forbidden"),
        )
    ),
    "Mistral: 422 for stream_options": Service(
        lambda r: (
            raw_error(
                {
                    "detail": [
                        {"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}
                    ]
                },
                422,
            )
            if "stream_options" in r
            else None
        )
    ),
    "Express: a page": Service(
        lambda r: (
            Fault(404, raw="<html><pre>Error: unknown parameter response_format</pre></html>")
            if "response_format" in r
            else None
        )
    ),
    "Gemma: no system": Service(
        lambda r: Fault(400, message="System role not supported") if has_system(r) else None
    ),
    "o1-mini: no system": Service(
        lambda r: (
            Fault(400, message=_NO_SYSTEM, param="messages[0].role") if has_system(r) else None
        )
    ),
    "no stream, in other words": Service(
        lambda r: (
            raw_error({"detail": "streaming is not allowed"}, 405) if r.get("stream") else None
        )
    ),
    "no stream": Service(
        lambda r: (
            Fault(400, message="Streaming is not available.", param="stream")
            if r.get("stream")
            else None
        )
    ),
}
THINKING: Mapping[str, Service] = {
    "think": Service(dress=lambda a: f"<think>{THOUGHT}</think>{a}"),
    "a line break before it": Service(dress=lambda a: f"\n<think>\n{THOUGHT}\n</think>\n\n{a}"),
    "thinking": Service(dress=lambda a: f"<thinking>{THOUGHT}</thinking>\n{a}"),
    "reasoning": Service(dress=lambda a: f"<reasoning>{THOUGHT}</reasoning>\n{a}"),
    "capitals and a blank": Service(dress=lambda a: f"<Think >{THOUGHT}</THINK>\n{a}"),
    "Magistral": Service(dress=lambda a: f"[THINK]{THOUGHT}[/THINK]{a}"),
    "the end alone": Service(dress=lambda a: f"{THOUGHT}</think>{a}"),
    "the end alone, on a line": Service(dress=lambda a: f"{THOUGHT}\n</thinking>\n\n{a}"),
    "twice": Service(dress=lambda a: f"<think>{THOUGHT}</think>\n<think>{THOUGHT}</think>{a}"),
    "apart": Service(more=Fault(thoughts=THOUGHT)),
}
