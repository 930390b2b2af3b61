"""Any system behind HTTP as a method: one request a question, by a block of eval_config.yaml."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Annotated, cast
from urllib.parse import quote

from dotenv import dotenv_values
from pydantic import Field, TypeAdapter, ValidationError

from graphrag.command_lines import config_name
from graphrag.eval.config.sections import HttpService
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.method_answer import MethodAnswer
from graphrag.query.caller import ModelCaller
from graphrag.query.calls import (
    GarbledReplyError,
    NoReplyError,
    RetryPolicy,
    add_advice,
    describe_error,
    is_refusal,
)
from graphrag.query.direct.http import APIConnectionError, ask_json
from graphrag.query.graph_index import SearchError
from graphrag.query.usage import CallLog, NotAskedError, current_scope
from graphrag.redaction import know_settings, redact_data

_NUMBER = TypeAdapter[float](Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)])
_FIELD = re.compile(r"\{(question|index)\}")


class HttpMethod:
    """A service as a method; a request waits, is retried and given up as those of models are.

    ``name``: in eval_config.yaml; ``root``: the folder of that file, whose .env is read.
    """

    def __init__(self, name: str, service: HttpService, root: Path) -> None:
        from graphrag_llm.config import ModelConfig

        know_settings({"url": service.url})
        self._name, self._service, self._root = name, service, root
        self._where = service.url.partition("?")[0].rpartition("@")[2]
        config = ModelConfig(type="http", model_provider="http", model=name, api_base=service.url)
        self._caller = ModelCaller("completion", config, RetryPolicy())

    def describe(self) -> dict[str, object]:
        """Return everything that changes what it answers, as far as it can be told from outside.

        Raises ConfigError if a variable that the headers name is not set.
        """
        self._headers()
        return {"http": self._service.model_dump(mode="json", exclude_none=True)}

    async def __call__(self, question: str, index: str) -> MethodAnswer:
        """Ask the service; SearchError if it gives no answer."""
        given = {"question": question, "index": index}
        quoted = {name: quote(value, safe="") for name, value in given.items()}
        url, body = _filled(self._service.url, quoted), _filled(self._service.body, given)
        scope = current_scope() or CallLog()
        n_failed, mark = 0, object()
        try:
            with scope.own_time.call():
                while True:
                    try:
                        reply = await self._ask(cast("str", url), body, mark, scope)
                        return read_answer(self._service, reply)
                    except Exception as error:
                        n_failed = await self._caller.wait_to_retry(error, n_failed, scope)
        except NotAskedError as error:
            self._caller.note_failure(error, scope)
            raise
        except Exception as error:
            described = describe_error(error)
            msg = described if self._where in described else f"{self._where}: {described}"
            raise SearchError(msg, is_refusal(error)) from error

    async def _ask(self, url: str, body: object, mark: object, scope: CallLog) -> object:
        allowed = self._caller.time(scope)
        async with self._caller.admitted(mark, lambda: 0, scope) as place:
            try:
                async with asyncio.timeout(allowed.seconds):
                    reply = await ask_json(url, body, self._headers())
            except TimeoutError as error:
                raise NoReplyError(allowed.exceeded()) from error
            except APIConnectionError as error:
                remedy = f"start the service, or check url of {self._name} in {config_name()}"
                add_advice(error, f"no connection to {self._where}; {remedy}")
                raise
            except Exception as error:
                if is_refusal(error):
                    what = f"url and headers of {self._name} in {config_name()}"
                    add_advice(error, f"; check {what}")
                raise
            place.lane.answered(place, 0)
            return reply

    def _headers(self) -> dict[str, str]:
        known = (
            {**dotenv_values(self._root / ".env"), **os.environ} if self._service.headers else {}
        )
        headers: dict[str, str] = {}
        for name, value in self._service.headers.items():
            try:
                headers[name] = Template(value).substitute(known)
            except (KeyError, ValueError) as error:
                msg = (
                    f"Method {self._name}: headers.{name} needs {value}, which is not set; put it "
                    f"into the environment or into {self._root / '.env'}."
                )
                raise ConfigError(msg) from error
        know_settings({"api_key": list(headers.values())})
        return headers


def _filled(template: object, given: Mapping[str, str]) -> object:
    """Return a template with the fields in its texts replaced; a question's braces stay."""
    if isinstance(template, str):
        return _FIELD.sub(lambda field: given[field[1]], template)
    if isinstance(template, Mapping):
        named = cast("Mapping[str, object]", template)
        return {name: _filled(value, given) for name, value in named.items()}
    if isinstance(template, Sequence):
        return [_filled(value, given) for value in cast("Sequence[object]", template)]
    return template


def read_answer(service: HttpService, reply: object) -> MethodAnswer:
    """Read a reply; GarbledReplyError if it holds no answer, or contexts that are no texts."""
    try:
        answer = find(reply, service.answer)
    except LookupError as error:
        raise GarbledReplyError(
            f"no answer at {service.answer!r}: {error.args[0]}", may_pass=False
        ) from error
    if not isinstance(answer, str):
        kind = type(answer).__name__
        raise GarbledReplyError(f"at {service.answer!r} stands no text but {kind}", may_pass=False)
    calls = service.llm_calls
    return MethodAnswer(
        response=redact_data(answer),
        contexts=_texts(reply, service.contexts),
        llm_calls=calls if isinstance(calls, int) else _count(reply, calls),
        prompt_tokens=_count(reply, service.prompt_tokens),
        output_tokens=_count(reply, service.output_tokens),
        cost_usd=_number(reply, service.cost_usd),
    )


def find(value: object, path: str) -> object:
    """Return what stands at a place of a reply, for ``*`` a list; LookupError says what is missing.

    Lists in lists are joined.
    """
    name, _, rest = path.partition(".")
    if isinstance(value, list):
        items = cast("list[object]", value)
        if name == "*":
            found = [find(each, rest) if rest else each for each in items]
            if "*" not in rest.split("."):
                return found
            return [each for part in found for each in cast("list[object]", part)]
        if not name.isdecimal() or int(name) >= len(items):
            raise LookupError(f"a list of {len(items)} has no {name!r}")
        inner = items[int(name)]
    else:
        is_object = isinstance(value, dict)
        known = cast("dict[str, object]", value) if is_object else dict[str, object]()
        if name not in known:
            raise LookupError(f"there is {', '.join(known) or type(value).__name__}, not {name!r}")
        inner = known[name]
    return find(inner, rest) if rest else inner


def _texts(reply: object, path: str | None) -> tuple[str, ...] | None:
    try:
        found = None if path is None else find(reply, path)
    except LookupError:
        found = None
    texts = cast("list[object]", found if isinstance(found, list) else [found])
    if found is None or None in texts:
        return None
    if not all(isinstance(text, str) for text in texts):
        msg = f"at {path!r} stand no texts; name the text in each, such as {path}.*.text"
        raise GarbledReplyError(msg, may_pass=False)
    return tuple(redact_data(cast("str", text)) for text in texts)


def _number(reply: object, path: str | None) -> float | None:
    try:
        return None if path is None else _NUMBER.validate_python(find(reply, path))
    except (LookupError, ValidationError):
        return None


def _count(reply: object, path: str | None) -> int | None:
    number = _number(reply, path)
    return None if number is None or number != int(number) else int(number)
