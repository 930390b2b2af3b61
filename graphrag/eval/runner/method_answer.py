"""What a method that is not a search of graphrag answers."""

from dataclasses import dataclass

from graphrag.query.usage import Usage


@dataclass(frozen=True, slots=True)
class MethodAnswer:
    """What a method of one's own answers.

    - ``contexts``: the texts that it retrieved and showed to its model, best first; empty when it
      retrieved nothing, None when it does not tell. What reads the context is then not judged.
    - ``llm_calls``, ``prompt_tokens``, ``output_tokens``: what it cost; None when the method does
      not count. Completions that it asks of a graphrag model itself are counted anyway, and these
      figures are then not looked at.
    - ``cost_usd``: US dollars; None when not known.
    - ``abstained``: whether the response is none to the question. A refusal by a graphrag model
      that the method asked last is noticed without it.
    """

    response: str
    contexts: tuple[str, ...] | None = None
    llm_calls: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    abstained: bool = False

    def usage(self) -> Usage:
        """Return the figures as a usage."""
        counts = (self.llm_calls, self.prompt_tokens, self.output_tokens)
        calls, prompt_tokens, output_tokens = (count or 0 for count in counts)
        return Usage(
            llm_calls=calls,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            cost_usd=self.cost_usd,
            is_counted=None not in counts,
        )
