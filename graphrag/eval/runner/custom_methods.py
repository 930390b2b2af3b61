"""Resolves the method names of a run, and asks the methods that are not searches.

These are any async callable, an HTTP service, and two controls: ``closed_book`` asks the model
without context, ``oracle`` with the sample's evidence as the context. Both controls use the model
of local search and the same instructions, so that they differ only in the context.
"""

import asyncio
import inspect
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import Template
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from urllib.parse import quote

from dotenv import dotenv_values
from pydantic import BaseModel, ValidationError

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.config.models.tog_search_config import replaced_settings
from graphrag.config.settings_files import SettingsError
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import CONTROLS, EqualTerms, HttpService
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.threads import ask_in_thread
from graphrag.eval.types.own_code import contained, hash_source, import_object
from graphrag.query.client.call_errors import (
    GarbledReplyError,
    NoReplyError,
    RetryPolicy,
    add_advice,
    describe_loss,
    is_refusal,
    read_failure,
)
from graphrag.query.client.checked_numbers import (
    MOST_USD,
    ImpossibleFigureError,
    read_count,
    read_figure,
)
from graphrag.query.client.model_client import ModelCaller
from graphrag.query.client.usage import CallLog, NotAskedError, Usage, current_scope, phase
from graphrag.query.graph_index import SearchError
from graphrag.query.index.header import IndexHeader, describe_model, model_name
from graphrag.query.methods import BUDGET, METHODS, embeds, section_name
from graphrag.text.cli_hints import config_name
from graphrag.text.redaction import know_settings, redact_data

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

    from graphrag.query.client.models import CountedCompletion
    from graphrag.query.search_result import CountedSearchResult
    from graphrag.query.structured_search.base import SearchResult


_Figure = TypeVar("_Figure", int, float)
_FIELD = re.compile(r"\{(question|index)\}")
VERSION = 2
CONTROL_PROMPT = """You answer questions.
{source}
Form of the answer: {response_type}
When you do not know the answer, say so; when you are not sure, give the likeliest and say that.
{table}"""
_INSTRUCTIONS = {
    "closed_book": "No sources are given; rely on what you know.",
    "oracle": "Rely on the sources below alone, and cite them as [Data: Sources (ids)].",
}
_TABLE = "\n-----Sources-----\nid|text\n"


def answering_config(header: IndexHeader) -> "ModelConfig":
    """Return the configuration of the model that answers: that of local search."""
    model_id = header.config.local_search.completion_model_id
    return header.config.get_completion_model_config(model_id)


def open_answering(header: IndexHeader) -> "CountedCompletion":
    """Open the model that answers."""
    from graphrag.query.client.models import open_completion

    return open_completion(answering_config(header))


def response_type(header: IndexHeader, terms: EqualTerms | None) -> str:
    """Return the form of the answer that all methods are asked for."""
    return header.options.response_type if terms is None else terms.response_type


async def ask_control(
    header: IndexHeader, name: str, sample: Sample, form: str
) -> "CountedSearchResult":
    """Ask the answering model with the sample's evidence (oracle) or with nothing (closed_book).

    ``form`` is the :func:`response_type`. The calls are counted in the run's log, not in the
    result. Raises ValueError if an oracle has no evidence to show.
    """
    from graphrag.query.search_result import CountedSearchResult

    contexts = list(sample.evidence) if name == "oracle" else []
    if name == "oracle" and not contexts:
        raise ValueError("the sample quotes no evidence, so there is nothing to show")
    rows = [f"{number}|{' '.join(text.split())}\n" for number, text in enumerate(contexts)]
    table = "".join([_TABLE, *rows]) if rows else ""
    system = CONTROL_PROMPT.format(source=_INSTRUCTIONS[name], response_type=form, table=table)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": sample.question}]
    model = open_answering(header)
    started = time.perf_counter()
    with phase("response"):
        reply = await model.completion_async(messages=messages)
    seconds = time.perf_counter() - started
    return CountedSearchResult(str(reply.content), {}, contexts, seconds, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class MethodAnswer:
    """The answer of a method of your own.

    A method returns, say, ``MethodAnswer(response="The mayor", contexts=("The mayor signed.",))``.

    - ``contexts``: the texts that it retrieved and showed to its model, best first; empty if it
      retrieved nothing, None if it does not report. Metrics that read the context are then not
      judged.
    - ``llm_calls``, ``prompt_tokens``, ``output_tokens``: what it cost; None if the method does not
      count. Completions that it asks of a graphrag model are counted anyway; these figures are then
      ignored.
    - ``cost_usd``: US dollars; None if unknown.
    - ``abstained``: whether the response is no answer to the question. A refusal by the graphrag
      model that the method asked last is noticed without it.
    """

    response: str
    contexts: tuple[str, ...] | None = None
    llm_calls: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    abstained: bool = False

    def __post_init__(self) -> None:
        """Raise TypeError if contexts are no texts that the judge could be shown."""
        texts: Any = () if self.contexts is None else self.contexts
        if isinstance(texts, str) or not all(isinstance(text, str | Mapping) for text in texts):
            raise TypeError("contexts must be a tuple of texts, such as (text,)")

    def usage(self) -> Usage:
        """Return the figures as a usage; raise ImpossibleFigureError if one is impossible."""
        usd = self.cost_usd
        return Usage(
            llm_calls=read_count("llm_calls", self.llm_calls or 0),
            prompt_tokens=read_count("prompt_tokens", self.prompt_tokens or 0),
            output_tokens=read_count("output_tokens", self.output_tokens or 0),
            cost_usd=None if usd is None else read_figure("cost_usd", usd, MOST_USD),
            is_counted=None not in (self.llm_calls, self.prompt_tokens, self.output_tokens),
        )


Answer: TypeAlias = "MethodAnswer | SearchResult | str"
Method = Callable[..., "Awaitable[Answer] | Answer"]
"""``async def method(question)``, which may also take ``index`` and ``project``.

A function that is no coroutine is called in a thread. ``index`` is the key in eval_config.yaml of
the index that the question is about, ``project`` the Path of its folder. An exception is recorded
as the failure of that search.
"""


def load_method(spec: str, root: Path) -> Method:
    """Import a method ``module:function``; the module may be in ``root``.

    Raises ConfigError if it can't be imported or called, or is part of Python: ``os:system`` takes
    a question, too.
    """
    function = import_object("methods", spec, root)
    module_name = spec.partition(":")[0]
    module = sys.modules[module_name]
    is_own = Path(getattr(module, "__file__", None) or "").is_relative_to(root.resolve())
    if module_name.partition(".")[0] in sys.stdlib_module_names and not is_own:
        raise ConfigError(f"{spec} is part of Python; name a function of your own.")
    return cast("Method", function)


def describe_method(method: Method) -> dict[str, object]:
    """Return the identity of a method's code, as far as it is known from outside.

    That is its name and the hash of its module's source (None if there is none). A method whose
    answers depend on more than its source says so in an attribute ``version``.
    """
    if isinstance(method, HttpMethod):
        return method.describe()
    kind: Callable[..., object] = method if inspect.isroutine(method) else type(method)
    return {
        "function": f"{kind.__module__}:{kind.__qualname__}",
        "source": hash_source(kind),
        "version": getattr(method, "version", None),
    }


async def ask_method(
    method: Method,
    question: str,
    index: str,
    project: Callable[[], Path | None] = lambda: None,
) -> "SearchResult":
    """Ask a method, with the index's key and the folder of its project if it takes them.

    Returns a SearchResult, or an object with its attributes. Raises TypeError if the method answers
    with anything but a SearchResult, a MethodAnswer or text.
    """
    options = {"index": lambda: index, "project": project}
    names = inspect.signature(method).parameters
    call = partial(method, question, **{n: getter() for n, getter in options.items() if n in names})
    with contained("the method"):
        kinds = (method, type(method).__call__)
        is_async = any(inspect.iscoroutinefunction(kind) for kind in kinds)
        answer: Any = call() if is_async else await ask_in_thread(call)
        if inspect.isawaitable(answer):
            answer = await answer
    if isinstance(answer, str):
        answer = MethodAnswer(answer)
    if not isinstance(answer, MethodAnswer):
        from graphrag.query.structured_search.base import SearchResult  # pandas

        if isinstance(answer, SearchResult):
            return answer
        msg = f"a method answers with a MethodAnswer or text, not with {type(answer).__name__}"
        raise TypeError(msg)
    result = SimpleNamespace(
        response=answer.response,
        context_text=None if answer.contexts is None else list(answer.contexts),
        usage=answer.usage(),
        abstained=answer.abstained,
    )
    return cast("SearchResult", result)


class HttpMethod:
    """An HTTP service as a method; its requests wait, are retried and fail like those of models.

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
        """Return the identity of the service, as far as it is known from outside.

        Raises ConfigError if a variable in the headers is not set.
        """
        self._headers()
        return {"http": self._service.model_dump(mode="json", exclude_none=True)}

    async def __call__(self, question: str, index: str) -> MethodAnswer:
        """Ask the service; raise SearchError if it gives no answer."""
        fields = {"question": question, "index": index}
        quoted_fields = {name: quote(value, safe="") for name, value in fields.items()}
        url, body = _fill(self._service.url, quoted_fields), _fill(self._service.body, fields)
        log = current_scope() or CallLog()
        n_failed, mark = 0, object()
        try:
            with log.own_time.call():
                while True:
                    try:
                        reply = await self._ask(cast("str", url), body, mark, log)
                        return read_answer(self._service, reply)
                    except Exception as error:
                        n_failed = await self._caller.wait_to_retry(error, n_failed, log)
        except NotAskedError as error:
            self._caller.note_failure(error, log)
            raise
        except Exception as error:
            failed = read_failure(error)
            msg = failed.cause if self._where in failed.cause else f"{self._where}: {failed.cause}"
            raise SearchError(msg, is_refusal(error), failed.context_is_full) from error

    async def _ask(self, url: str, body: object, mark: object, log: CallLog) -> object:
        from graphrag.query.client.direct.http import APIConnectionError, ask_json  # aiohttp

        allowed = self._caller.time(log)
        async with self._caller.admitted(mark, lambda: 0, log) as slot:
            try:
                async with asyncio.timeout(allowed.seconds):
                    reply = await ask_json(url, body, self._headers())
            except TimeoutError as error:
                raise NoReplyError(allowed.exceeded()) from error
            except APIConnectionError as error:
                remedy = f"start the service, or check url of {self._name} in {config_name()}"
                add_advice(error, describe_loss(error, self._where, remedy))
                raise
            except Exception as error:
                if is_refusal(error):
                    settings = f"url and headers of {self._name} in {config_name()}"
                    add_advice(error, f"; check {settings}", goes_on=True)
                raise
            slot.queue.answered(slot, 0)
            return reply

    def _headers(self) -> dict[str, str]:
        variables = (
            {**dotenv_values(self._root / ".env"), **os.environ} if self._service.headers else {}
        )
        headers: dict[str, str] = {}
        for name, value in self._service.headers.items():
            try:
                headers[name] = Template(value).substitute(variables)
            except (KeyError, ValueError) as error:
                raise ConfigError(
                    f"Method {self._name}: headers.{name} needs {value}, which is not set; put it "
                    f"into the environment or into {self._root / '.env'}."
                ) from error
        know_settings({"api_key": list(headers.values())})
        return headers


def _fill(template: object, fields: Mapping[str, str]) -> object:
    """Replace {question} and {index} in the texts of a template; a question's braces stay."""
    if isinstance(template, str):
        return _FIELD.sub(lambda match: fields[match[1]], template)
    if isinstance(template, Mapping):
        mapping = cast("Mapping[str, object]", template)
        return {name: _fill(value, fields) for name, value in mapping.items()}
    if isinstance(template, Sequence):
        return [_fill(value, fields) for value in cast("Sequence[object]", template)]
    return template


def read_answer(service: HttpService, reply: object) -> MethodAnswer:
    """Read a service's reply.

    Raises GarbledReplyError if it has no answer, or contexts that are no texts.
    """
    try:
        answer = find(reply, service.answer)
    except LookupError as error:
        raise GarbledReplyError(
            f"no answer at {service.answer!r}: {error.args[0]}", may_pass=False
        ) from error
    if not isinstance(answer, str):
        kind = type(answer).__name__
        raise GarbledReplyError(f"at {service.answer!r} is no text but {kind}", may_pass=False)
    calls = service.llm_calls
    return MethodAnswer(
        response=redact_data(answer),
        contexts=_read_texts(reply, service.contexts),
        llm_calls=calls if isinstance(calls, int) else _read_at(read_count, reply, calls),
        prompt_tokens=_read_at(read_count, reply, service.prompt_tokens),
        output_tokens=_read_at(read_count, reply, service.output_tokens),
        cost_usd=_read_at(partial(read_figure, most=MOST_USD), reply, service.cost_usd),
    )


def find(value: object, path: str) -> object:
    """Return the value at a dotted path of a JSON reply, such as ``hits.*.text`` or ``hits.0.id``.

    ``*`` gives a list of the values in all items; lists in lists are joined. Raises LookupError,
    which says what is missing.
    """
    name, _, rest = path.partition(".")
    if isinstance(value, list):
        items = cast("list[object]", value)
        if name == "*":
            matches = [find(item, rest) if rest else item for item in items]
            if "*" not in rest.split("."):
                return matches
            return [item for part in matches for item in cast("list[object]", part)]
        if not name.isdecimal() or int(name) >= len(items):
            raise LookupError(f"a list of {len(items)} has no {name!r}")
        inner = items[int(name)]
    else:
        is_object = isinstance(value, dict)
        fields = cast("dict[str, object]", value) if is_object else dict[str, object]()
        if name not in fields:
            raise LookupError(f"there is {', '.join(fields) or type(value).__name__}, not {name!r}")
        inner = fields[name]
    return find(inner, rest) if rest else inner


def _read_texts(reply: object, path: str | None) -> tuple[str, ...] | None:
    try:
        value = None if path is None else find(reply, path)
    except LookupError:
        value = None
    texts = cast("list[object]", value if isinstance(value, list) else [value])
    if value is None or None in texts:
        return None
    if not all(isinstance(text, str) for text in texts):
        msg = f"at {path!r} are no texts; name the text in each, such as {path}.*.text"
        raise GarbledReplyError(msg, may_pass=False)
    return tuple(redact_data(cast("str", text)) for text in texts)


def _read_at(
    read: Callable[[str, object], _Figure], reply: object, path: str | None
) -> _Figure | None:
    """Read a figure of a reply; None if it is not there.

    Raises GarbledReplyError if the figure is impossible.
    """
    if path is None:
        return None
    try:
        figure = find(reply, path)
        return None if figure is None else read(path, figure)
    except LookupError:
        return None
    except ImpossibleFigureError as error:
        raise GarbledReplyError(str(error), may_pass=False) from error


class MethodSet:
    """The method names of a run and what they name: searches, variants, controls, own methods.

    ``registered``: name -> function, for methods that are registered in Python.
    """

    def __init__(
        self, config: EvaluationConfig, registered: Mapping[str, Method] | None = None
    ) -> None:
        self._config = config
        named = {name: v.function for name, v in config.variants.items() if v.function is not None}
        served = {name: v.http for name, v in config.variants.items() if v.http is not None}
        self._functions: dict[str, Method] = {
            **{name: load_method(spec, config.root) for name, spec in named.items()},
            **{name: HttpMethod(name, block, config.root) for name, block in served.items()},
            **(registered or {}),
        }

    def function(self, name: str) -> Method | None:
        """Return the function behind a name; None for a search of graphrag or a control."""
        return self._functions.get(name)

    def search_method(self, name: str) -> str:
        """Return the search method behind a name."""
        variant = self._config.variants.get(name)
        return name if variant is None or variant.method is None else variant.method

    def search_methods(self, names: Sequence[str] | None = None) -> dict[str, str]:
        """Return name -> search method of the names that are searches; None: the run's methods."""
        others = {*CONTROLS, *self._functions}
        methods = self._config.methods if names is None else names
        return {name: self.search_method(name) for name in methods if name not in others}

    def reads_vectors(self, names: Sequence[str] | None = None) -> bool:
        """Return whether one of these methods is a search that reads an index's vectors."""
        return any(map(embeds, self.search_methods(names).values()))

    def pairs(self, headers: Mapping[str, IndexHeader]) -> list[tuple[str, IndexHeader]]:
        """Return (method, header) for each method of the run and each of these indexes it asks."""
        config = self._config
        pairs = [(n, config.index_of(key, n)) for key in config.indexes for n in config.methods]
        return [(name, headers[index]) for name, index in pairs if index in headers]

    def header(self, name: str, header: IndexHeader) -> IndexHeader:
        """Return an index's header with the settings under which a method searches it.

        Raises ConfigError if there is no such method, or if a variant names a setting that its
        method does not have, or gives it a wrong value.
        """
        method = self.search_method(name)
        if method in CONTROLS or name in self._functions:
            return header
        if method not in METHODS:
            names = [*METHODS, *CONTROLS, *self._config.variants, *self._functions]
            raise ConfigError(f"methods: unknown name {method!r}{nearest(method, names)}")
        terms, variant = self._config.equal_terms, self._config.variants.get(name)
        section = header.section(method)
        changes = {} if variant is None else variant.changes
        if terms is not None:
            header = replace(
                header, options=replace(header.options, response_type=terms.response_type)
            )
            has_budget = BUDGET in type(section).model_fields
            if terms.max_context_tokens is not None and has_budget:
                changes = {**changes, BUDGET: terms.max_context_tokens}
        where = "equal_terms" if variant is None else f"variants.{name}"
        return header if not changes else _change_settings(where, method, header, changes)

    def describe(self, name: str, header: IndexHeader | None) -> Mapping[str, object]:
        """Return everything that changes what a method answers on an index.

        Raises ConfigError if a prompt file that the method needs does not exist.
        """
        function = self._functions.get(name)
        if function is not None:
            return describe_method(function)
        if header is None:
            return {}
        if name in CONTROLS:
            return {
                "control": name,
                "version": VERSION,
                "response_type": response_type(header, self._config.equal_terms),
                "models": {"completion": describe_model(answering_config(header))},
            }
        try:
            return self.header(name, header).describe(self.search_method(name))
        except SettingsError as error:
            raise ConfigError(f"Method {name}: {error}") from error

    def models(self, name: str, header: IndexHeader) -> dict[str, str]:
        """Return role -> ``provider/model``, ``completion`` first; empty if no model is known."""
        if name in self._functions:
            return {}
        if name in CONTROLS:
            return {"completion": model_name(answering_config(header))}
        configs = self.header(name, header).model_configs(self.search_method(name))
        return {role: model_name(config) for role, config in configs.items()}


def _change_settings(
    where: str, method: str, header: IndexHeader, changes: Mapping[str, object]
) -> IndexHeader:
    section = header.section(method)
    kind = cast("type[BaseModel]", type(section))
    for key in changes:
        if key not in kind.model_fields and key not in replaced_settings(kind):
            msg = f"{where}: {method} has no setting {key!r}{nearest(key, kind.model_fields)}"
            raise ConfigError(as_sentence(msg))
    values = {key: value for key, value in changes.items() if key in kind.model_fields}
    try:
        changed = kind.model_validate({**section.model_dump(exclude_unset=True), **values})
    except ValidationError as error:
        first = error.errors()[0]
        msg = f"{where}.{'.'.join(map(str, first['loc']))} of {method}: {first['msg']}."
        raise ConfigError(msg) from error
    return replace(header, config=header.config.model_copy(update={section_name(method): changed}))
