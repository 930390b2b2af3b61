"""One number for evidence found, answer quality and tokens spent, for ranking only."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import isfinite

MOST = 50.0


@dataclass(frozen=True, slots=True)
class CombinedSettings:
    """The exponents of :func:`combined_score`, each in [0, 50]: the score stays finite.

    Attributes
    ----------
    alpha : float
        Of the hit rate.
    beta : float
        Of the thousands of tokens.
    gamma : float
        Of the judge's score.

    Raises
    ------
    ValueError
        If one is NaN or outside; the message names it.
    """

    alpha: float = 2.0
    beta: float = 0.5
    gamma: float = 1.5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value <= MOST:
                msg = f"{name} of the combined score must lie in [0, {MOST:g}], not {value!r}"
                raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class CombinedInput:
    """What one response brings: ``hit_rate`` and ``judge`` in [0, 1], ``tokens`` as a count."""

    hit_rate: float | None
    judge: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True)
class CombinedSummary:
    """Both aggregations of one method, over the same questions; they may rank differently.

    Attributes
    ----------
    mean_of_scores : float or None
        Mean of the questions' combined scores.
    score_of_means : float or None
        Combined score of the mean hit rate, mean judge score and mean tokens.
    n, n_excluded : int
        Questions that have a score, and those without. Both figures are None when n is 0.
    """

    mean_of_scores: float | None
    score_of_means: float | None
    n: int
    n_excluded: int


def combined_score(found: CombinedInput, settings: CombinedSettings | None = None) -> float | None:
    """Return ``hit_rate^alpha * judge^gamma / (tokens / 1000)^beta``.

    Returns
    -------
    float or None
        >= 0, without an upper limit; None when a part is missing or tokens <= 0.

    Raises
    ------
    ValueError
        If the hit rate or the judge's score is outside [0, 1], or the tokens are not finite.

    Notes
    -----
    Defined by this project. It has no unit and no interval worth printing: publish it beside
    its parts, and never gate on it.
    """
    settings = settings or CombinedSettings()
    hit_rate, judge, tokens = found.hit_rate, found.judge, found.tokens
    if tokens is not None and not isfinite(tokens):
        msg = f"tokens must be a finite number, not {tokens!r}"
        raise ValueError(msg)
    if hit_rate is None or judge is None or tokens is None or tokens <= 0:
        return None
    if not (0 <= hit_rate <= 1 and 0 <= judge <= 1):
        msg = f"hit rate and judge's score must lie in [0, 1], not {hit_rate} and {judge}"
        raise ValueError(msg)
    return hit_rate**settings.alpha * judge**settings.gamma / (tokens / 1000) ** settings.beta


def summarize_combined(
    rows: Iterable[CombinedInput], settings: CombinedSettings | None = None
) -> CombinedSummary:
    """Aggregate one method's responses both ways, over those that have a score."""
    given = list(rows)
    scored = [(row, combined_score(row, settings)) for row in given]
    kept = [(row, score) for row, score in scored if score is not None]
    n = len(kept)
    if n == 0:
        return CombinedSummary(None, None, 0, len(given))
    means = CombinedInput(
        hit_rate=sum(row.hit_rate or 0.0 for row, _ in kept) / n,
        judge=sum(row.judge or 0.0 for row, _ in kept) / n,
        tokens=sum(row.tokens or 0.0 for row, _ in kept) / n,
    )
    return CombinedSummary(
        mean_of_scores=sum(score for _, score in kept) / n,
        score_of_means=combined_score(means, settings),
        n=n,
        n_excluded=len(given) - n,
    )
