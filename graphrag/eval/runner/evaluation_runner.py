"""Defines EvaluationRunner, the Python API: it searches, judges, and records every failure."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.config.settings_files import SettingsError, is_project
from graphrag.config.table_files import IndexNotBuiltError
from graphrag.eval.config.evaluation import DEFAULT_METHODS, EvaluationConfig, parse_config
from graphrag.eval.config.sections import CONTROLS, OutputSettings
from graphrag.eval.dataset.dataset_reader import Sample, as_samples, read_samples
from graphrag.eval.errors import ConfigError, IndexUnavailableError, RunStoppedError, StoreError
from graphrag.eval.metrics.judge import Judge, JudgeModel
from graphrag.eval.metrics.judge_input import read_entity_types
from graphrag.eval.metrics.retrieved_context import RetrievalReader
from graphrag.eval.runner.custom_methods import (
    Method,
    MethodSet,
    ask_control,
    ask_method,
    response_type,
)
from graphrag.eval.runner.indexes import (
    check_indexes,
    describe_indexes,
    read_headers,
    read_model_settings,
)
from graphrag.eval.runner.judging import (
    ask_verdicts,
    asks_further,
    asks_judge,
    check_judge,
    describe_judge,
    further_model,
    open_judge,
    plan_further,
    with_judged,
)
from graphrag.eval.runner.run_setup import describe_setup, plan_run
from graphrag.eval.runner.scheduler import (
    Executor,
    ProgressCallback,
    RunOutcome,
    Watch,
    Work,
    check_asked,
    describe_timeout,
)
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunDetails, RunSetup, StoredResponse, Unit
from graphrag.eval.store.session import StoredSession, unkept_session
from graphrag.eval.store.sqlite import IN_MEMORY
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult, Retrieved
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.call_errors import CutOffReplyError, describe_error
from graphrag.query.client.checked_numbers import (
    MOST_SECONDS,
    ImpossibleFigureError,
    read_count,
    read_figure,
)
from graphrag.query.client.usage import UNCOUNTED, CallLog, Usage, current_scope, measure_calls
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.index.header import IndexHeader
from graphrag.text.library_logs import stay_silent

if TYPE_CHECKING:
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.runner.telemetry import Telemetry
    from graphrag.query.structured_search.base import SearchResult

_Figure = TypeVar("_Figure", int, float)
__all__ = [
    "EfficiencyMetrics",
    "EvaluationConfig",
    "EvaluationRunner",
    "QueryResult",
    "RunOutcome",
    "run_evaluation",
]


class EvaluationRunner:
    """Asks every question by every method and has the responses judged.

    ``runner = EvaluationRunner(config=config, methods={"mine": answer})``, then ``results = await
    runner.run_evaluation(dataset=rows)``.

    - ``config``: an EvaluationConfig; only with one does the runner write files. A project's own
      configuration (GraphRagConfig) means the default settings, with its default completion
      model as the judge. Any other object is not read.
    - ``judge``: any object with ``evaluate_all``; None: made from ``config.judge`` and the indexes'
      settings when first needed.
    - ``index_roots``: index key -> project folder; None: the configuration's. For an unknown key,
      the folder of that name in the working directory is used if it is a project.
    - ``methods``: name -> ``async def method(question)``, which may take ``index`` and ``project``,
      or a plain function, which runs in a thread; see ``graphrag.eval.runner.custom_methods``. The
      names must also be in ``config.methods`` or be given to ``run_evaluation``.
    - ``executor``: searches and judges; None: this process. See ``on_ray.open_executor``.
    - ``telemetry``: records searches, judgings and their model calls, if they are made here.

    ``config.concurrency`` limits all model calls of all samples, methods and metrics together. A
    failed search or verdict is recorded with its cause and stops nothing else. Only a service that
    refuses every request stops the run. Raises ConfigError if a function that the configuration
    names can't be imported.
    """

    def __init__(
        self,
        config: object,
        judge: Judge | None = None,
        index_roots: Mapping[str, Path | str] | None = None,
        methods: Mapping[str, Method] | None = None,
        executor: Executor | None = None,
        telemetry: "Telemetry | None" = None,
    ) -> None:
        stay_silent()
        self.config = config
        self.judge = judge
        self._settings = EvaluationConfig(output=OutputSettings(save_intermediate=False))
        if issubclass(type(config), EvaluationConfig):  # a mock may claim to be an instance
            self._settings = cast("EvaluationConfig", config)
        self.index_roots: Mapping[str, Path | str] = (
            self._settings.index_roots if index_roots is None else index_roots
        )
        self._own_roots = self._settings.own_projects()
        self._methods = MethodSet(self._settings, methods)
        self._own_judge: Judge | None = None
        self._executor, self._telemetry = executor or self, telemetry
        self._indexes: dict[str, GraphIndex] = {}
        self._varied: dict[tuple[str, str], GraphIndex] = {}
        self._readers: dict[str, RetrievalReader] = {}
        self._types: dict[str, Mapping[str, str]] = {}
        self._opening = asyncio.Lock()
        self._work: Work | None = None

    async def evaluate_single(
        self, imdb_key: str, question: str, ground_truth: str, method: str
    ) -> QueryResult:
        """Ask one question by one method and have the response judged; nothing is stored.

        ``imdb_key`` is the key of the index that is asked. A failed search gives the response
        ``ERROR: ...`` and score 0 with the reason "Search failed" in every metric. Raises
        RunStoppedError if the service refuses every request.
        """
        sample = Sample(id="", imdb_key=imdb_key, question=question, ground_truth=ground_truth)
        with unkept_session() as session:
            units = [Unit(key="single", sample=sample, method=method)]
            outcome = await self.run(Work(self._settings, units, session))
            if outcome.stopped is not None:
                raise RunStoppedError(outcome.stopped)
            (result,) = outcome.read_whole(outcome.results)
        return result

    async def run_evaluation(
        self,
        dataset: "Iterable[Sample | Mapping[str, object]]",
        methods: Sequence[str] | None = None,
        progress_callback: ProgressCallback | None = None,
    ) -> list[QueryResult]:
        """Ask every question of a dataset by every method.

        - ``dataset``: rows as in the dataset file, such as ``[{"question": "...", "answer":
          "..."}]``.
        - ``methods``: names; None: ``config.methods``.
        - ``progress_callback``: called with (current, total, imdb_key, method) after each unit, and
          counted anew while further judges grade; an exception in it ends the run. None: a line of
          progress in a notebook, nothing elsewhere.

        Returns the QueryResults in the order of the dataset, and of the methods within a question.
        Raises RunStoppedError, whose ``results`` are those so far, if the service refuses every
        request or stays down, or ten searches of a stored run fail in a row.
        """
        samples = as_samples(dataset, list(self.index_roots))
        if isinstance(methods, str):  # each letter would be taken for a method
            raise ConfigError(f"methods must be a list of names, such as [{methods!r}], not text.")
        chosen = tuple(methods or self._settings.methods)
        config = self._settings.model_copy(update={"methods": list(chosen)})
        keys, keeps = {sample.imdb_key for sample in samples}, config.output.save_intermediate
        searches = config.searches_asked(keys)
        names = sorted({*searches, *keys})
        roots = {name: root for name in names if (root := self._find_root(name))}
        # The headers give the stored results their meaning; without a store nothing needs them.
        reads = keeps or bool(self._own_roots)
        projects = {k: r for k, r in roots.items() if reads and is_project(r)}
        headers = await read_headers(projects, searches)
        await check_indexes(config, samples, headers)
        descriptions = describe_indexes(config, self._methods, headers, keys)
        units = plan_run(samples, chosen, descriptions, config.trials)
        setup, details = RunSetup({}), None
        if keeps:
            judge = describe_judge(config, samples, headers, self.judge)
            indexes = {key: str(root) for key, root in roots.items() if key in keys}
            details = RunDetails(
                origin="python",
                n_units=len(units),
                config={**config.to_dict(), "indexes": indexes},
                search_methods=self._methods.search_methods(chosen),
            )
            setup = describe_setup(config, samples, descriptions, judge)
        with EvaluationStore(config.store_path if keeps else IN_MEMORY) as store:
            run = store.add_run(setup, samples, details)
            keeps_calls = keeps and config.output.keep_calls
            session = StoredSession(store, run.run_id, keeps_calls=keeps_calls)
            watch = _watch(progress_callback)
            outcome = await self.run(Work(self._settings, units, session, watch=watch))
            results = list(outcome.read_whole(outcome.results))
            if outcome.stopped is not None:
                raise RunStoppedError(outcome.stopped, results)
        return results

    def stop(self, reason: RunStoppedError) -> None:
        """Begin no new work; what is in flight has eight seconds to finish."""
        if self._work is not None:
            self._work.stop(reason)

    async def run(self, work: Work) -> RunOutcome:
        """Do the units of work that are not stored yet, then further judgings, for any command.

        A stored run with nothing left to do is marked finished, unless its verdicts are still to
        come. Raises ConfigError, before anything is asked, if the judge can't grade one of the
        metrics. Raises StoreError if a result that was paid for can't be stored; nothing more is
        asked then.
        """
        metrics, inner = self._settings.metrics, self._executor
        judges_here = inner is self or not set(metrics) <= set(DEFAULT_METRICS)
        samples = [unit.sample for unit in work.units if unit.trial == 0]
        if judges_here and not work.skip_judge and asks_judge(self._settings, samples):
            check_judge(await self._load_judge(), self._settings)  # before anything is paid for
        model: JudgeModel | None = None
        if not work.skip_judge and asks_further(self._settings, samples):
            model = further_model(await self._load_judge(), self._settings)
        executor = inner if self._telemetry is None else self._telemetry.around(inner)
        self._work = work
        outcome = await work.run(executor, after_others=inner is not self)
        if work.skip_judge:
            return outcome
        if model is not None and outcome.is_complete:
            tasks = plan_further(model, self._settings, work, self._entity_types)
            if self._telemetry is not None:
                tasks = self._telemetry.around_further(tasks)
            outcome = await work.run_further(tasks, outcome)
        if outcome.is_complete:
            work.session.store.finish_run(work.session.run_id)
        return with_judged(outcome, self._settings, work)

    async def _entity_types(self, name: str) -> Mapping[str, str]:
        """Return title -> type of an index's entities; empty if the index no longer exists."""
        if name not in self._types:
            try:
                index = await self._load_index(name)
                types = read_entity_types(index.tables.table("entities"))
            except (IndexNotBuiltError, IndexUnavailableError, SettingsError):
                types = {}
            self._types[name] = types
        return self._types[name]

    async def _run_search(self, method: str, query: str, imdb_key: str) -> "SearchResult":
        """Answer a question by a search of its index."""
        index = await self._load_index(self._settings.index_of(imdb_key, method))
        search = self._methods.search_method(method)
        if (imdb_key, method) not in self._varied:
            header = self._methods.header(method, index.header)
            budget = self._settings.budget_setting(method, search)
            self._varied[imdb_key, method] = index.under(header, budget)
        return await self._varied[imdb_key, method].search(search, query, log=current_scope())

    async def _respond(self, sample: Sample, method: str) -> "SearchResult":
        function = self._methods.function(method)
        if function is not None:
            project = partial(self._known_root, sample.imdb_key)
            return await ask_method(function, sample.question, sample.imdb_key, project)
        if method in CONTROLS:
            key = sample.imdb_key
            header = read_model_settings({key: self._known_root(key)})[key]
            form = response_type(header, self._settings.equal_terms)
            return await ask_control(header, method, sample, form)
        return await self._run_search(method, sample.question, sample.imdb_key)

    async def _load_index(self, imdb_key: str) -> GraphIndex:
        async with self._opening:
            if imdb_key not in self._indexes:
                root = self._known_root(imdb_key)
                self._indexes[imdb_key] = await GraphIndex.open(root, vectors=False)
            return self._indexes[imdb_key]

    def _known_root(self, key: str) -> Path:
        root = self._find_root(key)
        if root is None:
            raise IndexUnavailableError(f"no index is configured for {key!r}")
        return root

    def _find_root(self, name: str) -> Path | None:
        roots = {**self._own_roots, **self.index_roots}
        if name in roots:
            return Path(roots[name]).absolute()
        is_name = bool(name) and Path(name).name == name  # no path that leads out of the folder
        return Path(name).absolute() if is_name and is_project(name) else None

    async def _load_judge(self) -> Judge:
        if self.judge is not None:
            return self.judge
        async with self._opening:
            if self._own_judge is None:
                if issubclass(type(self.config), GraphRagConfig):
                    headers = {"": IndexHeader(cast("GraphRagConfig", self.config))}
                else:
                    roots = {key: Path(root) for key, root in self.index_roots.items()}
                    headers = read_model_settings(roots)
                self._own_judge = open_judge(self._settings, headers)
            return self._own_judge

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Answer one question; a failure is recorded with its cause.

        Raises RunStoppedError if the service would refuse every further request as well.
        """
        failure: Failure | None = None
        result: SearchResult | None = None
        response: StoredResponse | None = None
        started, waited_s = time.perf_counter(), log.own_time.waited_s
        limit_s = self._settings.timeout_s
        with measure_calls(log):
            try:
                async with log.own_time.deadline(limit_s):
                    result = await self._respond(unit.sample, unit.method)
                response = _read_response(unit, result, log)
            except TimeoutError:
                failure = Failure(
                    stage="search", kind="timeout", message=describe_timeout(limit_s, log)
                )
            except SearchError as error:
                if error.refused:
                    msg = f"The model's service refuses the requests of {unit.method}: {error}"
                    raise RunStoppedError(msg) from error
                failure = _failure_of(error, log)
            except (StoreError, RunStoppedError):
                raise
            except Exception as error:
                failure = Failure(stage="search", kind="error", message=describe_error(error))
        latency: float | None = time.perf_counter() - started - (log.own_time.waited_s - waited_s)
        check_asked(log)
        if response is not None and not response.response.strip():
            failure = Failure(stage="search", kind="empty", message="the response is empty")
        is_own = self._methods.function(unit.method) is not None
        if failure is not None:
            text, usage = f"ERROR: {failure.message}", log.usage()
            if response is not None:
                usage = response.usage
            elif is_own and not log.attempts:
                usage = UNCOUNTED
            response = StoredResponse(
                unit=unit.key,
                sample_id=unit.sample.id,
                method=unit.method,
                response=text,
                context_text="",
                latency_s=None,
                usage=usage,
                failure=failure,
                trial=unit.trial,
            )
        assert response is not None
        if result is not None and failure is None:
            response = replace(response, retrieved=self._read_retrieved(unit, result))
        if unit.method not in CONTROLS and not is_own and response.latency_s is not None:
            latency = response.latency_s
        if log.replayed or log.was_held_up:  # partly replayed from an earlier run, or delayed
            latency = None
        return replace(response, latency_s=latency)

    def _read_retrieved(self, unit: Unit, result: "SearchResult") -> Retrieved | None:
        """Return the records that a search of an index showed; None for other methods."""
        key = unit.sample.imdb_key
        if (key, unit.method) not in self._varied:
            return None
        name = self._settings.index_of(key, unit.method)
        if name not in self._readers:
            self._readers[name] = RetrievalReader(self._indexes[name].tables)
        method = self._methods.search_method(unit.method)
        retrieved = self._readers[name].read(method, result.context_data)
        return replace(retrieved, note=str(getattr(result, "note", "")))

    async def judge_unit(
        self, unit: Unit, response: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged on some metrics.

        Raises RunStoppedError if the judge's service would refuse every further request as well.
        """
        judge = await self._load_judge()
        with measure_calls(log):
            return await ask_verdicts(judge, unit, response, metrics, self._settings.judge)


def _failure_of(error: SearchError, log: CallLog) -> Failure:
    """Return the failure of a search.

    Replies that were cut off may be the reason that it could not answer.
    """
    message = str(error)
    if isinstance(error.__cause__, CutOffReplyError):
        return Failure(stage="search", kind="cut_off", message=message, of_setup=True)
    n_cut = 0 if log.bound is None else log.usage().cut_replies
    if log.bound is not None and n_cut:
        message += f"; {n_cut} of its replies were cut off, so raise {log.bound.setting}"
    of_setup = n_cut > 0 or error.context_is_full or any(f.refusal for f in log.failures)
    return Failure(stage="search", kind="error", message=message, of_setup=of_setup)


def _read_response(unit: Unit, result: object, log: CallLog) -> StoredResponse:
    """Read a SearchResult, or any object with its attributes.

    Impossible figures count as missing (latency in seconds: None), except those of a Usage, which
    raise ImpossibleFigureError. Without counters the usage is marked as not counted, unless the log
    recorded calls. The search abstained if it says so, or if the last reply that was counted is a
    refusal. Raises TypeError if there is no text.
    """
    response: object = getattr(result, "response", None)
    context: object = getattr(result, "context_text", "")
    if not isinstance(response, str | Mapping | list):  # released searches may return the last two
        raise TypeError(f"the search answered with {type(response).__name__}, not with text")
    return StoredResponse(
        unit=unit.key,
        sample_id=unit.sample.id,
        method=unit.method,
        response=str(cast("object", response)),
        context_text=None if context is None else _as_text(context),
        latency_s=_read_attr(partial(read_figure, most=MOST_SECONDS), "completion_time", result),
        usage=_usage_of(result, log),
        trial=unit.trial,
        abstained=getattr(result, "abstained", None) is True or log.abstained,
    )


def _usage_of(result: object, log: CallLog) -> Usage:
    if log.attempts:
        return log.usage()
    usage: object = getattr(result, "usage", None)
    if isinstance(usage, Usage):
        return Usage.from_dict(asdict(usage))
    names = ("llm_calls", "prompt_tokens", "output_tokens")
    counts = [_read_attr(read_count, name, result) for name in names]
    calls, prompt_tokens, output_tokens = (count or 0 for count in counts)
    if None in counts:
        return Usage(
            llm_calls=calls,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            cost_usd=None,
            is_counted=False,
        )
    return Usage(
        llm_calls=calls,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cost_usd=None if calls else 0.0,
    )


def _read_attr(read: Callable[[str, object], _Figure], name: str, result: object) -> _Figure | None:
    try:
        return read(name, getattr(result, name, None))
    except ImpossibleFigureError:
        return None


def _as_text(context: object) -> str:
    if isinstance(context, str):
        return context
    if isinstance(context, Mapping):
        parts = cast("Mapping[str, object]", context)
        return "\n\n".join(f"{name}\n{_as_text(part)}" for name, part in parts.items())
    if isinstance(context, Sequence):
        return "\n\n".join(_as_text(part) for part in cast("Sequence[object]", context))
    return ""  # a mock's made-up attribute


async def run_evaluation(
    qa_dataset_path: Path | str,
    index_configs: Mapping[str, Path | str],
    methods: Sequence[str] = DEFAULT_METHODS,
) -> "EvaluationResults":
    """Ask every question of a file by every method, judge the responses, and add them up.

    ``await run_evaluation(qa_dataset_path="qa.json", index_configs={"mine": "my_project"},
    methods=["tog", "basic"])`` returns EvaluationResults. Nothing is written. The default
    completion model of the indexes judges.

    - ``qa_dataset_path``: the dataset; paths are relative to the working directory.
    - ``index_configs``: key in the dataset -> project folder.
    - ``methods``: as in ``EvaluationConfig``.
    """
    from graphrag.eval.results.evaluation_results import (
        aggregate_results,  # numpy: no run of a runner needs it
    )
    from graphrag.eval.results.method_conditions import read_conditions

    roots = {key: str(root) for key, root in index_configs.items()}
    settings = {"index_roots": roots, "methods": list(methods), "save_intermediate": False}
    config = parse_config(settings, "run_evaluation")
    samples = read_samples(qa_dataset_path, next(iter(roots)) if len(roots) == 1 else None)
    method_set = MethodSet(config)
    searches = config.searches_asked(config.indexes)
    headers = await read_headers(config.project_folders(), searches)
    described = describe_indexes(config, method_set, headers, headers)
    conditions = read_conditions(RunSetup({"indexes": described}), method_set.search_methods())
    results = aggregate_results(await EvaluationRunner(config).run_evaluation(samples))
    return results.under_conditions(conditions)


def _watch(callback: ProgressCallback | None) -> Watch:
    """Return the progress display of a run from Python: a line in a notebook, else nothing."""
    if callback is not None:
        return lambda tally, latest: (
            None
            if latest is None
            else callback(tally.done, tally.total, latest.sample.imdb_key, latest.method)
        )
    from rich import get_console

    if not get_console().is_jupyter:
        return lambda tally, latest: None
    import IPython.display

    display: Any = IPython.display.display  # pyright: ignore[reportUnknownVariableType]
    line: Any = display({"text/plain": "Evaluating"}, raw=True, display_id=True)
    return lambda tally, latest: line.update(
        {"text/plain": f"Evaluating {tally.done}/{tally.total}"}, raw=True
    )
