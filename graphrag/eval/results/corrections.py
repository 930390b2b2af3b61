"""Records of what labels do to comparisons."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CorrectedComparison:
    """A comparison of two methods after people's labels corrected it for the judge's errors.

    Attributes
    ----------
    refused : str or None
        Why it was not corrected; all that follows but ``n_labels`` is None then.
    n_labels : int
        Questions that are labelled on both methods.
    difference, low, high : float or None
        ``a - b`` in [-1, 1], with 95 % limits of this comparison alone.
    se : float or None
        Standard error of the difference.
    p, p_holm : float or None
        Two-sided, of the difference over its standard error; ``p_holm`` in a family.
    low_simultaneous, high_simultaneous, p_equivalence, is_equivalent, detectable_at_80
        As the comparison's own of these names; None outside the family.
    interval : str or None
        Name of the interval.
    judged_alone : str or None
        The verdict without the correction.
    """

    refused: str | None
    n_labels: int
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    p: float | None = None
    p_holm: float | None = None
    low_simultaneous: float | None = None
    high_simultaneous: float | None = None
    p_equivalence: float | None = None
    is_equivalent: bool | None = None
    detectable_at_80: float | None = None
    interval: str | None = None
    judged_alone: str | None = None
