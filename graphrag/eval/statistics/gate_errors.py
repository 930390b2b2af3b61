"""How often the gate errs: it fails an unchanged system, or passes one that lost the margin."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphrag.eval.statistics.clustered import exact_sign_flip
from graphrag.eval.statistics.libraries import Floats, scipy_stats
from graphrag.eval.statistics.limits import difference_limits
from graphrag.eval.statistics.structure import Structure, choose_structure

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
ASSUMED_SHIFT = 0.04
"""Standard deviation of a document's shift where none can be estimated from the run."""
LEVEL = 0.05
_MOST_CELLS = 4_000_000
_FEWEST_DRAWS, _MOST_DRAWS, _DRAWN_SHIFTS = 2_000, 10_000, 400_000
_SPREAD = 7.0


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """How often the gate errs on a run of this size.

    Attributes
    ----------
    false_fail : float
        Share of runs of an unchanged system that FAIL.
    false_pass : float
        Share of runs of a system that lost exactly the margin that PASS.
    n_draws : int or None
        Simulated runs behind each; None of an exact sum.
    """

    false_fail: float
    false_pass: float
    n_draws: int | None


@dataclass(frozen=True, slots=True)
class GateErrors:
    """How often the gate errs, with independent questions and with documents that shift.

    Attributes
    ----------
    n_pairs : int
    discordance : float
        As observed; the lost margin makes it larger where it is the smaller.
    level : float
        Of the test: the gate's by the number of tests in the family.
    independent : ErrorRates
    clustered : ErrorRates or None
        With a shift of ``shift_sd`` that all questions of a document share, as a changed index
        makes; None where the documents are not known.
    shift_sd : float or None
        Standard deviation, estimated or assumed; None where there is no ``clustered``.
    is_assumed : bool
        Whether it is the assumed one.
    """

    n_pairs: int
    discordance: float
    level: float
    independent: ErrorRates
    clustered: ErrorRates | None
    shift_sd: float | None
    is_assumed: bool


class GateRule(NamedTuple):
    """The gate's rule on the counts of a complete run.

    Attributes
    ----------
    sizes : tuple of int
        Pairs of each document.
    margin, level : float
    structure : Structure
        How the documents enter test and limit, see ``choose_structure``.
    """

    sizes: tuple[int, ...]
    margin: float
    level: float
    structure: Structure = Structure.POOLED

    @property
    def n_pairs(self) -> int:
        """Pairs of all documents."""
        return sum(self.sizes)

    def fails(self, wrong: Ints, right: Ints) -> Bools:
        """Return where the test fails, for counts of shape (runs, documents)."""
        if self.structure is not Structure.CLUSTERED or max(self.sizes) == 1:
            newly_wrong = wrong.sum(axis=-1)
            differing = newly_wrong + right.sum(axis=-1)
            return newly_wrong >= _fewest_wrong(self.level, self.n_pairs)[differing]
        sums = right - wrong
        # Random signs take a sum of numbers to its standard deviation or further, on either side,
        # with a chance of 6/64 or more (Dvorak and Tiwari 2021, arXiv 2104.10005), over any
        # level here: only runs beyond it can fail.
        seen = sums.sum(axis=-1)
        lower = np.flatnonzero((seen < 0) & (seen**2 > (sums**2).sum(axis=-1)))
        found = np.zeros(len(sums), dtype=np.bool_)
        for run in lower:
            counted = Counter[int](sums[run].tolist())
            found[run] = exact_sign_flip(counted, lower=True) <= self.level
        return found

    def passes(self, wrong: Ints, right: Ints) -> Bools:
        """Return where the limit lies within the margin and the test does not fail."""
        found = self.limit(wrong, right) > -self.margin
        found[found] = ~self.fails(wrong[found], right[found])
        return found

    def limit(self, wrong: Ints, right: Ints) -> Floats:
        """Return the one-sided 95 % limit of the difference, for the same counts."""
        sizes = np.array(self.sizes, dtype=np.float64)
        if self.structure is not Structure.CLUSTERED:
            wrong, right = wrong.sum(axis=-1, keepdims=True), right.sum(axis=-1, keepdims=True)
            sizes = sizes.sum(keepdims=True)
        structure = self.structure if len(sizes) > 1 else Structure.POOLED
        return difference_limits(
            right.astype(np.float64), wrong.astype(np.float64), sizes, structure, 1 - 2 * LEVEL
        )[0]


def gate_errors(
    sizes: Sequence[int],
    discordance: float,
    margin: float,
    level: float = LEVEL,
    shift_sd: float | None = None,
    *,
    documents_known: bool = True,
) -> GateErrors:
    """Compute how often the gate errs on runs like this one.

    Parameters
    ----------
    sizes : sequence of int
        Pairs of each document, together >= 1.
    discordance : float
        Share of the pairs that differ, in [0, 1].
    margin, level : float
        In (0, 1).
    shift_sd : float or None
        As estimated; None or 0 where the run shows none: ``ASSUMED_SHIFT`` then.
    documents_known : bool
        Whether the sizes are those of documents.

    Notes
    -----
    Independent questions: the trinomial summed over every outcome but some 1e-9, or drawn where
    the outcomes are too many. With shifts: ``simulate_gate``. Always with nothing missing.
    """
    asked: dict[Hashable, int] = dict(enumerate(sizes))
    structure = choose_structure(asked) if documents_known else Structure.POOLED
    rule = GateRule(tuple(sizes), margin, level, structure)
    sd = shift_sd or ASSUMED_SHIFT
    return GateErrors(
        n_pairs=rule.n_pairs,
        discordance=discordance,
        level=level,
        independent=_independent(rule, discordance),
        clustered=simulate_gate(rule, discordance, sd) if documents_known else None,
        shift_sd=sd if documents_known else None,
        is_assumed=documents_known and not shift_sd,
    )


def simulate_gate(rule: GateRule, discordance: float, shift_sd: float, seed: int = 0) -> ErrorRates:
    """Draw runs whose documents shift as a whole, and let the gate decide on each.

    Parameters
    ----------
    rule : GateRule
    discordance : float
        In [0, 1].
    shift_sd : float
        Standard deviation of a document's shift, which is normal; >= 0.
    seed : int

    Notes
    -----
    A document's true difference is that of the system and its shift; where that is larger than
    the discordance, the discordance grows along.
    """
    sizes = np.array(rule.sizes)
    n_draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _DRAWN_SHIFTS // len(sizes)))
    if rule.structure is Structure.CLUSTERED:
        # its test is computed run by run
        n_draws = max(_FEWEST_DRAWS // 2, min(_FEWEST_DRAWS, _DRAWN_SHIFTS // 2 // len(sizes)))
    random = np.random.default_rng(seed)
    shifts = random.normal(0.0, 1.0, (n_draws, len(sizes))) * shift_sd
    rates: list[float] = []
    for drop, answer in ((0.0, rule.fails), (rule.margin, rule.passes)):
        true = np.clip(shifts - drop, -1.0, 1.0)
        differing = np.maximum(np.abs(true), discordance)
        lost = (differing - true) / 2
        wrong = random.binomial(sizes, lost)
        gained = (differing + true) / 2 / np.maximum(1 - lost, 1e-12)
        right = random.binomial(sizes - wrong, np.clip(gained, 0.0, 1.0))
        rates.append(float(answer(wrong, right).mean()))
    return ErrorRates(rates[0], rates[1], n_draws)


def _independent(rule: GateRule, discordance: float) -> ErrorRates:
    if rule.structure is Structure.CLUSTERED:
        return simulate_gate(rule, discordance, 0.0)
    pooled = GateRule((rule.n_pairs,), rule.margin, rule.level)
    fail = _exact(pooled, discordance, 0.0)
    passed = _exact(pooled, max(discordance, rule.margin), rule.margin)
    if fail is None or passed is None:
        return simulate_gate(pooled, discordance, 0.0)
    return ErrorRates(fail[0], passed[1], None)


def _exact(rule: GateRule, discordance: float, drop: float) -> tuple[float, float] | None:
    """Return how often the gate fails and passes; None where the outcomes are too many."""
    n = rule.n_pairs
    reach = _SPREAD * sqrt(n * discordance * (1 - discordance)) + 20
    first = max(0, int(n * discordance - reach))
    last = min(n, int(n * discordance + reach) + 1)
    lost = 0.5 if discordance == 0 else (1 + drop / discordance) / 2
    centre, spread = n * discordance * lost, _SPREAD * sqrt(n * discordance * lost) + 20
    low = max(0, int(centre - spread))
    high = min(last, int(centre + spread) + 1)
    if (last - first + 1) * (high - low + 1) > _MOST_CELLS:
        return None
    m = np.arange(first, last + 1)[:, None]
    wrong = np.arange(low, high + 1)[None, :]
    inside = wrong <= m
    binom = scipy_stats().binom
    weight = (binom.pmf(m, n, discordance) * binom.pmf(wrong, m, lost))[inside]
    newly_wrong, differing = (each[inside][:, None] for each in np.broadcast_arrays(wrong, m))
    newly_right = differing - newly_wrong
    return (
        float(weight[rule.fails(newly_wrong, newly_right)].sum()),
        float(weight[rule.passes(newly_wrong, newly_right)].sum()),
    )


@lru_cache(maxsize=16)
def _fewest_wrong(level: float, n_pairs: int) -> Floats:
    """Return the fewest newly wrong answers that fail, by the number of discordant pairs."""
    m = np.arange(n_pairs + 1)
    binom = scipy_stats().binom
    fewest: Floats = binom.isf(level, m, 0.5) + 1
    fewest = np.where(binom.sf(fewest - 2, m, 0.5) <= level, fewest - 1, fewest)
    fewest = np.where(binom.sf(fewest - 1, m, 0.5) > level, fewest + 1, fewest)
    fewest.setflags(write=False)
    return fewest
