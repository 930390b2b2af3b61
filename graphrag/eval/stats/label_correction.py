"""Corrects means and differences of a judge's verdicts by human labels, and draws what to label.

Corrections for several tests are in family.py.
"""

import random
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.agreement import check_scores
from graphrag.eval.stats.intervals import (
    CONFIDENCE,
    Estimate,
    Floats,
    Score,
    Structure,
    choose_structure,
    cr2_variance,
    degrees_of_freedom,
    grouped,
    mean_binary,
    name_interval,
    proportion_interval,
    scipy_special,
)
from graphrag.eval.stats.paired import (
    PLAIN_BOUND,
    Pair,
    add_up,
    bonett_price_spread,
    difference_interval,
    difference_spread,
    difference_test,
    tally_documents,
)
from graphrag.eval.stats.power import POWER

MIN_LABELS = 60
_BY_GROUP = "labels weighted by group"
_Value: TypeAlias = float | Pair


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean of verdicts, or a difference of two, corrected for the judge's errors by human labels.

    - ``uncorrected``: plain mean of the judge's verdicts; None without any.
    - ``estimate``: the corrected mean with its limits (95 %), over n judged responses. Its mean is
      None if ``refused`` says why it was not corrected.
    - ``center``, ``se``: center and standard error of a difference's limits; None without limits,
      and for a mean. ``df``: degrees of freedom of t; None for the normal distribution.
    - ``p``: two-sided, of a true difference of 0, in (0, 1].
    - ``is_complete``: whether every response is labeled, and the figures are of the labels alone.
    """

    uncorrected: float | None
    estimate: Estimate
    n_labels: int
    refused: str | None
    se: float | None = None
    df: float | None = None
    center: float | None = None
    p: float | None = None
    is_complete: bool = False

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return two-sided limits, not cut at the ends of the range.

        Raises ValueError without a standard error.
        """
        center, se = self._center_and_se()
        half = se * _quantile(confidence, self.df)
        return center - half, center + half

    def outside(self, lowest: float, highest: float) -> float:
        """Return the one-sided p of a true mean of at most ``lowest`` or at least ``highest``.

        Raises ValueError without a standard error.
        """
        center, se = self._center_and_se()
        return _tail(max(center - highest, lowest - center) / se, self.df)

    def detectable(self, alpha: float) -> float | None:
        """Return the true mean found with 80 % power at this level; None without one below 1."""
        if self.se is None:
            return None
        least = self.se * (_quantile(1 - alpha, self.df) + _quantile(2 * POWER - 1, self.df))
        return least if least < 1 else None

    def _center_and_se(self) -> tuple[float, float]:
        if self.center is None or self.se is None:
            raise ValueError("what was not corrected has no limits and no test")
        return self.center, self.se


def not_corrected(
    why: str, uncorrected: float | None = None, n: int = 0, n_labels: int = 0
) -> Corrected:
    """Return a mean over n responses that is not corrected; ``why`` is kept as ``refused``."""
    return Corrected(
        uncorrected=uncorrected,
        estimate=Estimate(mean=None, n=n, low=None, high=None, method=_BY_GROUP),
        n_labels=n_labels,
        refused=why,
    )


def corrected_mean(
    judge: Sequence[Score],
    human: Sequence[Score],
    strata: Sequence[Hashable] | None = None,
    documents: Sequence[Hashable] | None = None,
    pools: Sequence[Hashable] | None = None,
) -> Corrected:
    """Correct the mean of 0/1 verdicts by human labels; each sequence has one entry per response.

    - ``judge``: 0, 1, or None if the judge failed; the response is then left out.
    - ``human``: 0, 1, or None without a label.
    - ``strata``: the group within which labels were drawn at random (document x verdict).
    - ``documents``: the document; None if it is not known.
    - ``pools``: the pool of each response; in a pool, equal verdicts are wrong equally often.
      Default: all responses are one pool.

    If every response is labeled, the result is ``mean_binary`` of the labels. Otherwise it is
    refused with fewer than 60 labels, and if a group has verdicts but no label. Raises ValueError
    if a value is not 0, 1 or None, or the lengths differ.

    The estimate is the mean of the labels of each group, weighted by the group's size: Cochran
    1977, Sampling Techniques, section 12.2, which equals PPI++ (arXiv 2311.01453) in groups of one
    verdict. Its variance is explained at ``_weigh``. The limits are Wilson's, for as many
    independent labels as have that variance (Korn and Graubard 1998, Survey Methodology 24,
    193-201).
    """
    check_scores([*judge, *human])
    rows = _rows(judge, human, strata, documents, pools)
    plain = sum(_signed(row.verdict) for row in rows) / len(rows) if rows else None
    if rows and all(row.label is not None for row in rows):
        labels = [_signed(row.label) for row in rows]
        of_labels = mean_binary(labels, [row.document for row in rows])
        return Corrected(
            uncorrected=plain,
            estimate=of_labels,
            n_labels=len(rows),
            refused=None,
            is_complete=True,
        )
    weighed = _weigh(rows, (0, 1), plain)
    if isinstance(weighed, Corrected):
        return weighed
    share, size = min(max(weighed.shares[1], 0.0), 1.0), weighed.size
    # The level at which the normal quantile is that of t.
    level = 2 * float(scipy_special().ndtr(_quantile(CONFIDENCE, weighed.df))) - 1
    low, high = proportion_interval(share * size, size, "wilson", level)
    kind = name_interval(f"{_BY_GROUP}, wilson", weighed.structure)
    return Corrected(
        uncorrected=plain,
        estimate=Estimate(mean=share, n=len(rows), low=low, high=high, method=kind),
        n_labels=weighed.n_labels,
        refused=None,
    )


def corrected_difference(
    judge: Sequence[Pair],
    human: Sequence[Pair],
    strata: Sequence[Hashable] | None = None,
    documents: Sequence[Hashable] | None = None,
    pools: Sequence[Hashable] | None = None,
) -> Corrected:
    """Correct a paired difference ``a - b`` of 0/1 verdicts by human labels.

    ``judge`` and ``human`` have (a, b) for each question; a pair with a None is missing. ``strata``
    are the groups within which questions were drawn at random (document x verdict on a x verdict on
    b). All else is as in ``corrected_mean``. If every pair is labeled, the result is that of the
    labels, with the interval and the test of ``paired_binary``; otherwise the limits are
    Bonett-Price's.
    """
    check_scores([score for pair in (*judge, *human) for score in pair])
    sides = [[None if None in pair else pair for pair in side] for side in (judge, human)]
    rows = _rows(sides[0], sides[1], strata, documents, pools)
    plain = sum(_signed(row.verdict) for row in rows) / len(rows) if rows else None
    if rows and all(row.label is not None for row in rows):
        counts = Counter((*_as_pair(row.label), row.document) for row in rows)
        low, high, kind = difference_interval(counts)
        total = add_up(tally_documents(counts))
        of_labels = Estimate(
            mean=(total.n10 - total.n01) / total.n, n=total.n, low=low, high=high, method=kind
        )
        center, se, df = difference_spread(counts)
        p, _ = difference_test(counts)
        return Corrected(
            uncorrected=plain,
            estimate=of_labels,
            n_labels=total.n,
            refused=None,
            se=se,
            df=df,
            center=center,
            p=p,
            is_complete=True,
        )
    weighed = _weigh(rows, (-1, 0, 1), plain)
    if isinstance(weighed, Corrected):
        return weighed
    shares = np.array([weighed.shares[1], weighed.shares[-1]])
    spread = bonett_price_spread(shares[0], shares[1], np.array(weighed.size))
    (center, se), df = map(float, spread), weighed.df
    kind = name_interval(f"{_BY_GROUP}, {PLAIN_BOUND}", weighed.structure)
    mean, half = float(shares[0] - shares[1]), se * _quantile(CONFIDENCE, df)
    low, high = max(center - half, -1.0), min(center + half, 1.0)
    estimate = Estimate(
        mean=mean, n=len(rows), low=min(low, mean), high=max(high, mean), method=kind
    )
    below = _tail(center / se, df)
    p = min(1.0, 2 * min(below, 1 - below))
    return Corrected(
        uncorrected=plain,
        estimate=estimate,
        n_labels=weighed.n_labels,
        refused=None,
        se=se,
        df=df,
        center=center,
        p=p,
    )


def draw_for_labels(strata: Sequence[Hashable], n: int, seed: int = 0) -> tuple[int, ...]:
    """Draw the responses to label at random within each group, at least one from every group.

    ``strata`` is the group of each response (document x verdict), n >= 1 the number of labels
    wanted. More are drawn if there are more groups, fewer if there are fewer responses. Groups get
    shares in proportion to their sizes. Returns row numbers in ascending order.
    """
    groups = grouped((key, row) for row, key in enumerate(strata))
    drawn = dict.fromkeys(groups, 1)
    for _ in range(min(n, len(strata)) - len(groups)):
        left = (key for key in groups if drawn[key] < len(groups[key]))
        drawn[max(left, key=lambda key: len(groups[key]) / (drawn[key] + 0.5))] += 1
    chance = random.Random(seed)
    return tuple(sorted(row for key in groups for row in chance.sample(groups[key], drawn[key])))


class _Row(NamedTuple):
    """A response, or a question with two; ``label`` is None without a label."""

    verdict: _Value
    label: _Value | None
    group: Hashable
    pool: Hashable
    document: Hashable


def _rows(
    judge: Sequence[_Value | None],
    human: Sequence[_Value | None],
    strata: Sequence[Hashable] | None,
    documents: Sequence[Hashable] | None,
    pools: Sequence[Hashable] | None,
) -> list[_Row]:
    none: Sequence[Hashable] = [None] * len(judge)
    items = zip(judge, human, strata or none, documents or none, pools or none, strict=True)
    return [
        _Row(
            verdict=verdict,
            label=label,
            group=(document, key, pool, verdict),
            pool=(pool, verdict),
            document=document,
        )
        for verdict, label, key, document, pool in items
        if verdict is not None
    ]


class _Weighed(NamedTuple):
    """Labels weighted by the sizes of their groups.

    ``shares``: value -> share of the responses that have it. ``size``: the number of independent
    labels that are worth as much. ``structure``: clustered by document, with ``df`` degrees of
    freedom, or pooled.
    """

    shares: Mapping[int, float]
    size: float
    n_labels: int
    structure: Structure
    df: float | None


def _weigh(
    rows: Sequence[_Row], values: tuple[int, ...], plain: float | None
) -> _Weighed | Corrected:
    """Weigh the labels, or return why they do not allow a correction.

    The variance has two terms: the variance of the expected value at each response's verdict, over
    the number of responses, and ``W_h^2 s_h^2 / n_h`` of each group; a labeled response counts
    once. Groups have too few labels for figures of their own, and rare errors would be missed. So
    s_h^2 and the expected value come from all labels at the same verdict, plus half a label that
    all values share. That half is this project's choice, by ``benchmarks/audit_coverage.py``. With
    many documents the variance is at least ``CR2`` of their totals.
    """
    sizes = Counter(row.group for row in rows)
    groups = grouped((row.group, row) for row in rows if row.label is not None)
    n, n_labels = len(rows), sum(map(len, groups.values()))
    if n_labels < MIN_LABELS:
        few = f"{n_labels} labeled responses are too few for a correction, which needs {MIN_LABELS}"
        return not_corrected(few, plain, n, n_labels)
    if len(groups) < len(sizes):
        bare = f"{len(sizes) - len(groups)} of {len(sizes)} groups have no label"
        return not_corrected(bare, plain, n, n_labels)
    worth, half = _array(values), 0.5 / len(values)
    labels = {
        group: _array([_signed(row.label) for row in members]) for group, members in groups.items()
    }
    chances: dict[Hashable, Floats] = {}
    by_pool = grouped((members[0].pool, labels[group]) for group, members in groups.items())
    for pool, pool_labels in by_pool.items():
        seen = np.concatenate(pool_labels)
        chances[pool] = _array([(seen == value).sum() + half for value in values])
        chances[pool] /= len(seen) + 0.5
    expected = {pool: float(chance @ worth) for pool, chance in chances.items()}
    own = {pool: float(chance @ worth**2) - expected[pool] ** 2 for pool, chance in chances.items()}
    weights = {group: sizes[group] / n for group in groups}
    variance = float(np.var([expected[row.pool] for row in rows])) / n + sum(
        weights[group] ** 2 * own[members[0].pool] / len(members)
        for group, members in groups.items()
    )
    of_document = Counter(row.document for row in rows)
    structure, df = choose_structure(of_document), None
    if structure is Structure.CLUSTERED:
        totals = dict.fromkeys(of_document, 0.0)
        for group, members in groups.items():
            totals[members[0].document] += sizes[group] * float(labels[group].mean())
        numbers = _array(list(of_document.values()))
        clustered = float(cr2_variance(_array(list(totals.values())), numbers)) ** 0.5
        variance, df = max(variance, clustered**2), float(degrees_of_freedom(numbers))
    likely = sum(weights[group] * chances[members[0].pool] for group, members in groups.items())
    return _Weighed(
        shares={
            value: sum(weights[group] * float((labels[group] == value).mean()) for group in groups)
            for value in values
        },
        size=(float(likely @ worth**2) - float(likely @ worth) ** 2) / variance,
        n_labels=n_labels,
        structure=structure if df is not None else Structure.POOLED,
        df=df,
    )


def _signed(value: _Value | None) -> float:
    """Return a score, or the difference of two, as a number."""
    if isinstance(value, tuple):
        return float(value[0] or 0) - float(value[1] or 0)
    return float(value or 0)


def _as_pair(value: _Value | None) -> Pair:
    return value if isinstance(value, tuple) else (None, None)


def _quantile(confidence: float, df: float | None) -> float:
    special, share = scipy_special(), (1 + confidence) / 2
    return float(special.ndtri(share) if df is None else special.stdtrit(df, share))


def _tail(ratio: float, df: float | None) -> float:
    special = scipy_special()
    p = float(special.ndtr(ratio) if df is None else special.stdtr(df, ratio))
    # A chance is never exactly 0 or 1, even if it is too close for a float.
    return min(max(p, sys.float_info.min), 1 - sys.float_info.epsilon / 2)


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
