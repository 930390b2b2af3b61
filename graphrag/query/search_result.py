"""What a search gives: the outcome of its engine, and the released pair with what it cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphrag.query.client.usage import Usage
from graphrag.query.structured_search.base import SearchResult

OnText = Callable[[str], None]
"""Receives the response piece by piece as it arrives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method answered: response, the records it retrieved, and the text it was shown.

    ``abstained`` is set by a method that knows of itself that it found no answer; a refusal by
    its model is told by the calls. ``note``: what it had to do without, and why, or "".
    """

    response: str
    context_data: Any
    context_text: Any
    abstained: bool = False
    note: str = ""


class SearchEngine(Protocol):
    """One search method over one index; asked concurrently."""

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question, passing the response on as it arrives."""
        ...


@dataclass(eq=False, repr=False)
class CountedSearchResult(tuple[Any, Any], SearchResult):
    """A search result that is also the pair ``(response, context_data)`` which the release returns.

    It has the length, the items, the equality, the hash and the text of that tuple. The fields
    beside those two take no part in a comparison. ``llm_calls``, ``prompt_tokens`` and
    ``output_tokens`` (and their categories) are of completions, failed and retried requests
    included; embeddings stand in ``usage``. ``completion_time`` (seconds) leaves out waiting for a
    free place under a run's limit. ``abstained`` says whether the response is none to the question:
    the method found nothing to answer from, or the model refused. ``note`` says what the method had
    to do without, and why, or "".
    """

    usage: Usage = field(default_factory=Usage)
    abstained: bool = False
    note: str = ""

    def __new__(
        cls, response: object, context_data: object, *_: object, **__: object
    ) -> "CountedSearchResult":
        """Make the pair; the remaining fields are set as those of any data class."""
        return tuple.__new__(cls, (response, context_data))

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; the two that are the pair can't come to differ from it."""
        if name in ("response", "context_data") and name in self.__dict__:
            msg = f"{name} is part of the pair; make another result with dataclasses.replace"
            raise AttributeError(msg)
        super().__setattr__(name, value)

    def __getnewargs__(self) -> tuple[object, object]:
        """Return what a copied or unpickled pair is made of."""
        return self.response, self.context_data


def make_result(outcome: Outcome, usage: Usage, seconds: float) -> CountedSearchResult:
    """Make the result of a search from what it found and what it cost."""
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
