"""Summarizes a suite's results (scores, passed cases, regressions) and renders them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from statistics import fmean
from typing import Literal, cast

import numpy as np

from graphrag.eval.report.formatting import (
    EACH_ALONE,
    MISSING,
    UNKNOWN,
    in_brackets,
    money,
    number,
    seconds,
    span,
    unfinished,
)
from graphrag.eval.report.table import STYLES, Line, Part, Table
from graphrag.eval.stats.intervals import Estimate, grouped, mean_binary, t_estimate
from graphrag.eval.stats.latency import Latency, LatencyQuantile, latency_quantile
from graphrag.eval.suite.cases import Suite, Thresholds
from graphrag.eval.suite.framework import (
    MetricRegression,
    Scores,
    find_regressions,
    mean_by_case,
    recommend,
    time_metrics,
)
from graphrag.eval.suite.types import EvaluationMetric, EvaluationReport, EvaluationResult
from graphrag.eval.types.query_results import EfficiencyMetrics
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.usage import Usage, sum_usages
from graphrag.text.float_compare import is_below, number_beside
from graphrag.text.json_records import Stored, whole_json
from graphrag.text.message_phrases import counted

CaseStatus = Literal["passed", "warning", "failed", "unscored"]
SuiteStatus = Literal["passed", "warning", "failed", "incomplete"]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case, evaluated once by ``method``, or by the evaluator in a suite without methods.

    - ``score``, ``parts``: in [0, 1]; the score is None if there is a ``failure``.
    - ``status``: by the thresholds; :meth:`Thresholds.passes` decides if the case counts as passed.
    - ``details``: the evaluator's other findings, JSON-ready.
    - ``output``: the system's answer, after ``latency_s`` seconds.
    - ``usage``, ``judge_usage``: the model calls of the system and of the judge.
    """

    case_id: str
    title: str
    method: str
    status: CaseStatus
    score: float | None
    reason: str
    output: str
    failure: Failure | None
    latency_s: float | None
    usage: Usage
    judge_usage: Usage = field(default_factory=Usage)
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    details: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def ran(self) -> bool:
        """Whether the system ran the case without an error, whatever its score."""
        return self.failure is None or self.failure.stage != "search"

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON-ready values."""
        names = ("method", "status", "score", "reason", "parts", "details", "output")
        return {
            "id": self.case_id,
            "name": self.title,
            **{name: getattr(self, name) for name in names},
            "failure": None if self.failure is None else self.failure.to_dict(),
            "efficiency": EfficiencyMetrics.of(self.latency_s, self.usage).to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Performance:
    """The cost of a method's cases: seconds, completions and tokens of the system, US dollars.

    The latency does not include the judge; a failed case counts as longer than it was waited for.
    None if it was not counted, or a price is not known.
    """

    latency_median: LatencyQuantile
    latency_p95: LatencyQuantile
    llm_calls: int | None
    tokens: int | None
    cost_usd: float | None
    judge_cost_usd: float | None


@dataclass(frozen=True, slots=True)
class MethodReport:
    """The results of one method on a suite.

    - ``score``: mean over the scored cases, in [0, 1], with its t interval for new cases.
    - ``bounds``: the mean over all cases if every unscored one were 0, and if every one were 1.
    - ``passed``: share of all cases that reach the passing threshold, with Wilson's interval; an
      unscored case does not reach it.
    - ``n_warning``: these cases passed or not, depending on the order of the thresholds.
    - ``status``: by the mean score. With unscored cases it is incomplete, unless even the upper
      bound is below both thresholds.
    """

    method: str
    score: Estimate
    bounds: tuple[float, float]
    passed: Estimate
    n_passed: int
    n_warning: int
    n_failed: int
    n_unscored: int
    n_total: int
    status: SuiteStatus
    performance: Performance


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The results of a suite; its status is that of the worst method.

    ``score`` is the mean over the cases of each case's mean over the methods, with its t interval.
    ``n_passed`` and ``n_total`` are over all methods. ``recommendations`` are those of
    :func:`framework.recommend`.
    """

    name: str
    evaluator: str
    description: str
    thresholds: Thresholds
    status: SuiteStatus
    score: Estimate
    n_passed: int
    n_total: int
    methods: tuple[MethodReport, ...]
    results: tuple[CaseResult, ...]
    recommendations: tuple[str, ...]

    @property
    def outcome(self) -> Literal["passed", "failed", "incomplete"]:
        """Whether every method's mean reaches the passing threshold.

        It is failed as soon as one method can't reach it, whatever its missing scores are.
        """
        reach = [m.bounds[1] if m.n_unscored else m.score.mean for m in self.methods]
        if not all(map(self.thresholds.passes, reach)):
            return "failed"
        return "incomplete" if any(method.n_unscored for method in self.methods) else "passed"

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready values; an undefined value is None."""
        values = asdict(replace(self, results=()))
        values |= {"thresholds": self.thresholds.model_dump(), "passed": self.n_passed}
        values |= {"total": self.n_total, "cases": [result.to_dict() for result in self.results]}
        return {k: v for k, v in values.items() if k not in ("n_passed", "n_total", "results")}

    def evaluation_report(self, ended_at: datetime) -> EvaluationReport:
        """Return these scores and counts in the form of a framework's report.

        Each result is one evaluation; its metric is the evaluator's, and its details have the
        parts.
        """
        metric = cast("EvaluationMetric", self.evaluator)
        if self.evaluator == "entity_extraction":
            metric = EvaluationMetric.ENTITY_EXTRACTION_ACCURACY
        results: list[EvaluationResult] = []
        for case in self.results:
            if case.score is not None:
                about = {"method": case.method, "status": case.status, "reason": case.reason}
                details: dict[str, object] = {**about, "parts": dict(case.parts)}
                scored = EvaluationResult(
                    metric=metric,
                    score=case.score,
                    max_score=1.0,
                    details=details,
                    timestamp=ended_at,
                    test_case_id=case.case_id,
                )
                results.append(scored)
        return EvaluationReport(
            test_suite_name=self.name,
            timestamp=ended_at,
            results=results,
            overall_score=self.score.mean or 0.0,
            passed_tests=self.n_passed,
            total_tests=self.n_total,
            performance_metrics=time_metrics(
                [t for case in self.results if case.ran and (t := case.latency_s) is not None]
            ),
            recommendations=list(self.recommendations),
            failures=_failures(self.results),
        )


@dataclass(frozen=True, slots=True)
class PartRegression(MetricRegression):
    """The regression of one part of a method's scores on a suite.

    The family is all parts of this suite and method.
    """

    suite: str
    method: str


@dataclass(frozen=True, slots=True)
class SuiteOutcome(Stored):
    """The results of a run of suites, in their order.

    - ``run_id``: None without a store.
    - ``embedded_models``: the label of the embedded models (rules and vectors that come with this
      package in place of a language model), if they were asked.
    - ``ended_at``: ISO 8601 in UTC.
    - ``regressions``: None without a baseline.
    - ``notes``: messages for a person about how the run was begun or continued.
    """

    reports: tuple[SuiteReport, ...]
    run_id: str | None
    embedded_models: str | None
    ended_at: str
    regressions: tuple[PartRegression, ...] | None = None
    notes: tuple[str, ...] = ()

    def render(self, has_cases: bool = True) -> str:
        """Return the content of suite_results.json, with or without the cases."""
        suites = [report.to_dict() for report in self.reports]
        for suite in suites if not has_cases else ():
            del suite["cases"]
        values: dict[str, object] = {
            "timestamp": datetime.fromisoformat(self.ended_at).isoformat(timespec="seconds"),
            "run_id": self.run_id,
            "embedded_models": self.embedded_models,
            "suites": suites,
        }
        if self.regressions is not None:
            values["regressions"] = [asdict(regression) for regression in self.regressions]
        return whole_json(values)

    def render_reports(self) -> str:
        """Return a framework's report in JSON; for several suites, ``{"suites": [...]}``."""
        ended_at = datetime.fromisoformat(self.ended_at)
        about = {"run_id": self.run_id, "embedded_models": self.embedded_models}
        reports = [
            {**report.evaluation_report(ended_at).to_dict(), **about, "status": report.status}
            for report in self.reports
        ]
        return whole_json(reports[0] if len(reports) == 1 else {"suites": reports})


def status_of(score: float, thresholds: Thresholds) -> Literal["passed", "warning", "failed"]:
    """Return the status of a score by the thresholds."""
    low, high = sorted((thresholds.passing, thresholds.warning))
    return "failed" if is_below(score, low) else "warning" if is_below(score, high) else "passed"


def worst_status(statuses: Sequence[SuiteStatus]) -> SuiteStatus:
    """Return the worst of several statuses, in the order failed, incomplete, warning, passed."""
    order: tuple[SuiteStatus, ...] = ("failed", "incomplete", "warning", "passed")
    return min(statuses, key=order.index)


def summarize_suite(suite: Suite, results: Sequence[CaseResult]) -> SuiteReport:
    """Make the report of a suite from the results of every case and method, at least one."""
    methods = tuple(
        _summarize_method(method, of_method, suite.thresholds)
        for method, of_method in grouped((r.method, r) for r in results).items()
    )
    scores = grouped((r.case_id, r.score) for r in results if r.score is not None)
    parts = grouped((f"{name} of {r.method}", v) for r in results for name, v in r.parts.items())
    means = [(name, fmean(values)) for name, values in parts.items()]
    return SuiteReport(
        name=suite.name,
        evaluator=suite.evaluator,
        description=suite.description,
        thresholds=suite.thresholds,
        status=worst_status([method.status for method in methods]),
        score=_mean([fmean(of_case) for of_case in scores.values()]),
        n_passed=sum(method.n_passed for method in methods),
        n_total=len(results),
        methods=methods,
        results=tuple(results),
        recommendations=tuple(recommend(means, _failures(results), len(suite.cases))),
    )


def find_part_regressions(
    now: Iterable[SuiteReport], then: Iterable[SuiteReport]
) -> tuple[PartRegression, ...]:
    """Test every part of the scores, of every suite and method, for a fall."""
    before = _parts_of(then)
    return tuple(
        PartRegression(**asdict(regression), suite=suite, method=method)
        for (suite, method), scores in _parts_of(now).items()
        for regression in find_regressions(scores, before.get((suite, method), {}))
    )


def _parts_of(reports: Iterable[SuiteReport]) -> dict[tuple[str, str], Scores]:
    by_method = grouped(((report.name, r.method), r) for report in reports for r in report.results)
    return {
        key: mean_by_case((part, r.case_id, score) for r in rows for part, score in r.parts.items())
        for key, rows in by_method.items()
    }


def _failures(results: Sequence[CaseResult]) -> dict[str, str]:
    """Return case id -> its failures, by method."""
    messages = ((r.case_id, f"{r.method}: {r.failure.message}") for r in results if r.failure)
    return {case_id: "; ".join(texts) for case_id, texts in grouped(messages).items()}


def _summarize_method(
    method: str, results: Sequence[CaseResult], thresholds: Thresholds
) -> MethodReport:
    scores = [result.score for result in results if result.score is not None]
    statuses = [result.status for result in results]
    n, missing = len(results), statuses.count("unscored")
    bounds = (sum(scores) / n, min(1.0, (sum(scores) + missing) / n))
    n_passed = sum(thresholds.passes(result.score) for result in results)
    latencies = [Latency(r.latency_s, not r.ran) for r in results if r.latency_s is not None]
    usage = sum_usages(result.usage for result in results)
    efficiency = EfficiencyMetrics.of(None, usage)
    status: SuiteStatus = status_of(bounds[1] if missing else fmean(scores), thresholds)
    if missing and status != "failed":
        status = "incomplete"
    return MethodReport(
        method=method,
        score=_mean(scores),
        bounds=bounds,
        passed=mean_binary([1] * n_passed + [0] * (n - n_passed)),
        n_passed=n_passed,
        n_warning=statuses.count("warning"),
        n_failed=statuses.count("failed"),
        n_unscored=missing,
        n_total=n,
        status=status,
        performance=Performance(
            latency_median=latency_quantile(latencies, 0.5),
            latency_p95=latency_quantile(latencies, 0.95),
            llm_calls=efficiency.llm_calls,
            tokens=efficiency.tokens,
            cost_usd=usage.cost_usd,
            judge_cost_usd=sum_usages(result.judge_usage for result in results).cost_usd,
        ),
    )


def _mean(scores: Sequence[float]) -> Estimate:
    return t_estimate(np.array(scores, dtype=np.float64), (0.0, 1.0))


def list_suite_answers(outcome: SuiteOutcome) -> list[Line]:
    """Return one line for each suite, with its answer."""
    label = in_brackets(outcome.embedded_models)
    return [
        Line(
            f"Suite {report.name}: {report.status}{label}: overall score "
            f"{_format_score(report.score.mean, report.thresholds, UNKNOWN)} (passing "
            f"{report.thresholds.passing:.10g}, warning {report.thresholds.warning:.10g}), "
            f"{report.n_passed} of {report.n_total} passed.",
            STYLES[report.status],
        )
        for report in outcome.reports
    ]


def list_suites(outcome: SuiteOutcome, every_case: bool = False) -> Iterator[Part]:
    """Yield each suite's table, the cases that did not pass (or all), and the recommendations."""
    for report in outcome.reports:
        yield Table(
            title=f"Suite {report.name}{in_brackets(outcome.embedded_models)}",
            columns=[
                *(("method", "text"), ("result", "text"), ("score", "percent")),
                *(("95 % interval", "interval"), ("passed", "count"), ("no score", "count")),
            ],
            rows=[
                [
                    *(method.method, method.status),
                    _format_score(method.score.mean, report.thresholds),
                    span(method.score.low, method.score.high, lambda limit: number(limit, ".3f")),
                    *(f"{method.n_passed}/{method.n_total}", method.n_unscored),
                ]
                for method in report.methods
            ],
            note=EACH_ALONE,
        )
        for method in report.methods:
            yield Line(f"{method.method} took {_describe_performance(method.performance)}.")
        for result in report.results:
            if every_case or not report.thresholds.passes(result.score):
                score = _format_score(result.score, report.thresholds, "", digits=2)
                where = f"{result.case_id} ({result.method})"
                status = f"{result.status} {score}".rstrip()
                yield Line(f"  {status} {where}: {result.reason}")
        for recommendation in report.recommendations:
            yield Line(recommendation, is_command=True)


def _format_score(
    score: float | None, thresholds: Thresholds, missing: str = MISSING, digits: int = 3
) -> str:
    limits = thresholds.passing, thresholds.warning
    return missing if score is None else number_beside(score, *limits, digits=digits)


def _describe_performance(took: Performance) -> str:
    is_known = took.cost_usd is not None and took.judge_cost_usd is not None
    total = (took.cost_usd or 0) + (took.judge_cost_usd or 0)
    return (
        f"a median of {seconds(took.latency_median, '.3f', UNKNOWN)} s, "
        f"p95 {seconds(took.latency_p95, '.3f', UNKNOWN)} s{unfinished(took.latency_p95)}, "
        f"{_format_count(took.llm_calls, 'model call')}, {_format_count(took.tokens, 'token')}, "
        f"$ {money(total if is_known else None, missing=UNKNOWN)} with the judge"
    )


def _format_count(n: int | None, noun: str) -> str:
    return f"{UNKNOWN} {noun}s" if n is None else counted(n, noun)
