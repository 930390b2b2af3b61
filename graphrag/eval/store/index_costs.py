"""Records the cost of building an index, next to its tables and bound to their fingerprint."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from graphrag.query.client.usage import CallKind, sum_known, sum_usd, summarize_attempts

if TYPE_CHECKING:
    from graphrag.query.client.indexing_replies import ReleaseReply

COST_FILE = "index_cost.json"
KINDS: tuple[CallKind, ...] = ("completion", "embedding")


@dataclass(frozen=True, slots=True)
class StepCost:
    """The calls of one workflow to one model.

    ``n_cached``: how many of the ``replies`` were in the project's cache, paid for by an earlier
    build; the other figures include them. Tokens are None if a reply does not report them, US
    dollars also without a price.
    """

    workflow: str
    model: str
    kind: CallKind
    replies: int
    n_cached: int
    prompt_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class IndexCost:
    """The cost of building an index.

    - ``fingerprint``: of the tables that were built.
    - ``documents``: a hash of the documents' texts.
    - ``seconds``: workflow -> seconds.
    - ``steps``: None if replies were not counted, as when another command built the index.
    """

    fingerprint: str
    seconds: Mapping[str, float]
    documents: str | None = None
    steps: tuple[StepCost, ...] | None = None

    def count_tokens(self, kinds: Iterable[CallKind] = KINDS) -> int | None:
        """Return the tokens of completions, embeddings or both; None if they are not known."""
        if self.steps is None:
            return None
        steps = [step for step in self.steps if step.kind in kinds]
        return sum_known(n for step in steps for n in (step.prompt_tokens, step.output_tokens))

    def cost_usd(self, kinds: Iterable[CallKind] = KINDS) -> float | None:
        """Return the US dollars of completions, embeddings or both; None if they are not known."""
        if self.steps is None:
            return None
        return sum_usd(s.cost_usd for s in self.steps if s.kind in kinds)

    def to_dict(self) -> dict[str, object]:
        """Return the cost and its sums as JSON-ready values."""
        sums = {"tokens": self.count_tokens(), "cost_usd": self.cost_usd()}
        return {**asdict(self), **sums, "total_seconds": fsum(self.seconds.values())}


_COST = TypeAdapter(IndexCost)


def sum_steps(replies: "Iterable[ReleaseReply]") -> tuple[StepCost, ...]:
    """Add up the replies of a build by workflow and model, in the order of the workflows.

    ``replies``: each a call, and whether the project's cache had the reply.
    """
    groups: dict[tuple[str, str, CallKind], list[ReleaseReply]] = {}
    for reply in replies:
        groups.setdefault((reply[0].phase, reply[0].model, reply[0].kind), []).append(reply)
    steps: list[StepCost] = []
    for key, group in groups.items():
        attempts, n_cached = [attempt for attempt, _ in group], sum(cached for _, cached in group)
        sums = (
            sum(attempt.prompt_tokens for attempt in attempts),
            sum(attempt.output_tokens for attempt in attempts),
            summarize_attempts(attempts).cost_usd,
        )
        unknown = any(attempt.counted_by == "nobody" for attempt in attempts)
        steps.append(
            StepCost(*key, len(group), n_cached, *((None, None, None) if unknown else sums))
        )
    return tuple(steps)


def read_index_cost(folder: Path, fingerprint: str, n_documents: object) -> IndexCost | None:
    """Return the cost of the index whose tables have this fingerprint; None if it is not known.

    If ``graphrag index`` built it, only the seconds in its stats.json are known, and only if that
    is of a finished build of as many documents as there are now.
    """
    try:
        cost = _COST.validate_json((folder / COST_FILE).read_bytes())
        if cost.fingerprint == fingerprint:
            return cost
    except (OSError, ValueError):  # built by another command, or no file of gtog's
        pass
    try:
        stats = json.loads((folder / "stats.json").read_bytes())
        is_complete = stats["total_runtime"] and stats["num_documents"] == n_documents
        seconds = {name: float(step["overall"]) for name, step in stats["workflows"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return IndexCost(fingerprint=fingerprint, seconds=seconds) if is_complete else None
