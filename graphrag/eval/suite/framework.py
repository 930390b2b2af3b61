"""Suites of test cases over components that are handed in: run, scored, held to a baseline."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.suite.case_runs import CaseRun, run_case
from graphrag.eval.suite.cases import Thresholds
from graphrag.eval.suite.evaluation import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    TestCase,
)
from graphrag.eval.suite.evaluation_file import read_evaluation_file
from graphrag.eval.suite.metric_evaluators import MetricEvaluator, make_evaluators
from graphrag.eval.suite.regressions import MetricRegression, find_regressions
from graphrag.eval.suite.summary import status_of
from graphrag.query.calls import describe_error

WEAK, FAIR = 0.6, 0.8
"""A metric whose mean is below the one asks for work, below the other for a look."""


@dataclass(slots=True)
class _Scored:
    """What the evaluators made of one case."""

    results: list[EvaluationResult] = field(default_factory=list[EvaluationResult])
    failures: list[str] = field(default_factory=list[str])

    @property
    def mean(self) -> float | None:
        """Mean share of the results; None without any."""
        return fmean(result.share for result in self.results) if self.results else None


class EvaluationFramework:
    """Runs suites of test cases over a system's own components.

    Parameters
    ----------
    passing_score, warning_score : float
        In [0, 1]; in either order, as ``Thresholds`` takes them.

    Attributes
    ----------
    passing_score, warning_score : float
    evaluators : dict
        Metric -> evaluator: five to begin with.
    test_suites : dict
        Name -> list of TestCase.
    baseline_scores : dict
        Metric -> mean share of the baseline, over all suites that have one.
    evaluation_history : list of EvaluationReport
        Every report of :meth:`run_evaluation`, oldest first.
    """

    def __init__(self, *, passing_score: float = 0.7, warning_score: float = 0.5) -> None:
        self._thresholds = Thresholds(passing=passing_score, warning=warning_score)
        self.passing_score = passing_score
        self.warning_score = warning_score
        self.evaluators: dict[EvaluationMetric, BaseEvaluator] = make_evaluators()
        self.test_suites: dict[str, list[TestCase]] = {}
        self.baseline_scores: dict[EvaluationMetric, float] = {}
        self.evaluation_history: list[EvaluationReport] = []
        self._baseline: dict[tuple[str, EvaluationMetric], list[EvaluationResult]] = {}

    @classmethod
    def from_file(cls, path: Path | str) -> "EvaluationFramework":
        """Make a framework with the scores and the enabled suites of an evaluation.yml.

        Raises
        ------
        ConfigError
            If the file, or one that it names, can't be read.
        """
        given = read_evaluation_file(path)
        framework = cls(
            passing_score=given.thresholds.passing_score,
            warning_score=given.thresholds.warning_score,
        )
        for name, cases in given.test_cases().items():
            framework.register_test_suite(name, cases)
        return framework

    def register_evaluator(self, metric: EvaluationMetric, evaluator: BaseEvaluator) -> None:
        """Score this metric by this evaluator from now on."""
        self.evaluators[EvaluationMetric(metric)] = evaluator

    def register_test_suite(self, name: str, test_cases: Iterable[TestCase]) -> None:
        """Keep a suite of test cases under a name.

        Raises
        ------
        ValueError
            If two cases have the same id, by which reports are compared.
        """
        cases = list(test_cases)
        seen: set[str] = set()
        for case in cases:
            if case.id in seen:
                msg = f"two cases of the suite {name!r} have the id {case.id!r}; ids must be unique"
                raise ValueError(msg)
            seen.add(case.id)
        self.test_suites[name] = cases

    async def run_evaluation(
        self,
        test_suite_name: str,
        system_components: Mapping[str, Any],
        metrics: Sequence[EvaluationMetric] | None = None,
    ) -> EvaluationReport:
        """Run every case of a suite, one after another, and score what came out.

        Parameters
        ----------
        test_suite_name : str
        system_components : mapping
            ``graph_agent`` with ``process_query(query, context)``, ``entity_extractor`` with
            ``extract_entities(text)``, ``document_processor`` with ``process_document(document,
            metadata)``, all coroutine functions; ``graph``, with ``entities`` and
            ``relationships``. One that is None is missing.
        metrics : sequence of EvaluationMetric, optional
            Those to score; None: all that have an evaluator.

        Returns
        -------
        EvaluationReport
            Also appended to ``evaluation_history``. What failed is named in its ``failures`` and
            is no score.

        Raises
        ------
        ValueError
            If there is no such suite, or a metric has no evaluator.
        """
        if test_suite_name not in self.test_suites:
            known = nearest(test_suite_name, list(self.test_suites))
            msg = f"there is no test suite {test_suite_name!r}{known}"
            raise ValueError(as_sentence(msg) if known else f"{msg}; register it first")
        evaluators = self._chosen(metrics)
        cases = self.test_suites[test_suite_name]
        runs: dict[str, CaseRun] = {}
        scored: dict[str, _Scored] = {}
        for case in cases:
            runs[case.id] = await run_case(case, system_components)
            scored[case.id] = await _score(case, runs[case.id], evaluators)
        report = self._report(test_suite_name, runs, scored)
        self.evaluation_history.append(report)
        return report

    def case_statuses(
        self, report: EvaluationReport
    ) -> dict[str, Literal["passed", "warning", "failed"]]:
        """Return case id -> how the mean of its results stands against the two scores.

        A case that is among the failures is not in it.
        """
        return {
            case_id: status_of(fmean(shares), self._thresholds)
            for case_id, shares in _by_case(report).items()
            if case_id not in report.failures
        }

    def set_baseline(self, report: EvaluationReport) -> None:
        """Hold later reports against this one.

        It takes the place of what this suite had for its metrics; other metrics and suites keep
        theirs.
        """
        for metric, results in _by_metric(report.results).items():
            self._baseline[report.test_suite_name, metric] = results
        pooled = _by_metric(each for results in self._baseline.values() for each in results)
        self.baseline_scores |= {metric: _mean(results) for metric, results in pooled.items()}

    def compare_with_baseline(self, report: EvaluationReport) -> dict[str, float]:
        """Return metric value -> mean share now less that of the baseline, for the metrics of both.

        A suite is held against its own baseline, one that has none against those of all suites.
        Empty without a baseline.
        """
        return {
            metric.value: _mean(results) - (_mean(own) if own else self.baseline_scores[metric])
            for metric, results in _by_metric(report.results).items()
            for own in [self._baseline.get((report.test_suite_name, metric))]
            if own or metric in self.baseline_scores
        }

    def detect_regressions(self, report: EvaluationReport) -> list[MetricRegression]:
        """Test each metric that both reports have, on the cases that both have.

        Empty without a report given to :meth:`set_baseline`. See
        :func:`graphrag.eval.suite.find_regressions` for the test.
        """
        suites = {suite for suite, _ in self._baseline}
        if report.test_suite_name in suites:
            suites = {report.test_suite_name}
        then = _case_shares(
            each
            for (suite, _), results in self._baseline.items()
            if suite in suites
            for each in results
        )
        now = _case_shares(report.results)
        return find_regressions(
            {metric: (shares, then[metric]) for metric, shares in now.items() if metric in then}
        )

    def _chosen(
        self, metrics: Sequence[EvaluationMetric] | None
    ) -> dict[EvaluationMetric, BaseEvaluator]:
        if metrics is None:
            return dict(self.evaluators)
        for metric in metrics:
            if metric not in self.evaluators:
                msg = f"there is no evaluator of {metric}; register one first"
                raise ValueError(msg)
        return {metric: self.evaluators[metric] for metric in metrics}

    def _report(
        self, name: str, runs: Mapping[str, CaseRun], scored: Mapping[str, _Scored]
    ) -> EvaluationReport:
        results = [result for each in scored.values() for result in each.results]
        failures = {
            case_id: "; ".join(each.failures) for case_id, each in scored.items() if each.failures
        }
        seconds = [
            run.seconds for run in runs.values() if run.seconds is not None and run.failure is None
        ]
        report = EvaluationReport(
            test_suite_name=name,
            timestamp=datetime.now(UTC),
            results=results,
            overall_score=fmean(result.share for result in results) if results else 0.0,
            passed_tests=sum(
                case_id not in failures
                and each.mean is not None
                and each.mean >= self.passing_score
                for case_id, each in scored.items()
            ),
            total_tests=len(scored),
            performance_metrics={
                "avg_processing_time": fmean(seconds) if seconds else None,
                "max_processing_time": max(seconds, default=None),
            },
            recommendations=[],
            failures=failures,
        )
        report.recommendations = _recommend(report)
        return report


async def _score(
    case: TestCase, run: CaseRun, evaluators: Mapping[EvaluationMetric, BaseEvaluator]
) -> _Scored:
    scored = _Scored()
    if run.failure is not None:
        scored.failures.append(run.failure)
    for metric, evaluator in evaluators.items():
        if isinstance(evaluator, MetricEvaluator) and not (
            run.failure is None and evaluator.applies(case, run.output)
        ):
            continue
        try:
            scored.results.append(_checked(await evaluator.evaluate(case, run.output), case))
        except Exception as error:
            # Kept to this metric of this case, as a failure and never as a score.
            scored.failures.append(f"{metric.value}: {describe_error(error)}")
    return scored


def _checked(given: object, case: TestCase) -> EvaluationResult:
    if not isinstance(given, EvaluationResult):
        msg = f"the evaluator gave {type(given).__name__}, not an EvaluationResult"
        raise TypeError(msg)
    # Asked for now, so that a score outside its range is the failure of this case.
    _ = given.share
    return replace(given, test_case_id=case.id)


def _recommend(report: EvaluationReport) -> list[str]:
    texts: list[str] = []
    for metric, results in _by_metric(report.results).items():
        mean = _mean(results)
        if mean < WEAK:
            texts.append(f"Improve {metric.value}: its mean is {mean:.2f}, below {WEAK}.")
        elif mean < FAIR:
            texts.append(f"Look at {metric.value}: its mean is {mean:.2f}, below {FAIR}.")
    if not texts and report.results:
        texts.append(f"No metric is below {FAIR} on average.")
    if report.failures:
        first = next(iter(report.failures.items()))
        texts.append(
            f"Mend what failed in {len(report.failures)} of {report.total_tests} cases; the "
            f"first, {first[0]}: {first[1]}"
        )
    return texts or ["Nothing was scored: give the cases an expected output."]


def _by_metric(
    results: Iterable[EvaluationResult],
) -> dict[EvaluationMetric, list[EvaluationResult]]:
    found: dict[EvaluationMetric, list[EvaluationResult]] = {}
    for result in results:
        found.setdefault(result.metric, []).append(result)
    return found


def _mean(results: Sequence[EvaluationResult]) -> float:
    return fmean(result.share for result in results)


def _by_case(report: EvaluationReport) -> dict[str, list[float]]:
    shares: dict[str, list[float]] = {}
    for result in report.results:
        if result.test_case_id is not None:
            shares.setdefault(result.test_case_id, []).append(result.share)
    return shares


def _case_shares(results: Iterable[EvaluationResult]) -> dict[str, dict[str, float]]:
    """Return metric -> case id -> mean share."""
    found: dict[str, dict[str, list[float]]] = {}
    for result in results:
        if result.test_case_id is not None:
            of_metric = found.setdefault(result.metric, {})
            of_metric.setdefault(result.test_case_id, []).append(result.share)
    return {
        metric: {case_id: fmean(shares) for case_id, shares in given.items()}
        for metric, given in found.items()
    }
