"""Types of models' replies, and functions that bound, check and parse replies.

The types replace the released graphrag's, which load openai; that takes a second.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema

from graphrag.config.models.strict_section import explain_first
from graphrag.query.client.call_errors import Answer, GarbledReplyError
from graphrag.query.client.model_prices import known_facts
from graphrag.query.client.thoughts import lone_ends, without_opened
from graphrag.query.client.usage import OutputBound
from graphrag.query.methods import section_name

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig


@dataclass(slots=True)
class TokenUsage:
    """Contains token counts by the service, >= 0; None if it reports none."""

    prompt_tokens: int | None
    completion_tokens: int | None = 0
    cached_tokens: int | None = None


@dataclass(slots=True)
class Message:
    """Contains the text of a reply, its refusal and its thoughts.

    ``refusal`` is the text by which the model declines to answer. ``reasoning_content`` are its
    thoughts, if the service sends them apart.
    """

    content: str | None
    refusal: str | None = None
    reasoning_content: str | None = None


@dataclass(slots=True)
class Choice:
    """Contains a reply, or a piece of one, and why it ended."""

    message: Message
    finish_reason: str | None

    @property
    def delta(self) -> Message:
        """The message of a streamed piece."""
        return self.message


@dataclass(slots=True)
class Completion:
    """Contains a reply, or a piece of one.

    ``formatted_response`` is the reply in the requested form, None without one.
    """

    choices: list[Choice]
    usage: TokenUsage | None = None
    formatted_response: BaseModel | None = None

    @classmethod
    def of(
        cls,
        text: str | None,
        reason: str | None,
        refusal: str | None = None,
        usage: TokenUsage | None = None,
        thoughts: str | None = None,
    ) -> "Completion":
        """Make a completion with one choice from its text."""
        return cls([Choice(Message(text, refusal, thoughts), reason)], usage)

    @property
    def content(self) -> str:
        """The text of the first choice."""
        return self.choices[0].message.content or ""


@dataclass(slots=True)
class Embeddings:
    """Contains one vector for each text, in the texts' order."""

    embeddings: list[list[float]]
    usage: TokenUsage | None = None

    @property
    def first_embedding(self) -> list[float]:
        """The vector of the first text."""
        return self.embeddings[0]


Reply = TypeVar("Reply", bound=BaseModel)

_ASCII = {0xFF5B: "{", 0xFF5D: "}", 0xFF3B: "[", 0xFF3D: "]", 0xFF1A: ":", 0xFF0C: ","}
"""Full-width signs, which models write among Chinese or Japanese words -> JSON's."""
_BRACE = re.compile(r"[{}\uff5b\uff5d]")
_FENCE_BEFORE = re.compile(r"\s*(?:```[\w-]*\s*)?")
_FENCE_AFTER = re.compile(r"\s*(?:```\s*)?")
_LABEL = re.compile(r"^[ \t]*\*\*(\w+)(?:[:\uff1a]\*\*|\*\*[:\uff1a])", re.MULTILINE)
_LIST = re.compile(r"\s*(?:```[\w-]*\s*)?\[\s*\{\}(?:\s*,\s*\{\})*\s*,?\s*\]\s*(?:```\s*)?")
_PART = re.compile(
    r"""(?P<text>"(?:(?:„|(?<=[\s(])"(?=\w))(?:[^"„\\]|\\.)*"(?!\s*(?:[:}\]]|,(?!\s*[^\W\d])))"""
    r"""|[^"\\]|\\.)*\""""
    r"""|'(?:[^'\\]|\\.|(?<=\w)'(?=\w))*'"""
    r"|\u201c(?:[^\u201c\u201d\\]|\\.)*\u201d|\uff02(?:[^\uff02\\]|\\.)*\uff02)"
    r"|(?P<open>[{\[\uff5b\uff3b])|(?P<close>[}\]\uff5d\uff3d])"
    r"|(?P<extra>[,\uff0c](?=\s*[}\]\uff5d\uff3d]))|[\s:,\uff1a\uff0c]+|(?P<word>[\w.+-]+)",
    re.DOTALL,
)
"""A piece of JSON, or of what models write for it. An apostrophe inside a word does not end a text,
nor does a quotation inside it."""
_MARK, _MARKS = re.compile(r'\\.|"', re.DOTALL), {r"\'": "'", '"': r"\""}
_ESCAPE = re.compile(r"\\([\"\\/bfnrt]|u[0-9a-fA-F]{4})?")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Characters that JSON does not allow and that mean nothing when a model lets them slip in."""
MOST_CHARACTERS = 2_000_000
"""Length limit of one reply: several times what any model writes."""
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_STRAY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_ENVELOPE = re.compile(
    r'\s*\{\s*"(?:choices"\s*:\s*\[|object"\s*:\s*"chat\.completion|id"\s*:\s*"chatcmpl-)'
)
_PAGE = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_NOT_COMPARED = re.compile(r"\\[bfnrt]|[\\\s]")


THOUGHTS_ALONE = "it contains only the model's thoughts, and no answer"


class UnreadableReplyError(ValueError):
    """Raised when a reply is not the JSON that was asked for; ``content`` is its text.

    The reply is paid for and counted.
    """

    def __init__(self, content: str, reason: str) -> None:
        super().__init__(f"the model's reply can't be read: {reason}")
        self.content = content


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object in a text, and its position."""

    start: int
    end: int
    value: dict[str, object]


def read_refusal(message: object) -> str:
    """Return the refusal in a reply's message or in a streamed piece; "" without one.

    litellm passes on a message's refusal among the fields that it does not know, and drops the
    refusal of a stream.
    """
    fields = getattr(message, "provider_specific_fields", None)
    unknown = cast("Mapping[str, str]", fields or {})
    return getattr(message, "refusal", None) or unknown.get("refusal") or ""


class ReplyForm(BaseModel):
    """Base of the forms in which models reply with JSON.

    Keys that the form lacks are dropped, and null counts as missing for an optional field. The case
    of a choice does not matter; a text or a whole float stands for the number among the choices
    that it names, and true and false stand for 1 and 0.
    """

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Make every field required: services that enforce a schema refuse defaults in it."""
        json_schema = handler.resolve_ref_schema(handler(schema))
        for field in json_schema["properties"].values():
            field.pop("default", None)
        return {**json_schema, "required": [*json_schema["properties"]]}

    @model_validator(mode="before")
    @classmethod
    def _choose(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        values = dict(cast("Mapping[str, object]", data))
        for name, field in cls.model_fields.items():
            if not field.is_required() and values.get(name) is None:
                values.pop(name, None)
            elif name in values and get_origin(field.annotation) is Literal:
                values[name] = read_choice(values[name], get_args(field.annotation))
        return values


def read_choice(value: object, choices: tuple[object, ...]) -> object:
    """Return the choice that matches a value; return the value itself if none matches.

    A bool is None if the choices are not 0 and 1.
    """
    if isinstance(value, bool):
        return int(value) if {*choices} == {0, 1} else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    folded = value.strip().casefold() if isinstance(value, str) else value
    return next((choice for choice in choices if folded in (choice, str(choice))), value)


def read_number(value: object, low: float, high: float) -> float | None:
    """Return a number from ``low`` to ``high``, also if written as text; None for all else."""
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool) and low <= (number := float(cast("float", value))) <= high:
            return number
    return None


def read_texts(value: object) -> list[str]:
    """Return the items of a list as texts; a single text or number counts as a list of one."""
    if isinstance(value, str | int):
        return [str(value)]
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [str(item) for item in items if item is not None]


def read_reply(content: str, form: type[Reply], prompt: str = "") -> Reply:
    """Read the one JSON object in a reply that fits the form.

    The model's thoughts are left out first. The object may be the full reply, be in a code
    block, closed or not, or have prose around it. An object inside another one is no reply by
    itself. Faulty JSON is mended if there is only one way to do so: single quotes, an extra comma,
    a backslash that escapes nothing, Python's True. A form of one list may come as that list, and a
    form that ends in a choice as prose and ``**Score:** 1``.

    An object among prose may be a quotation if it also occurs in ``prompt``, the text that the
    model was shown; then it is refused. Escapes and spacing make no difference. Raises
    UnreadableReplyError if no object has the form, more than one has, or it is not clear
    whether one is the reply.
    """
    cleaned = _CONTROL.sub("", content)
    text = without_opened(cleaned)
    if not text.strip() and cleaned.strip():
        raise UnreadableReplyError(content, THOUGHTS_ALONE)
    objects, is_balanced = _find_objects(text)
    ends = [e for e in lone_ends(text) if not any(f.start < e[0] < f.end for f in objects)]
    if len(ends) > 1 or (ends and text != cleaned):
        raise UnreadableReplyError(content, "it is not clear where its thinking ends")
    if ends:  # the model's template has opened the thinking
        text = text[ends[0][1] :]
        objects, is_balanced = _find_objects(text)
    labelled = _read_labels(text, form)
    fitting: list[tuple[_Object, Reply]] = []
    problem: ValidationError | None = None
    for candidate in (*objects, *_read_list(text, objects, form), *labelled):
        try:
            fitting.append((candidate, form.model_validate(candidate.value)))
        except ValidationError as error:
            problem = error
    if not fitting:
        raise UnreadableReplyError(content, _explain(text, objects, problem)) from problem
    if len(fitting) > 1:
        msg = f"{len(fitting)} JSON objects in it have the form, so that neither counts"
        raise UnreadableReplyError(content, msg)
    [(source, reply)] = fitting
    if not is_balanced or (objects and source in labelled):
        raise UnreadableReplyError(content, "it has further braces, or one without a counterpart")
    before = _FENCE_BEFORE.fullmatch(text, 0, source.start)
    is_alone = before is not None and _FENCE_AFTER.fullmatch(text, source.end) is not None
    is_quoted = bool(ends) or not is_alone
    if is_quoted and prompt and _fold(text[source.start : source.end]) in _fold(prompt):
        raise UnreadableReplyError(content, "its JSON object may be quoted from the prompt")
    return reply


def _explain(text: str, objects: list[_Object], problem: ValidationError | None) -> str:
    if problem is None:
        return "it is not JSON" if text.strip() else "it is empty"
    if len(objects) > 1:
        return f"none of the {len(objects)} JSON objects in it has the form"
    return explain_first(problem)


def _read_list(text: str, objects: list[_Object], form: type[BaseModel]) -> list[_Object]:
    """Return a bare list's objects as the one field of a form; [] if the text is no such list."""
    if len(form.model_fields) != 1 or not objects:
        return []
    ends = [0, *(obj.end for obj in objects)]
    starts = [*(obj.start for obj in objects), len(text)]
    around = "{}".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    if _LIST.fullmatch(around) is None:
        return []
    return [_Object(0, len(text), {next(iter(form.model_fields)): [obj.value for obj in objects]})]


def _read_labels(text: str, form: type[BaseModel]) -> list[_Object]:
    """Return the fields of a reply that is prose with labels; the last field is a choice."""
    fields = form.model_fields
    before, *labelled = _LABEL.split(text)
    names = [name.casefold() for name in labelled[::2]]
    if not names or len({*names}) < len(names) or names[-1] not in fields:
        return []
    values = dict(zip(names, (value.strip() for value in labelled[1::2]), strict=True))
    is_choice = get_origin(fields[names[-1]].annotation) is Literal
    reason, prose = values.setdefault(next(iter(fields)), before.strip()), before.strip()
    if not is_choice or not reason or prose not in ("", reason):
        return []
    return [_Object([*_LABEL.finditer(text)][-1].start(), len(text), {**values})]


def _find_objects(text: str) -> tuple[list[_Object], bool]:
    """Return the outermost JSON objects, and whether all other braces come in pairs."""
    objects: list[_Object] = []
    at = depth = 0
    while depth >= 0 and (brace := _BRACE.search(text, at)) is not None:
        at = brace.end()
        if brace.group() in "}\uff5d":
            depth -= 1
            continue
        decoded = _decode(text, brace.start()) if depth == 0 else None
        if decoded is None:
            depth += 1
        else:
            objects.append(decoded)
            at = decoded.end
    return objects, depth == 0


def _decode(text: str, start: int) -> _Object | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any form
        return _mend(text, start)
    return _Object(start, end, value)


def _mend(text: str, start: int) -> _Object | None:
    """Read an object that is not quite JSON; None if that would take a guess."""
    parts: list[str] = []
    depth, at = 0, start
    while (part := _PART.match(text, at)) is not None:
        at, written = part.end(), part.group()
        if part.lastgroup == "text":
            inner = _MARK.sub(lambda mark: _MARKS.get(mark[0], mark[0]), written[1:-1])
            written = '"' + _ESCAPE.sub(lambda match: match[0] if match[1] else r"\\", inner) + '"'
        else:
            written = written.translate(_ASCII)
        parts.append("" if part.lastgroup == "extra" else _WORDS.get(written, written))
        depth += (part.lastgroup == "open") - (part.lastgroup == "close")
        if depth == 0:
            break
    try:
        return _Object(start, at, _DECODER.decode("".join(parts)))
    except (ValueError, RecursionError):
        return None


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object of its pairs; raise ValueError if a key has two different values.

    The decoder alone would take the last one.
    """
    values = dict(pairs)
    # By identity first, because NaN differs from itself: one NaN must not cost the whole reply.
    if any(values[key] is not value and values[key] != value for key, value in pairs):
        raise ValueError("a key has two values")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, strict=False)


def _fold(text: str) -> str:
    return _NOT_COMPARED.sub("", text)


def check_size(n_characters: int, answer: Answer | None = None) -> None:
    """Raise GarbledReplyError if a reply is longer than any model writes; it is not sent again."""
    if n_characters > MOST_CHARACTERS:
        msg = f"it has {n_characters:,} characters or more, where {MOST_CHARACTERS:,} are taken"
        raise GarbledReplyError(msg, answer, may_pass=False)


def has_stray_control(text: str, prompt: str) -> bool:
    """Say whether a text contains a control character that the model was not shown."""
    control = _STRAY.search(text)
    return control is not None and control.group() not in prompt


def check_content(answer: Answer, prompt: str, takes_controls: bool = False) -> None:
    """Raise GarbledReplyError if a completion was damaged on its way or is not the model's text.

    That is so if it has replacement or control characters, or is a web page or the service's own
    JSON envelope, and ``prompt``, the text shown to the model, has no such thing. It is also so if
    it is longer than any model writes. ``takes_controls``: whether stray control characters are
    the model's own, because its last reply to the same request had some, too.
    """
    text = cast("str", answer.reply)
    check_size(len(text), answer)
    if _BROKEN in text and _BROKEN not in prompt:
        raise GarbledReplyError("its text was damaged (replacement characters)", answer)
    if not takes_controls and has_stray_control(text, prompt):
        raise GarbledReplyError("its text was damaged (control characters)", answer)
    if _PAGE.match(text) and "<html" not in prompt.lower():
        raise GarbledReplyError("it is a web page", answer)
    if _ENVELOPE.match(text) and '"choices"' not in prompt:
        raise GarbledReplyError("it is the service's own envelope, not a model's text", answer)


def check_vectors(answer: Answer, n_texts: int) -> None:
    """Raise GarbledReplyError unless each text has one vector of finite numbers, all as long."""
    vectors = cast("list[list[float]]", answer.reply)
    if len(vectors) != n_texts:
        raise GarbledReplyError(f"{len(vectors)} embeddings came for {n_texts} texts", answer)
    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise GarbledReplyError("its embeddings are empty or of different lengths", answer)
    if not all(isfinite(number) for vector in vectors for number in vector):
        raise GarbledReplyError("its embeddings are not finite numbers", answer)


BOUND_KEYS = ("max_tokens", "max_completion_tokens")
REASONING_TOKENS = 25_000
"""Tokens for a reasoning model's thoughts, on top of a bound: providers count thoughts as output.
OpenAI advises to keep at least as much free."""
_THINKING = ("reasoning_effort", "thinking")
_OF_REQUEST = "max_tokens of the request"


def own_bound(config: "ModelConfig") -> OutputBound | None:
    """Return the output bound in a model's own ``call_args``, None without one."""
    for key in BOUND_KEYS:
        if (tokens := config.call_args.get(key)) is not None:
            name = f"call_args.{key} of {config.model_provider}/{config.model} in settings.yaml"
            return OutputBound(int(tokens), name)
    return None


def bind_output(
    request: Mapping[str, object], config: "ModelConfig", scope_bound: OutputBound | None
) -> tuple[OutputBound | None, dict[str, object]]:
    """Return the bound of a request's output, and the request with that bound alone.

    The bound in the model's own ``call_args`` (which are sent with every request) comes first, then
    the request's own, then the scope's. None without any.
    """
    rest = {key: value for key, value in request.items() if key not in BOUND_KEYS}
    own = own_bound(config)
    if own is not None:
        return own, rest
    for key in BOUND_KEYS:
        if (tokens := request.get(key)) is not None:
            return OutputBound(int(cast("int", tokens)), _OF_REQUEST), {**rest, key: tokens}
    if scope_bound is None:
        return None, rest
    tokens = allowed_output(config, scope_bound.tokens)
    return replace(scope_bound, tokens=tokens), {**rest, "max_tokens": tokens}


def bound_in_force(config: "ModelConfig | None", bound: OutputBound) -> OutputBound:
    """Return the bound that a model's replies get when ``bound`` is asked for.

    It is the one in the model's own ``call_args``, else that of :func:`allowed_output`.
    """
    own = None if config is None else own_bound(config)
    return own or replace(bound, tokens=allowed_output(config, bound.tokens))


def allowed_output(config: "ModelConfig | None", tokens: int) -> int:
    """Return the bound to send for a reply of ``tokens``.

    A model that reasons, by litellm's map or by its ``call_args``, gets :data:`REASONING_TOKENS`
    more. The bound never exceeds the most that the model is known to write.
    """
    if config is None:
        return tokens
    facts = known_facts(f"{config.model_provider}/{config.model}")
    thinks = bool(facts.get("supports_reasoning")) or any(map(config.call_args.get, _THINKING))
    n_tokens = tokens + REASONING_TOKENS if thinks else tokens
    return min(n_tokens, int(facts.get("max_output_tokens") or n_tokens))


_BUDGETS = {
    "global": "global_search.max_context_tokens and global_search.data_max_tokens",
    "drift": "drift_search.data_max_tokens and drift_search.local_search_max_data_tokens",
}


def context_budget(method: str) -> str:
    """Return the settings to lower if a method shows its model more than fits into the context."""
    return _BUDGETS.get(method, f"{section_name(method)}.max_context_tokens") + " in settings.yaml"
