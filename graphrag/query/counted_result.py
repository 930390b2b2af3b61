"""What a counted search gives back: the released pair, with what it cost."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from graphrag.query.structured_search.base import SearchResult
from graphrag.query.usage import Usage


@dataclass(eq=False, repr=False)
class CountedSearchResult(SearchResult, tuple[Any, Any]):
    """A search result that is also the pair ``(response, context_data)`` which the release returns.

    It has the length, the items, the equality, the hash and the text of that tuple. The fields
    beside those two take no part in a comparison.

    ``llm_calls``, ``prompt_tokens`` and ``output_tokens`` (and their categories) are of
    completions, failed and retried requests included; embeddings stand in ``usage``.
    ``completion_time`` (seconds) leaves out waiting for a free place under a run's limit.
    ``abstained`` says whether the response is none to the question: the method found nothing to
    answer from, or the model refused.
    """

    usage: Usage = field(default_factory=Usage)
    abstained: bool = False

    def __new__(cls, response: Any, context_data: Any, *_: Any, **__: Any) -> "CountedSearchResult":
        """Make the pair; the remaining fields are set as those of any data class."""
        pair: Iterable[Any] = (response, context_data)
        return tuple.__new__(cls, pair)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; the two that are the pair can't come to differ from it."""
        if name in ("response", "context_data") and name in self.__dict__:
            msg = f"{name} is part of the pair; make another result with dataclasses.replace"
            raise AttributeError(msg)
        super().__setattr__(name, value)

    def __getnewargs__(self) -> tuple[Any, Any]:
        """Return what a copied or unpickled pair is made of."""
        return self.response, self.context_data

    def __eq__(self, other: object) -> bool:
        return super(SearchResult, self).__eq__(other)  # the next in line is the tuple

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return super(SearchResult, self).__hash__()

    def __repr__(self) -> str:
        return super(SearchResult, self).__repr__()


def make_result(
    response: Any,
    context_data: Any,
    context_text: Any,
    usage: Usage,
    seconds: float,
    abstained: bool = False,
) -> CountedSearchResult:
    """Make the result of a search from what it found and what it cost."""
    return CountedSearchResult(
        response=response,
        context_data=context_data,
        context_text=context_text,
        completion_time=seconds,
        llm_calls=usage.llm_calls,
        prompt_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        llm_calls_categories=usage.llm_calls_by_phase,
        prompt_tokens_categories=usage.prompt_tokens_by_phase,
        output_tokens_categories=usage.output_tokens_by_phase,
        usage=usage,
        abstained=abstained,
    )
