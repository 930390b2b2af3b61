"""Means of a judge's verdicts, corrected by human labels for the judge's errors (PPI++)."""

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag.eval.statistics.agreement import check_scores, load_audit_package
from graphrag.eval.statistics.estimates import CONFIDENCE, Estimate, Floats, Score
from graphrag.eval.statistics.paired import Pair

MIN_LABELS = 60


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean of verdicts, corrected for the judge's errors.

    Attributes
    ----------
    uncorrected : float or None
        Plain mean of the judge's verdicts; None without any.
    estimate : Estimate
        Corrected mean with its limits (95 %), n judged responses; None when refused, and the
        limits also when no label and no verdict differs from the others.
    n_labels : int
    refused : str or None
        Why there is no correction.
    """

    uncorrected: float | None
    estimate: Estimate
    n_labels: int
    refused: str | None


def corrected_mean(
    judge: Sequence[Score], human: Sequence[Score], strata: Sequence[Hashable] | None = None
) -> Corrected:
    """Correct the mean of 0/1 verdicts by human labels (PPI++).

    Parameters
    ----------
    judge : sequence
        0, 1 or None (the judge failed; left out), one a response.
    human : sequence
        0, 1, or None where there is no label; same length.
    strata : sequence, optional
        The group within which labels were drawn at random (document x verdict); same length.

    Returns
    -------
    Corrected
        Refused under 60 labels, and when a group has verdicts but no label.

    Raises
    ------
    ValueError
        If a value is not 0, 1 or None, or the lengths differ.
    UsageError
        If the packages of the extra ``audit`` are missing.

    Notes
    -----
    ``ppi_py.ppi_mean_ci(alpha=.05)`` (arXiv 2311.01453), every response weighted by the size of
    its group over the number of labelled (or unlabelled) ones in it. When a group is labelled
    completely, all verdicts take the place of the unlabelled ones.
    """
    check_scores(judge, (0, 1))
    check_scores(human, (0, 1))
    return _correct(
        [None if value is None else float(value) for value in judge],
        [None if value is None else float(value) for value in human],
        strata,
        (0.0, 1.0),
    )


def corrected_difference(
    judge: Sequence[Pair], human: Sequence[Pair], strata: Sequence[Hashable] | None = None
) -> Corrected:
    """Correct a paired difference of 0/1 verdicts by human labels (PPI++).

    Parameters
    ----------
    judge, human : sequence of (a, b)
        One a question. A pair with a None is missing: without verdict, or without label.
    strata : sequence, optional
        The group within which questions were drawn at random (document x verdict on a x verdict
        on b); same length.

    Returns
    -------
    Corrected
        Of ``a - b``, in [-1, 1]; refused as in ``corrected_mean``.

    Raises
    ------
    ValueError, UsageError
        As ``corrected_mean``.
    """
    for pairs in (judge, human):
        check_scores([score for pair in pairs for score in pair], (0, 1))
    return _correct(
        [_difference(pair) for pair in judge],
        [_difference(pair) for pair in human],
        strata,
        (-1.0, 1.0),
    )


def draw_for_labels(strata: Sequence[Hashable], n: int, seed: int = 0) -> tuple[int, ...]:
    """Draw the responses to label: at random within each group, every group at least once.

    Parameters
    ----------
    strata : sequence
        The group of each response (document x verdict).
    n : int
        Labels wanted, >= 1; more are drawn when there are more groups, fewer when there are
        fewer responses.
    seed : int

    Returns
    -------
    tuple of int
        Row numbers, ascending. The groups get shares in proportion to their sizes.
    """
    groups: dict[Hashable, list[int]] = {}
    for row, key in enumerate(strata):
        groups.setdefault(key, []).append(row)
    drawn = dict.fromkeys(groups, 1)
    for _ in range(min(n, len(strata)) - len(groups)):
        key = max(
            (key for key in groups if drawn[key] < len(groups[key])),
            key=lambda key: len(groups[key]) / (drawn[key] + 0.5),
        )
        drawn[key] += 1
    chance = random.Random(seed)
    return tuple(sorted(row for key in groups for row in chance.sample(groups[key], drawn[key])))


def _correct(
    judge: Sequence[float | None],
    human: Sequence[float | None],
    strata: Sequence[Hashable] | None,
    limits: tuple[float, float],
) -> Corrected:
    keys: Sequence[Hashable] = [None] * len(judge) if strata is None else strata
    rows = [
        (verdict, label, key)
        for verdict, label, key in zip(judge, human, keys, strict=True)
        if verdict is not None
    ]
    labelled = [(verdict, label, key) for verdict, label, key in rows if label is not None]
    plain = sum(verdict for verdict, _, _ in rows) / len(rows) if rows else None
    sizes, drawn = Counter(key for _, _, key in rows), Counter(key for _, _, key in labelled)
    refused = None
    if len(labelled) < MIN_LABELS:
        refused = (
            f"{len(labelled)} labelled responses are too few for a correction, "
            f"which needs {MIN_LABELS}"
        )
    elif len(drawn) < len(sizes):
        refused = f"{len(sizes) - len(drawn)} of {len(sizes)} groups have no label"
    if refused is not None:
        nothing = Estimate(None, len(rows), None, None, "ppi++")
        return Corrected(plain, nothing, len(labelled), refused)
    rest = [(verdict, key) for verdict, label, key in rows if label is None]
    left = Counter(key for _, key in rest)
    if len(left) < len(sizes):
        rest, left = [(verdict, key) for verdict, _, key in rows], sizes
    estimate = _ppi(
        _array([label for _, label, _ in labelled]),
        _array([verdict for verdict, _, _ in labelled]),
        _array([sizes[key] / drawn[key] for _, _, key in labelled]),
        _array([verdict for verdict, _ in rest]),
        _array([sizes[key] / left[key] for _, key in rest]),
    )
    mean, low, high = (min(max(value, limits[0]), limits[1]) for value in estimate)
    known = high - low > 1e-9
    return Corrected(
        plain,
        Estimate(
            mean,
            len(rows),
            min(low, mean) if known else None,
            max(high, mean) if known else None,
            "ppi++",
        ),
        len(labelled),
        None,
    )


def _ppi(
    labels: Floats,
    verdicts: Floats,
    weights: Floats,
    other_verdicts: Floats,
    other_weights: Floats,
) -> tuple[float, float, float]:
    """Return the estimate and its limits."""
    ppi = load_audit_package("ppi_py")
    constant = len(np.unique(np.concatenate([verdicts, other_verdicts]))) < 2
    weighting = {"w": weights, "w_unlabeled": other_weights}
    # Constant verdicts say nothing about the labels, and the library would divide 0 by 0.
    tuning = {"lam": 0.0} if constant else {}
    mean = ppi.ppi_mean_pointestimate(labels, verdicts, other_verdicts, **weighting, **tuning)
    low, high = ppi.ppi_mean_ci(
        labels, verdicts, other_verdicts, alpha=1 - CONFIDENCE, **weighting, **tuning
    )
    return float(np.squeeze(mean)), float(np.squeeze(low)), float(np.squeeze(high))


def _difference(pair: Pair) -> float | None:
    a, b = pair
    return None if a is None or b is None else float(a) - float(b)


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
