"""Defines the record of one method's answer: what it retrieved and cost, how it was judged."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.verdicts import Failure, MetricScores
from graphrag.query.client.usage import Usage
from graphrag.text.json_records import Stored
from graphrag.text.search_trace import Step


@dataclass(frozen=True, slots=True)
class Walk:
    """The way of a graph search from text to text, call by call.

    ``steps`` is empty for a response that version 1.0.0 stored, whose searches scored edges.
    """

    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)


@dataclass(frozen=True, slots=True)
class Retrieved(Stored):
    """The records that one search showed to its model.

    - ``text_unit_ids``: ranked, each id once: first the text units shown as sources, in the order
      shown, then the text units of the paths and relationships shown. None if the method shows
      neither sources nor relationships, like global search.
    - ``n_sources``: how many of them, from the front, were shown with their text.
    - ``in_part``: text units that were shown by passages, not in full.
    - ``entities``: titles, in order.
    - ``relationship_ids``: in order.
    - ``n_unknown_ids``: number of shown ids that the index's tables lack; more than 0 only if the
      tables are of another index.
    - ``walk``: None if the method does not report it, or an older release stored the response.
    - ``note``: what the search had to do without, and why; "" if nothing.
    """

    method: str
    text_unit_ids: tuple[str, ...] | None = None
    n_sources: int = 0
    entities: tuple[str, ...] = ()
    relationship_ids: tuple[str, ...] = ()
    n_unknown_ids: int = 0
    walk: Walk | None = None
    in_part: tuple[str, ...] = ()
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values, without ``in_part`` and ``note`` if they are empty."""
        empty = {name for name in ("in_part", "note") if not getattr(self, name)}
        return {k: v for k, v in Stored.to_dict(self).items() if k not in empty}

    @property
    def shown_text_unit_ids(self) -> tuple[str, ...]:
        """The text units whose text the model was shown."""
        return (self.text_unit_ids or ())[: self.n_sources]


@dataclass(frozen=True, slots=True)
class EfficiencyMetrics:
    """The cost of one search.

    - ``latency``: seconds until the response, or until a failed search was given up; None for a
      search that was interrupted and resumed.
    - ``llm_calls``, ``prompt_tokens``, ``output_tokens``: completion requests sent, failed requests
      and retries included, and their tokens; None for your own method if it does not count.
    """

    latency: float | None
    llm_calls: int | None
    prompt_tokens: int | None
    output_tokens: int | None

    @property
    def tokens(self) -> int | None:
        """Prompt and output tokens together; None if either is None."""
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
        """Return the four figures by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One question answered by one method, and the verdicts on the response.

    - ``response``: the response, or ``ERROR: ...`` if the search failed.
    - ``context_text``: the text that the method retrieved and showed to its model; None if unknown.
    - ``sample_id``: the dataset row's id.
    - ``failure``: why the search failed.
    - ``usage``: cost of the search's model calls.
    - ``judge_usage``: cost of the verdicts; None if nothing was judged.
    - ``trial``: number of the repeat of the whole search, from 0.
    - ``retrieved``: what the search showed to its model; None if the method does not report it.
    - ``abstained``: whether the method itself says that the response is no answer.
    - ``grades``: judge -> its grading, JSON-ready: "rubric", "quality", "assertions" and "claims"
      if asked for, and "doubt" if the judge doubts the row.
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
    def lacked(self) -> str:
        """What the search had to do without, and why; "" if nothing."""
        return "" if self.retrieved is None else self.retrieved.note

    @property
    def doubt(self) -> str:
        """Why the judge doubts the question's row; "" if it does not."""
        return " ".join(map(str, self.grades.get("doubt", {}).values()))

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
"""Adds to results the texts that were left out of their outlines, in order, a few at a time."""


class KeptExchange(TypedDict):
    """One stored request to a model and its reply; see ``usage.Exchange``.

    ``attempt`` has no entry for a value that is unknown or false. It is empty if nothing was sent:
    in version 1.1.0 a judge's reply could come from another run. Texts are stored in pieces.
    """

    attempt: Mapping[str, object]
    sent: Sequence[tuple[str, Sequence[str]]]
    settings: Sequence[str]
    reply: Sequence[str] | None


class KeptCalls(TypedDict):
    """The stored model calls of a search ("search"), the judge ("judge") or a further judge."""

    work: str
    exchanges: Sequence[KeptExchange]


ReadCalls: TypeAlias = Callable[[Iterable[QueryResult]], Iterable[Sequence[KeptCalls]]]
"""Returns the stored model calls of each result, in order; empty if they were not stored."""


def no_calls(results: Iterable[QueryResult]) -> Iterator[Sequence[KeptCalls]]:
    """Return no calls for any result."""
    return (() for _ in results)
