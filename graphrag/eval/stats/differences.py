"""Limits and tests of paired differences, with the documents taken as their structure asks."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.clustered import exact_sign_flip
from graphrag.eval.stats.estimates import CONFIDENCE, Score, group_by_document
from graphrag.eval.stats.libraries import Floats, scipy_stats
from graphrag.eval.stats.limits import difference_limits
from graphrag.eval.stats.structure import Structure, choose_structure, name_interval

Alternative: TypeAlias = Literal["two-sided", "less"]
PairCounts: TypeAlias = Mapping[tuple[Score, Score, Hashable], int]
"""(score of a, score of b, document) -> how many times it occurs."""

N_RESAMPLES = 9_999
MCNEMAR, BY_DOCUMENT = "mcnemar, exact", "sign-flip by document, exact"
BY_QUESTION = "sign-flip by question"
_BATCH_VALUES = 2_000_000


class Tally(NamedTuple):
    """Pairs on one document: both scores there, and those of them (1, 0) and (0, 1)."""

    n: int
    n10: int
    n01: int


def tally_documents(counts: PairCounts) -> dict[Hashable, Tally]:
    """Count the pairs of each document; documents without any are left out.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.
    """
    found: dict[Hashable, Tally] = {}
    for (a, b, document), times in counts.items():
        for score in (a, b):
            if score not in (0, 1, None):
                msg = f"a score must be 0, 1 or None, not {score!r}"
                raise ValueError(msg)
        if a is not None and b is not None and times:
            n, n10, n01 = found.get(document, (0, 0, 0))
            found[document] = Tally(n + times, n10 + times * (a > b), n01 + times * (b > a))
    return found


def structure_of(tallies: Mapping[Hashable, Tally]) -> Structure:
    """Return how the documents of these pairs enter, see ``choose_structure``."""
    return choose_structure({document: tally.n for document, tally in tallies.items()})


def difference_interval(
    counts: PairCounts, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None, str]:
    """Return the limits of a paired difference of 0/1 scores.

    Parameters
    ----------
    counts : dict
        (a, b, document) -> questions; a score is 0, 1 or None (missing, left out). A document
        None is one that is not known.
    confidence : float
        In (0, 1), of both sides: the lower limit at 0.90 is the one-sided 95 % limit.

    Returns
    -------
    low, high : float or None
        In [-1, 1] and around the difference, never of no width; None without pairs.
    name : str
        Of the interval, which says how the documents entered.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.

    Notes
    -----
    ``limits.difference_limits`` by ``structure.choose_structure``.
    """
    tallies = tally_documents(counts)
    structure = structure_of(tallies)
    name = name_interval("bonett-price", structure)
    if not tallies:
        return None, None, name
    n, n10, n01 = np.array(list(tallies.values()), dtype=np.float64).T
    low, high = difference_limits(n10, n01, n, structure, confidence)
    mean = sum(t.n10 - t.n01 for t in tallies.values()) / sum(t.n for t in tallies.values())
    return min(float(low), mean), max(float(high), mean), name


def difference_test(
    counts: PairCounts, alternative: Alternative = "two-sided"
) -> tuple[float | None, str]:
    """Test a paired difference of 0/1 scores against none.

    Parameters
    ----------
    counts : dict
        As in ``difference_interval``.
    alternative : {"two-sided", "less"}
        "less": the p value is that of a being lower than b.

    Returns
    -------
    p : float or None
        In (0, 1]; two-sided it is 1 without a discordant pair; None without pairs.
    name : str
        Of the test.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.

    Notes
    -----
    Where documents are many enough for ``Structure.CLUSTERED`` and hold more than one question,
    their sums of a - b change sign together (``clustered.exact_sign_flip``), as exact McNemar takes
    questions of one document for independent. Else exact McNemar, which is the same function
    with every pair for itself.
    """
    tallies = tally_documents(counts)
    if not tallies:
        return None, MCNEMAR
    lower = alternative == "less"
    if structure_of(tallies) is Structure.CLUSTERED and max(t.n for t in tallies.values()) > 1:
        sums = Counter(tally.n10 - tally.n01 for tally in tallies.values())
        return exact_sign_flip(sums, lower=lower), BY_DOCUMENT
    n10, n01 = (sum(tally[side] for tally in tallies.values()) for side in (1, 2))
    return exact_sign_flip({1: n10, -1: n01}, lower=lower), MCNEMAR


def flip_signs(
    differences: Sequence[Score],
    documents: Sequence[Hashable],
    alternative: Alternative = "two-sided",
    seed: int = 0,
) -> tuple[float | None, bool, str]:
    """Test the mean of real-valued differences against 0 by flipping signs.

    Parameters
    ----------
    differences : sequence
        One a question; finite numbers or None (left out).
    documents : sequence
        The document of each, same length; None where it is not known.
    alternative : {"two-sided", "less"}
        "less": the p value is that of a mean below 0.
    seed : int
        Of the signs, when there are too many to try all.

    Returns
    -------
    p : float or None
        In (0, 1]; 1 when all differences are 0, None without any.
    exact : bool
        Whether every flip was tried.
    name : str
        Of the test: the signs of a document's differences change together where
        ``difference_test`` takes them together, else each changes alone.

    Raises
    ------
    ValueError
        If the lengths differ or a difference is not finite.

    Notes
    -----
    ``scipy.stats.permutation_test(permutation_type="samples")`` on the sums: every flip for up to
    13 of them that differ from 0, else 9,999 random ones with ``(b + 1) / (B + 1)``. Those
    that are 0 can't move it and are left out.
    """
    groups = group_by_document(differences, documents)
    sizes = {key: len(group) for key, group in groups.items()}
    together = choose_structure(sizes) is Structure.CLUSTERED and max(sizes.values()) > 1
    sums = np.concatenate([*groups.values(), np.empty(0)])
    if together:
        sums = np.array([group.sum() for group in groups.values()])
    moving = sums[sums != 0]
    exact = 2 ** min(len(moving), 64) <= N_RESAMPLES
    kind = BY_DOCUMENT.removesuffix(", exact") if together else BY_QUESTION
    name = kind + (", exact" if exact else f", {N_RESAMPLES:,} resamples")
    if len(sums) == 0:
        return None, exact, name
    return _permute(moving, alternative, seed), exact, name


def _permute(moving: Floats, alternative: Alternative, seed: int) -> float:
    if len(moving) == 0:
        return 1.0
    if len(moving) == 1:
        # Of the two permutations both are as extreme, or one; scipy refuses a single observation.
        return 0.5 if alternative == "less" and moving[0] < 0 else 1.0
    result = scipy_stats().permutation_test(
        (moving, np.zeros_like(moving)),
        _mean_difference,
        permutation_type="samples",
        n_resamples=N_RESAMPLES,
        batch=max(1, _BATCH_VALUES // len(moving)),
        vectorized=True,
        alternative=alternative,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _mean_difference(x: Any, y: Any, axis: int) -> Any:
    return (x - y).mean(axis=axis)
