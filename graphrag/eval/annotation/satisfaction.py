"""From joined ratings to figures: satisfaction, its differences, and the judge beside the users."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from graphrag.eval.annotation.ratings import (
    HIGHEST,
    LOWEST,
    JoinedRatings,
    RatedAnswer,
    UnjoinedRating,
)
from graphrag.eval.stats.intervals import (
    CONFIDENCE,
    Estimate,
    Floats,
    mean_binary,
    mean_scale,
    scipy_stats,
)
from graphrag.eval.stats.paired import ScaleDifference, paired_scale

SATISFIED = 4
N_RESAMPLES = 9_999
_BATCH_VALUES = 2_000_000
_AUC_METHOD = "bootstrap BCa, within correct and wrong answers"


@dataclass(frozen=True, slots=True)
class Satisfaction:
    """What users say of one method.

    Attributes
    ----------
    n_answers, n_rated, n_ratings : int
        The method's answers, those of them that were rated, and the single ratings.
    mean : Estimate
        Mean over rated answers in [1, 5], t interval; several raters of an answer count as one,
        with their mean.
    share_satisfied : Estimate
        Share in [0, 1] of rated answers with a rating of 4 or more, Wilson interval.
    distribution : dict
        1 to 5 -> single ratings.
    """

    n_answers: int
    n_rated: int
    n_ratings: int
    mean: Estimate
    share_satisfied: Estimate
    distribution: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class RatingAgreement:
    """The judge's verdicts on correctness beside the users' ratings of the same answers.

    Attributes
    ----------
    n, n_unjudged : int
        Rated answers with a verdict, and without one.
    same : Estimate
        Share in [0, 1] of the n on which both say the same: rated 4 or more and judged 1, or
        rated lower and judged 0. Wilson limits; over several methods those of the questions'
        mean shares, as the answers to one question are not independent.
    auc : Estimate
        Probability in [0, 1] that an answer judged 1 is rated higher than one judged 0, a tie
        counting half. None when the judge says the same of all. BCa limits; None with fewer
        than two answers of either verdict, for a degenerate bootstrap, and over several
        methods.
    point_biserial, spearman : float or None
        Correlation of verdict and rating, of values and of ranks, in [-1, 1]; None when either
        is the same for all.
    """

    n: int
    n_unjudged: int
    same: Estimate
    auc: Estimate
    point_biserial: float | None
    spearman: float | None


@dataclass(frozen=True, slots=True)
class RatingDifference:
    """Rating of ``a`` minus rating of ``b``, over the questions rated for both; exploratory."""

    a: str
    b: str
    result: ScaleDifference


@dataclass(frozen=True, slots=True)
class RatingsReport:
    """Everything that ratings say of a run.

    Attributes
    ----------
    run : str
        Id of the run, or the file's path.
    satisfaction : dict
        Method -> its ratings, for every method of the run.
    agreement : dict
        Method -> the judge beside the users.
    overall : RatingAgreement
        Over all methods.
    differences : tuple of RatingDifference
        Of every pair of methods that were rated.
    answers : tuple of RatedAnswer
    unjoined : tuple of UnjoinedRating
    embedded_models : str or None
        Their label when they had a part in the run.
    """

    run: str
    satisfaction: Mapping[str, Satisfaction]
    agreement: Mapping[str, RatingAgreement]
    overall: RatingAgreement
    differences: tuple[RatingDifference, ...]
    answers: tuple[RatedAnswer, ...]
    unjoined: tuple[UnjoinedRating, ...]
    embedded_models: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values; undefined is None."""
        return {
            "run": self.run,
            "embedded_models": self.embedded_models,
            "satisfaction": {
                method: {
                    **asdict(found),
                    "distribution": {str(k): n for k, n in found.distribution.items()},
                }
                for method, found in self.satisfaction.items()
            },
            "agreement": {method: asdict(found) for method, found in self.agreement.items()},
            "agreement_overall": asdict(self.overall),
            "differences": [
                {"a": each.a, "b": each.b, "in_family": False, **asdict(each.result)}
                for each in self.differences
            ],
            "answers": [answer.to_dict() for answer in self.answers],
            "unjoined": [each.to_dict() for each in self.unjoined],
        }


def report_ratings(
    joined: JoinedRatings, run: str, embedded_models: str | None = None
) -> RatingsReport:
    """Compute what ratings say of each method, and how far the judge agrees.

    Parameters
    ----------
    joined : JoinedRatings
    run : str
        How the run is called.
    embedded_models : str or None
        Their label when they had a part in the run.
    """
    by_method = {
        method: [answer for answer in joined.answers if answer.method == method]
        for method in joined.n_answers
    }
    rated = [method for method, answers in by_method.items() if answers]
    return RatingsReport(
        run=run,
        satisfaction={
            method: summarize_satisfaction(answers, joined.n_answers[method])
            for method, answers in by_method.items()
        },
        agreement={method: judge_beside_users(answers) for method, answers in by_method.items()},
        overall=judge_beside_users(joined.answers),
        differences=tuple(
            RatingDifference(a, b, _difference(by_method[a], by_method[b]))
            for a, b in combinations(rated, 2)
        ),
        answers=joined.answers,
        unjoined=joined.unjoined,
        embedded_models=embedded_models,
    )


def summarize_satisfaction(answers: Sequence[RatedAnswer], n_answers: int) -> Satisfaction:
    """Average the ratings of one method, which gave so many answers in all."""
    scale = mean_scale([a.rating for a in answers], [a.document or None for a in answers])
    counts = Counter(rating for answer in answers for rating in answer.ratings)
    return Satisfaction(
        n_answers=n_answers,
        n_rated=len(answers),
        n_ratings=counts.total(),
        mean=scale.estimate,
        share_satisfied=scale.share_at_least_4,
        distribution={rating: counts[rating] for rating in range(LOWEST, HIGHEST + 1)},
    )


def judge_beside_users(answers: Sequence[RatedAnswer], seed: int = 0) -> RatingAgreement:
    """Compare the judge's verdicts on correctness with the ratings of the same answers.

    Parameters
    ----------
    answers : sequence of RatedAnswer
        Of one method, or of several.
    seed : int
        Of the bootstrap.

    Notes
    -----
    AUC: Mann and Whitney 1947, ``scipy.stats.mannwhitneyu`` divided by the pairs, its limits
    ``scipy.stats.bootstrap(method="BCa")``; ``scipy.stats.pointbiserialr``, ``spearmanr``.
    """
    pairs = [(a.correctness, a.rating, a) for a in answers if a.correctness is not None]
    verdicts = np.array([verdict for verdict, _, _ in pairs], dtype=np.float64)
    ratings = np.array([rating for _, rating, _ in pairs], dtype=np.float64)
    of_question: dict[tuple[str, str], list[bool]] = {}
    for verdict, rating, answer in pairs:
        of_question.setdefault((answer.document, answer.question_id), []).append(
            (rating >= SATISFIED) == verdict
        )
    several = len({answer.method for _, _, answer in pairs}) > 1
    share = mean_binary(
        [sum(same) / len(same) for same in of_question.values()],
        [document or None for document, _ in of_question],
    )
    varied = len(pairs) > 1 and float(np.ptp(verdicts)) > 0 and float(np.ptp(ratings)) > 0
    stats = scipy_stats()
    return RatingAgreement(
        n=len(pairs),
        n_unjudged=len(answers) - len(pairs),
        same=share,
        auc=_auc(ratings[verdicts == 1], ratings[verdicts == 0], None if several else seed),
        point_biserial=float(stats.pointbiserialr(verdicts, ratings)[0]) if varied else None,
        spearman=float(stats.spearmanr(verdicts, ratings)[0]) if varied else None,
    )


def _auc(correct: Floats, wrong: Floats, seed: int | None) -> Estimate:
    """Return the AUC; without a seed, without limits."""
    n = len(correct) + len(wrong)
    if min(len(correct), len(wrong)) == 0:
        return Estimate(None, n, None, None, _AUC_METHOD)
    value = float(_auc_of(correct, wrong, axis=-1))
    if seed is None or min(len(correct), len(wrong)) < 2:
        return Estimate(value, n, None, None, _AUC_METHOD)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a degenerate distribution warns; it is seen below
        result: Any = scipy_stats().bootstrap(
            (correct, wrong),
            _auc_of,
            n_resamples=N_RESAMPLES,
            batch=max(1, _BATCH_VALUES // n),
            vectorized=True,
            confidence_level=CONFIDENCE,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
    low, high = (float(limit) for limit in result.confidence_interval)
    if not (isfinite(low) and isfinite(high)) or low == high:
        return Estimate(value, n, None, None, _AUC_METHOD)
    return Estimate(value, n, min(low, value), max(high, value), _AUC_METHOD)


def _auc_of(correct: Any, wrong: Any, axis: int) -> Any:
    """Return the Mann-Whitney statistic by its number of pairs, along the last axis."""
    n_correct, n_wrong = correct.shape[axis], wrong.shape[axis]
    ranks = scipy_stats().rankdata(np.concatenate([correct, wrong], axis=axis), axis=axis)
    total = ranks[..., :n_correct].sum(axis=axis)
    return (total - n_correct * (n_correct + 1) / 2) / (n_correct * n_wrong)


def _difference(a: Sequence[RatedAnswer], b: Sequence[RatedAnswer]) -> ScaleDifference:
    left = {(answer.document, answer.question_id): answer.rating for answer in a}
    right = {(answer.document, answer.question_id): answer.rating for answer in b}
    questions = dict.fromkeys([*left, *right])
    return paired_scale(
        [(left.get(question), right.get(question)) for question in questions],
        limits=(float(LOWEST - HIGHEST), float(HIGHEST - LOWEST)),
        documents=[document or None for document, _ in questions],
    )
