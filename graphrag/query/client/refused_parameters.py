"""Learns which parameters a model refuses, and sends its requests without them."""

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel

_log = logging.getLogger(__name__)
JSON_SCHEMA, JSON_OBJECT = "json_schema", "json_object"
"""The ways to ask for a form of a reply, as they are named among refused parameters."""
SYSTEM_ROLE = "system_role"
"""Names messages with the role ``system`` among refused parameters."""
_FORM, _STREAM, _USER = "response_format", "stream", "user"
_FORMS = (JSON_SCHEMA, JSON_OBJECT)
_RENAMED = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
_NEEDED = {
    *("messages", "model", "input", "dimensions", "tools", "prompt"),
    *("timeout", "max_retries", "organization", "headers", "extra_headers", "extra_query"),
    *("extra_body", "api_key", "api_base", "base_url", "api_version", "metrics", "mock_response"),
}
"""Parameters that can't be left out, or that are needed to reach the service."""
_OF_FORM = re.compile(
    r"response[ _]?format|json[ _-]?(?:schema|object|mode)|structured[ _]outputs?|guided|grammar",
    re.IGNORECASE,
)
_OF_SYSTEM = re.compile(
    r"\bsystem\W+role|\brole\b[^.]{0,60}\bsystem\b|\bsystem (?:message|prompt|instruction)"
    r"|developer instruction|roles must alternate",
    re.IGNORECASE,
)
"""Wording of services whose models take no system message."""
_SAYS_NO = re.compile(
    r"not support|unsupported|n't support|unknown|unrecognized|unexpected|not (?:allowed|permitted)"
    r"|invalid|unavailable|no endpoints|must alternate",
    re.IGNORECASE,
)
_NAMES = {
    _STREAM: r"stream(?:ing)?",
    _USER: r"['\"`]user['\"`]|(?:parameter|argument|field|property|supplied)s?\W+user",
}
"""How errors name a parameter whose name is an ordinary word, too."""
_NAMING = (404, 405, 415, 500, 501)
"""Statuses with which a parameter counts as refused only if the message names it."""
_OTHER_CAUSES = ("ContextWindowExceededError", "ContentPolicyViolationError")
_NOT_SENT = "UnsupportedParamsError"
_READ = 2000
IN_WORDS = (
    "Reply with one JSON object and nothing else: no other text, no code block. It fits this JSON "
    "schema:\n"
)
"""Precedes a JSON schema in a message, if the schema can't be sent as a parameter."""


def was_sent(error: BaseException) -> bool:
    """Say whether a request left this machine; litellm refuses some parameters itself."""
    return _NOT_SENT not in _kinds(error)


@dataclass(eq=False)
class RefusedParameters:
    """Keeps the names of parameters, or forms of a reply, that one model refuses in a run.

    ``service`` names the model in the warning. A name in ``left_out`` is final: a request without
    it was answered.
    """

    service: str
    left_out: frozenset[str] = frozenset()
    _answered: set[frozenset[str]] = field(default_factory=set[frozenset[str]])
    _guesses_help: bool = True

    def concede(
        self,
        error: BaseException,
        request: Mapping[str, object],
        settings: Mapping[str, object],
        left_out: frozenset[str],
    ) -> frozenset[str] | None:
        """Return the parameters to leave out when a refused request is sent again.

        None if it is not sent again. ``request`` was sent without ``left_out``; ``settings`` are
        parameters of every request.
        """
        status = getattr(error, "status_code", None)
        is_bad = status in (400, 422)
        if _kinds(error) & {*_OTHER_CAUSES} or not (is_bad or status in _NAMING):
            return None
        known = self.left_out - left_out
        if known:  # learned by another request in the meantime
            return left_out | known
        param, page = getattr(error, "param", None), getattr(error, "page", "")
        text = f"{repr(param) if param else ''} {error} {page}"[:_READ]
        names = _find_named(text, adapt(request, left_out), adapt(settings, left_out))
        if names and (is_bad or _SAYS_NO.search(text)):
            return left_out | names
        if is_bad and self._guesses_help and _kind_of(request, left_out) not in self._answered:
            return self._guess(request, settings, left_out)
        return None

    def _guess(
        self,
        request: Mapping[str, object],
        settings: Mapping[str, object],
        left_out: frozenset[str],
    ) -> frozenset[str] | None:
        """Return the parameters to leave out if the error names none: the form, or temperature."""
        words = frozenset(_FORMS)
        base = left_out - ({*words, "temperature"} - self.left_out)
        has_form = request.get(_FORM) is not None
        forms = [base, base | {JSON_SCHEMA}, base | words] if has_form else [base]
        chain = list(forms)
        if "temperature" in request and "temperature" not in settings:
            chain += [form | {"temperature"} for form in dict.fromkeys((forms[0], forms[-1]))]
        later = chain[chain.index(left_out) + 1 :] if left_out in chain else []
        self._guesses_help = bool(later) or len(chain) == 1
        return later[0] if later else None

    def confirm(self, request: Mapping[str, object], left_out: frozenset[str]) -> None:
        """Note that a request without these parameters was answered; warn of new ones."""
        self._answered.add(_kind_of(request, left_out))
        if left_out - self.left_out:
            self.left_out |= left_out
            _log.warning("%s", describe_refused(self.service, self.left_out))


def _kind_of(request: Mapping[str, object], left_out: frozenset[str]) -> frozenset[str]:
    """Return the names of the parameters that are sent, and the form that they ask for."""
    sent = adapt(request, left_out)
    names = {name for name, value in sent.items() if value is not None}
    return frozenset(names | {_sent_form(sent) or ""})


def _find_named(
    text: str, sent: Mapping[str, object], settings: Mapping[str, object]
) -> frozenset[str]:
    """Return the parameters that an error names, the request's own first, else the settings'."""
    for parameters in ({k: v for k, v in sent.items() if k not in settings}, settings):
        named = {n for n in parameters if n not in _NEEDED and _is_named(n, text)}
        if (form := _sent_form(parameters)) and (_FORM in named or _OF_FORM.search(text)):
            return frozenset({form})
        named -= {_FORM}
        if named:
            return frozenset(named - {_STREAM} or {_STREAM, "stream_options"})
    has_system = any(_role(message) == "system" for message in _messages(sent))
    return frozenset({SYSTEM_ROLE} if has_system and _OF_SYSTEM.search(text) else ())


def _is_named(name: str, text: str) -> bool:
    pattern = _NAMES.get(name, re.escape(name))
    return re.search(rf"(?<!\w)(?:{pattern})(?!\w)", text) is not None


def describe_refused(service: str, left_out: Iterable[str]) -> str:
    """Return a sentence on the parameters that a model refused, and on their replacements.

    ``service`` names the model.
    """
    names = {*left_out}
    parts: list[str] = []
    if JSON_OBJECT in names:
        parts.append("the form of a reply is asked for in words (response_format is refused)")
    elif JSON_SCHEMA in names:
        parts.append("the form of a reply is asked for as json_object (json_schema is refused)")
    if SYSTEM_ROLE in names:
        parts.append("instructions are in the first message of the user (role system is refused)")
    for name in sorted(names - {*_FORMS, SYSTEM_ROLE}):
        other = _RENAMED.get(name)
        if other is not None and other not in names:
            parts.append(f"{other} replaces {name}")
        else:
            parts.append(f"{name} is left out{_CONSEQUENCES.get(name, '')}")
    return f"{service} refuses parameters, so it is asked without them: {'; '.join(parts)}"


_CONSEQUENCES = {
    "temperature": ", so the service's own applies and replies may differ from run to run",
    "max_tokens": ", so that its replies have no bound",
    "stream_options": ", so tokens of streamed replies are counted here",
}


def adapt(request: Mapping[str, object], left_out: frozenset[str]) -> dict[str, object]:
    """Return a request, or parameters of every request, without the parameters left out.

    A form that can't be asked for by a schema is described in the last message.
    """
    sent = dict(request)
    if not left_out:
        return sent
    for name in left_out - {*_FORMS}:
        value = sent.pop(name, None)
        other = _RENAMED.get(name)
        if value is not None and other is not None and other not in left_out:
            sent.setdefault(other, value)
    if SYSTEM_ROLE in left_out and "messages" in sent:
        sent["messages"] = _without_system(_messages(sent))
    if JSON_SCHEMA in left_out and _sent_form(request) == JSON_SCHEMA:
        schema = _schema(sent.pop(_FORM))
        if JSON_OBJECT not in left_out:
            sent[_FORM] = {"type": JSON_OBJECT}
        if "messages" in sent:
            sent["messages"] = _with_form(_messages(sent), schema)
    elif JSON_OBJECT in left_out and _sent_form(request) == JSON_OBJECT:
        del sent[_FORM]
    return sent


def _sent_form(request: Mapping[str, object]) -> str | None:
    form = request.get(_FORM)
    if form is None:
        return None
    kind = cast("Mapping[str, object]", form).get("type") if isinstance(form, Mapping) else None
    return JSON_OBJECT if kind == JSON_OBJECT else JSON_SCHEMA


def _schema(form: object) -> object:
    """Return the JSON schema of a form: a class, its schema, or the request for it."""
    if isinstance(form, type) and issubclass(form, BaseModel):
        return form.model_json_schema()
    schema = cast("Mapping[str, object]", form)
    inner = schema.get(JSON_SCHEMA)
    return cast("Mapping[str, object]", inner)["schema"] if isinstance(inner, Mapping) else schema


def _messages(request: Mapping[str, object]) -> list[object]:
    messages = request.get("messages")
    return cast("list[object]", messages) if isinstance(messages, list) else []


def _as_mapping(message: object) -> dict[str, object]:
    plain = message.model_dump(exclude_none=True) if isinstance(message, BaseModel) else message
    return dict(cast("Mapping[str, object]", plain))


def _role(message: object) -> object:
    return _as_mapping(message).get("role")


def _without_system(messages: list[object]) -> list[object]:
    """Return messages with the system's texts moved into the first message of the user."""
    texts = [str(_as_mapping(m).get("content")) for m in messages if _role(m) == "system"]
    others = [message for message in messages if _role(message) != "system"]
    if not texts:
        return messages
    first = _as_mapping(others[0]) if others else {}
    content = first.get("content")
    if first.get("role") != "user" or not isinstance(content, str):
        return [{"role": "user", "content": "\n\n".join(texts)}, *others]
    return [{**first, "content": "\n\n".join([*texts, content])}, *others[1:]]


def _with_form(messages: list[object], schema: object) -> list[object]:
    *before, last = messages
    message = _as_mapping(last)
    text = f"{IN_WORDS}{json.dumps(schema, ensure_ascii=False)}"
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [*cast("list[object]", content), {"type": "text", "text": text}]
    else:
        message["content"] = f"{content}\n\n{text}"
    return [*before, message]


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
