"""What counted models reply, with the names that the release's replies have.

The release's own types load openai, which takes a second.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class TokenUsage:
    """Tokens by the service's own count, >= 0; of cached ones None where it does not say."""

    prompt_tokens: int
    completion_tokens: int = 0
    cached_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """All of them."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(slots=True)
class Message:
    """What the model said; ``refusal`` where it says that it gives no answer."""

    content: str | None
    refusal: str | None = None


@dataclass(slots=True)
class Choice:
    """A reply or a piece of it, and why it ended."""

    message: Message
    finish_reason: str | None

    @property
    def delta(self) -> Message:
        """The message of a piece."""
        return self.message


@dataclass(slots=True)
class Completion:
    """A reply, whole or a piece of one, and in the form that was asked for."""

    choices: list[Choice]
    usage: TokenUsage | None = None
    formatted_response: Any = None

    @classmethod
    def of(
        cls,
        text: str | None,
        reason: str | None,
        refusal: str | None = None,
        usage: TokenUsage | None = None,
    ) -> "Completion":
        """Make a reply of its text."""
        return cls([Choice(Message(text, refusal), reason)], usage)

    @property
    def content(self) -> str:
        """The text of the first choice."""
        return self.choices[0].message.content or ""


@dataclass(slots=True)
class Embeddings:
    """One vector for each text, in their order."""

    embeddings: list[list[float]]
    usage: TokenUsage | None = None

    @property
    def first_embedding(self) -> list[float]:
        """The vector of the first text."""
        return self.embeddings[0]
