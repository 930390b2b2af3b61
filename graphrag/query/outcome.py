"""What every search method is to the index: asked a question, it gives an outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

OnText = Callable[[str], None]
"""Receives the response piece by piece as it arrives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method answered: response, the records it retrieved, and the text it was shown.

    ``abstained`` is set by a method that knows of itself that it found no answer; a refusal by
    its model is told by the calls.
    """

    response: str
    context_data: Any
    context_text: Any
    abstained: bool = False


class SearchEngine(Protocol):
    """One search method over one index; asked concurrently."""

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question, passing the response on as it arrives."""
        ...
