"""Computes means and comparisons by groups of questions: their kind, hops, tags and the like."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

from graphrag.eval.dataset.dataset_reader import TIME_LIMIT_TAG, Sample
from graphrag.eval.results.analysis import find_best, pair_items, usable_methods
from graphrag.eval.results.scored_rows import (
    QuestionKey,
    Row,
    Section,
    has_nothing_to_judge,
    item_scores,
)
from graphrag.eval.stats.family import inference_of, shown_sign, simultaneous_limits
from graphrag.eval.stats.intervals import Estimate, mean_binary, mean_real
from graphrag.eval.stats.outcomes import State
from graphrag.eval.stats.paired import holm, paired_items

LEAST = 20
"""The least questions that a group must have: with fewer, a mean of 0 and 1 is known to 20 points
at best."""
_MOST = 12  # groups of a column; what has more names its questions rather than sorts them
_FIRST = ("kind", "hops", "tags")

_Values: TypeAlias = Mapping[QuestionKey, float | None]


@dataclass(frozen=True, slots=True)
class Lead:
    """How far method ``a`` is ahead of ``b`` in a group of questions.

    ``low``, ``high`` and ``p_holm`` are corrected for all pairs in the groups of its column.
    ``shown``: 1 if a is shown to be better, -1 if b is, else 0.
    """

    a: str
    b: str
    n_pairs: int
    difference: float | None
    low: float | None
    high: float | None
    p_holm: float | None
    shown: int


@dataclass(frozen=True, slots=True)
class Group:
    """The questions with one value in a column of the dataset.

    ``means``: method -> its mean on the primary metric. ``leads``: every pair of methods.
    """

    column: str
    value: str
    n: int
    means: Mapping[str, Estimate]
    leads: Sequence[Lead] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The name of the group in tables."""
        return self.value if self.column == "tags" else f"{self.column} {self.value}"

    @property
    def winner(self) -> str | None:
        """The method that is shown to be better than every other; None if none is."""
        compared = {name for lead in self.leads for name in (lead.a, lead.b)}
        wins = [(e.a, e.b) if e.shown > 0 else (e.b, e.a) for e in self.leads if e.shown]
        means = {m: estimate.mean for m, estimate in self.means.items() if m in compared}
        return find_best(means, wins).winner


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a run's questions by one column of its dataset; exploratory.

    ``groups``: two or more, the largest first. ``n_in_none``: questions without a value, or with a
    value that fewer than ``LEAST`` questions have.
    """

    column: str
    groups: tuple[Group, ...]
    n_in_none: int

    def to_dict(self) -> Section:
        """Return JSON-ready values."""
        return {
            "n_in_none": self.n_in_none,
            "groups": {
                group.value: {
                    "n": group.n,
                    "methods": {m: asdict(estimate) for m, estimate in group.means.items()},
                    "winner": group.winner,
                    "comparisons": [asdict(lead) for lead in group.leads],
                }
                for group in self.groups
            },
        }


def group_questions(
    rows: Sequence[Row], by_method: Mapping[str, Sequence[Sample]], primary: str
) -> tuple[Grouping, ...]:
    """Group a run's questions by each column with two groups or more, and compare the methods.

    - ``rows``: one per question, method and trial.
    - ``by_method``: method -> the samples that it was to be asked.
    - ``primary``: the metric. A question that was searched several times counts with its mean.
    """
    samples = {(s.imdb_key, s.id): s for planned in by_method.values() for s in planned}
    columns = dict.fromkeys((*_FIRST, *(name for s in samples.values() for name in s.tags)))
    columns.pop(TIME_LIMIT_TAG, None)
    groups: dict[str, list[str]] = {}
    for column in columns:
        counts = Counter(value for s in samples.values() for value in s.values_of(column))
        levels = [value for value, n in counts.most_common() if n >= LEAST]
        if 2 <= len(levels) <= _MOST:
            groups[column] = levels
    if not groups:
        return ()
    scores = {
        m: _scores([row for row in rows if row.method == m], planned, primary)
        for m, planned in by_method.items()
    }
    if not any(map(len, scores.values())):
        return ()
    usable = usable_methods(by_method)
    groupings: list[Grouping] = []
    for column, levels in groups.items():
        kinds = {key: s.values_of(column) for key, s in samples.items()}
        n_in_none = sum(not any(v in levels for v in values) for values in kinds.values())
        inside = {v: [key for key in samples if v in kinds[key]] for v in levels}
        leads = _compare_in_groups(list(inside.values()), scores, usable)
        compared = tuple(
            Group(
                column=column,
                value=v,
                n=len(keys),
                means={m: _mean(scores[m], keys) for m in by_method},
                leads=group_leads,
            )
            for (v, keys), group_leads in zip(inside.items(), leads, strict=True)
        )
        groupings.append(Grouping(column, compared, n_in_none))
    return tuple(groupings)


def _scores(rows: Sequence[Row], samples: Sequence[Sample], primary: str) -> _Values:
    """Return the score of each question that has something to judge; None if it is missing."""
    states = {row.states[primary] for row in rows}
    if State.NOT_JUDGED in states and states <= {State.NOT_JUDGED, State.SEARCH_FAILED}:
        return {}  # failed searches alone are no 0, see ``Outcomes``
    empty = {row.key for row in rows if has_nothing_to_judge(row, primary)}
    scores = item_scores(rows, primary)
    planned = ((s.imdb_key, s.id) for s in samples)
    return {key: scores.get(key) for key in planned if key not in empty or scores[key] is not None}


def _mean(scores: _Values, keys: Sequence[QuestionKey]) -> Estimate:
    """Return the mean that every table shows, see ``Outcomes``."""
    values, documents = [scores.get(key) for key in keys], [document for document, _ in keys]
    if any(value not in (0, 1, None) for value in values):
        graded = mean_real(values, documents, (0.0, 1.0))
        if graded.low is not None:
            return graded
    return mean_binary(values, documents)


def _compare_in_groups(
    groups: Sequence[Sequence[QuestionKey]], scores: Mapping[str, _Values], methods: Sequence[str]
) -> list[list[Lead]]:
    """Compare every pair of methods in each group, as one family."""
    pairs = list(combinations(methods, 2))
    counts = [pair_items(scores[a], scores[b], keys) for keys in groups for a, b in pairs]
    tested = [paired_items(pair_counts, pair_counts) for pair_counts in counts]
    corrected = holm([result.p for result in tested])
    results = [replace(r, p_holm=p) for r, p in zip(tested, corrected, strict=True)]
    limits = simultaneous_limits(results, [*map(inference_of, results, counts)])
    leads = (
        Lead(
            *pair,
            n_pairs=r.n_pairs,
            difference=r.difference,
            low=ends[0],
            high=ends[1],
            p_holm=r.p_holm,
            shown=shown_sign(r),
        )
        for pair, r, ends in zip(pairs * len(groups), results, limits, strict=True)
    )
    return [[next(leads) for _ in pairs] for _ in groups]
