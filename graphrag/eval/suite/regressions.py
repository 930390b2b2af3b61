"""Whether scores fell against a baseline: paired by case, tested, corrected for the family."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from graphrag.eval.statistics import holm, paired_scale
from graphrag.eval.suite.kept_results import KeptResult

_Scores: TypeAlias = dict[tuple[str, str], dict[str, dict[str, float]]]
"""(suite, method) -> part -> case id -> score."""

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


@dataclass(frozen=True, slots=True)
class PartRegression:
    """One part of the scores of a suite and method, held against a baseline.

    Attributes
    ----------
    suite, method : str
    metric : str
        The part.
    difference, p_holm, n_pairs, regressed
        As of :class:`MetricRegression`; the family is all parts of the suite and method.
    """

    suite: str
    method: str
    metric: str
    difference: float | None
    p_holm: float | None
    n_pairs: int
    regressed: bool


def compare_parts(
    now: Iterable[KeptResult], baseline: Iterable[KeptResult]
) -> tuple[PartRegression, ...]:
    """Hold every part of every case against the same part of a baseline, by suite and method.

    What either of the two has no score for is left out.
    """
    new, old = _parts_of(now), _parts_of(baseline)
    return tuple(
        PartRegression(
            suite, method, each.metric, each.difference, each.p_holm, each.n_pairs, each.regressed
        )
        for (suite, method), parts in new.items()
        for each in find_regressions(
            {
                part: (scores, old[suite, method][part])
                for part, scores in parts.items()
                if part in old.get((suite, method), {})
            }
        )
    )


def _parts_of(results: Iterable[KeptResult]) -> _Scores:
    found: _Scores = {}
    for kept in results:
        given = kept.result.evaluated
        for part, score in given.parts.items() if given is not None else ():
            of_method = found.setdefault((kept.suite, kept.result.method), {})
            of_method.setdefault(part, {})[kept.result.case_id] = score
    return found


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
