"""How much evidence an alarm needs when the same questions are asked over and over."""

from math import log2

from graphrag.eval.statistics.power import ALPHA


def pass_share(number: int) -> float:
    """Return the share of the level that a pass over the questions may spend.

    Parameters
    ----------
    number : int
        Which pass it is, >= 1.

    Returns
    -------
    float
        In (0, 1): .37 of the first, .13 of the second, about 1 / (k ln(k)^2) later. All passes
        together spend 1.

    Raises
    ------
    ValueError
        If the number is below 1.

    Notes
    -----
    ``1 / log2(k + 1) - 1 / log2(k + 2)``, whose sum over k telescopes to 1. Defined by this
    project.
    """
    if number < 1:
        msg = f"a pass has a number from 1, not {number!r}"
        raise ValueError(msg)
    return 1 / log2(number + 1) - 1 / log2(number + 2)


def evidence_needed(number: int, n_tests: int = 1, alpha: float = ALPHA) -> float:
    """Return the evidence at which a pass raises an alarm, see ``gate.early_stop_evidence``.

    Parameters
    ----------
    number : int
        Which pass over the questions it is, >= 1.
    n_tests : int
        Methods times metrics that are watched, >= 1; each has its share of the level.
    alpha : float
        The chance, in (0, 1), that a system which never changes ever raises an alarm.

    Notes
    -----
    All passes are held against one and the same baseline, whose luck they share, so their
    evidence may not be multiplied or added up: a baseline that was lucky looks better than an
    unchanged system in every one of them. Within a pass each question counts once, which makes
    the evidence an e-process (Ville 1939: it ever reaches x with a chance of at most 1 / x);
    over the passes the chances are added up, which holds whatever the passes share.
    """
    return n_tests / (alpha * pass_share(number))
