"""Whether scores fell against a baseline: paired by case, tested, corrected for the family."""

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag.eval.statistics import holm, paired_scale

ALPHA = 0.05
MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class MetricRegression:
    """One metric held against a baseline.

    Attributes
    ----------
    metric : str
        An EvaluationMetric, which is a text, or the part of a case's score.
    difference : float or None
        Mean of now less baseline over the cases that both scored, in [-1, 1]; None without any.
    p_holm : float or None
        That the metric did not fall, corrected over the family; None below two pairs.
    n_pairs : int
    regressed : bool
        ``p_holm`` is at most 0.05.
    """

    metric: str
    difference: float | None
    p_holm: float | None
    n_pairs: int
    regressed: bool


def find_regressions(
    scores: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]],
) -> list[MetricRegression]:
    """Test each metric for a fall.

    Parameters
    ----------
    scores : mapping
        Metric -> (case id -> score now, case id -> score of the baseline), each in [0, 1]. The
        metrics are the family.

    Returns
    -------
    list of MetricRegression
        In the order of the metrics.

    Notes
    -----
    One-sided permutation test on the paired differences (``paired_scale``), Holm 1979 over the
    metrics. The smallest p value that n pairs can give is ``2 ** -n``, so that fewer than five
    pairs show no fall.
    """
    found = {
        metric: paired_scale(
            [(now[case], then[case]) for case in now if case in then], alternative="less"
        )
        for metric, (now, then) in scores.items()
    }
    tested = [each.p if each.n_pairs >= MIN_PAIRS else None for each in found.values()]
    return [
        MetricRegression(
            metric=metric,
            difference=each.difference,
            p_holm=p_holm,
            n_pairs=each.n_pairs,
            regressed=p_holm is not None and p_holm <= ALPHA,
        )
        for (metric, each), p_holm in zip(found.items(), holm(tested), strict=True)
    ]
