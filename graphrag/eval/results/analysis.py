"""Computes a run's figures from its rows: means with intervals, comparisons, repeats, efficiency.

Everything except repeats needs only rows, so that a run in memory, a run in the store and a results
file are analyzed by the same functions.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

from pydantic_core import to_jsonable_python

from graphrag.eval.results.scored_rows import (
    QuestionKey,
    Row,
    has_nothing_to_judge,
    item_scores,
    paired_score,
)
from graphrag.eval.results.usage import mean_count
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
from graphrag.eval.stats.intervals import Estimate, Score, grouped
from graphrag.eval.stats.label_correction import Corrected
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
from graphrag.eval.types.metric_definitions import JUDGED_METRICS, METRICS
from graphrag.eval.types.query_results import QueryResult

Planned: TypeAlias = Mapping[str, Mapping[str, int]]
"""Method -> document -> number of searches that the method was to make about it."""
_Kind: TypeAlias = tuple[str, Row | None, Row | None, int]
"""A document, a search of each method that ended as others did (None: it was not made), and how
many such pairs there are."""
_ORACLE = "oracle"
_CORRECTED = (
    *("refused", "n_labels", "difference", "low", "high", "se", "p", "p_holm"),
    *("low_simultaneous", "high_simultaneous", "p_equivalence", "is_equivalent"),
    *("detectable_at_80", "interval", "judged_alone"),
)


def usable_methods(methods: Iterable[str]) -> list[str]:
    """Return the methods that an answer may name: all except an oracle, unless it is alone.

    An oracle is shown the evidence itself, so nobody can use it. It is as cheap as it is good, and
    would win, or beat the methods that people choose between.
    """
    names = [*methods]
    return [method for method in names if method != _ORACLE] or names


@dataclass(frozen=True, slots=True)
class CorrectedComparison:
    """A comparison of two methods after people's labels corrected it for the judge's errors.

    - ``refused``: why it was not corrected; all fields except ``n_labels`` are then None.
    - ``n_labels``: questions that are labeled on both methods.
    - ``result``: the comparison with the corrected difference, limits and test; ``family`` is None
      outside the family.
    - ``se``: standard error of the difference.
    - ``judged_alone``: the verdict without the correction.
    """

    refused: str | None
    n_labels: int
    result: PairedDifference | None = None
    family: FamilyFigures | None = None
    se: float | None = None
    judged_alone: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values; the figures of result and family are next to the others."""
        values = asdict(self)
        values |= {**(values.pop("result") or {}), **(values.pop("family") or {})}
        return {name: values.get(name) for name in _CORRECTED}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods compared on one metric.

    ``in_family``: whether the pair is in the family of tests that Holm corrects. The family is
    fixed beforehand as all pairs on the primary metric; other comparisons are exploratory, and
    their ``family`` is None. ``corrected``: the comparison as people's labels correct it, if the
    run has labels; the verdict then goes by it.
    """

    a: str
    b: str
    metric: str
    in_family: bool
    result: PairedDifference
    inference: Inference = field(repr=False, compare=False)
    family: FamilyFigures | None = None
    corrected: CorrectedComparison | None = None

    @property
    def is_corrected(self) -> bool:
        """Whether labels decide the comparison."""
        return self.corrected is not None and self.corrected.refused is None

    @property
    def decided(self) -> tuple[PairedDifference, FamilyFigures | None]:
        """The result that the verdict goes by, with its figures in the family."""
        if self.corrected is None or self.corrected.result is None:
            return self.result, self.family
        return self.corrected.result, self.corrected.family

    @property
    def verdict(self) -> str:
        """What the comparison shows, in words."""
        result, family = self.decided
        words = verdict_in_words(result, self.a, self.b, family)
        if self.corrected is None or not self.is_corrected:
            return words
        return f"{words} (corrected by labels on {self.corrected.n_labels} questions)"

    @property
    def ordered(self) -> tuple[str, str] | None:
        """The method that is shown to be better, and the other; None if neither is."""
        sign = shown_sign(self.decided[0])
        return {1: (self.a, self.b), -1: (self.b, self.a), 0: None}[sign]

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values; the figures of result and family are next to the rest."""
        result = to_jsonable_python(self.result)
        del result["is_graded"]  # its test and its interval show it in files
        return {
            **{name: getattr(self, name) for name in ("a", "b", "metric", "in_family", "verdict")},
            "corrected": None if self.corrected is None else self.corrected.to_dict(),
            **result,
            **to_jsonable_python(self.family or dict.fromkeys(FamilyFigures.__slots__)),
        }


@dataclass(frozen=True, slots=True)
class Best:
    """The methods that win or stay undefeated on the primary metric, of those that people can use.

    - ``winner``: shown to be better than every other method; None if none is, or there is only one.
    - ``contenders``: methods with a mean that no other is shown to be better than, the highest mean
      first.
    - ``beaten``: method -> the one with the highest mean that is shown to be better.
    """

    winner: str | None
    contenders: tuple[str, ...]
    beaten: Mapping[str, str]


def find_best(means: Mapping[str, float | None], wins: Iterable[tuple[str, str] | None]) -> Best:
    """Return the winner, the contenders and the beaten methods.

    ``means``: method -> mean of the primary metric, None if there is none. ``wins``: pairs of a
    method and one that it is shown to be better than; a None among them is ignored.
    """
    usable = usable_methods(means)
    scores = {method: mean for method in usable if (mean := means[method]) is not None}
    ranked = sorted(scores, key=lambda method: -scores[method])
    worse_than = {method: set[str]() for method in ranked}
    for better, worse in filter(None, wins):
        if better in scores and worse in scores:
            worse_than[worse].add(better)
    contenders = tuple(method for method in ranked if not worse_than[method])
    others = len(usable) - 1
    winners = [m for m in contenders if sum(m in w for w in worse_than.values()) == others > 0]
    return Best(
        winner=winners[0] if winners else None,
        contenders=contenders,
        beaten={m: min(w, key=ranked.index) for m, w in worse_than.items() if w},
    )


@dataclass(frozen=True, slots=True)
class EfficiencyFigures:
    """The cost of a method's searches, with intervals where they exist.

    ``is_pareto``: whether no other method that people can use beats it, see ``latency.pareto_set``.
    None for an oracle, and if the method can't be compared: its score on the primary metric, its
    tokens or its latency is not known, or budgets differ.
    """

    latency_median: LatencyQuantile
    latency_p95: LatencyQuantile
    cost_per_correct: CostPerCorrect
    is_pareto: bool | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """Every figure of a run beyond its plain means.

    - ``primary``: the primary metric.
    - ``outcomes``: method -> metric -> Outcomes. The intervals are for new questions on these
      documents (estimand A), stratified by document.
    - ``outcomes_by_document``: document -> the same.
    - ``comparisons``: every pair of methods on every metric, the primary metric first.
    - ``efficiency``: method -> its efficiency.
    - ``corrected_means``: metric that people labeled -> method -> its mean as labels correct it.
    """

    primary: str
    outcomes: dict[str, dict[str, Outcomes]] = field(repr=False)
    outcomes_by_document: dict[str, dict[str, dict[str, Outcomes]]] = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    efficiency: dict[str, EfficiencyFigures] = field(repr=False)
    corrected_means: Mapping[str, Mapping[str, Corrected]] = field(
        default_factory=dict[str, Mapping[str, Corrected]], repr=False
    )

    @property
    def scored_by_labels(self) -> bool:
        """Whether labels correct every mean on the primary metric."""
        corrected = self.corrected_means.get(self.primary, {})
        judged = [m for m, outcomes in self.outcomes.items() if outcomes[self.primary].mean.n]
        return bool(judged) and all(m in corrected and corrected[m].refused is None for m in judged)

    @property
    def labels_are_complete(self) -> bool:
        """Whether labels cover every answer that has a score on the primary metric."""
        corrected = self.corrected_means.get(self.primary, {})
        return self.scored_by_labels and all(mean.is_complete for mean in corrected.values())

    @property
    def scores(self) -> dict[str, Estimate]:
        """Method -> its mean on the primary metric: by labels if they correct all, or the judge."""
        if self.scored_by_labels:
            return {m: mean.estimate for m, mean in self.corrected_means[self.primary].items()}
        return {method: outcomes[self.primary].mean for method, outcomes in self.outcomes.items()}

    @property
    def best(self) -> Best:
        """The winner, contenders and beaten methods on the primary metric."""
        means = {method: score.mean for method, score in self.scores.items()}
        return find_best(means, [pair.ordered for pair in self.comparisons if pair.in_family])

    def to_dict(self) -> dict[str, object]:
        """Return the figures as JSON-ready sections; an undefined figure is None."""
        return {
            "primary_metric": self.primary,
            "best": to_jsonable_python(self.best),
            "outcomes": to_jsonable_python(self.outcomes),
            "outcomes_by_movie": to_jsonable_python(self.outcomes_by_document),
            "comparisons": [compared.to_dict() for compared in self.comparisons],
            "corrected_means": to_jsonable_python(self.corrected_means),
            "efficiency_figures": to_jsonable_python(self.efficiency),
        }


def analyse(
    rows: Sequence[Row],
    methods: Sequence[str],
    metrics: Sequence[str],
    planned: Planned | None = None,
    margin: float = EQUIVALENCE_MARGIN,
) -> Analysis:
    """Compute every figure of a run from rows, one per question, method and trial.

    - ``methods``, ``metrics``: in the order of reports; the first metric is the primary one. On a
      metric that is not among them, failed searches alone make no mean.
    - ``planned``: the planned searches; None: those that the rows of any method have.
    - ``margin``: the difference, in (0, 1), within which methods are equivalent.

    Raises ValueError if a row was not planned.
    """
    if planned is None:
        searches = dict.fromkeys((row.key, row.trial) for row in rows)
        on_each = Counter(document for (document, _), _ in searches)
        planned = dict.fromkeys(methods, on_each)
    for row in rows:
        if row.document not in planned.get(row.method, {}):
            msg = f"the plan asks {row.method} nothing about {row.document!r}, and it has results"
            raise ValueError(msg)
    primary = metrics[0] if metrics else next(iter(METRICS))
    by_method = {m: [row for row in rows if row.method == m] for m in methods}
    on_document = {
        document: grouped((row.method, row) for row in here)
        for document, here in grouped((row.document, row) for row in rows).items()
    }
    outcomes = {
        method: summarize_rows(of_method, metrics, sum(planned.get(method, {}).values()), True)
        for method, of_method in by_method.items()
    }
    return Analysis(
        primary=primary,
        outcomes=outcomes,
        outcomes_by_document={
            document: {
                method: summarize_rows(here[method], metrics, planned[method][document], False)
                for method in methods
                if method in here
            }
            for document, here in on_document.items()
        },
        comparisons=_compare_methods(by_method, planned, metrics, margin),
        efficiency=_efficiency(by_method, outcomes, primary),
    )


def summarize_rows(
    rows: Sequence[Row], metrics: Sequence[str], n_planned: int, stratified: bool
) -> dict[str, Outcomes]:
    """Return metric -> Outcomes of one method; on ``metrics`` its responses were to be judged.

    ``stratified``: whether intervals are stratified by document.
    """
    is_repeated = any(row.trial for row in rows)
    ends = [row.end for row in rows]
    first = dict(zip(reversed(ends), reversed(rows), strict=True))
    alike = Counter(ends)

    def summarize(metric: str) -> Outcomes:
        outcome_of = {
            end: Outcome(row.states[metric], row.scores[metric], row.document)
            for end, row in first.items()
        }
        counts = Counter[Outcome]()
        for end, times in alike.items():
            counts[outcome_of[end]] += times
        questions = zip((row.key for row in rows), (outcome_of[end] for end in ends), strict=True)
        return summarize_outcomes(
            counts,
            n_planned=n_planned,
            failed_search_is_zero=JUDGED_METRICS[metric].zero_if_failed,
            stratified=stratified,
            is_asked=metric in metrics and not may_wait(first.values(), metric, metrics),
            repeated=list(grouped(questions).values()) if is_repeated else (),
        )

    return {metric: summarize(metric) for metric in METRICS}


def may_wait(rows: Iterable[Row], metric: str, metrics: Collection[str]) -> bool:
    """Return whether an answer may still wait for its verdict on ``metric``, one of ``metrics``.

    If an answer has a verdict on another metric, its question has nothing to judge on this one,
    unless the judge reads the context for it.
    """
    by_context = "context" in JUDGED_METRICS[metric].fields
    open_states = {State.NOT_JUDGED, State.ABSTAINED}
    left = (r for r in rows if not r.censored and r.states[metric] is State.NOT_JUDGED)
    return any(by_context or {r.states[m] for m in metrics} <= open_states for r in left)


def _compare_methods(
    by_method: Mapping[str, Sequence[Row]], planned: Planned, metrics: Sequence[str], margin: float
) -> list[Comparison]:
    """Compare every pair of methods on every metric, by the mean score of each question.

    The pairs on the first metric are the family.
    """
    comparisons: list[Comparison] = []
    pairs = list(combinations(by_method, 2))
    kinds = [_pair_rows(by_method[a], by_method[b]) for a, b in pairs]
    for metric in metrics:
        in_family = metric == metrics[0]  # document by document only where something is claimed
        items = {m: item_scores(rows, metric) for m, rows in by_method.items()}
        counts = [pair_items(items[a], items[b]) for a, b in pairs]
        results = [
            paired_items(
                pair_counts,
                _pair_searches(pair_kinds, metric, planned.get(a, {}), planned.get(b, {})),
                view_documents=in_family,
            )
            for (a, b), pair_kinds, pair_counts in zip(pairs, kinds, counts, strict=True)
        ]
        if in_family:
            results = correct_family(results)
        inferences = [inference_of(*pair) for pair in zip(results, counts, strict=True)]
        family: Sequence[FamilyFigures | None] = [None] * len(pairs)
        if in_family:
            family = compare_family(results, inferences, margin)
        comparisons += [
            Comparison(
                a=a,
                b=b,
                metric=metric,
                in_family=in_family,
                result=result,
                inference=inference,
                family=figures,
            )
            for (a, b), result, inference, figures in zip(
                pairs, results, inferences, family, strict=True
            )
        ]
    return comparisons


def _pair_rows(a: Sequence[Row], b: Sequence[Row]) -> list[_Kind]:
    """Pair the searches of two methods, and count pairs that ended alike as one kind."""
    rows_a, rows_b = ({(row.key, row.trial): row for row in rows} for rows in (a, b))
    kinds: dict[object, tuple[str, Row | None, Row | None]] = {}
    times = Counter[object]()
    for search in dict.fromkeys([*rows_a, *rows_b]):
        document, a_row, b_row = search[0][0], rows_a.get(search), rows_b.get(search)
        end = document, a_row and a_row.end, b_row and b_row.end
        kinds.setdefault(end, (document, a_row, b_row))
        times[end] += 1
    return [(*kind, times[end]) for end, kind in kinds.items()]


def pair_items(
    a: Mapping[QuestionKey, float | None],
    b: Mapping[QuestionKey, float | None],
    keys: Iterable[QuestionKey] | None = None,
) -> PairCounts:
    """Count the pairs of scores on questions that both methods were asked, each question once.

    ``keys``: the questions that count; None: all.
    """
    return Counter[tuple[Score, Score, Hashable]](
        (a[key], b[key], key[0] or None)
        for key in (a if keys is None else keys)
        if key in a and key in b
    )


def _pair_searches(
    kinds: Sequence[_Kind], metric: str, planned_a: Mapping[str, int], planned_b: Mapping[str, int]
) -> PairCounts:
    """Count the pairs of scores of searches that both methods were to make.

    A search that is missing has no score. A control may be asked fewer questions: what only the
    other method was asked makes no pair. Nor does a search that leaves nothing to judge.
    """
    counts = Counter[tuple[Score, Score, Hashable]]()
    made: dict[str, list[_Kind]] = {document: [] for document in planned_a}
    for kind in kinds:
        made.setdefault(kind[0], []).append(kind)
    for document, searches in made.items():
        n = min(planned_a.get(document, 0), planned_b.get(document, 0))
        if sum(times for *_, times in searches) > n:
            # Which of those that one alone made were planned for both?
            searches = [kind for kind in searches if None not in kind]
        counts[None, None, document or None] += max(0, n - sum(times for *_, times in searches))
        for _, a, b, times in searches:
            rows = [row for row in (a, b) if row is not None]
            if not any(has_nothing_to_judge(row, metric) for row in rows):
                score_a, score_b = (row and paired_score(row, metric) for row in (a, b))
                counts[score_a, score_b, document or None] += times
    return +counts


def _efficiency(
    by_method: Mapping[str, Sequence[Row]],
    outcomes: Mapping[str, Mapping[str, Outcomes]],
    primary: str,
) -> dict[str, EfficiencyFigures]:
    medians = {m: _latency(rows, 0.5) for m, rows in by_method.items()}
    tradeoffs: dict[str, Tradeoff] = {
        m: (outcomes[m][primary].mean.mean, mean_count([r.tokens for r in rows]), medians[m].value)
        for m, rows in by_method.items()
    }
    comparable = {m: tradeoffs[m] for m in usable_methods(by_method) if None not in tradeoffs[m]}
    best = pareto_set(comparable)
    return {
        method: EfficiencyFigures(
            latency_median=medians[method],
            latency_p95=_latency(rows, 0.95),
            cost_per_correct=_cost_per_correct(rows),
            is_pareto=method in best if method in comparable else None,
        )
        for method, rows in by_method.items()
    }


def _latency(rows: Sequence[Row], quantile: float) -> LatencyQuantile:
    """Return a quantile of the latencies; a failed search counts as one that would take longer.

    There are no limits if questions were searched more than once, because limits take searches as
    independent.
    """
    result = latency_quantile(latencies_of(rows), quantile)
    return replace(result, low=None, high=None) if any(row.trial for row in rows) else result


def latencies_of(rows: Sequence[Row]) -> list[Latency]:
    """Return the latencies of the rows on which one was measured."""
    return [Latency(r.latency_s, r.censored) for r in rows if r.latency_s is not None]


def _cost_per_correct(rows: Sequence[Row]) -> CostPerCorrect:
    """Return the cost per correct question; the searches of a question count together."""
    costs = grouped((row.key, row.cost_usd) for row in rows)
    correct = item_scores(rows, "correctness")
    means = [mean_count(of_question) for of_question in costs.values()]
    return cost_per_correct(means, [correct[key] for key in costs])


@dataclass(frozen=True, slots=True)
class RepeatFigures:
    """How often repeats change the score of one method on one metric; None without repeats.

    ``search_flip_rate``: chance in [0, 1] that asking a question again changes the score.
    ``judge_flip_rate``: chance that asking the judge again changes its verdict, over the responses
    that it was asked about (no failed search).
    """

    method: str
    metric: str
    search_flip_rate: float | None
    judge_flip_rate: float | None


@dataclass(frozen=True, slots=True)
class RepeatAnalysis:
    """How often each question was searched and each response judged, and what repeats changed."""

    n_trials: int
    n_verdicts: int
    figures: tuple[RepeatFigures, ...]


def analyse_repeats(
    results: Sequence[QueryResult],
    rows: Sequence[Row],
    methods: Sequence[str],
    metrics: Sequence[str],
) -> RepeatAnalysis | None:
    """Compute how often repeated searches and verdicts change scores; None without repeats.

    ``rows``: one per result, in the same order.
    """
    n_trials = 1 + max((result.trial for result in results), default=0)
    n_verdicts = max([1, *(len(r.scores.get(m).repeats) for r in results for m in metrics)])
    if n_trials == n_verdicts == 1:
        return None
    searches = grouped((row.method, (row, r)) for row, r in zip(rows, results, strict=True))
    return RepeatAnalysis(
        n_trials,
        n_verdicts,
        tuple(
            RepeatFigures(method, metric, *_flips(searches.get(method, ()), metric))
            for method in methods
            for metric in metrics
        ),
    )


def _flips(
    searches: Sequence[tuple[Row, QueryResult]], metric: str
) -> tuple[float | None, float | None]:
    """Return the flip rates of searches and of verdicts."""
    scores = grouped((row.key, paired_score(row, metric)) for row, _ in searches)
    judged = [result.scores.get(metric).repeats for row, result in searches if not row.censored]
    return flip_rate(list(scores.values())), flip_rate(judged)
