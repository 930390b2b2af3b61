"""The records that an evaluation passes on: verdicts, scores, failures, results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, TypeAlias, TypedDict

from graphrag.eval.judged import DEFAULT_METRICS, METRICS
from graphrag.query.usage import Usage
from graphrag.text.json_records import Stored
from graphrag.text.way import Step


@dataclass(frozen=True, slots=True)
class Hop:
    """One relationship of a path.

    - ``hop``: step of the path, from 1; parallel relationships share a number.
    - ``source``, ``target``: entity titles as the relationship is stored.
    - ``relationship_id``: id in the relationships table; as it was shown when the table has no such
      row.
    - ``forward``: whether it was walked from source to target.
    - ``score``: of the path up to this hop, in [0, 1].
    """

    hop: int
    source: str
    target: str
    relationship_id: str
    forward: bool
    score: float


@dataclass(frozen=True, slots=True)
class Walk:
    """How a search of the graph went from text to text, call by call.

    Without ``steps`` where version 1.0.0 kept the response: its walks scored edges.
    """

    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)


@dataclass(frozen=True, slots=True)
class Retrieved(Stored):
    """What one search showed to its model.

    - ``text_unit_ids``: ranked, each id once: first the text units shown as sources, in the order
      in which the model was shown them, then those that the shown paths and relationships were
      taken from. None when the method shows neither sources nor relationships, as global search.
    - ``n_sources``: how many of them, from the front, were shown with their text.
    - ``in_part``: those of them that were shown by passages, and not whole.
    - ``entities``: titles, in order.
    - ``relationship_ids``: in order.
    - ``paths``: only of Think-on-Graph; else empty.
    - ``n_unknown_ids``: shown ids that the index's tables don't have; 0 unless the tables are of
      another index.
    - ``walk``: None when the method does not say, or an older release kept the response.
    """

    method: str
    text_unit_ids: tuple[str, ...] | None = None
    n_sources: int = 0
    entities: tuple[str, ...] = ()
    relationship_ids: tuple[str, ...] = ()
    paths: tuple[tuple[Hop, ...], ...] = ()
    n_unknown_ids: int = 0
    walk: Walk | None = None
    in_part: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values, as earlier releases did where text units are shown whole."""
        values = Stored.to_dict(self)
        return values if self.in_part else {k: v for k, v in values.items() if k != "in_part"}

    @property
    def shown_text_unit_ids(self) -> tuple[str, ...]:
        """The text units whose text the model was shown."""
        return (self.text_unit_ids or ())[: self.n_sources]

    def in_outline(self) -> "Retrieved":
        """Return how much was shown, without which: each list that is there is empty."""
        return Retrieved(
            self.method,
            None if self.text_unit_ids is None else (),
            self.n_sources,
            n_unknown_ids=self.n_unknown_ids,
        )


SEARCH_FAILED = "Search failed"


FailureKind: TypeAlias = Literal["error", "timeout", "refused", "unreadable", "empty", "cut_off"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a search or a verdict is missing.

    ``kind``: {"error", "timeout", "refused", "unreadable", "empty", "cut_off"}; ``refused``: the
    service would refuse every further request as well; ``unreadable``: a reply that stayed
    unreadable after the retries; ``cut_off``: one that broke off at the bound of its output, or
    because the model's context was full. ``of_setup``: a setting that counts into a run's setup is
    why, so that the run can't go on with another value. Time-outs and the bound of the judge's
    replies are no such settings.
    """

    stage: Literal["search", "judge"]
    kind: FailureKind
    message: str
    of_setup: bool = False

    def to_dict(self) -> dict[str, str | bool]:
        """Return {stage, kind, message}, and of_setup where it is true."""
        return {name: value for name, value in asdict(self).items() if value is not False}


class ScoreAndReason(TypedDict):
    """A verdict, JSON-ready."""

    score: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """One verdict.

    - ``score``: 0 or 1; None when unscored.
    - ``reason``: the judge's reason, or why there is no score.
    - ``failure``: why the judge failed; None for a score and for what was never to be judged.
    - ``repeats``: the single scores (0, 1, or None for one that failed) if the judge was asked more
      than once; ``score`` is then their majority. Empty if it was asked once.
    - ``doubt``: a sentence where the judge doubts the row itself; the score does not hang on it. As
      ``claims``, it is "" of a verdict that the store gave, which keeps it apart.
    - ``claims``: of faithfulness claim by claim, what it follows from, JSON-ready; see
      ``claims.ClaimEvaluation``. None of a verdict that the store gave, which keeps it apart.
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

    def to_dict(self) -> ScoreAndReason:
        """Return {score, reason}."""
        return {"score": self.score, "reason": self.reason}


def combine_repeats(verdicts: Sequence[JudgeResult]) -> JudgeResult:
    """Make one verdict of repeated ones: their majority, with the first reason that agrees.

    A verdict that failed has no vote. A tie, which only failures leave, is unscored.
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
        failure = Failure("judge", "error", message)
        return JudgeResult(None, f"Unscored: {message}", failure, repeats, doubt)
    score = int(2 * sum(votes) > len(votes))
    first = next(verdict for verdict in verdicts if verdict.score == score)
    return replace(first, repeats=repeats, doubt=doubt)


NOT_JUDGED = JudgeResult(None, "Not judged")
_DEFAULT = frozenset(DEFAULT_METRICS)


@dataclass(frozen=True, slots=True)
class MetricScores:
    """The verdicts on one response, one per metric; what was not judged has score None.

    ``further`` holds the metrics that are judged only if you name them.
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
        """Return the verdicts of a mapping; a name that is no metric's is left out."""
        if verdicts.keys() <= _DEFAULT:
            return cls(**verdicts, further={})
        known = {metric: verdicts[metric] for metric in METRICS if metric in verdicts}
        named = {metric: known.pop(metric) for metric in DEFAULT_METRICS if metric in known}
        return cls(**named, further=known)

    def get(self, metric: str) -> JudgeResult:
        """Return the verdict of a metric by its name."""
        if metric not in _DEFAULT and metric in METRICS:
            return self.further.get(metric, NOT_JUDGED)
        result: JudgeResult = getattr(self, metric)
        return result

    @property
    def failures(self) -> dict[str, Failure]:
        """Metric -> why the judge failed on it, in the order of the metrics."""
        given = (self.correctness, self.faithfulness, self.relevance, self.completeness)
        if not self.further and not any(verdict.failure for verdict in given):
            return {}
        return {metric: why for metric in METRICS if (why := self.get(metric).failure) is not None}

    def to_dict(self) -> dict[str, int | None]:
        """Return metric -> score."""
        return {metric: self.get(metric).score for metric in METRICS}

    def to_detailed_dict(self) -> dict[str, ScoreAndReason]:
        """Return metric -> {score, reason}."""
        return {metric: self.get(metric).to_dict() for metric in METRICS}


def failed_search_scores(metrics: Iterable[str] = METRICS) -> MetricScores:
    """Return the scores of a search that failed: 0 by definition in what it could be judged on."""
    return MetricScores.of(dict.fromkeys(metrics, JudgeResult(0, SEARCH_FAILED)))


@dataclass(frozen=True, slots=True)
class EfficiencyMetrics:
    """What one search cost.

    ``latency``: seconds until the response, or until a failed search was given up; None for a
    search that was interrupted and resumed. ``llm_calls``, ``prompt_tokens``, ``output_tokens``:
    completion requests sent, failed ones and retries included, and their tokens; None for your own
    method if it does not count.
    """

    latency: float | None
    llm_calls: int | None
    prompt_tokens: int | None
    output_tokens: int | None

    @property
    def tokens(self) -> int | None:
        """Prompt and output tokens together; None when either is."""
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        return self.prompt_tokens + self.output_tokens

    @classmethod
    def of(cls, latency: float | None, usage: Usage) -> "EfficiencyMetrics":
        """Return the figures of a search from its usage."""
        if not usage.is_counted:
            return cls(latency, None, None, None)
        return cls(latency, usage.llm_calls, usage.prompt_tokens, usage.output_tokens)

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the four figures."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One question answered by one method, and the verdicts on the response.

    - ``response``: the response, or ``ERROR: ...`` when the search failed.
    - ``context_text``: the text that the method retrieved and showed to its model; None when it
      does not tell.
    - ``sample_id``: the dataset row's id.
    - ``failure``: why the search failed.
    - ``usage``: everything that the search's model calls cost.
    - ``judge_usage``: the same for the verdicts; None if nothing was judged.
    - ``trial``: which repeat of the whole search it is, from 0.
    - ``retrieved``: what the search showed to its model; None when the method does not say.
    - ``abstained``: whether the response is none to the question, as the method says, not as it
      reads.
    - ``grades``: "rubric", "quality", "assertions" and "claims", where they were asked for, and
      "doubt", where the judge doubts the row -> what that judge said, JSON-ready.
    """

    imdb_key: str
    question: str
    method: str
    response: str
    scores: MetricScores
    efficiency: EfficiencyMetrics
    ground_truth: str = ""
    context_text: str | None = field(default="", repr=False)
    sample_id: str = ""
    failure: Failure | None = None
    usage: Usage | None = None
    judge_usage: Usage | None = None
    trial: int = 0
    retrieved: Retrieved | None = field(default=None, repr=False)
    abstained: bool = False
    grades: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]], hash=False, repr=False
    )

    @property
    def doubt(self) -> str:
        """Why the judge doubts the question's row; "" where it does not."""
        return " ".join(map(str, self.grades.get("doubt", {}).values()))

    def in_outline(self) -> "QueryResult":
        """Return the result without its context, and with what it retrieved in outline."""
        told = None if self.retrieved is None else self.retrieved.in_outline()
        text = None if self.context_text is None else ""
        is_outline = self.context_text == text and self.retrieved == told
        return self if is_outline else replace(self, context_text=text, retrieved=told)

    def to_dict(self) -> dict[str, object]:
        """Return the record as JSON-ready values, without the context."""
        return {
            "sample_id": self.sample_id,
            "imdb_key": self.imdb_key,
            "question": self.question,
            "ground_truth": self.ground_truth,
            "method": self.method,
            "trial": self.trial,
            "response": self.response,
            "scores": self.scores.to_dict(),
            "reasons": {metric: self.scores.get(metric).reason for metric in METRICS},
            "efficiency": self.efficiency.to_dict(),
            "failure": None if self.failure is None else self.failure.to_dict(),
            "cut_replies": 0 if self.usage is None else self.usage.cut_replies,
            "cached_prompt_tokens": self.usage and self.usage.cached_prompt_tokens,
            **self.grades,
        }


ReadWhole: TypeAlias = Callable[[Iterable[QueryResult]], Iterable[QueryResult]]
"""Gives results in outline again as they were, in the same order, a few of them at a time."""


class KeptExchange(TypedDict):
    """One request to a model and what came back; see ``usage.Exchange``.

    ``attempt`` has no entry for what is not known or false; a text is the pieces that it is kept
    in.
    """

    attempt: Mapping[str, object]
    sent: Sequence[tuple[str, Sequence[str]]]
    settings: Sequence[str]
    reply: Sequence[str] | None
    earlier_run: str | None


class KeptCalls(TypedDict):
    """What a search ("search"), the judge ("judge") or a further judge said and was told."""

    work: str
    exchanges: Sequence[KeptExchange]


ReadCalls: TypeAlias = Callable[[Iterable[QueryResult]], Iterable[Sequence[KeptCalls]]]
"""Gives the calls of results, in the same order; none of one whose calls were not kept."""


def no_calls(results: Iterable[QueryResult]) -> Iterator[Sequence[KeptCalls]]:
    """Give no calls of any result."""
    return (() for _ in results)
