"""From rows to figures with intervals: states, means, comparisons, repeats, efficiency.

All but repeats works on rows, so that a run in memory, a run in the store and a results file
are analysed by the same functions.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import combinations
from statistics import fmean
from typing import Any, TypeAlias

from graphrag.eval.records import METRICS, QueryResult, measured_latency
from graphrag.eval.results.rows import (
    ZERO_IF_FAILED,
    QuestionKey,
    Row,
    has_nothing_to_judge,
    item_scores,
    paired_score,
    state_of,
)
from graphrag.eval.stats.agreement import flip_rate
from graphrag.eval.stats.family import (
    EQUIVALENCE_MARGIN,
    FamilyFigures,
    Inference,
    compare_family,
    correct_family,
    inference_of,
    shown_sign,
    verdict_in_words,
)
from graphrag.eval.stats.intervals import Score
from graphrag.eval.stats.latency import (
    CostPerCorrect,
    Latency,
    LatencyQuantile,
    Tradeoff,
    cost_per_correct,
    latency_quantile,
    pareto_set,
)
from graphrag.eval.stats.outcomes import Outcome, Outcomes, State, summarize_outcomes
from graphrag.eval.stats.paired import PairCounts, PairedDifference, paired_items

Planned: TypeAlias = Mapping[str, Mapping[str, int]]
"""Method -> document -> searches that the method was to make about it."""
_Search: TypeAlias = tuple[QuestionKey, int]
"""A question, and which of its searches."""
_Judged: TypeAlias = tuple[int | None, bool]
"""A score, and whether there was nothing to judge."""
_NOT_MADE: _Judged = (None, False)
_NESTED = {"result", "family", "sign", "inference"}
_FAMILY_FIGURES = tuple(each.name for each in fields(FamilyFigures))


@dataclass(frozen=True, slots=True)
class CorrectedComparison:
    """A comparison of two methods after people's labels corrected it for the judge's errors.

    ``refused`` says why it was not corrected, and all that follows but ``n_labels``, the questions
    that are labelled on both methods, is None then. The limits are of this comparison alone, ``p``
    of the difference over its standard error ``se``; the further names are the comparison's own,
    None outside the family. ``judged_alone``: the verdict without the correction.
    """

    refused: str | None
    n_labels: int
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    p: float | None = None
    p_holm: float | None = None
    low_simultaneous: float | None = None
    high_simultaneous: float | None = None
    p_equivalence: float | None = None
    is_equivalent: bool | None = None
    detectable_at_80: float | None = None
    interval: str | None = None
    judged_alone: str | None = None


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
class Best:
    """The methods that the comparisons on the primary metric leave over.

    ``winner`` is shown to be better than every other method; None when none is, or there is only
    one. ``contenders``: those with a mean that no other is shown to be better than, the highest
    mean first. ``beaten``: method -> the one with the highest mean that is shown to be better.
    """

    winner: str | None
    contenders: tuple[str, ...]
    beaten: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "contenders": list(self.contenders)}


def find_best(means: Mapping[str, float | None], shown: Iterable[tuple[str, str] | None]) -> Best:
    """Return what is left over.

    ``means``: method -> mean of the primary metric, or area under it; None without any. ``shown``:
    a method, and one that it is shown to be better than on that metric; None is left out.
    """
    known = {method: mean for method, mean in means.items() if mean is not None}
    ranked = sorted(known, key=lambda method: -known[method])
    worse_than = {method: set[str]() for method in ranked}
    for better, worse in filter(None, shown):
        worse_than[worse].add(better)
    contenders = tuple(method for method in ranked if not worse_than[method])
    others = len(means) - 1
    winners = [m for m in contenders if sum(m in w for w in worse_than.values()) == others > 0]
    return Best(
        winner=winners[0] if winners else None,
        contenders=contenders,
        beaten={m: min(w, key=ranked.index) for m, w in worse_than.items() if w},
    )


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

    ``outcomes``: method -> metric -> Outcomes, with intervals of estimand A (new questions on these
    documents), stratified by document; ``outcomes_by_document``: document -> the same.
    ``comparisons``: every pair of methods on every metric, the primary one first; none of a run at
    several context budgets, whose methods are compared by the areas under their curves.
    """

    primary: str
    outcomes: dict[str, dict[str, Outcomes]] = field(repr=False)
    outcomes_by_document: dict[str, dict[str, dict[str, Outcomes]]] = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    efficiency: dict[str, EfficiencyFigures] = field(repr=False)

    @property
    def best(self) -> Best:
        """What the comparisons on the primary metric leave over.

        Of a run at several context budgets ``BudgetCurves.best`` says it.
        """
        means = {m: found[self.primary].mean.mean for m, found in self.outcomes.items()}
        return find_best(means, [each.shown for each in self.comparisons if each.in_family])

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
            "efficiency_figures": _plain(self.efficiency),
        }


def analyse(
    rows: Sequence[Row],
    methods: Sequence[str],
    metrics: Sequence[str],
    planned: Planned | None = None,
    margin: float = EQUIVALENCE_MARGIN,
    is_compared: bool = True,
) -> Analysis:
    """Compute every figure of a run from one row a question, method and trial.

    ``methods``, ``metrics``: in the order in which they are reported; the first metric is the
    primary one. On a metric that is not among them failed searches alone are no mean. ``planned``:
    by default the searches that the rows hold of any method. ``margin``: within which methods are
    equivalent, in (0, 1). ``is_compared``: whether the methods are compared pair by pair.

    ValueError if a row was not planned.
    """
    if planned is None:
        searches = dict.fromkeys((row.key, row.trial) for row in rows)
        on_each = Counter(document for (document, _), _ in searches)
        planned = dict.fromkeys(methods, on_each)
    for row in rows:
        if row.document not in planned.get(row.method, {}):
            msg = f"the plan asks {row.method} nothing about {row.document!r}, and it has results"
            raise ValueError(msg)
    primary = metrics[0] if metrics else METRICS[0]
    by_method = {m: [row for row in rows if row.method == m] for m in methods}
    on_document: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        on_document.setdefault(row.document, {}).setdefault(row.method, []).append(row)
    outcomes = {
        method: _outcomes(of_method, metrics, sum(planned.get(method, {}).values()), True)
        for method, of_method in by_method.items()
    }
    return Analysis(
        primary=primary,
        outcomes=outcomes,
        outcomes_by_document={
            document: {
                method: _outcomes(here[method], metrics, planned[method][document], False)
                for method in methods
                if method in here
            }
            for document, here in on_document.items()
        },
        comparisons=_compare_methods(by_method, planned, metrics, margin) if is_compared else [],
        efficiency=_efficiency(by_method, outcomes, primary),
    )


def _outcomes(
    rows: Sequence[Row], asked: Sequence[str], n_planned: int, stratified: bool
) -> dict[str, Outcomes]:
    """Return metric -> Outcomes of one method."""
    return {
        metric: _outcomes_on(rows, metric, metric in asked, n_planned, stratified)
        for metric in METRICS
    }


def _outcomes_on(
    rows: Sequence[Row], metric: str, is_asked: bool, n_planned: int, stratified: bool
) -> Outcomes:
    ends = Counter((row.states[metric], row.scores[metric], row.document) for row in rows)
    outcome_of = {end: Outcome(*end) for end in ends}
    questions: dict[QuestionKey, list[Outcome]] = {}
    if any(row.trial for row in rows):
        for row in rows:
            end = row.states[metric], row.scores[metric], row.document
            questions.setdefault(row.key, []).append(outcome_of[end])
    return summarize_outcomes(
        {outcome_of[end]: times for end, times in ends.items()},
        n_planned=n_planned,
        failed_search_is_zero=metric in ZERO_IF_FAILED,
        stratified=stratified,
        is_asked=is_asked,
        repeated=list(questions.values()),
    )


def _compare_methods(
    by_method: Mapping[str, Sequence[Row]],
    planned: Planned,
    metrics: Sequence[str],
    margin: float,
) -> list[Comparison]:
    """Compare every pair of methods on every metric, by the means of questions over searches.

    The pairs on the first metric are a family.
    """
    comparisons: list[Comparison] = []
    pairs = list(combinations(by_method, 2))
    for metric in metrics:
        in_family = metric == metrics[0]  # document by document only where something is claimed
        items = {m: item_scores(rows, metric) for m, rows in by_method.items()}
        counts = [_pair_items(items[a], items[b]) for a, b in pairs]
        searches = {
            method: {
                (row.key, row.trial): (paired_score(row, metric), has_nothing_to_judge(row, metric))
                for row in rows
            }
            for method, rows in by_method.items()
        }
        results = [
            paired_items(
                each,
                _pair_searches(searches[a], searches[b], planned.get(a, {}), planned.get(b, {})),
                view_documents=in_family,
            )
            for (a, b), each in zip(pairs, counts, strict=True)
        ]
        if in_family:
            results = correct_family(results)
        inferences = [inference_of(*each) for each in zip(results, counts, strict=True)]
        family: list[FamilyFigures | None] = [None] * len(pairs)
        if in_family:
            family = list(compare_family(results, inferences, margin))
        comparisons += [
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
    return comparisons


def _pair_items(
    a: Mapping[QuestionKey, float | None], b: Mapping[QuestionKey, float | None]
) -> PairCounts:
    """Pair the questions that both methods were asked."""
    return Counter[tuple[Score, Score, Hashable]](
        (score, b[key], key[0] or None) for key, score in a.items() if key in b
    )


def _pair_searches(
    a: Mapping[_Search, _Judged],
    b: Mapping[_Search, _Judged],
    planned_a: Mapping[str, int],
    planned_b: Mapping[str, int],
) -> PairCounts:
    """Pair the searches that both methods were to make; those that are not there miss a score.

    A control may be asked fewer questions: what the other was asked beyond these is no pair. Nor is
    one where either has nothing to judge.
    """
    counts = Counter[tuple[Score, Score, Hashable]]()
    made: dict[str, list[_Search]] = {document: [] for document in planned_a}
    for search in dict.fromkeys([*a, *b]):
        made.setdefault(search[0][0], []).append(search)
    for document, searches in made.items():
        n = min(planned_a.get(document, 0), planned_b.get(document, 0))
        if len(searches) > n:  # which of those that one alone made were planned for both?
            searches = [search for search in searches if search in a and search in b]
        counts[None, None, document or None] += max(0, n - len(searches))
        pairs = [(a.get(s, _NOT_MADE), b.get(s, _NOT_MADE)) for s in searches]
        counts.update(
            (ours[0], theirs[0], document or None)
            for ours, theirs in pairs
            if not ours[1] and not theirs[1]
        )
    return +counts


def _efficiency(
    by_method: Mapping[str, Sequence[Row]],
    outcomes: Mapping[str, Mapping[str, Outcomes]],
    primary: str,
) -> dict[str, EfficiencyFigures]:
    medians = {m: _latency(rows, 0.5) for m, rows in by_method.items()}
    tradeoffs = {
        m: Tradeoff(m, outcomes[m][primary].mean.mean, _mean_tokens(rows), medians[m].value)
        for m, rows in by_method.items()
    }
    best = pareto_set(list(tradeoffs.values()))
    return {
        method: EfficiencyFigures(
            latency_median=medians[method],
            latency_p95=_latency(rows, 0.95),
            cost_per_correct=_cost_per_correct(rows),
            is_pareto=None if None in tradeoffs[method] else method in best,
        )
        for method, rows in by_method.items()
    }


def _latency(rows: Sequence[Row], quantile: float) -> LatencyQuantile:
    """Return a quantile of what was measured; a failed search stays in, as one that takes longer.

    Without limits where questions were searched more than once: those take searches as independent.
    """
    measured = ((measured_latency(row.latency_s), row.censored) for row in rows)
    latencies = [Latency(seconds, cut) for seconds, cut in measured if seconds is not None]
    found = latency_quantile(latencies, quantile)
    return replace(found, low=None, high=None) if any(row.trial for row in rows) else found


def _cost_per_correct(rows: Sequence[Row]) -> CostPerCorrect:
    """Return it by question: its searches count together."""
    costs: dict[QuestionKey, list[float | None]] = {}
    for row in rows:
        costs.setdefault(row.key, []).append(row.cost_usd)
    correct = item_scores(rows, "correctness")
    known = {key: [cost for cost in each if cost is not None] for key, each in costs.items()}
    means = [fmean(known[key]) if len(known[key]) == len(costs[key]) else None for key in costs]
    return cost_per_correct(means, [correct[key] for key in costs])


def _mean_tokens(rows: Sequence[Row]) -> float | None:
    known = [row.tokens for row in rows if row.tokens is not None]
    return sum(known) / len(known) if known and len(known) == len(rows) else None


def _plain(value: Any) -> Any:
    """Turn records inside dictionaries into JSON-ready values."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


@dataclass(frozen=True, slots=True)
class RepeatFigures:
    """One method on one metric.

    ``search_flip_rate``: chance in [0, 1] that asking a question again changes the score.
    ``judge_flip_rate``: that asking the judge again changes its verdict, over the responses that it
    was asked about (no failed search). None without repeats.
    """

    method: str
    metric: str
    search_flip_rate: float | None
    judge_flip_rate: float | None


@dataclass(frozen=True, slots=True)
class RepeatAnalysis:
    """How often each question was searched, each response judged, and what it changed."""

    n_trials: int
    n_verdicts: int
    figures: tuple[RepeatFigures, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-ready values."""
        return asdict(self)


def analyse_repeats(
    results: Sequence[QueryResult], methods: Sequence[str], metrics: Sequence[str]
) -> RepeatAnalysis | None:
    """Compute what repeats of questions and verdicts tell; None when nothing was repeated."""
    n_trials = 1 + max((result.trial for result in results), default=0)
    n_verdicts = max([1, *(len(r.scores.get(m).repeats) for r in results for m in metrics)])
    if n_trials == n_verdicts == 1:
        return None
    by_method = {method: [r for r in results if r.method == method] for method in methods}
    return RepeatAnalysis(
        n_trials,
        n_verdicts,
        tuple(
            RepeatFigures(method, metric, *_flips(of_method, metric))
            for method, of_method in by_method.items()
            for metric in metrics
        ),
    )


def _flips(results: Sequence[QueryResult], metric: str) -> tuple[float | None, float | None]:
    """Return how often searches, and verdicts, of one question differ."""
    searches: dict[QuestionKey, list[int | None]] = {}
    judged: list[list[int | None]] = []
    for result in results:
        verdicts = _verdicts(result, metric)
        if result.failure is None:  # a failed search was not judged at all
            judged.append(verdicts)
        votes = [score for score in verdicts if score is not None]
        tied = 2 * sum(votes) == len(votes)
        majority = None if tied else int(2 * sum(votes) > len(votes))
        key = result.imdb_key, result.sample_id or result.question
        searches.setdefault(key, []).append(majority)
    return flip_rate(list(searches.values())), flip_rate(judged)


def _verdicts(result: QueryResult, metric: str) -> list[int | None]:
    state, verdict = state_of(result, metric), result.scores.get(metric)
    if state is State.SEARCH_FAILED:
        return [0 if metric in ZERO_IF_FAILED else None]
    if state in (State.ABSTAINED, State.NOT_JUDGED):
        return []
    return list(verdict.repeats or (verdict.score,))
