"""Running suites: planned as one run, many cases at the same time, one failure kept to its case."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import cast

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.samples import Sample, fingerprint_samples
from graphrag.eval.errors import ConfigError, RunStoppedError, StoreError, UsageError
from graphrag.eval.records import Failure, JudgeResult, Stored
from graphrag.eval.results.usage import label_usages
from graphrag.eval.runner.headers import read_headers, read_model_settings
from graphrag.eval.runner.judging import describe_judge
from graphrag.eval.runner.methods import MethodSet, describe_method
from graphrag.eval.runner.plan import ChosenRun, ResumeOptions, RunPlan, choose_run
from graphrag.eval.runner.queue import run_bounded
from graphrag.eval.scorers.judge import Judge
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Judgement, RunDetails, RunSetup, StoredResponse, now
from graphrag.eval.suite.cases import Suite, Thresholds, framework_case
from graphrag.eval.suite.evaluation import (
    BaseEvaluator,
    EvaluationResult,
    TestCase,
    checked_result,
    mapping_of,
)
from graphrag.eval.suite.evaluators import EntityExtraction, make_evaluator, needs_of
from graphrag.eval.suite.framework import (
    MetricRegression,
    find_regressions,
    run_case,
    runs_by_component,
)
from graphrag.eval.suite.summary import CaseResult, SuiteReport, status_of, summarize_suite
from graphrag.eval.suite.tools import CaseFailedError, CaseTools, ModelExtractor, SharedTools
from graphrag.query.calls import describe_error
from graphrag.query.index_header import IndexHeader
from graphrag.query.usage import Usage

OnCase = Callable[[int, int, CaseResult], None]
"""Receives how many evaluations are done, how many there are, and the latest."""

_KIND = "suite_case"
"""Of the judgments that keep each result whole: to continue a run, and to compare with it."""


@dataclass(frozen=True, slots=True)
class PartRegression(MetricRegression):
    """One part of the scores of a suite and method; the family is all parts of the two."""

    suite: str
    method: str


@dataclass(frozen=True, slots=True)
class SuiteOutcome(Stored):
    """What a run of suites gave, in their order.

    ``run_id`` is None without a store, ``embedded_models`` their label when they had a part,
    ``ended_at`` ISO 8601 in UTC, ``regressions`` None without a baseline; ``notes`` are what a
    person is to be told of the run that was begun or continued.
    """

    reports: tuple[SuiteReport, ...]
    run_id: str | None
    embedded_models: str | None
    ended_at: str
    regressions: tuple[PartRegression, ...] | None = None
    notes: tuple[str, ...] = ()


_RESULT = TypeAdapter(CaseResult)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One case, to be evaluated by one method, or by none in a suite without methods."""

    suite: Suite
    case: TestCase
    evaluator: BaseEvaluator
    method: str | None
    index: str | None

    @property
    def sample_id(self) -> str:
        # The question's id in the run; like the label, it is compared with nothing but itself.
        return f"{self.suite.name}/{self.case.id}"

    @property
    def label(self) -> str:
        return self.suite.name if self.method is None else f"{self.suite.name}/{self.method}"

    @property
    def method_name(self) -> str:
        return self.method or self.suite.evaluator

    @property
    def key(self) -> str:
        return f"{self.sample_id} {self.method_name}"

    @property
    def reads_index(self) -> bool:
        named = "document" in mapping_of(self.case.input_data)
        return self.method is not None or named or "index" in needs_of(self.evaluator)


@dataclass(frozen=True, slots=True)
class _Plan:
    config: EvaluationConfig
    units: list[_Unit]
    samples: tuple[Sample, ...]
    headers: Mapping[str, IndexHeader]
    setup: RunSetup


async def run_suites(
    suites: Sequence[Suite],
    config: EvaluationConfig,
    store: EvaluationStore | None = None,
    judge: Judge | None = None,
    on_case: OnCase | None = None,
    resume: bool = False,
) -> SuiteOutcome:
    """Run suites of different names as one run; an evaluation that failed has no score.

    ``store`` keeps each result as it arrives, as a run of which correctness says what passed;
    ``judge`` stands in for the configured one; ``resume`` continues the newest unfinished run of
    the same setup: what it keeps, failures included, is not evaluated again.

    UsageError if a suite names an evaluator, method or index that is not there, a case can't be
    evaluated, an index that is needed is not built, or there is no such run to resume;
    RunStoppedError if a service refuses every request, or is down for longer than it is waited for;
    what was kept stays in the store; StoreError if a result can't be kept.
    """
    plan = await _plan_suites(suites, config, judge)
    details = RunDetails("suite", len(plan.units), plan.config.to_dict())
    shared = SharedTools(plan.config, plan.headers, judge)
    results: dict[str, CaseResult] = {}
    chosen: ChosenRun | None = None
    if store is not None:
        chosen = choose_run(
            store, RunPlan(plan.setup, plan.samples, details), ResumeOptions(resume)
        )
        run_id, known = chosen.run.run_id, {unit.key for unit in plan.units}
        results = {key: r for key, r in _kept_results(store, run_id).items() if key in known}
        for key in store.responses(run_id):
            if key not in results:  # it was stopped before its result was kept
                store.discard_response(run_id, key)

    async def run_unit(unit: _Unit) -> None:
        tools = CaseTools(shared, unit.sample_id, unit.method, unit.index)
        result = await _evaluate(unit, tools, plan.config.timeout_s)
        if store is not None and chosen is not None:
            _keep(store, chosen.run.run_id, unit, tools, result)
        results[unit.key] = result
        if on_case is not None:
            on_case(len(results), len(plan.units), result)

    left = [partial(run_unit, unit) for unit in plan.units if unit.key not in results]
    await run_bounded(left, plan.config.concurrency)
    outcome = SuiteOutcome(
        reports=tuple(
            summarize_suite(suite, [results[u.key] for u in plan.units if u.suite is suite])
            for suite in suites
        ),
        run_id=None if chosen is None else chosen.run.run_id,
        # Evaluators that ask no model have no part in it: it names the models that were asked.
        embedded_models=label_usages(
            [(False, each.usage) for each in results.values()],
            [(False, each.judge_usage) for each in results.values()],
        ),
        ended_at=now(),
        notes=() if chosen is None else (*chosen.notes, *chosen.warnings),
    )
    if store is not None and chosen is not None:
        store.keep_details(chosen.run.run_id, replace(details, report=outcome.to_dict()))
        store.finish_run(chosen.run.run_id)
    return outcome


def hold_against(
    outcome: SuiteOutcome, baseline: str, store: EvaluationStore
) -> SuiteOutcome | None:
    """Test every part of a run's scores for a fall, and keep what that gave with the run.

    Returns the outcome with its regressions; None when the store keeps no result of the
    ``baseline``, the id of another run. What either has no score for is left out.
    """
    new, old = (_parts_of(store, run_id) for run_id in (outcome.run_id or "", baseline))
    if not old:
        return None
    found = [
        PartRegression(**asdict(each), suite=suite, method=method)
        for (suite, method), parts in new.items()
        for each in find_regressions(
            {
                part: (scores, old[suite, method][part])
                for part, scores in parts.items()
                if part in old.get((suite, method), {})
            }
        )
    ]
    compared = replace(outcome, regressions=tuple(found))
    for run in store.runs():
        if run.run_id == outcome.run_id:
            store.keep_details(run.run_id, replace(run.details, report=compared.to_dict()))
    return compared


def _parts_of(
    store: EvaluationStore, run_id: str
) -> dict[tuple[str, str], dict[str, dict[str, float]]]:
    """Return (suite, method) -> part -> case id -> score."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for unit, result in _kept_results(store, run_id).items():
        for part, score in result.parts.items():
            of_method = found.setdefault((unit.partition("/")[0], result.method), {})
            of_method.setdefault(part, {})[result.case_id] = score
    return found


def _kept_results(store: EvaluationStore, run_id: str) -> dict[str, CaseResult]:
    """Return the result of each unit that a run keeps."""
    return {
        each.subject: _RESULT.validate_python(each.value)
        for each in store.judgements(run_id)
        if each.kind == _KIND
    }


async def _evaluate(unit: _Unit, tools: CaseTools, timeout_s: float) -> CaseResult:
    result: EvaluationResult | None = None
    failure: Failure | None = None
    started = time.perf_counter()
    try:
        async with tools.own_time.deadline(timeout_s):
            result = checked_result(await _ask(unit, tools))
    except TimeoutError:
        message = f"no result within {timeout_s:g} s"
        failure = Failure("judge" if tools.output else "search", "timeout", message)
    except CaseFailedError as error:
        failure = error.failure
    except (RunStoppedError, StoreError):  # every call would be refused, or nothing is kept
        raise
    except Exception as error:
        failure = Failure("judge", "error", describe_error(error))
    took_s = time.perf_counter() - started - tools.own_time.waited_s
    score, reason = (None, "") if result is None else (result.share, _reason(result))
    details = {} if result is None else {**result.details}
    for shown_elsewhere in ("parts", "reason"):
        details.pop(shown_elsewhere, None)
    return CaseResult(
        case_id=unit.case.id,
        title=unit.case.title,
        method=unit.method_name,
        status="unscored" if score is None else status_of(score, unit.suite.thresholds),
        score=score,
        reason=reason if failure is None else failure.message,
        output=tools.output or reason,
        failure=failure,
        latency_s=sum(tools.seconds) if tools.seconds else took_s,
        usage=tools.usage(),
        judge_usage=tools.judge_usage(),
        parts={} if result is None else result.parts,
        details=to_jsonable_python(details, fallback=str, inf_nan_mode="null"),
    )


def _keep(
    store: EvaluationStore, run_id: str, unit: _Unit, tools: CaseTools, result: CaseResult
) -> None:
    failure = result.failure if result.failure and result.failure.stage == "search" else None
    text = f"ERROR: {failure.message}" if failure else result.output
    response = StoredResponse(
        unit.key,
        unit.sample_id,
        unit.label,
        text,
        tools.context,
        result.latency_s,
        result.usage,
        failure,
    )
    store.append_response(run_id, response)
    if failure is None:
        verdicts = {"correctness": _verdict(result, unit.suite.thresholds)}
        store.append_verdicts(run_id, unit.key, verdicts, result.judge_usage)
    # Last, as a unit with a kept result is not evaluated again. What it cost is kept above.
    value = _RESULT.dump_python(result, mode="json")
    kept = Judgement(unit.key, _KIND, value, result.failure is not None, Usage())
    store.append_judgement(run_id, kept)


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


async def _ask(unit: _Unit, tools: CaseTools) -> object:
    """Let the evaluator score what the project made of a case."""
    case, evaluator = framework_case(unit.case), unit.evaluator
    output: dict[str, object] = {"success": True}
    asks = runs_by_component(case)
    if isinstance(evaluator, EntityExtraction) and evaluator.source == "index":
        given = mapping_of(case.input_data)
        await tools.indexed(*(cast("str | None", given.get(key)) for key in ("text", "document")))
    else:
        if "index" in needs_of(evaluator):
            output["graph"] = await tools.graph()
        if asks:
            output |= await run_case(case, tools.components())
    if asks or tools.seconds:
        # As the tools measured it: without what was waited for. They may have no time at all.
        output["processing_time"] = sum(tools.seconds) if tools.seconds else None
    output |= {"extraction": tools.extraction, "judge": tools.judge}
    return await evaluator.evaluate(case, output)


def _verdict(result: CaseResult, thresholds: Thresholds) -> JudgeResult:
    if result.score is None:
        return JudgeResult(None, f"Unscored: {result.reason}", result.failure)
    passed = thresholds.passes(result.score)
    return JudgeResult(int(passed), f"score {result.score:.3f}: {result.reason}")


async def _plan_suites(
    suites: Sequence[Suite], config: EvaluationConfig, judge: Judge | None
) -> _Plan:
    """Check suites against a configuration and say what is to be run."""
    if not suites:
        raise ConfigError("There is no suite to run.")
    units: list[_Unit] = []
    names: set[str] = set()
    for suite in suites:
        if suite.name in names:
            raise ConfigError(f"Two suites are called {suite.name!r}; give one another name.")
        names.add(suite.name)
        units += _units_of(suite, make_evaluator(suite, config.root), config)
    asked = list(dict.fromkeys(unit.method for unit in units if unit.method is not None))
    if asked:
        changes = {"root": config.root, "methods": asked}
        config = parse_config({**config.model_dump(), **changes}, "the suites")
    headers = await _read_headers(units, config)
    samples = tuple({unit.sample_id: _sample(unit) for unit in units}.values())
    return _Plan(config, units, samples, headers, _setup(units, samples, config, headers, judge))


def _units_of(suite: Suite, evaluator: BaseEvaluator, config: EvaluationConfig) -> list[_Unit]:
    methods: Sequence[str | None] = suite.methods or (None,)
    if not suite.methods and "methods" in needs_of(evaluator):
        methods = config.methods
    keys = list(config.indexes)
    units: list[_Unit] = []
    for case in suite.cases:
        index = keys[0] if case.index is None and len(keys) == 1 else case.index
        what = f"Suite {suite.name}, case {case.id!r}"
        if index is not None and index not in keys:
            msg = f"{what}: no index is configured for {index!r}{nearest(index, keys)}"
            raise ConfigError(as_sentence(msg))
        asks = methods != (None,) or runs_by_component(case) or "index" in needs_of(evaluator)
        if index is None and asks:
            known = ", ".join(keys) or "the indexes, of which none is configured"
            raise ConfigError(f"{what} names no index; give input_data.index, one of {known}.")
        units += [_Unit(suite, case, evaluator, method, index) for method in methods]
    return units


async def _read_headers(units: Sequence[_Unit], config: EvaluationConfig) -> dict[str, IndexHeader]:
    roots = config.project_folders()
    built = {unit.index for unit in units if unit.reads_index}
    headers: dict[str, IndexHeader] = {}
    problems: list[UsageError] = []
    for key in dict.fromkeys(unit.index for unit in units if unit.index is not None):
        root = {key: roots[key]}
        try:
            headers |= await read_headers(root) if key in built else read_model_settings(root)
        except UsageError as error:
            problems.append(error)
    if problems:
        # All at once, so that mending one does not bring up the next.
        raise type(problems[0])("\n".join(map(str, problems)))
    return headers


def _sample(unit: _Unit) -> Sample:
    case = unit.case
    about = {"name": case.name, "description": case.description, "metadata": case.metadata}
    return Sample(
        id=unit.sample_id,
        imdb_key=unit.index or unit.suite.name,
        question=_text(case.input_data),
        ground_truth=_text(case.expected_output),
        tags={"suite": unit.suite.name, **about},
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _setup(
    units: Sequence[_Unit],
    samples: Sequence[Sample],
    config: EvaluationConfig,
    headers: Mapping[str, IndexHeader],
    judge: Judge | None,
) -> RunSetup:
    """Return everything that changes what the results mean."""
    described = {unit.suite.name: _describe_evaluator(unit) for unit in units}
    judged = any("judge" in needs_of(unit.evaluator) for unit in units)
    methods = MethodSet(config)
    indexes: dict[str, dict[str, dict[str, object]]] = {}
    for unit in units:
        if unit.index is None or unit.label in indexes.setdefault(unit.index, {}):
            continue
        header = headers[unit.index]
        about: dict[str, object] = {"index": header.fingerprint} if unit.reads_index else {}
        if unit.method is not None:
            about |= methods.describe(unit.method, header)
        else:
            about |= ModelExtractor(header.config).describe()
        indexes[unit.index][unit.label] = about
    sections: dict[str, object] = {
        "suites": described,
        "dataset": {"fingerprint": fingerprint_samples(samples), "questions": len(samples)},
        "methods": {"order": list(dict.fromkeys(unit.label for unit in units))},
        "indexes": indexes,
        "judge": {
            **(describe_judge(config, samples, headers, judge) if judged else {}),
            **{
                f"suite {name}": hashlib.blake2b(_text(each).encode(), digest_size=6).hexdigest()
                for name, each in described.items()
            },
        },
        "metrics": {"correctness": {"suite": "passed"}},
        "releases": {name: version(name) for name in ("graphrag", "gtog")},
    }
    return RunSetup(sections)


def _describe_evaluator(unit: _Unit) -> dict[str, object]:
    suite = unit.suite
    found = describe_method(unit.evaluator)  # pyright: ignore[reportArgumentType]
    own = not str(found["function"]).startswith("graphrag.eval.suite.")
    return {
        "evaluator": suite.evaluator,
        "settings": suite.settings,
        "thresholds": suite.thresholds.model_dump(),
        "version": found["version"],
        **({"source": found["source"]} if own else {}),
    }
