"""Runs suites as one stored run, with many cases at a time; a failure stays with its case."""

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import (
    ConfigError,
    RunStoppedError,
    ServiceDownStop,
    StoreError,
    UsageError,
)
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.judge import Judge
from graphrag.eval.results.usage import label_usages
from graphrag.eval.runner.custom_methods import MethodSet, describe_method
from graphrag.eval.runner.indexes import read_headers, read_model_settings
from graphrag.eval.runner.judging import describe_judge
from graphrag.eval.runner.resume import choose_run
from graphrag.eval.runner.run_setup import RunOptions, RunPlan, describe_setup
from graphrag.eval.runner.scheduler import Tally, Work, check_asked, describe_timeout
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Judgement, RunDetails, RunSetup, StoredResponse, Unit, now
from graphrag.eval.store.session import StoredSession
from graphrag.eval.store.sqlite import IN_MEMORY
from graphrag.eval.suite.cases import Suite, framework_case
from graphrag.eval.suite.evaluators import EntityExtraction, make_evaluator, needs_of
from graphrag.eval.suite.framework import run_case, runs_by_component
from graphrag.eval.suite.project_adapters import (
    CaseFailedError,
    CaseTools,
    ModelExtractor,
    ProjectTools,
    graph_of,
    stopwatch,
    with_methods,
)
from graphrag.eval.suite.summary import (
    CaseResult,
    SuiteOutcome,
    find_part_regressions,
    status_of,
    summarize_suite,
)
from graphrag.eval.suite.types import (
    BaseEvaluator,
    EvaluationResult,
    TestCase,
    mapping_of,
    score_case,
)
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.call_errors import describe_error
from graphrag.query.client.usage import CallLog, Usage
from graphrag.query.index.header import IndexHeader
from graphrag.text.float_compare import number_beside

OnCase = Callable[[int, int, CaseResult], None]
"""Called with the number of evaluations done, the number of all, and the latest result."""

_Value = TypeVar("_Value")
_KIND = "suite_case"
"""Kind of the judgments that store full results, to continue a run and to compare with it."""
_RESULT = TypeAdapter(CaseResult)
_NOT_COMPARED = "Parts of the scores are not compared: the baseline's are not kept here."


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """A case, in a framework's form, to be evaluated with one method, or without any.

    ``index`` is "" if none is asked. The ids of its unit are only compared with each other.
    """

    suite: Suite
    case: TestCase
    evaluator: BaseEvaluator
    method: str | None
    index: str
    unit: Unit

    @property
    def views_index(self) -> bool:
        """Whether the tables of the built index are read."""
        has_document = "document" in mapping_of(self.case.input_data)
        return has_document or "index" in needs_of(self.evaluator)

    @property
    def reads_index(self) -> bool:
        """Whether the index must be built; otherwise its project is enough."""
        return self.method is not None or self.views_index

    async def run(self, tools: CaseTools) -> dict[str, object]:
        """Return the project's output for the case, as evaluators get it."""
        output: dict[str, object] = {"success": True}
        asks = runs_by_component(self.case)
        if isinstance(self.evaluator, EntityExtraction) and self.evaluator.source == "index":
            inputs = mapping_of(self.case.input_data)
            text, document = (cast("str | None", inputs.get(key)) for key in ("text", "document"))
            tools.indexed(text, document)
        else:
            if "index" in needs_of(self.evaluator):
                output["graph"] = graph_of(tools.look_up())
            if asks:
                output |= await run_case(self.case, tools.components())
        if asks or tools.response.latency_s is not None:
            # As the tools measured it, without waiting in line; None if they have no time.
            output["processing_time"] = tools.response.latency_s
        return {**output, "extraction": tools.extraction}

    def result(
        self, response: StoredResponse, scored: EvaluationResult | Failure, judge_usage: Usage
    ) -> CaseResult:
        """Return the result of a response: its score, or why it has none."""
        is_failed = isinstance(scored, Failure)
        reason = "" if is_failed else _reason(scored)
        about = {} if is_failed else scored.details
        details = {k: v for k, v in about.items() if k not in ("parts", "reason")}  # shown apart
        return CaseResult(
            case_id=self.case.id,
            title=self.case.title,
            method=self.method or self.suite.evaluator,
            status="unscored" if is_failed else status_of(scored.share, self.suite.thresholds),
            score=None if is_failed else scored.share,
            reason=scored.message if is_failed else reason,
            output=(response.failure is None and response.response) or reason,
            failure=scored if is_failed else None,
            latency_s=response.latency_s,
            usage=response.usage,
            judge_usage=judge_usage,
            parts={} if is_failed else scored.parts,
            details=to_jsonable_python(details, fallback=str, inf_nan_mode="null"),
        )


class _Evaluators:
    """Gives the runner's loop its two steps: a search runs a case, a judge scores it."""

    def __init__(
        self, jobs: Mapping[str, _Evaluation], project: ProjectTools, session: StoredSession
    ) -> None:
        self._jobs, self._project, self._session = jobs, project, session
        self._outputs: dict[str, dict[str, object] | Failure] = {}

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Run a case by the component that fits it; keep its output until it is scored."""
        job, seconds = self._jobs[unit.key], stopwatch(log)
        tools = CaseTools(
            project=self._project, method=job.method, index=job.index, open_log=lambda: log
        )
        output = await self._attempt(job.run(tools), log, "search")
        check_asked(log)
        answer, failure = tools.response, None
        text, context = answer.response, answer.context_text or ""
        if isinstance(output, Failure) and output.stage == "search":
            failure, text, context = output, f"ERROR: {output.message}", ""
        self._outputs[unit.key] = output
        latency_s = seconds() if answer.latency_s is None else answer.latency_s
        usage = log.usage() if log.attempts else answer.usage
        return StoredResponse(
            unit=unit.key,
            sample_id=unit.sample.id,
            method=unit.method,
            response=text,
            context_text=context,
            latency_s=latency_s,
            usage=usage,
            failure=failure,
        )

    async def judge_unit(
        self, unit: Unit, response: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Score a case and store the result; the verdict on correctness is whether it passed."""
        job, output = self._jobs[unit.key], self._outputs.pop(unit.key, None)
        if output is None:  # its answer was kept by an earlier session
            tools = CaseTools(
                project=self._project,
                method=job.method,
                index=job.index,
                open_log=lambda: log,
                kept=response,
            )
            output = await self._attempt(job.run(tools), log, "judge")

        async def grade(question: str, ground_truth: str, answer: str) -> int:
            """Let the configured judge decide whether an answer means the ground truth: 0 or 1."""
            sample = replace(unit.sample, question=question, ground_truth=ground_truth)
            about = replace(unit, sample=sample), replace(response, response=answer)
            verdicts = await self._project.runner.judge_unit(*about, ("correctness",), log)
            verdict = verdicts["correctness"]
            if verdict.score is None:
                failure = verdict.failure or Failure(
                    stage="judge", kind="error", message=verdict.reason
                )
                raise CaseFailedError(failure)
            return verdict.score

        scored = output
        if not isinstance(scored, Failure):
            scoring = score_case(job.evaluator, job.case, {**scored, "judge": grade})
            scored = await self._attempt(scoring, log, "judge")
        check_asked(log)
        result = job.result(response, scored, log.usage())
        value, failed = _RESULT.dump_python(result, mode="json"), result.failure is not None
        self._session.keep_judgement(
            Judgement(subject=unit.key, kind=_KIND, value=value, failed=failed, usage=Usage())
        )
        verdict = JudgeResult(
            score=None, reason=f"Unscored: {result.reason}", failure=result.failure
        )
        if result.score is not None:
            passed = job.suite.thresholds.passes(result.score)
            score = number_beside(result.score, job.suite.thresholds.passing)
            verdict = JudgeResult(score=int(passed), reason=f"score {score}: {result.reason}")
        return {"correctness": verdict}

    def result(self, unit: Unit) -> CaseResult:
        """Return the result of a finished unit, from this session or an earlier one."""
        judgement = self._session.judgement(unit.key, _KIND)
        if judgement is not None:
            return _RESULT.validate_python(judgement.value)
        response = self._session.response(unit.key)
        assert response is not None
        assert response.failure is not None  # a unit without a judgment is a failed search
        return self._jobs[unit.key].result(response, response.failure, Usage())

    async def _attempt(
        self, job: Awaitable[_Value], log: CallLog, stage: Literal["search", "judge"]
    ) -> _Value | Failure:
        """Return the result of a step of a case within its time limit, or its failure."""
        limit_s = self._project.config.timeout_s
        try:
            async with log.own_time.deadline(limit_s):
                return await job
        except TimeoutError:
            return Failure(stage=stage, kind="timeout", message=describe_timeout(limit_s, log))
        except CaseFailedError as error:
            return error.failure
        except (RunStoppedError, StoreError):  # every call would be refused, or nothing stored
            raise
        except Exception as error:
            return Failure(stage="judge", kind="error", message=describe_error(error))


async def run_suites(
    suites: Sequence[Suite],
    config: EvaluationConfig,
    store: EvaluationStore | None = None,
    judge: Judge | None = None,
    on_case: OnCase | None = None,
    resume: bool = False,
    baseline: str | None = None,
) -> SuiteOutcome:
    """Run suites of different names as one run; an evaluation that failed has no score.

    - ``store``: keeps each result as it arrives. In this run, correctness means that a case passed.
    - ``judge``: replaces the configured judge.
    - ``resume``: continue the newest unfinished run of the same setup; its stored results, failures
      included, are not evaluated again.
    - ``baseline``: the id of another run in the store. Every part of the scores is tested for a
      fall; a part without a score in one of the runs is left out.

    Raises UsageError if ``resume`` or ``baseline`` has no store, a suite names an evaluator, method
    or index that does not exist, a case can't be evaluated, an index that is needed is not built,
    or there is no such run to resume. Raises RunStoppedError if a service refuses every request,
    ServiceDownStop if it is down for longer than a run waits or search after search fails; results
    so far stay in the store. Raises StoreError if a result can't be kept.

    Examples
    --------
    >>> outcome = await run_suites(suites=[read_suite(path="suite.yaml")], config=config)
    >>> outcome.reports[0].status
    'passed'
    """
    if store is None:
        if resume or baseline is not None:
            raise UsageError("Give run_suites the store of the run: resume and baseline read it.")
        with EvaluationStore(IN_MEMORY) as unkept:
            outcome = await run_suites(suites, config, unkept, judge, on_case)
            return replace(outcome, run_id=None)
    plan, jobs, project = await _plan_suites(suites, config, judge)
    notes: list[str] = []
    run_id = choose_run(store, plan, RunOptions(resume), notes.append, notes.append).run_id
    session = StoredSession(store, run_id)
    evaluators = _Evaluators(jobs, project, session)

    def watch(tally: Tally, latest: Unit | None) -> None:
        if on_case is not None and latest is not None and tally.done > n_kept:
            on_case(tally.done, tally.total, evaluators.result(latest))

    work = Work(project.config, plan.units, session, watch=watch)
    n_kept = sum(map(work.is_done, plan.units))
    ended = await work.run(evaluators)
    if ended.stopped is not None:
        raise (RunStoppedError if ended.refused else ServiceDownStop)(ended.stopped)
    results = [evaluators.result(unit) for unit in plan.units]
    by_suite = grouped(
        (job.suite.name, result) for job, result in zip(jobs.values(), results, strict=True)
    )
    reports = tuple(summarize_suite(suite, by_suite[suite.name]) for suite in suites)
    regressions = None
    if baseline is not None:
        then = [run.details.report for run in store.runs() if run.run_id == baseline]
        if then and then[0] is not None:
            regressions = find_part_regressions(reports, SuiteOutcome.from_dict(then[0]).reports)
        else:
            notes.append(_NOT_COMPARED)
    outcome = SuiteOutcome(
        reports=reports,
        run_id=run_id,
        # It names the models that were asked; evaluators that ask none don't count.
        embedded_models=label_usages(
            [(False, case.usage) for case in results],
            [(False, case.judge_usage) for case in results],
        ),
        ended_at=now(),
        regressions=regressions,
        notes=tuple(notes),
    )
    store.keep_details(run_id, replace(plan.details, report=outcome.to_dict()))
    store.finish_run(run_id)
    return outcome


def _reason(result: EvaluationResult) -> str:
    reason = result.details.get("reason")
    if isinstance(reason, str):
        return reason
    details = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in result.details.items()
        if not isinstance(value, list | Mapping)
    )
    return f"{result.metric} {result.share:.2f} ({details})"


async def _plan_suites(
    suites: Sequence[Suite], config: EvaluationConfig, judge: Judge | None
) -> tuple[RunPlan, dict[str, _Evaluation], ProjectTools]:
    """Check suites against a configuration; return the plan, the evaluations by key, the tools."""
    if not suites:
        raise ConfigError("There is no suite to run.")
    for name, n in Counter(suite.name for suite in suites).items():
        if n > 1:
            raise ConfigError(f"Two suites are called {name!r}; give one another name.")
    jobs = [job for suite in suites for job in _evaluations_of(suite, config)]
    methods = list(dict.fromkeys(job.method for job in jobs if job.method is not None))
    if methods:
        config = with_methods(config, methods, "the suites")
    if variants := [m for m in methods if m in config.variants and config.variants[m].index]:
        msg = f"{variants[0]} has an index of its own, and suites ask those under indexes alone"
        raise ConfigError(f"{msg}; name another method in the suite.")
    config = config.model_copy(update={"metrics": ("correctness",)})
    headers = await _read_headers(jobs, config)
    viewed = {job.index for job in jobs if job.index and job.views_index}
    views = {key: await IndexView.open(headers[key]) for key in viewed}
    samples = tuple({job.unit.sample.id: job.unit.sample for job in jobs}.values())
    setup = _setup(jobs, samples, config, headers, judge)
    details = RunDetails(origin="suite", n_units=len(jobs), config=config.to_dict())
    plan = RunPlan(
        setup=setup,
        samples=samples,
        details=details,
        config=config,
        units=[job.unit for job in jobs],
    )
    return plan, {job.unit.key: job for job in jobs}, ProjectTools(config, headers, views, judge)


def _evaluations_of(suite: Suite, config: EvaluationConfig) -> Iterator[_Evaluation]:
    evaluator = make_evaluator(suite, config.root)
    methods: Sequence[str | None] = tuple(dict.fromkeys(suite.methods)) or (None,)
    if not suite.methods and "methods" in needs_of(evaluator):
        methods = config.methods
    keys = list(config.indexes)
    for case in suite.cases:
        asks = methods != (None,) or runs_by_component(case) or "index" in needs_of(evaluator)
        index = keys[0] if case.index is None and len(keys) == 1 else case.index
        where = f"Suite {suite.name}, case {case.id!r}"
        if index is not None and index not in keys:
            msg = f"{where}: no index is configured for {index!r}{nearest(index, keys)}"
            raise ConfigError(as_sentence(msg))
        if index is None and asks:
            names = ", ".join(keys) or "the indexes, of which none is configured"
            raise ConfigError(f"{where} names no index; give input_data.index, one of {names}.")
        about = {"name": case.name, "description": case.description, "metadata": case.metadata}
        sample = Sample(
            id=f"{suite.name}/{case.id}",
            imdb_key=index or suite.name,
            question=_text(case.input_data),
            ground_truth=_text(case.expected_output),
            tags={"suite": suite.name, **about},
        )
        for method in methods:
            label = suite.name if method is None else f"{suite.name}/{method}"
            unit = Unit(key=f"{sample.id} {method or suite.evaluator}", sample=sample, method=label)
            yield _Evaluation(
                suite=suite,
                case=framework_case(case),
                evaluator=evaluator,
                method=method,
                index=index or "",
                unit=unit,
            )


async def _read_headers(
    jobs: Sequence[_Evaluation], config: EvaluationConfig
) -> dict[str, IndexHeader]:
    roots = config.project_folders()
    built = {job.index for job in jobs if job.reads_index}
    searches = config.searches_asked(roots)
    headers: dict[str, IndexHeader] = {}
    problems: list[UsageError] = []
    for key in dict.fromkeys(job.index for job in jobs if job.index):
        root = {key: roots[key]}
        try:
            headers |= (
                await read_headers(root, searches) if key in built else read_model_settings(root)
            )
        except UsageError as error:
            problems.append(error)
    if problems:
        # All at once, so that nobody has to mend them one by one.
        raise type(problems[0])("\n".join(map(str, problems)))
    return headers


def _text(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _setup(
    jobs: Sequence[_Evaluation],
    samples: Sequence[Sample],
    config: EvaluationConfig,
    headers: Mapping[str, IndexHeader],
    judge: Judge | None,
) -> RunSetup:
    """Return everything that changes the meaning of the results."""
    described = {job.suite.name: _describe_evaluator(job) for job in jobs}
    judged = any("judge" in needs_of(job.evaluator) for job in jobs)
    judge_setup = describe_judge(config, samples, headers, judge) if judged else {}
    for name, about in described.items():
        digest = hashlib.blake2b(_text(about).encode(), digest_size=6).hexdigest()
        judge_setup[f"suite {name}"] = digest
    methods = MethodSet(config)
    indexes: dict[str, dict[str, dict[str, object]]] = {}
    for (index, label), of_label in grouped(((j.index, j.unit.method), j) for j in jobs).items():
        if not index:
            continue
        header, method = headers[index], of_label[0].method
        built = {"index": header.fingerprint} if any(j.reads_index for j in of_label) else {}
        description = (
            ModelExtractor(header.config).describe()
            if method is None
            else methods.describe(method, header)
        )
        indexes.setdefault(index, {})[label] = {**built, **description}
    labels = tuple(dict.fromkeys(job.unit.method for job in jobs))
    asking = config.model_copy(update={"methods": labels, "trials": 1, "equal_terms": None})
    sections = describe_setup(asking, samples, indexes, judge_setup).root
    extra = {"suites": described, "metrics": {"correctness": {"suite": "passed"}}}
    return RunSetup({**{k: v for k, v in sections.items() if k != "further"}, **extra})


def _describe_evaluator(job: _Evaluation) -> dict[str, object]:
    suite = job.suite
    about = describe_method(job.evaluator)  # pyright: ignore[reportArgumentType]
    names = ["version"]
    if not str(about["function"]).startswith("graphrag.eval.suite."):
        names.append("source")
    return {
        "evaluator": suite.evaluator,
        "settings": suite.settings,
        "thresholds": suite.thresholds.model_dump(),
        **{name: about[name] for name in names},
    }
