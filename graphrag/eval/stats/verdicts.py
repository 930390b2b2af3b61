"""What a comparison showed, as a sentence."""

from graphrag.eval.stats.family import FamilyFigures
from graphrag.eval.stats.paired import PairedDifference, has_verdicts
from graphrag.eval.stats.power import ALPHA


def shown_sign(result: PairedDifference, alpha: float = ALPHA) -> int:
    """Return which side is shown to be better: 1 for a, -1 for b, 0 for neither.

    By ``p_holm`` where there is one, else by ``p``; neither when too many scores are missing, or
    they could turn the difference around.
    """
    p = result.p if result.p_holm is None else result.p_holm
    if result.difference is None or p is None or p > alpha:
        return 0
    if not has_verdicts(result) or _can_turn(result):
        return 0
    return (result.difference > 0) - (result.difference < 0)


def verdict_in_words(
    result: PairedDifference,
    a: str,
    b: str,
    alpha: float = ALPHA,
    points: int = 1,
    family: FamilyFigures | None = None,
) -> str:
    """Say what a comparison showed.

    Parameters
    ----------
    result : PairedDifference
        Judged by ``p_holm`` when it has one, else by ``p``.
    a, b : str
        Names of the two methods.
    alpha : float
        Level of the test.
    points : int
        Decimals of a difference in percentage points.
    family : FamilyFigures, optional
        What it says as one of a family. Without it nothing is said to be equivalent.

    Returns
    -------
    str
        "nothing to compare"; "undecided: ...", when less than 95 % of the pairs have verdicts;
        "unresolved: ...", when the missing verdicts could turn the answer;
        "<a> better than <b>" (or the reverse), with ", by less than 5 points" where that is shown
        as well; "equivalent within ±5 points"; or "no difference shown; the smallest that
        this many questions find with 80 % power is 6.8 points", in a family "unknown: no
        difference shown; ...".
    """
    if result.difference is None or result.p is None:
        return "nothing to compare"
    if not has_verdicts(result):
        share = f"{100 * (result.coverage or 0):.0f} %"
        return f"undecided: {share} of the pairs that were planned have both verdicts"
    missing = f"unresolved: {result.n_dropped_pairs} missing pairs could"
    sign = shown_sign(result, alpha)
    is_equivalent = family is not None and family.is_equivalent is True
    margin = "" if family is None else f"{100 * family.equivalence_margin:g} points"
    if sign:
        better, worse = (a, b) if sign > 0 else (b, a)
        return f"{better} better than {worse}{f', by less than {margin}' if is_equivalent else ''}"
    if is_equivalent:
        return f"equivalent within ±{margin}"
    if _can_turn(result):
        return f"{missing} turn it around"
    if family is not None and family.p_equivalence is not None and family.p_equivalence <= alpha:
        return f"{missing} move it past ±{margin}"
    known = "no difference shown" if family is None else "unknown: no difference shown"
    if result.detectable_at_80 is None:
        return f"{known}; too few questions to see any"
    least = f"{100 * result.detectable_at_80:.{points}f} points"
    return f"{known}; the smallest that this many questions find with 80 % power is {least}"


def _can_turn(result: PairedDifference) -> bool:
    """Say whether the missing scores could give the difference the other sign."""
    if result.difference is None or result.difference_bounds is None:
        return False
    low, high = result.difference_bounds
    return (result.difference > 0 > low) or (result.difference < 0 < high)
