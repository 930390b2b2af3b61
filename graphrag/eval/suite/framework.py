"""Runs suites over components that a program passes in, and compares scores with a baseline."""

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import cast

from graphrag.config.models.strict_section import nearest
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.paired import holm, paired_scale
from graphrag.eval.suite.cases import Thresholds, check_ids, read_evaluation_file
from graphrag.eval.suite.evaluators import FIVE
from graphrag.eval.suite.types import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    Output,
    TestCase,
    mapping_of,
    score_case,
)
from graphrag.query.client.call_errors import describe_error
from graphrag.text.float_compare import is_below, number_beside

ALPHA = 0.05
MIN_PAIRS = 2
WEAK, FAIR = 0.6, 0.8
"""A metric with a mean below WEAK needs work, below FAIR a look."""
Components = Mapping[str, object]
Scores = Mapping[str, Mapping[str, float]]
"""Metric, or part of a score -> case id -> score in [0, 1]."""


@dataclass(frozen=True, slots=True)
class MetricRegression:
    """One metric compared with a baseline.

    - ``metric``: the EvaluationMetric, or the name of a part of the cases' scores.
    - ``difference``: the mean of now less baseline, in [-1, 1], over the ``n_pairs`` cases that
      both scored.
    - ``p_holm``: p of the null that it did not fall, corrected over the family; None below two
      pairs.
    - ``regressed``: whether ``p_holm`` is at most 0.05.
    """

    metric: str
    difference: float | None
    p_holm: float | None
    n_pairs: int
    regressed: bool


# Key of the input, component, its coroutine function, further input, key of the output.
_WAYS = (
    ("query", "graph_agent", "process_query", "context", "query_result"),
    ("text", "entity_extractor", "extract_entities", None, "extracted_entities"),
    ("document", "document_processor", "process_document", "metadata", "processed_document"),
)


def runs_by_component(case: TestCase) -> bool:
    """Return whether a case has an input that some component takes."""
    return any(way[0] in mapping_of(case.input_data) for way in _WAYS)


async def run_case(case: TestCase, components: Components) -> dict[str, object]:
    """Run a case by the first component that fits it; return its output and the seconds it took.

    A case without an input for any component is about the graph, if there is one: then nothing
    runs. Raises ValueError if no component can run the case, and whatever the component raises.
    """
    case_input = mapping_of(case.input_data)
    ways = [way for way in _WAYS if way[0] in case_input]
    for key, component, method, further, output_key in ways:
        if components.get(component) is not None:
            call = cast("Callable[..., Awaitable[object]]", getattr(components[component], method))
            more = [] if further is None else [case_input.get(further, {})]
            started = time.perf_counter()
            answer = await call(case_input[key], *more)
            return {"processing_time": time.perf_counter() - started, output_key: answer}
    if not ways and components.get("graph") is not None:
        return {}
    missing = " or ".join(way[1] for way in ways)
    needs = f"give {missing}" if missing else "its input_data has no query, text or document"
    raise ValueError(f"no component can run it; {needs}")


class EvaluationFramework:
    """Runs suites of test cases over a system's own components, and scores the results.

    - ``passing_score``, ``warning_score``: in [0, 1], in either order, as for ``Thresholds``.
    - ``evaluators``: metric -> evaluator; five at the beginning.
    - ``test_suites``: name -> cases.
    - ``baseline_scores``: metric -> mean share in the baseline, over all suites that have one.
    - ``evaluation_history``: every report of :meth:`run_evaluation`.

    Examples
    --------
    >>> framework = EvaluationFramework(passing_score=0.7, warning_score=0.5)
    >>> framework.register_test_suite(name="questions", test_cases=cases)
    >>> report = await framework.run_evaluation(
    ...     test_suite_name="questions", system_components={"graph_agent": agent}
    ... )
    >>> report.passed_tests, report.total_tests
    (3, 3)
    """

    def __init__(self, *, passing_score: float = 0.7, warning_score: float = 0.5) -> None:
        Thresholds(passing=passing_score, warning=warning_score)  # raises if one is no score
        self.passing_score = passing_score
        self.warning_score = warning_score
        self.evaluators: dict[EvaluationMetric, BaseEvaluator] = {k.metric: k() for k in FIVE}
        self.test_suites: dict[str, list[TestCase]] = {}
        self.baseline_scores: dict[EvaluationMetric, float] = {}
        self.evaluation_history: list[EvaluationReport] = []
        self._baseline: dict[str, dict[EvaluationMetric, list[EvaluationResult]]] = {}

    @classmethod
    def from_file(cls, path: Path | str) -> "EvaluationFramework":
        """Make a framework with the thresholds and the enabled suites of an evaluation.yml.

        Raises ConfigError if the file, or one that it names, can't be read.
        """
        file = read_evaluation_file(path)
        framework = cls(**file.settings.thresholds.model_dump())
        for name, cases in file.test_cases().items():
            framework.register_test_suite(name, cases)
        return framework

    def register_evaluator(self, metric: EvaluationMetric, evaluator: BaseEvaluator) -> None:
        """Score this metric by this evaluator from now on."""
        self.evaluators[EvaluationMetric(metric)] = evaluator

    def register_test_suite(self, name: str, test_cases: Iterable[TestCase]) -> None:
        """Keep a suite under a name; raises ValueError if two cases have the same id."""
        cases = list(test_cases)
        check_ids(cases)
        self.test_suites[name] = cases

    async def run_evaluation(
        self,
        test_suite_name: str,
        system_components: Components,
        metrics: Sequence[EvaluationMetric] | None = None,
    ) -> EvaluationReport:
        """Run every case of a suite, one after another, and score the results.

        ``system_components`` may have ``graph_agent`` with ``process_query(query, context)``,
        ``entity_extractor`` with ``extract_entities(text)``, ``document_processor`` with
        ``process_document(document, metadata)``, all coroutine functions, and ``graph`` with
        ``entities`` and ``relationships``; one that is None is missing. ``metrics`` are the metrics
        to score; None: all that have an evaluator. The report is also kept in
        ``evaluation_history``; its ``failures`` have no score. Raises
        ValueError if there is no such suite, or a metric has no evaluator.
        """
        if test_suite_name not in self.test_suites:
            hint = nearest(test_suite_name, list(self.test_suites)) or "; register it first"
            raise ValueError(f"there is no test suite {test_suite_name!r}{hint}")
        for metric in metrics or ():
            if metric not in self.evaluators:
                raise ValueError(f"there is no evaluator of {metric}; register one first")
        chosen = {m: self.evaluators[m] for m in (self.evaluators if metrics is None else metrics)}
        cases = self.test_suites[test_suite_name]
        results: list[EvaluationResult] = []
        failures: dict[str, str] = {}
        seconds: list[float] = []
        n_passed = 0
        for case in cases:
            output = await _outcome_of(case, system_components)
            scored, problems = await _score(case, output, chosen)
            results += scored
            if output["success"] and "processing_time" in output:
                seconds.append(cast("float", output["processing_time"]))
            if problems:
                failures[case.id] = "; ".join(problems)
            elif scored:
                n_passed += not is_below(fmean(r.share for r in scored), self.passing_score)
        report = EvaluationReport(
            test_suite_name=test_suite_name,
            timestamp=datetime.now(UTC),
            results=results,
            overall_score=fmean(result.share for result in results) if results else 0.0,
            passed_tests=n_passed,
            total_tests=len(cases),
            performance_metrics=time_metrics(seconds),
            recommendations=recommend(_means_of(results).items(), failures, len(cases)),
            failures=failures,
        )
        self.evaluation_history.append(report)
        return report

    def set_baseline(self, report: EvaluationReport) -> None:
        """Compare later reports with this one.

        It replaces the baseline of this suite for the metrics of the report; other metrics and
        suites keep theirs.
        """
        by_metric = self._baseline.setdefault(report.test_suite_name, {})
        by_metric |= grouped((r.metric, r) for r in report.results)
        self.baseline_scores |= _means_of(self._baseline_of(*self._baseline))

    def _baseline_of(self, *suites: str) -> list[EvaluationResult]:
        baselines = [self._baseline.get(suite, {}) for suite in suites]
        return [r for by_metric in baselines for results in by_metric.values() for r in results]

    def compare_with_baseline(self, report: EvaluationReport) -> dict[str, float]:
        """Return metric value -> mean share less that of the baseline, for metrics in both.

        A suite is compared with its own baseline; a suite without one, with all baselines.
        Empty without a baseline.
        """
        now, own = _means_of(report.results), _means_of(self._baseline_of(report.test_suite_name))
        then = self.baseline_scores | own
        return {metric.value: now[metric] - then[metric] for metric in now if metric in then}

    def detect_regressions(self, report: EvaluationReport) -> list[MetricRegression]:
        """Test each metric that both reports have for a fall, on the cases that both have.

        The test is :func:`find_regressions`. Empty before :meth:`set_baseline`.
        """
        then = self._baseline_of(report.test_suite_name) or self._baseline_of(*self._baseline)
        return find_regressions(_shares_of(report.results), _shares_of(then))


def mean_by_case(scores: Iterable[tuple[str, str | None, float]]) -> Scores:
    """Return the mean score by metric and case of (metric, case id, score); id None is left out."""
    groups = grouped((metric, (case, score)) for metric, case, score in scores if case is not None)
    return {
        metric: {case: fmean(of_case) for case, of_case in grouped(of_metric).items()}
        for metric, of_metric in groups.items()
    }


def find_regressions(now: Scores, then: Scores) -> list[MetricRegression]:
    """Test each metric that both have for a fall, in the order of ``now``; these are the family.

    One-sided permutation test on the paired differences (``paired_scale``), Holm 1979 over the
    metrics. The smallest p value that n pairs can give is ``2 ** -n``, so that fewer than five
    pairs show no fall.
    """
    differences = {
        metric: paired_scale(
            [(score, before[case]) for case, score in scores.items() if case in before],
            alternative="less",
        )
        for metric, scores in now.items()
        if (before := then.get(metric)) is not None
    }
    tested = [result.p if result.n_pairs >= MIN_PAIRS else None for result in differences.values()]
    return [
        MetricRegression(
            metric=metric,
            difference=result.difference,
            p_holm=p,
            n_pairs=result.n_pairs,
            regressed=p is not None and p <= ALPHA,
        )
        for (metric, result), p in zip(differences.items(), holm(tested), strict=True)
    ]


def time_metrics(seconds: Sequence[float]) -> dict[str, float | None]:
    """Return the performance metrics of a report and their number of cases; None without times."""
    return {
        "n_timed": len(seconds),
        "avg_processing_time": fmean(seconds) if seconds else None,
        "max_processing_time": max(seconds, default=None),
    }


async def _outcome_of(case: TestCase, components: Components) -> dict[str, object]:
    """Return the output of a case; an exception of a component becomes its error."""
    graph, started = components.get("graph"), time.perf_counter()
    about = {} if graph is None else {"graph": graph}
    try:
        return {"success": True, **about, **await run_case(case, components)}
    except Exception as error:
        seconds = time.perf_counter() - started
        failed = {"success": False, "processing_time": seconds, "error": describe_error(error)}
        return {**about, **failed}


async def _score(
    case: TestCase, output: Output, evaluators: Mapping[EvaluationMetric, BaseEvaluator]
) -> tuple[list[EvaluationResult], list[str]]:
    """Return a case's results and its failures, which never become scores."""
    results: list[EvaluationResult] = []
    problems = [] if output["success"] else [str(output["error"])]
    for metric, evaluator in evaluators.items():
        if isinstance(evaluator, FIVE) and not (
            output["success"] and evaluator.applies(case, output)
        ):
            continue
        try:
            result = await score_case(evaluator, case, output)
        except Exception as error:
            problems.append(f"{metric.value}: {describe_error(error)}")
        else:
            results.append(replace(result, test_case_id=case.id))
    return results, problems


def recommend(
    means: Collection[tuple[str, float]], failures: Mapping[str, str], n_cases: int
) -> list[str]:
    """List the named means, in [0, 1], that are low, and the failures; never empty."""
    texts: list[str] = []
    for name, mean in means:
        if is_below(mean, FAIR):
            verb, limit = ("Improve", WEAK) if is_below(mean, WEAK) else ("Look at", FAIR)
            text = number_beside(mean, limit, digits=2)
            texts.append(f"{verb} {name}: its mean is {text}, below {limit}.")
    if not texts and means:
        texts.append(f"No metric is below {FAIR} on average.")
    if failures:
        case_id, problem = next(iter(failures.items()))
        n = f"{len(failures)} of {n_cases}"
        texts.append(f"Mend what failed in {n} cases; the first, {case_id}: {problem}")
    return texts or ["Nothing was scored: give the cases an expected output."]


def _means_of(results: Iterable[EvaluationResult]) -> dict[EvaluationMetric, float]:
    by_metric = grouped((result.metric, result.share) for result in results)
    return {metric: fmean(shares) for metric, shares in by_metric.items()}


def _shares_of(results: Iterable[EvaluationResult]) -> Scores:
    return mean_by_case((r.metric, r.test_case_id, r.share) for r in results)
