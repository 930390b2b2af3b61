"""Defines the result of a search: an engine's outcome, and the released result with its cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphrag.query.client.usage import Usage
from graphrag.query.structured_search.base import SearchResult

OnText = Callable[[str], None]
"""Receives each piece of the response as it arrives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Contains a method's response, the records that it retrieved, and the text that its model saw.

    ``abstained``: whether the method itself found no answer; a refusal by its model is read from
    the calls. ``note``: what the method had to do without, and why, or "".
    """

    response: str
    context_data: Any
    context_text: Any
    abstained: bool = False
    note: str = ""


class SearchEngine(Protocol):
    """Answers questions by one search method over one index; called concurrently."""

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question, and pass the response to ``on_text`` as it arrives."""
        ...


@dataclass(eq=False, repr=False)
class CountedSearchResult(tuple[Any, Any], SearchResult):
    """Contains a search's response, context and cost; also the pair that the release returns.

        response, context_data = result

    Its length, items, equality, hash and text are those of that pair; the other fields take no part
    in a comparison.

    - ``llm_calls``, ``prompt_tokens``, ``output_tokens`` (and their categories): of completions,
      failed and retried requests included; embeddings are in ``usage``.
    - ``completion_time``: seconds, without waiting for a free slot under a run's limit.
    - ``abstained``: whether the response is no answer, because the method found nothing to answer
      from or the model refused.
    - ``note``: what the method had to do without, and why, or "".
    """

    usage: Usage = field(default_factory=Usage)
    abstained: bool = False
    note: str = ""

    def __new__(
        cls, response: object, context_data: object, *_: object, **__: object
    ) -> "CountedSearchResult":
        """Make the pair; the other fields are set as in any data class."""
        return tuple.__new__(cls, (response, context_data))

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; ``response`` and ``context_data`` can't change: they are the pair."""
        if name in ("response", "context_data") and name in self.__dict__:
            msg = f"{name} is part of the pair; make another result with dataclasses.replace"
            raise AttributeError(msg)
        super().__setattr__(name, value)

    def __getnewargs__(self) -> tuple[object, object]:
        """Return the items from which a copied or unpickled pair is made."""
        return self.response, self.context_data


def make_result(outcome: Outcome, usage: Usage, seconds: float) -> CountedSearchResult:
    """Make the result of a search from its outcome, usage and seconds."""
    return CountedSearchResult(
        outcome.response,
        outcome.context_data,
        outcome.context_text,
        seconds,
        usage.llm_calls,
        usage.prompt_tokens,
        usage.output_tokens,
        usage.llm_calls_by_phase,
        usage.prompt_tokens_by_phase,
        usage.output_tokens_by_phase,
        usage=usage,
        abstained=outcome.abstained,
        note=outcome.note,
    )
