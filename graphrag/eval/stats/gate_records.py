"""What the release gate is told of a metric, and what it answers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from graphrag.eval.stats.correction import Corrected
from graphrag.eval.stats.differences import MCNEMAR

PLAIN_BOUND = "bonett-price"


class GateOutcome(StrEnum):
    """The three answers; INCONCLUSIVE is not a pass."""

    FAIL = "fail"
    PASS = "pass"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class GateCase:
    """What the gate has to know of a metric beside its pairs.

    Attributes
    ----------
    documents : sequence, optional
        Document of each pair, in their order.
    n_only_new, n_only_baseline, n_other_reference : int
        Questions that only one run holds, those of the baseline being among the pairs with the
        new score missing, and joined ones whose accepted answer changed, missing as well.
    undecided : str, optional
        Why the pairs can't decide, as when the index is another.
    assumed : str, optional
        What the decision takes for granted, said after its reason.
    corrected : Corrected, optional
        The difference as labels of both runs correct it, with a standard error; takes the place
        of the pairs' test and bound.
    """

    documents: Sequence[Hashable] | None = None
    n_only_new: int = 0
    n_only_baseline: int = 0
    n_other_reference: int = 0
    undecided: str | None = None
    assumed: str | None = None
    corrected: Corrected | None = None


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The gate's answer on one metric of one method.

    Attributes
    ----------
    outcome : GateOutcome
    reason : str
        One sentence.
    n_pairs, n_dropped_pairs : int
        Questions with both verdicts, and with a missing one.
    newly_wrong, newly_right : int
    difference : float or None
        New run less baseline, in [-1, 1]; None without pairs.
    lower_bound : float or None
        One-sided 95 % limit of the difference, see ``bound``; None without pairs.
    margin : float
    p : float or None
        One-sided test of "newly wrong > newly right", see ``test``; None without pairs.
    p_holm : float or None
        ``p`` corrected over the primary metrics; ``p`` itself when there is one. Of a metric that
        is not complete the test with every missing verdict in favour of the new run.
    coverage, baseline_coverage : float or None
        Share of the verdicts that exist, of the new run and of the baseline; None without any.
    n_baseline : int
        Questions that the baseline has a score for.
    n_only_new, n_only_baseline, n_other_reference : int
        See ``GateCase``.
    n_without_verdict : int
        Questions of both runs that lack a verdict.
    p_family : float or None
        What this metric entered Holm's family with; None without pairs.
    test, bound : str
        Names of the test and of the limit.
    """

    outcome: GateOutcome
    reason: str
    n_pairs: int
    n_dropped_pairs: int
    newly_wrong: int
    newly_right: int
    difference: float | None
    lower_bound: float | None
    margin: float
    p: float | None
    p_holm: float | None
    coverage: float | None
    baseline_coverage: float | None
    n_baseline: int = 0
    n_only_new: int = 0
    n_only_baseline: int = 0
    n_other_reference: int = 0
    n_without_verdict: int = 0
    p_family: float | None = None
    test: str = MCNEMAR
    bound: str = PLAIN_BOUND


def p_in_words(p: float) -> str:
    """Return "p = 0.0123", or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3g}"


def loss_in_points(lower: float) -> str:
    """Return the loss that a lower limit of a difference leaves, rounded up: it is at most that."""
    return f"{ceil(round(-1000 * min(lower, 0.0), 6)) / 10:.1f}"
