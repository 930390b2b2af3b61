"""From results to figures with intervals: states, means, comparisons, efficiency.

Everything here works on rows, so that a run in memory, a run in the store and a results file
are analysed by the same functions.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from itertools import combinations
from typing import Any, TypeAlias

from graphrag.eval.analysis.best import Best, find_best
from graphrag.eval.analysis.corrections import CorrectedComparison, JudgeErrorNote
from graphrag.eval.analysis.race import RaceEnd
from graphrag.eval.analysis.rows import ZERO_IF_FAILED, QuestionKey, Row, paired_score
from graphrag.eval.records import METRICS, measured_latency
from graphrag.eval.statistics import (
    ALPHA,
    EARLY_ALPHA,
    EQUIVALENCE_MARGIN,
    CostPerCorrect,
    FamilyFigures,
    Inference,
    Latency,
    LatencyQuantile,
    Outcome,
    Outcomes,
    PairCounts,
    PairedDifference,
    Score,
    Tradeoff,
    at_any_stop,
    compare_family,
    correct_family,
    cost_per_correct,
    inference_at_any_stop,
    inference_of,
    latency_quantile,
    paired_binary,
    pareto_set,
    shown_sign,
    summarize_outcomes,
    verdict_in_words,
)

Planned: TypeAlias = Mapping[str, Mapping[str, int]]
"""Method -> document -> questions that the method was to be asked about it."""
_Scores: TypeAlias = Mapping[QuestionKey, int | None]
_NESTED = {"result", "family", "sign", "inference"}
_FAMILY_FIGURES = tuple(each.name for each in fields(FamilyFigures))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods on one metric; ``in_family`` marks those whose p is Holm-corrected.

    What is outside the family, fixed beforehand as the method pairs on the primary metric, is
    exploratory: its ``family`` is None. ``corrected``: by people's labels, where the run has some;
    the verdict is by it then. ``sign``: 1 where the verdict is for a, -1 for b, 0 for neither.
    """

    a: str
    b: str
    metric: str
    in_family: bool
    result: PairedDifference
    verdict: str
    sign: int
    inference: Inference = field(repr=False, compare=False)
    family: FamilyFigures | None = None
    corrected: CorrectedComparison | None = None

    @property
    def is_corrected(self) -> bool:
        """Whether labels decide it."""
        return self.corrected is not None and self.corrected.refused is None

    @property
    def shown(self) -> tuple[str, str] | None:
        """The method that is shown to be better, and the other; None when neither is."""
        return {1: (self.a, self.b), -1: (self.b, self.a), 0: None}[self.sign]


@dataclass(frozen=True, slots=True)
class EfficiencyFigures:
    """What a method's searches cost, with intervals where they exist.

    ``is_pareto``: whether no other method beats it, see ``latency.pareto_set``; None when it can't
    be compared, as its score on the primary metric, its tokens or its latency is not known.
    """

    latency_median: LatencyQuantile
    latency_p95: LatencyQuantile
    cost_per_correct: CostPerCorrect
    is_pareto: bool | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """Every figure of a run beyond its plain means.

    Attributes
    ----------
    outcomes : dict
        method -> metric -> Outcomes; intervals are of estimand A (new questions on these
        documents), stratified by document.
    outcomes_by_document : dict
        document -> method -> metric -> Outcomes.
    comparisons : list of Comparison
        Every pair of methods on every metric; the primary metric comes first. None of a run at
        several context budgets, whose methods are compared by the areas under their curves.
    efficiency : dict
        method -> EfficiencyFigures.
    judge_error : JudgeErrorNote or None
        How far the judge's errors could move the comparisons; None where labels corrected all, or
        it was not asked.
    """

    primary: str
    outcomes: dict[str, dict[str, Outcomes]] = field(repr=False)
    outcomes_by_document: dict[str, dict[str, dict[str, Outcomes]]] = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    efficiency: dict[str, EfficiencyFigures] = field(repr=False)
    judge_error: JudgeErrorNote | None = field(default=None, repr=False)

    @property
    def best(self) -> Best:
        """What the comparisons on the primary metric leave over.

        Of a run at several context budgets ``BudgetCurves.best`` says it.
        """
        means = {m: _headline(found[self.primary]) for m, found in self.outcomes.items()}
        pairs = [each.shown for each in self.comparisons if each.in_family]
        return find_best(means, [pair for pair in pairs if pair is not None])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-ready sections; undefined is None."""
        return {
            "primary_metric": self.primary,
            "best": self.best.to_dict(),
            "outcomes": _plain(self.outcomes),
            "outcomes_by_movie": _plain(self.outcomes_by_document),
            "comparisons": [
                {
                    **{k: v for k, v in asdict(c).items() if k not in _NESTED},
                    **_plain(c.result),
                    **_plain(c.family or dict.fromkeys(_FAMILY_FIGURES)),
                }
                for c in self.comparisons
            ],
            "judge_error": _plain(self.judge_error),
            "efficiency_figures": _plain(self.efficiency),
        }


def analyse(
    rows: Sequence[Row],
    methods: Sequence[str],
    metrics: Sequence[str],
    planned: Planned | None = None,
    margin: float = EQUIVALENCE_MARGIN,
    race: RaceEnd | None = None,
    is_compared: bool = True,
) -> Analysis:
    """Compute every figure of a run.

    Parameters
    ----------
    rows : sequence of Row
        At most one a question and method.
    methods, metrics : sequence of str
        In the order in which they are reported; the first metric is the primary one. On a metric
        that is not among them failed searches alone are no mean.
    planned : dict, optional
        Method -> document -> questions that it was to be asked about it. None: those that the
        rows hold of any method.
    margin : float
        Within which methods are equivalent, in (0, 1).
    race : RaceEnd, optional
        Of a run that was watched: one that is incomplete is compared on what was counted, by
        tests that hold at any stop, and a complete one at the level that is left for the end.
    is_compared : bool
        Whether the methods are compared pair by pair.

    Raises
    ------
    ValueError
        If a row was not planned.
    """
    if planned is None:
        planned = dict.fromkeys(methods, _count_questions(rows))
    for row in rows:
        if row.document not in planned.get(row.method, {}):
            msg = f"the plan asks {row.method} nothing about {row.document!r}, and it has results"
            raise ValueError(msg)
    primary = metrics[0] if metrics else METRICS[0]
    by_method = {m: [row for row in rows if row.method == m] for m in methods}
    documents = list(dict.fromkeys(row.document for row in rows))
    counts = {
        method: {metric: _count_outcomes(of_method, metric) for metric in METRICS}
        for method, of_method in by_method.items()
    }
    outcomes = {
        method: {
            metric: _outcomes(
                found,
                metric,
                metric in metrics,
                n_planned=sum(planned.get(method, {}).values()),
                stratified=True,
            )
            for metric, found in of_method.items()
        }
        for method, of_method in counts.items()
    }
    return Analysis(
        primary=primary,
        outcomes=outcomes,
        outcomes_by_document={
            document: _outcomes_on(document, planned, counts, metrics) for document in documents
        },
        comparisons=compare_methods(by_method, metrics, primary, margin, race)
        if is_compared
        else [],
        efficiency=_efficiency(by_method, outcomes, primary),
    )


def compare_methods(
    by_method: Mapping[str, Sequence[Row]],
    metrics: Sequence[str],
    primary: str,
    margin: float = EQUIVALENCE_MARGIN,
    race: RaceEnd | None = None,
) -> list[Comparison]:
    """Compare every pair of methods on every metric; the pairs on the primary one are a family."""
    found: list[Comparison] = []
    pairs = list(combinations(by_method, 2))
    counted = None if race is None or race.is_complete else race.counted
    level = ALPHA if race is None else EARLY_ALPHA
    for metric in sorted(metrics, key=lambda name: name != primary):
        in_family = metric == primary  # document by document only where something is claimed
        scores = {
            method: {
                row.key: paired_score(row, metric)
                for row in rows
                if counted is None or row.key in counted
            }
            for method, rows in by_method.items()
        }
        counts = [_pair_counts(scores[a], scores[b]) for a, b in pairs]
        results = [paired_binary(each, view_documents=in_family) for each in counts]
        if counted is not None:
            results = [at_any_stop(each) for each in results]
        family: list[FamilyFigures | None] = [None] * len(pairs)
        if in_family:
            results = correct_family(results, level)
        inferences = [
            inference_of(result, each) if counted is None else inference_at_any_stop(result)
            for result, each in zip(results, counts, strict=True)
        ]
        if in_family:
            family = list(compare_family(results, inferences, margin, level))
        found += [
            Comparison(
                a=a,
                b=b,
                metric=metric,
                in_family=in_family,
                result=result,
                verdict=verdict_in_words(result, a, b, family=each),
                sign=shown_sign(result),
                inference=inference,
                family=each,
            )
            for (a, b), result, inference, each in zip(
                pairs, results, inferences, family, strict=True
            )
        ]
    return found


def _count_questions(rows: Sequence[Row]) -> Counter[str]:
    return Counter(document for document, _ in dict.fromkeys(row.key for row in rows))


def _count_outcomes(rows: Sequence[Row], metric: str) -> dict[Outcome, int]:
    ends = Counter((row.states[metric], row.scores[metric], row.document) for row in rows)
    return {Outcome(*end): times for end, times in ends.items()}


def _outcomes(
    counts: Mapping[Outcome, int],
    metric: str,
    is_asked: bool,
    *,
    n_planned: int,
    stratified: bool,
) -> Outcomes:
    return summarize_outcomes(
        counts,
        n_planned=n_planned,
        failed_search_is_zero=metric in ZERO_IF_FAILED,
        stratified=stratified,
        is_asked=is_asked,
    )


def _outcomes_on(
    document: str,
    planned: Planned,
    counts: Mapping[str, Mapping[str, Mapping[Outcome, int]]],
    metrics: Sequence[str],
) -> dict[str, dict[str, Outcomes]]:
    """Return method -> metric -> Outcomes of one document, for the methods that were asked."""
    found: dict[str, dict[str, Outcomes]] = {}
    for method, of_method in counts.items():
        for metric, of_metric in of_method.items():
            here = {o: times for o, times in of_metric.items() if o.document == document}
            if here:
                found.setdefault(method, {})[metric] = _outcomes(
                    here,
                    metric,
                    metric in metrics,
                    n_planned=planned[method][document],
                    stratified=False,
                )
    return found


def _pair_counts(a: _Scores, b: _Scores) -> PairCounts:
    """Pair by document and question; what only one of them was asked is a pair dropped."""
    return Counter[tuple[Score, Score, Hashable]](
        (a.get(key), b.get(key), key[0] or None) for key in dict.fromkeys([*a, *b])
    )


def _efficiency(
    by_method: Mapping[str, Sequence[Row]],
    outcomes: Mapping[str, Mapping[str, Outcomes]],
    primary: str,
) -> dict[str, EfficiencyFigures]:
    latencies = {m: _latencies(rows) for m, rows in by_method.items()}
    medians = {m: latency_quantile(of_method, 0.5) for m, of_method in latencies.items()}
    tradeoffs = {
        m: Tradeoff(m, _headline(outcomes[m][primary]), _mean_tokens(rows), medians[m].value)
        for m, rows in by_method.items()
    }
    best = pareto_set(list(tradeoffs.values()))
    return {
        method: EfficiencyFigures(
            latency_median=medians[method],
            latency_p95=latency_quantile(latencies[method], 0.95),
            cost_per_correct=cost_per_correct(
                [row.cost_usd for row in rows], [paired_score(row, "correctness") for row in rows]
            ),
            is_pareto=None if None in astuple(tradeoffs[method]) else method in best,
        )
        for method, rows in by_method.items()
    }


def _latencies(rows: Sequence[Row]) -> list[Latency]:
    """Return what was measured; a failed search stays in, as longer than it was waited for."""
    measured = ((measured_latency(row.latency_s), row.censored) for row in rows)
    return [Latency(seconds, censored) for seconds, censored in measured if seconds is not None]


def _mean_tokens(rows: Sequence[Row]) -> float | None:
    known = [row.tokens for row in rows if row.tokens is not None]
    return sum(known) / len(known) if known and len(known) == len(rows) else None


def _headline(outcomes: Outcomes) -> float | None:
    return (outcomes.end_to_end or outcomes.given_answer).mean


def _plain(value: Any) -> Any:
    """Turn records inside dictionaries into JSON-ready values."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
