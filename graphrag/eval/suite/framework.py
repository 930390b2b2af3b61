"""Suites of test cases over components that are handed in: run, scored, held to a baseline."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, cast

from graphrag.config.models.strict_section import nearest
from graphrag.eval.scorers.entities import graph_connectivity, score_entities
from graphrag.eval.scorers.evidence import phrase_key
from graphrag.eval.scorers.wording import ANY_WORD, aspect_coverage, keyword_relevance, time_score
from graphrag.eval.stats.paired import holm, paired_scale
from graphrag.eval.suite.cases import Thresholds, check_ids, read_case, read_evaluation_file
from graphrag.eval.suite.evaluation import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    Output,
    TestCase,
    checked_result,
    groups,
    mapping_of,
)
from graphrag.query.calls import describe_error

if TYPE_CHECKING:
    from graphrag.eval.ratings import Rating

ALPHA = 0.05
MIN_PAIRS = 2
WEAK, FAIR = 0.6, 0.8
"""A metric whose mean is below the one asks for work, below the other for a look."""
DEFAULT_MAX_SECONDS = 5.0


class MetricEvaluator(BaseEvaluator):
    """An evaluator of one metric, asked of the cases that name what it compares with.

    ``compared`` is that key of the expected output; ``measured`` the key of the output that must be
    there instead.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("methods",)
    metric: ClassVar[EvaluationMetric]
    compared: ClassVar[str] = ""
    measured: ClassVar[str] = ""

    def applies(self, test_case: TestCase, system_output: Output) -> bool:
        """Whether it can be asked of this case."""
        if self.measured:
            return system_output.get(self.measured) is not None
        return self.compared in mapping_of(test_case.expected_output)

    def check(self, case: TestCase) -> None:
        """Refuse a case of a project's suite whose question or expectation is missing."""
        _, expected = read_case(case, {"query"}, {"keywords", "aspects"})
        if not getattr(expected, self.compared):
            msg = f"expected_output.{self.compared} is missing"
            raise ValueError(msg)


class EntityExtractionEvaluator(MetricEvaluator):
    """F1 of the extracted entity names against the expected ones.

    ``2 P R / (P + R)`` with ``P = tp / (tp + fp)`` and ``R = tp / (tp + fn)``, each 0 where it is
    undefined; all three are 1 when nothing is expected and nothing found. Names are compared as
    ``NameRule`` folds them, each counted once.
    """

    metric = EvaluationMetric.ENTITY_EXTRACTION_ACCURACY
    compared = "entities"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Compare ``extracted_entities``; ValueError without a list of named entities."""
        wanted = mapping_of(test_case.expected_output).get("entities")
        expected = _names(wanted or (), "the expected entities")
        if system_output.get("extracted_entities") is None:
            msg = "the output has no extracted_entities"
            raise ValueError(msg)
        found = _names(system_output["extracted_entities"], "the extracted entities")
        scores = score_entities(found, expected)
        nothing = 1.0 if scores.n_found == scores.n_expected == 0 else 0.0
        f1 = nothing if scores.f1 is None else scores.f1
        details = {
            "precision": nothing if scores.precision is None else scores.precision,
            "recall": nothing if scores.recall is None else scores.recall,
            "f1_score": f1,
            "true_positives": scores.n_matched,
            "false_positives": scores.n_found - scores.n_matched,
            "false_negatives": scores.n_expected - scores.n_matched,
            "expected_entities": expected,
            "extracted_entities": found,
        }
        return _result(self.metric, f1, details)


class ResponseRelevanceEvaluator(MetricEvaluator):
    """Share of the expected keywords that the answer names, whole words; 0 without keywords."""

    metric = EvaluationMetric.RESPONSE_RELEVANCE
    compared = "keywords"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look for the ``keywords``; ValueError without an answer, or a keyword with a letter."""
        keywords, answer = _texts(test_case, "keywords"), _answer(system_output)
        score = keyword_relevance(keywords, answer) if keywords else 0.0
        if score is None:
            msg = "no keyword has a letter or digit"
            raise ValueError(msg)
        total = len({key for key in map(phrase_key, keywords) if key})
        details = {
            "matched_keywords": round(score * total),
            "total_keywords": total,
            "response_length": len(answer),
            "expected_keywords": keywords,
        }
        return _result(self.metric, score, details)


class ResponseCompletenessEvaluator(MetricEvaluator):
    """Share of the expected aspects of which any content word is in the answer; 1 without."""

    metric = EvaluationMetric.RESPONSE_COMPLETENESS
    compared = "aspects"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look for the ``aspects``; ValueError without an answer, or content words in each."""
        aspects, answer = _texts(test_case, "aspects"), _answer(system_output)
        shares = [aspect_coverage([aspect], answer, ANY_WORD) for aspect in aspects]
        if None in shares:
            msg = f"the aspect {aspects[shares.index(None)]!r} has no content word"
            raise ValueError(msg)
        covered = sum(share == 1 for share in shares)
        details = {
            "covered_aspects": covered,
            "total_aspects": len(aspects),
            "response_length": len(answer),
            "expected_aspects": aspects,
        }
        return _result(self.metric, covered / len(aspects) if aspects else 1.0, details)


class GraphConnectivityEvaluator(MetricEvaluator):
    """Entities of the largest connected part of the graph by all entities."""

    metric = EvaluationMetric.GRAPH_CONNECTIVITY
    needs = ("index",)
    measured = "graph"

    def check(self, case: TestCase) -> None:
        """Refuse an input other than an index; nothing is expected of a graph."""
        if case.expected_output:
            msg = "expected_output: the whole graph is measured, so nothing can be expected"
            raise ValueError(msg)
        read_case(case, (), ())

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Measure ``output["graph"]``: ``entities``, names, and ``relationships``, pairs of them.

        ValueError if there is no graph, no entity in it, or a relationship is no pair of names.
        """
        graph = mapping_of(system_output.get("graph"))
        if "entities" not in graph:
            msg = "the output has no graph with entities and relationships"
            raise ValueError(msg)
        names = _names(graph["entities"], "the entities of the graph")
        ends = [_pair(each) for each in graph.get("relationships") or ()]
        found = graph_connectivity(names, [a for a, _ in ends], [b for _, b in ends])
        if found.largest_component_share is None:
            msg = "the graph has no entities"
            raise ValueError(msg)
        details = {
            "connectivity_ratio": found.largest_component_share,
            "isolated_entities": found.n_isolated,
            "largest_component_size": round(found.largest_component_share * found.n_entities),
        }
        return _result(self.metric, found.largest_component_share, details)


class ProcessingTimeEvaluator(MetricEvaluator):
    """The time against its limit, see :func:`graphrag.eval.scorers.time_score`."""

    metric = EvaluationMetric.QUERY_PROCESSING_TIME
    compared = "max_processing_time"
    measured = "processing_time"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Hold ``processing_time`` (0 if not given) against the limit, 5 s unless the case has one.

        ValueError if the time is negative or the limit not positive.
        """
        seconds = float(system_output.get("processing_time") or 0.0)
        expected = mapping_of(test_case.expected_output)
        limit = float(expected.get("max_processing_time", DEFAULT_MAX_SECONDS))
        score = cast("float", time_score(seconds, limit))
        times = {"processing_time": seconds, "expected_max_time": limit}
        return _result(self.metric, score, {**times, "within_limit": seconds <= limit})


class UserSatisfactionEvaluator(BaseEvaluator):
    """Mean of ``(rating - 1) / 4`` over the ``ratings`` whose question_id is a case's id."""

    def __init__(self, ratings: "Iterable[Rating]") -> None:
        self._ratings = groups((each.question_id, each.rating) for each in ratings)

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look up the case's ratings; ValueError if nobody rated it, or one is not from 1 to 5."""
        given = self._ratings.get(test_case.id)
        if not given:
            msg = f"nobody rated the case {test_case.id!r}"
            raise ValueError(msg)
        if not all(1 <= rating <= 5 for rating in given):
            msg = f"a rating of the case {test_case.id!r} is not from 1 to 5"
            raise ValueError(msg)
        mean = fmean(given)
        details = {"mean_rating": mean, "n_ratings": len(given)}
        return _result(EvaluationMetric.USER_SATISFACTION, (mean - 1) / 4, details)


FIVE: tuple[type[MetricEvaluator], ...] = (
    EntityExtractionEvaluator,
    ResponseRelevanceEvaluator,
    ResponseCompletenessEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
)
"""What a framework begins with."""


def _result(metric: EvaluationMetric, score: float, details: dict[str, Any]) -> EvaluationResult:
    return EvaluationResult(metric, score, 1.0, details, datetime.now(UTC))


def _listed(given: object, what: str) -> list[object]:
    # A text and a mapping can be gone through too, but by letters and keys.
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        msg = f"{what} must be a list, not {type(cast('object', given)).__name__}"
        raise ValueError(msg)
    return list(cast("Iterable[object]", given))


def _texts(test_case: TestCase, key: str) -> list[str]:
    given = mapping_of(test_case.expected_output).get(key) or ()
    return [str(each) for each in _listed(given, f"expected_output.{key}")]


def _names(given: object, what: str) -> list[str]:
    names = [
        each if isinstance(each, str) else _held(each, "name") for each in _listed(given, what)
    ]
    if not all(isinstance(name, str) for name in names):
        msg = f"not every one of {what} has a name: {given!r}"
        raise ValueError(msg)
    return [str(name) for name in names]


def _held(given: object, key: str) -> object:
    return mapping_of(given).get(key, getattr(given, key, None))


def _answer(system_output: Output) -> str:
    answer = _held(system_output.get("query_result", system_output), "answer")
    if not isinstance(answer, str):
        msg = "the output has no answer that is a text"
        raise ValueError(msg)
    return answer


def _pair(given: object) -> tuple[str, str]:
    # Two keys of a mapping, or two letters, unpack as well and join nothing that is there.
    match given:
        case (str(source), str(target)):
            return source, target
        case _:
            msg = f"a relationship of the graph is a pair (source, target) of names, not {given!r}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class MetricRegression:
    """One metric held against a baseline.

    Attributes
    ----------
    metric : str
        An EvaluationMetric, which is a text, or the part of a case's score.
    difference : float or None
        Mean of now less baseline over the cases that both scored, in [-1, 1]; None without any.
    p_holm : float or None
        That the metric did not fall, corrected over the family; None below two pairs. It
        regressed where this is at most 0.05.
    """

    metric: str
    difference: float | None
    p_holm: float | None
    n_pairs: int
    regressed: bool


# An input that a component takes, the component, its coroutine, what else it takes, what it gives.
_WAYS = (
    ("query", "graph_agent", "process_query", "context", "query_result"),
    ("text", "entity_extractor", "extract_entities", None, "extracted_entities"),
    ("document", "document_processor", "process_document", "metadata", "processed_document"),
)


async def run_case(case: TestCase, components: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case by the first component that fits it, and return what evaluators see.

    A case that has no input for any component is about the graph, if there is one: then nothing
    runs. ValueError if no component can run it; what the component raises is raised too.
    """
    output = _about(components)
    given = mapping_of(case.input_data)
    wanted = [way for way in _WAYS if way[0] in given]
    for key, component, method, further, made in wanted:
        if components.get(component) is not None:
            ask = cast("Callable[..., Awaitable[object]]", getattr(components[component], method))
            more = [] if further is None else [given.get(further, {})]
            started = time.perf_counter()
            output[made] = await ask(given[key], *more)
            seconds = time.perf_counter() - started
            return {"success": True, "processing_time": seconds, **output}
    if "graph" in output and not wanted:
        return {"success": True, **output}
    missing = " or ".join(way[1] for way in wanted)
    needs = f"give {missing}" if missing else "its input_data has no query, text or document"
    msg = f"no component can run it; {needs}"
    raise ValueError(msg)


class EvaluationFramework:
    """Runs suites of test cases over a system's own components.

    Scores lie in [0, 1]; ``passing_score`` and ``warning_score`` come in either order, as
    ``Thresholds`` takes them.

    Attributes
    ----------
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
        Thresholds(passing=passing_score, warning=warning_score)  # refuses what is no score
        self.passing_score = passing_score
        self.warning_score = warning_score
        self.evaluators: dict[EvaluationMetric, BaseEvaluator] = {k.metric: k() for k in FIVE}
        self.test_suites: dict[str, list[TestCase]] = {}
        self.baseline_scores: dict[EvaluationMetric, float] = {}
        self.evaluation_history: list[EvaluationReport] = []
        self._baseline: dict[tuple[str, EvaluationMetric], list[EvaluationResult]] = {}

    @classmethod
    def from_file(cls, path: Path | str) -> "EvaluationFramework":
        """Make a framework with the scores and the enabled suites of an evaluation.yml.

        ConfigError if the file, or one that it names, can't be read.
        """
        given = read_evaluation_file(path)
        framework = cls(**given.settings.thresholds.model_dump())
        for name, cases in given.test_cases().items():
            framework.register_test_suite(name, cases)
        return framework

    def register_evaluator(self, metric: EvaluationMetric, evaluator: BaseEvaluator) -> None:
        """Score this metric by this evaluator from now on."""
        self.evaluators[EvaluationMetric(metric)] = evaluator

    def register_test_suite(self, name: str, test_cases: Iterable[TestCase]) -> None:
        """Keep a suite under a name; ValueError if two cases have the same id."""
        cases = list(test_cases)
        check_ids(cases)
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
            is no score. ValueError if there is no such suite, or a metric has no evaluator.
        """
        if test_suite_name not in self.test_suites:
            hint = nearest(test_suite_name, list(self.test_suites)) or "; register it first"
            msg = f"there is no test suite {test_suite_name!r}{hint}"
            raise ValueError(msg)
        for metric in metrics or ():
            if metric not in self.evaluators:
                msg = f"there is no evaluator of {metric}; register one first"
                raise ValueError(msg)
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
                seconds.append(output["processing_time"])
            if problems:
                failures[case.id] = "; ".join(problems)
            elif scored and fmean(each.share for each in scored) >= self.passing_score:
                n_passed += 1
        report = EvaluationReport(
            test_suite_name=test_suite_name,
            timestamp=datetime.now(UTC),
            results=results,
            overall_score=fmean(result.share for result in results) if results else 0.0,
            passed_tests=n_passed,
            total_tests=len(cases),
            performance_metrics=time_metrics(seconds),
            recommendations=[],
            failures=failures,
        )
        report.recommendations = _recommend(report)
        self.evaluation_history.append(report)
        return report

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


def find_regressions(
    scores: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]],
) -> list[MetricRegression]:
    """Test each metric for a fall.

    ``scores`` is metric -> (case id -> score now, case id -> score of the baseline), each in
    [0, 1]; the metrics are the family, and their order that of the result.

    Notes
    -----
    One-sided permutation test on the paired differences (``paired_scale``), Holm 1979 over the
    metrics. The smallest p value that n pairs can give is ``2 ** -n``, so that fewer than five
    pairs show no fall.
    """
    found = {
        metric: paired_scale(
            [(now[case], then[case]) for case in now if case in then], alternative="less"
        )
        for metric, (now, then) in scores.items()
    }
    tested = [each.p if each.n_pairs >= MIN_PAIRS else None for each in found.values()]
    return [
        MetricRegression(metric, each.difference, p, each.n_pairs, p is not None and p <= ALPHA)
        for (metric, each), p in zip(found.items(), holm(tested), strict=True)
    ]


def time_metrics(seconds: Sequence[float]) -> dict[str, float | None]:
    """Return the performance metrics of a report; None without any time."""
    return {
        "avg_processing_time": fmean(seconds) if seconds else None,
        "max_processing_time": max(seconds, default=None),
    }


def _about(components: Mapping[str, Any]) -> dict[str, Any]:
    graph = components.get("graph")
    return {} if graph is None else {"graph": graph}


async def _outcome_of(case: TestCase, components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output of a case; what a component raises is kept to it, as its error."""
    started = time.perf_counter()
    try:
        return await run_case(case, components)
    except Exception as error:
        seconds = time.perf_counter() - started
        failed = {"success": False, "processing_time": seconds, "error": describe_error(error)}
        return {**failed, **_about(components)}


async def _score(
    case: TestCase,
    output: Output,
    evaluators: Mapping[EvaluationMetric, BaseEvaluator],
) -> tuple[list[EvaluationResult], list[str]]:
    """Return a case's results, and what failed of it, which is never a score."""
    results: list[EvaluationResult] = []
    problems = [] if output["success"] else [output["error"]]
    for metric, evaluator in evaluators.items():
        if isinstance(evaluator, MetricEvaluator) and not (
            output["success"] and evaluator.applies(case, output)
        ):
            continue
        try:
            result = checked_result(await evaluator.evaluate(case, output))
        except Exception as error:
            problems.append(f"{metric.value}: {describe_error(error)}")
        else:
            results.append(replace(result, test_case_id=case.id))
    return results, problems


def _recommend(report: EvaluationReport) -> list[str]:
    texts: list[str] = []
    for metric, results in _by_metric(report.results).items():
        mean = _mean(results)
        if mean < FAIR:
            what, limit = ("Improve", WEAK) if mean < WEAK else ("Look at", FAIR)
            texts.append(f"{what} {metric.value}: its mean is {mean:.2f}, below {limit}.")
    if not texts and report.results:
        texts.append(f"No metric is below {FAIR} on average.")
    if report.failures:
        case_id, problem = next(iter(report.failures.items()))
        n = f"{len(report.failures)} of {report.total_tests}"
        texts.append(f"Mend what failed in {n} cases; the first, {case_id}: {problem}")
    return texts or ["Nothing was scored: give the cases an expected output."]


def _by_metric(
    results: Iterable[EvaluationResult],
) -> dict[EvaluationMetric, list[EvaluationResult]]:
    return groups((result.metric, result) for result in results)


def _mean(results: Sequence[EvaluationResult]) -> float:
    return fmean(result.share for result in results)


def _case_shares(results: Iterable[EvaluationResult]) -> dict[str, dict[str, float]]:
    """Return metric -> case id -> mean share."""
    named = [(r.metric, (r.test_case_id, r.share)) for r in results if r.test_case_id is not None]
    shares = groups(named)
    return {m: {case: fmean(of) for case, of in groups(each).items()} for m, each in shares.items()}
