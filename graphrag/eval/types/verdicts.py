"""Defines the verdicts on a response, one for each metric, and why a verdict is missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, TypeAlias, TypedDict

from graphrag.eval.types.metric_definitions import DEFAULT_METRICS, METRICS

SEARCH_FAILED = "Search failed"


FailureKind: TypeAlias = Literal["error", "timeout", "refused", "unreadable", "empty", "cut_off"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a search or a verdict is missing.

    - ``kind``: ``refused``: the service would refuse every further request as well. ``unreadable``:
      a reply stayed unreadable after the retries. ``cut_off``: a reply broke off at the bound of
      its output, or because the model's context was full. Also: error, timeout, empty.
    - ``of_setup``: whether a setting that counts into a run's setup is the cause, so that the run
      can't go on with another value. Time-outs and the bound of the judge's replies are no such
      settings.
    """

    stage: Literal["search", "judge"]
    kind: FailureKind
    message: str
    of_setup: bool = False

    def to_dict(self) -> dict[str, str | bool]:
        """Return {stage, kind, message}, and of_setup if it is true."""
        return {name: value for name, value in asdict(self).items() if value is not False}


class ScoreAndReason(TypedDict):
    """A verdict, JSON-ready."""

    score: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """One verdict, such as ``JudgeResult(score=1, reason="It names the mayor.")``.

    - ``score``: 0 or 1; None if unscored.
    - ``reason``: the judge's reason, or why there is no score.
    - ``failure``: why the judge failed; None for a score, and for what was never to be judged.
    - ``repeats``: the single scores (0, 1, or None for a failed one) if the judge was asked more
      than once; ``score`` is then their majority. Empty if it was asked once.
    - ``doubt``: a sentence if the judge doubts the row itself; the score does not depend on it.
    - ``claims``: the rulings that faithfulness judged by claim follows from, JSON-ready; see
      ``claims.ClaimEvaluation``.

    ``doubt`` is "" and ``claims`` None in a verdict read from the store, which keeps them apart.
    """

    score: int | None
    reason: str
    failure: Failure | None = None
    repeats: tuple[int | None, ...] = ()
    doubt: str = field(default="", compare=False)
    claims: Mapping[str, object] | None = field(default=None, hash=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.score not in (0, 1, None):
            raise ValueError(f"a score is 0, 1 or None, not {self.score!r}")
        if self.score is not None and type(self.score) is not int:  # true, 1.0, a numpy number
            object.__setattr__(self, "score", int(self.score))

    def to_dict(self) -> ScoreAndReason:
        """Return {score, reason}."""
        return {"score": self.score, "reason": self.reason}


def combine_repeats(verdicts: Sequence[JudgeResult]) -> JudgeResult:
    """Combine repeated verdicts into their majority, with the first reason that agrees.

    A failed verdict has no vote. A tie, which only failures can leave, is unscored.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    repeats = tuple(verdict.score for verdict in verdicts)
    doubt = next((verdict.doubt for verdict in verdicts if verdict.doubt), "")
    votes = [score for score in repeats if score is not None]
    if not votes:
        return replace(verdicts[0], repeats=repeats)
    if 2 * sum(votes) == len(votes):
        message = f"the judge's verdicts are tied, and {len(repeats) - len(votes)} more failed"
        failure = Failure(stage="judge", kind="error", message=message)
        return JudgeResult(
            score=None, reason=f"Unscored: {message}", failure=failure, repeats=repeats, doubt=doubt
        )
    score = int(2 * sum(votes) > len(votes))
    first = next(verdict for verdict in verdicts if verdict.score == score)
    return replace(first, repeats=repeats, doubt=doubt)


NOT_JUDGED = JudgeResult(score=None, reason="Not judged")
_DEFAULT = frozenset(DEFAULT_METRICS)


@dataclass(frozen=True, slots=True)
class MetricScores:
    """The verdicts on one response, one for each metric; score None if not judged.

    ``further`` has the metrics that are judged only if you name them.
    ``scores.get("correctness")`` returns a JudgeResult.
    """

    correctness: JudgeResult = NOT_JUDGED
    faithfulness: JudgeResult = NOT_JUDGED
    relevance: JudgeResult = NOT_JUDGED
    completeness: JudgeResult = NOT_JUDGED
    further: Mapping[str, JudgeResult] = field(
        default_factory=dict[str, JudgeResult], hash=False, repr=False
    )

    @classmethod
    def of(cls, verdicts: Mapping[str, JudgeResult]) -> "MetricScores":
        """Return the verdicts of a mapping; names that are no metric's are left out."""
        if verdicts.keys() <= _DEFAULT:
            return cls(**verdicts, further={})
        further = {metric: verdicts[metric] for metric in METRICS if metric in verdicts}
        named = {metric: further.pop(metric) for metric in DEFAULT_METRICS if metric in further}
        return cls(**named, further=further)

    def get(self, metric: str) -> JudgeResult:
        """Return the verdict of a metric by its name."""
        if metric not in _DEFAULT and metric in METRICS:
            return self.further.get(metric, NOT_JUDGED)
        result: JudgeResult = getattr(self, metric)
        return result

    @property
    def failures(self) -> dict[str, Failure]:
        """Metric -> why the judge failed on it, in the order of the metrics."""
        verdicts = (self.correctness, self.faithfulness, self.relevance, self.completeness)
        if not self.further and not any(verdict.failure for verdict in verdicts):
            return {}
        return {metric: why for metric in METRICS if (why := self.get(metric).failure) is not None}

    def to_dict(self) -> dict[str, int | None]:
        """Return metric -> score."""
        return {metric: self.get(metric).score for metric in METRICS}

    def to_detailed_dict(self) -> dict[str, ScoreAndReason]:
        """Return metric -> {score, reason}."""
        return {metric: self.get(metric).to_dict() for metric in METRICS}


def failed_search_scores(metrics: Iterable[str] = METRICS) -> MetricScores:
    """Return the scores of a failed search: 0 in every metric that it could be judged on."""
    return MetricScores.of(dict.fromkeys(metrics, JudgeResult(score=0, reason=SEARCH_FAILED)))
