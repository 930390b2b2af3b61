"""Removes keys and passwords from every text that leaves the program: logs, errors, stores, files.

Text that is shown is cleaned of known values and of anything that looks like a key. Data that is
kept or computed with (:func:`redact_data`) is cleaned of known values alone, none of them an
ordinary word, because a false alarm would change what is measured.
"""

import base64
import html
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast
from urllib.parse import quote, unquote

from graphrag.text.terminal_escape import strip_controls

REDACTED = "[redacted]"

_MIN_SHOWN = 6
_MIN_DATA = 8
_SURE = 20
"""Length from which even a value made of words counts as a secret."""

_WORDS = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)(?:[-_. /](?:[A-Z]?[a-z]+|[A-Z]+))*|\d+")
_PLACEHOLDERS = {
    "<api_key>",
    "api_key",
    "api-key",
    "changeme",
    "default",
    "lm-studio",
    "no-key-required",
    "not-needed",
    "not-used",
    "offline",
    "ollama",
    "openai",
    "password",
    "secret",
    "sk-no-key-required",
    "your-api-key",
}

_SECRET_SETTING = re.compile(
    r"key$|secret|password|passwd|credential|connection_?string|auth(?:orization)?$|cookie|"
    r"signature|token$|bearer",
    re.IGNORECASE,
)
_SECRET_VARIABLE = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|JWT|CONNECTION_STRING|GIGACHAT_CREDENTIALS)$",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"^(?:basic|bearer|token)\s+", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"://([^\s/?#'\"<>]*)@")
_IN_STRING = re.compile(r"(?:Key|Signature|Password|Pwd|[?&](?:key|sig|code))=([^;&\s]+)", re.I)

_NAMES = (
    *("subscription-key", "secret", "password", "passwd"),
    *(f"{of}{by}key" for of in ("api", "access", "account") for by in ("", "-", "_")),
    *(
        f"{of}{by}token"
        for of in ("access", "auth", "ad", "session", "security")
        for by in ("", "-", "_")
    ),
)
# Each begins with fixed letters, so that a long text without them is read in one pass.
_NAMED = re.compile(
    rf"((?:{'|'.join(_NAMES)})[\w-]{{0,40}}\\*['\"]?\s*[:=]\s*)(\\*['\"]?)([^\s,;&'\"\\)}}\]<>]+)",
    re.IGNORECASE,
)
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(://)[^\s/?#'\"<>]*@"), rf"\1{REDACTED}@"),
    (re.compile(r"([?&](?:key|sig|code|api[_-]?key)=)[^\s&'\"]{8,}", re.I), rf"\1{REDACTED}"),
    (
        re.compile(r"(authorization\\*['\"]?\s*[:=]\s*\\*['\"]?)(?:\w+ )?[^\s,'\"\\]+", re.I),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(bearer\s+)[\w.~+/=-]{16,}", re.I), rf"\1{REDACTED}"),
    (
        re.compile(
            r"\b(?:sk-(?=[A-Za-z_-]*\d)[\w-]{16,}|gsk_\w{20,}|hf_\w{20,}|gh[pousr]_\w{20,}|"
            r"github_pat_\w{20,}|xai-\w{20,}|pplx-\w{20,}|AIza[\w-]{30,}|AKIA[0-9A-Z]{16}|"
            r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
        ),
        REDACTED,
    ),
)
_HINTS = (
    *_NAMES,
    *("://", "key=", "sig=", "code=", "authorization", "bearer"),
    *("sk-", "gsk_", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("xai-", "pplx-", "aiza", "akia", "eyj"),
)
"""Every text in which a pattern above finds something contains one of these, in any case."""
_UNSET = {"none", "null", "true", "false", "...", "**********", REDACTED.strip("[]"), "[redacted"}
_SHORTEST_UNQUOTED = 8


class _Known:
    """The secret values that this process knows, in every spelling, the longest first."""

    shown: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    reads_logs: bool = False


def redact(text: str) -> str:
    """Return a text to be shown, such as a log line or an error, without keys and passwords."""
    text = _replace(text, _Known.shown)
    folded = text.casefold()
    if not any(hint in folded for hint in _HINTS):
        return text
    text = _NAMED.sub(_without_value, text)
    for form, by in _FORMS:
        text = form.sub(by, text)
    return text


def redact_data(text: str) -> str:
    """Return a text to be kept or computed with, without the known keys and passwords."""
    return _replace(text, _Known.data)


def _clean(text: str) -> str:
    return strip_controls(redact(text))


class StreamRedactor:
    """Applies :func:`redact_data` to a text that arrives in pieces, which may split a key."""

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, piece: str) -> str:
        """Return the text that can be shown by now; an end that may begin a key is kept back."""
        text = redact_data(self._pending + piece)
        longest = max((len(value) for value in _Known.data), default=1) - 1
        for start in range(max(0, len(text) - longest), len(text)):
            if any(value.startswith(text[start:]) for value in _Known.data):
                self._pending = text[start:]
                return text[:start]
        self._pending = ""
        return text

    def end(self) -> str:
        """Return the text that was kept back."""
        rest, self._pending = self._pending, ""
        return rest


def know_settings(values: object) -> None:
    """Remember the keys and passwords in settings, and in the environment, as secrets.

    These are values of names such as ``api_key``, passwords in addresses and keys in connection
    strings, in mappings and lists of any depth.
    """
    forms = _all_forms(_secrets_in(values, is_secret=False))
    _know(form for form in forms if len(form) >= _MIN_SHOWN and form.lower() not in _PLACEHOLDERS)
    know_variables(os.environ)


def know_variables(variables: Mapping[str, str | None]) -> None:
    """Remember the values of variables with names of secrets, unless they are mere words.

    Passwords in addresses and keys in connection strings are remembered from any variable.
    """
    values = {name: value for name, value in variables.items() if value}
    named = [value for name, value in values.items() if is_secret_variable(name)]
    _know(filter(_is_sure, _all_forms([*named, *chain(*map(_parts, values.values()))])))


def is_secret_variable(name: str) -> bool:
    """Say whether a variable of the environment contains a key or a password, by its name.

    ``GRAPHRAG_EVAL_IMDB_KEY`` and the like are flags of the command; none of them is a secret.
    """
    return not name.startswith("GRAPHRAG_EVAL_") and bool(_SECRET_VARIABLE.search(name))


def _know(values: Iterable[str]) -> None:
    _Known.shown = _longest_first({*_Known.shown, *values})
    _Known.data = _longest_first(filter(_is_sure, _Known.shown))
    clean_log_records()


def _secrets_in(values: object, is_secret: bool) -> Iterator[str]:
    if isinstance(values, Mapping):
        for name, value in cast("Mapping[object, object]", values).items():
            yield from _secrets_in(value, bool(_SECRET_SETTING.search(str(name))))
    elif isinstance(values, str):
        yield from ([values.strip()] if is_secret else [])
        yield from _parts(values)
    elif isinstance(values, Sequence) and not isinstance(values, bytes):
        for value in cast("Sequence[object]", values):
            yield from _secrets_in(value, is_secret)


def _parts(value: str) -> list[str]:
    parts = _IN_STRING.findall(value) if "=" in value else []
    for user in _IN_ADDRESS.findall(value) if "@" in value else []:
        name, colon, password = user.partition(":")
        parts.append(password if colon else name)
        pair = f"{unquote(name)}:{unquote(password)}"
        parts.append(base64.b64encode(pair.encode()).decode())  # as HTTP sends it
    return parts


def _all_forms(values: Iterable[str]) -> set[str]:
    """Return the spellings of values: as they are, and as in an address, JSON, Python or HTML."""
    bare = {_SCHEME.sub("", value) for value in values}
    plain = bare | {unquote(value) for value in bare}
    escaped = {quote(value, safe=safe) for value in plain for safe in ("", "/")}
    written = {json.dumps(value, ensure_ascii=a)[1:-1] for value in plain for a in (True, False)}
    printed = {form for value in plain for form in (repr(value)[1:-1], html.escape(value))}
    return plain | escaped | written | printed


def _is_sure(value: str) -> bool:
    return len(value) >= _SURE or (len(value) >= _MIN_DATA and not _WORDS.fullmatch(value))


def _longest_first(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def _replace(text: str, values: Sequence[str]) -> str:
    for value in values:
        if value in text:
            text = text.replace(value, REDACTED)
    return text


def _without_value(match: re.Match[str]) -> str:
    name, mark, value = match.groups()
    is_given = bool(mark) or name.rstrip().endswith("=") or len(value) >= _SHORTEST_UNQUOTED
    return f"{name}{mark}{REDACTED}" if is_given and value.lower() not in _UNSET else match[0]


def clean_log_records() -> None:
    """Clean every log record that is made from now on, by any library and for any handler.

    Keys and passwords are removed, and the characters that a terminal obeys.
    """
    if _Known.reads_logs:
        return
    _Known.reads_logs = True
    make: Callable[..., logging.LogRecord] = logging.getLogRecordFactory()

    def make_clean(*args: object, **kwargs: object) -> logging.LogRecord:
        record = make(*args, **kwargs)
        try:
            message = record.getMessage()
        except Exception:  # logging itself reports arguments that don't fit the message
            return record
        clean = _clean(message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            clean = _clean(trace)
            if clean != trace:
                record.exc_info, record.exc_text = None, clean
        return record

    logging.setLogRecordFactory(make_clean)
