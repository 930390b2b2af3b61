"""Means and differences of a judge's verdicts, corrected by human labels."""

import random
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from graphrag.eval.stats.agreement import check_scores, load_audit_package
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
    name_interval,
    scipy_special,
)
from graphrag.eval.stats.paired import Pair, signed_difference
from graphrag.eval.stats.power import POWER

MIN_LABELS = 60
BOTH_RUNS = "labels of both runs"
_KIND = "ppi++"
_NO_WIDTH = 1e-9


class _Spread(NamedTuple):
    """Standard error of a mean, its degrees of freedom (None: normal), and the mean's range."""

    se: float
    df: float | None = None
    limits: tuple[float, float] = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean of verdicts, corrected for the judge's errors.

    ``uncorrected``: plain mean of the judge's verdicts, None without any. ``estimate``: corrected
    mean with its limits (95 %), n judged responses; None when ``refused`` says why, and the limits
    also when no label and no verdict differs from the others. ``se``: its standard error, > 0, None
    without limits; ``df``: degrees of freedom of its t distribution, None for the normal one.
    """

    uncorrected: float | None
    estimate: Estimate
    n_labels: int
    refused: str | None
    se: float | None = None
    df: float | None = None

    @property
    def p(self) -> float | None:
        """Two-sided p of a true mean of 0, in (0, 1]; None without limits."""
        if self.p_below is None:
            return None
        return min(1.0, 2 * min(self.p_below, 1 - self.p_below))

    @property
    def p_below(self) -> float | None:
        """One-sided p against a true mean of 0 or more; None without limits."""
        if self.estimate.mean is None or self.se is None:
            return None
        return _tail(self.estimate.mean / self.se, self.df)

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return two-sided limits, not cut at the ends of the range; ValueError without a se."""
        mean, se = self._known()
        half = se * _quantile(confidence, self.df)
        return mean - half, mean + half

    def outside(self, lowest: float, highest: float) -> float:
        """Return the one-sided p of a true mean as low as the first or as high as the second.

        ValueError without a standard error.
        """
        mean, se = self._known()
        return _tail(max(mean - highest, lowest - mean) / se, self.df)

    def detectable(self, alpha: float) -> float | None:
        """Return the true mean found with 80 % power at this level; None when there is none."""
        if self.se is None:
            return None
        least = self.se * (_quantile(1 - alpha, self.df) + _quantile(2 * POWER - 1, self.df))
        return least if least < 1 else None

    def _known(self) -> tuple[float, float]:
        if self.estimate.mean is None or self.se is None:
            raise ValueError("what was not corrected has no limits and no test")
        return self.estimate.mean, self.se


def not_corrected(
    why: str, uncorrected: float | None = None, n: int = 0, n_labels: int = 0, kind: str = BOTH_RUNS
) -> Corrected:
    """Return a mean over n responses that is not corrected."""
    return Corrected(uncorrected, Estimate(None, n, None, None, kind), n_labels, why)


def corrected_mean(
    judge: Sequence[Score], human: Sequence[Score], strata: Sequence[Hashable] | None = None
) -> Corrected:
    """Correct the mean of 0/1 verdicts by human labels (PPI++).

    One a response: 0, 1 or None (the judge failed, and the response is left out; or there is no
    label). ``strata``: the group within which labels were drawn at random (document x verdict).
    Refused under 60 labels, and when a group has verdicts but no label. ValueError if a value is
    not 0, 1 or None, or the lengths differ; UsageError without the packages of the extra ``audit``.

    ``ppi_py.ppi_mean_ci(alpha=.05)`` (arXiv 2311.01453), every response weighted by the size of its
    group over the number of labeled (or unlabeled) ones in it. When a group is labeled
    completely, all verdicts take the place of the unlabeled ones.
    """
    check_scores([*judge, *human], (0, 1))
    verdicts, labels = (
        [None if value is None else float(value) for value in side] for side in (judge, human)
    )
    return _correct(verdicts, labels, strata, (0.0, 1.0))


def corrected_difference(
    judge: Sequence[Pair],
    human: Sequence[Pair],
    strata: Sequence[Hashable] | None = None,
    documents: Sequence[Hashable] | None = None,
) -> Corrected:
    """Correct a paired difference ``a - b`` of 0/1 verdicts by human labels (PPI++).

    ``judge`` and ``human`` are (a, b), one a question; a pair with a None is missing. ``strata``:
    the groups within which questions were drawn at random (document x verdict on a x verdict on
    b), ``documents`` those of the questions, None where one is not known.

    As ``corrected_mean``, which takes questions as independent, is refused and raises. Where the
    documents are many enough for ``Structure.CLUSTERED`` each one's total is estimated from its
    own verdicts and labels, and the totals, which are independent, are clustered by ``CR2``.
    """
    check_scores([score for pair in (*judge, *human) for score in pair], (0, 1))
    verdicts, labels = ([signed_difference(pair) for pair in side] for side in (judge, human))
    return _correct(verdicts, labels, strata, (-1.0, 1.0), documents)


def draw_for_labels(strata: Sequence[Hashable], n: int, seed: int = 0) -> tuple[int, ...]:
    """Draw the responses to label, at random within each group, every group at least once.

    ``strata`` is the group of each response (document x verdict), n the labels wanted, >= 1; more
    are drawn when there are more groups, fewer when there are fewer responses. Returns ascending
    row numbers; the groups get shares in proportion to their sizes.
    """
    groups = grouped((key, row) for row, key in enumerate(strata))
    drawn = dict.fromkeys(groups, 1)
    for _ in range(min(n, len(strata)) - len(groups)):
        left = (key for key in groups if drawn[key] < len(groups[key]))
        drawn[max(left, key=lambda key: len(groups[key]) / (drawn[key] + 0.5))] += 1
    chance = random.Random(seed)
    return tuple(sorted(row for key in groups for row in chance.sample(groups[key], drawn[key])))


def _refuse(n_labels: int, n_groups: int, n_unlabelled_groups: int) -> str | None:
    """Return why so many labels do not allow a correction; None when they do."""
    if n_labels < MIN_LABELS:
        return (
            f"{n_labels} labeled responses are too few for a correction, which needs {MIN_LABELS}"
        )
    if n_unlabelled_groups:
        return f"{n_unlabelled_groups} of {n_groups} groups have no label"
    return None


def _finish(
    plain: float | None, mean: float, n: int, n_labels: int, spread: _Spread, kind: str
) -> Corrected:
    """Return a corrected mean with its limits inside those of its spread."""
    lowest, highest = spread.limits
    mean = min(max(mean, lowest), highest)
    if spread.se <= _NO_WIDTH:
        return Corrected(plain, Estimate(mean, n, None, None, kind), n_labels, None)
    half = spread.se * _quantile(CONFIDENCE, spread.df)
    estimate = Estimate(mean, n, max(mean - half, lowest), min(mean + half, highest), kind)
    return Corrected(plain, estimate, n_labels, None, spread.se, spread.df)


def _cluster(totals: Mapping[Hashable, float], sizes: Mapping[Hashable, int]) -> _Spread:
    """Return the spread of a mean of [-1, 1] from each document's total and its questions."""
    sums, numbers = _array(list(totals.values())), _array([sizes[key] for key in totals])
    return _Spread(float(cr2_variance(sums, numbers)) ** 0.5, float(degrees_of_freedom(numbers)))


def _correct(
    judge: Sequence[float | None],
    human: Sequence[float | None],
    strata: Sequence[Hashable] | None,
    limits: tuple[float, float],
    documents: Sequence[Hashable] | None = None,
) -> Corrected:
    places: Sequence[Hashable] = [None] * len(judge) if documents is None else documents
    keys: Sequence[Hashable] = [None] * len(judge) if strata is None else strata
    rows = [
        (verdict, label, (document, key))
        for verdict, label, key, document in zip(judge, human, keys, places, strict=True)
        if verdict is not None
    ]
    labelled = [(verdict, label, key) for verdict, label, key in rows if label is not None]
    plain = sum(verdict for verdict, _, _ in rows) / len(rows) if rows else None
    sizes, drawn = Counter(key for _, _, key in rows), Counter(key for _, _, key in labelled)
    refused = _refuse(len(labelled), len(sizes), len(sizes) - len(drawn))
    if refused is not None:
        return not_corrected(refused, plain, len(rows), len(labelled), _KIND)
    of_document = Counter(document for _, _, (document, _) in rows)
    structure = choose_structure(of_document)
    if structure is Structure.CLUSTERED:
        totals = dict.fromkeys(of_document, 0.0)
        for verdict, _, (document, _) in rows:
            totals[document] += verdict
        for verdict, label, key in labelled:
            totals[key[0]] += (label - verdict) * sizes[key] / drawn[key]
        spread = _cluster(totals, of_document)._replace(limits=limits)
        mean = sum(totals.values()) / len(rows)
        kind = name_interval(_KIND, structure)
        return _finish(plain, mean, len(rows), len(labelled), spread, kind)
    rest = [(verdict, key) for verdict, label, key in rows if label is None]
    left = Counter(key for _, key in rest)
    if len(left) < len(sizes):
        rest, left = [(verdict, key) for verdict, _, key in rows], sizes
    mean, low, high = _ppi(
        _array([label for _, label, _ in labelled]),
        _array([verdict for verdict, _, _ in labelled]),
        _array([sizes[key] / drawn[key] for _, _, key in labelled]),
        _array([verdict for verdict, _ in rest]),
        _array([sizes[key] / left[key] for _, key in rest]),
    )
    spread = _Spread((high - low) / 2 / _quantile(CONFIDENCE, None), limits=limits)
    return _finish(plain, mean, len(rows), len(labelled), spread, _KIND)


def _ppi(
    labels: Floats, verdicts: Floats, weights: Floats, other_verdicts: Floats, other_weights: Floats
) -> tuple[float, float, float]:
    """Return the estimate and its limits."""
    ppi = load_audit_package("ppi_py")
    options: dict[str, object] = {"w": weights, "w_unlabeled": other_weights}
    if len(np.unique(np.concatenate([verdicts, other_verdicts]))) < 2:
        # Constant verdicts say nothing about the labels, and the library would divide 0 by 0.
        options["lam"] = 0.0
    mean = ppi.ppi_mean_pointestimate(labels, verdicts, other_verdicts, **options)
    low, high = ppi.ppi_mean_ci(labels, verdicts, other_verdicts, alpha=1 - CONFIDENCE, **options)
    return float(np.squeeze(mean)), float(np.squeeze(low)), float(np.squeeze(high))


def _quantile(confidence: float, df: float | None) -> float:
    special, share = scipy_special(), (1 + confidence) / 2
    return float(special.ndtri(share) if df is None else special.stdtrit(df, share))


def _tail(ratio: float, df: float | None) -> float:
    special = scipy_special()
    p = float(special.ndtr(ratio) if df is None else special.stdtr(df, ratio))
    # A chance is never 0 or 1, if too near for a float.
    return min(max(p, sys.float_info.min), 1 - sys.float_info.epsilon / 2)


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


class _Response(NamedTuple):
    verdict: int
    label: int | None
    stratum: Hashable
    document: Hashable


class _Bias(NamedTuple):
    """Of the verdicts, as numbers of responses: the estimate by document, and its variance.

    ``chance`` is the share of wrong verdicts among those of 0, and of 1.
    """

    n_groups: int
    n_unlabelled: int
    by_document: dict[Hashable, float]
    variance: float
    chance: tuple[float, float]

    def expect(self, response: _Response) -> float:
        """Return the chance that a response is right, given its verdict."""
        if response.stratum is None:
            return response.verdict
        wrong = self.chance[response.verdict]
        return 1 - wrong if response.verdict else wrong


def corrected_change(
    judge: Sequence[Pair],
    human: Sequence[Pair],
    strata: Sequence[tuple[Hashable, Hashable]],
    documents: Sequence[Hashable],
) -> Corrected:
    """Correct the difference between two runs by labels that were drawn in each by itself.

    All (new, baseline), one a question: ``judge`` 0, 1 or None (missing: the pair is left out),
    ``human`` the label of each response, or None, ``strata`` the group within which each run's
    questions were drawn at random, which has one verdict; None where a score is known without a
    label, as of a failed search. ``documents``: None where one is not known. ``n_labels`` are those
    of both runs together. Refused when a run has under 60 labels, or a group of one has none.
    ValueError if a value is not 0, 1 or None, the lengths differ, or a group has two verdicts;
    UsageError without the packages of the extra ``audit``.

    The mean of the judge's differences, less its bias in the new run, plus that in the baseline: a
    bias is the mean of verdict less label in each group, weighted by the group's share of the
    questions (Cochran 1977, Sampling Techniques, section 12.2, two-phase sampling for
    stratification). The variance, by the same section, is ``W_h^2 s_h^2 / n_h`` of each group of
    each run, and that of the differences which the verdicts let expect, over their number. Groups
    are labeled too thinly for figures of their own: s_h^2, and the share of right answers to
    expect, are those of all labels at the same verdict of the same run, with one error and one
    right verdict added. Without a finite-population correction the variance holds the within-group
    spread of new questions as well, which makes the limits a little wide where the same questions
    are hard for both runs.

    Documents as in ``corrected_difference``, which is called where 60 questions or more, one in
    each pair of groups, are labeled in both runs.
    """
    check_scores([score for pair in (*judge, *human) for score in pair], (0, 1))
    rows = list(zip(judge, human, strata, documents, strict=True))
    n_both = sum(None not in pair and None not in key for _, pair, key, _ in rows)
    if n_both >= MIN_LABELS:
        known = [_with_known(verdicts, pair, key) for verdicts, pair, key, _ in rows]
        paired = corrected_difference(judge, known, strata, documents)
        if paired.se is not None:
            used = [key for pair, key in zip(known, strata, strict=True) if None not in pair]
            n_labels = sum(stratum is not None for key in used for stratum in key)
            return replace(paired, n_labels=n_labels)
    new, old = (
        [
            _Response(int(verdict), None if label is None else int(label), key[side], document)
            for pair, labels, key, document in rows
            for verdict, label in [(pair[side], labels[side])]
            if verdict is not None and None not in pair
        ]
        for side in (0, 1)
    )
    n, both = len(new), list(zip(new, old, strict=True))
    n_labels = [sum(r.label is not None and r.stratum is not None for r in s) for s in (new, old)]
    plain = sum(a.verdict - b.verdict for a, b in both) / n if n else None
    biases = _bias(new), _bias(old)
    for name, bias, labels in zip(("new run", "baseline"), biases, n_labels, strict=True):
        refused = _refuse(labels, bias.n_groups, bias.n_unlabelled)
        if refused is not None:
            return not_corrected(f"{name}: {refused}", plain, n, sum(n_labels))
    sizes = Counter(response.document for response in new)
    totals = dict.fromkeys(sizes, 0.0)
    for a, b in both:
        totals[a.document] += a.verdict - b.verdict
    for sign, bias in zip((-1, 1), biases, strict=True):
        for document, errors in bias.by_document.items():
            totals[document] += sign * errors
    mean = sum(totals.values()) / n
    structure = choose_structure(sizes)
    kind = BOTH_RUNS
    if structure is Structure.CLUSTERED:
        spread, kind = _cluster(totals, sizes), name_interval(kind, structure)
    else:
        expected = _array([biases[0].expect(a) for a in new]) - _array(
            [biases[1].expect(b) for b in old]
        )
        variance = float(expected.var(ddof=1)) / n + sum(b.variance for b in biases) / n**2
        spread = _Spread(variance**0.5)
    return _finish(plain, mean, n, sum(n_labels), spread, kind)


def _bias(side: Sequence[_Response]) -> _Bias:
    groups = grouped(((r.document, r.stratum), r) for r in side if r.stratum is not None)
    if any(len({r.verdict for r in group}) > 1 for group in groups.values()):
        raise ValueError("a group within which labels were drawn must have one verdict")
    wrong, seen = Counter[int](), Counter[int]()
    by_document: dict[Hashable, float] = {}
    labelled: list[tuple[int, int, int]] = []  # verdict, size and labels of each group with any
    for (document, _), group in groups.items():
        errors = [r.verdict - r.label for r in group if r.label is not None]
        if errors:
            verdict = group[0].verdict
            times = len(group) / len(errors)
            by_document[document] = by_document.get(document, 0.0) + times * sum(errors)
            wrong[verdict] += sum(map(abs, errors))
            seen[verdict] += len(errors)
            labelled.append((verdict, len(group), len(errors)))
    none, one = ((wrong[verdict] + 1) / (seen[verdict] + 2) for verdict in (0, 1))
    chance = (none, one)
    variance = sum(
        size**2 * chance[verdict] * (1 - chance[verdict]) / n for verdict, size, n in labelled
    )
    return _Bias(len(groups), len(groups) - len(labelled), by_document, variance, chance)


def _with_known(judge: Pair, human: Pair, strata: tuple[Hashable, Hashable]) -> Pair:
    a, b = (
        verdict if stratum is None else label
        for verdict, label, stratum in zip(judge, human, strata, strict=True)
    )
    return a, b
