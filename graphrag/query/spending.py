"""What a run may spend: a call counts when its reply arrives, and before that as an estimate."""

import asyncio
from typing import Literal

from graphrag.query.model_facts import is_offline, model_price
from graphrag.query.usage import CallAttempt, attempt_spent_usd

_FIRST_REPLY_TOKENS = 200.0
"""What a reply is taken to have before a model has given one; then the mean of its latest ones."""


class NotAskedError(RuntimeError):
    """A call was not made for a reason that says nothing of what was asked; one sentence."""


class AllowanceSpentError(NotAskedError):
    """What is left of the allowed cost is not enough for a call."""


class Spending:
    """The US dollars of a run, counted call by call.

    A call waits while what is left is not enough for it beside those in flight, and is refused
    once none is in flight. So what is spent passes ``most_usd`` by no more than the calls in
    flight cost beyond their estimates.

    Attributes
    ----------
    most_usd : float or None
        None: as much as it takes.
    spent_usd : float
        What the replies that arrived cost, unknown prices left out, and what was spent before.
    unanswered_usd : float
        Estimate of the calls that ran out of time or were cut off: they may be billed all the same.
    wanted_usd : float
        Estimate of the call that was refused last, 0 before.
    """

    def __init__(self, most_usd: float | None = None, spent_usd: float = 0.0) -> None:
        self.most_usd = most_usd
        self.spent_usd = spent_usd
        self.unanswered_usd = self.wanted_usd = 0.0
        self._in_flight_usd, self._n_in_flight = 0.0, 0
        self._waiting: list[asyncio.Future[None]] = []
        self._reply_tokens: dict[str, float] = {}

    @property
    def left_usd(self) -> float | None:
        """What is left beside the calls in flight, below 0 when it is overspent; None: no bound."""
        if self.most_usd is None:
            return None
        return self.most_usd - self.spent_usd - self.unanswered_usd - self._in_flight_usd

    def estimate_usd(
        self, kind: Literal["completion", "embedding"], model: str, prompt_tokens: int
    ) -> float:
        """Return about what a call will cost; 0 where nothing is bounded or no price is known."""
        price = None if self.most_usd is None or is_offline(model) else model_price(model)
        if price is None:
            return 0.0
        replied = self._reply_tokens.get(model, _FIRST_REPLY_TOKENS)
        output = replied if kind == "completion" else 0.0
        return prompt_tokens * price.prompt_usd + output * price.output_usd

    def take(self, usd: float) -> bool:
        """Set an estimate aside for a call that is about to be sent; False where it is too much."""
        left = self.left_usd
        if left is not None and usd > left:
            return False
        self._in_flight_usd += usd
        self._n_in_flight += 1
        return True

    async def wait_for(self, usd: float) -> None:
        """Set an estimate aside as soon as there is room; refuse it if there will be none."""
        while not self.take(usd):
            if not self._n_in_flight:
                raise self.refuse(usd)
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            await freed

    def refuse(self, usd: float) -> AllowanceSpentError:
        """Return the error of a call that is not sent."""
        self.wanted_usd = usd
        return AllowanceSpentError(f"the next call takes about ${usd:.4f}")

    def give_back(self, usd: float) -> None:
        """Return what was set aside for a call that has ended."""
        self._n_in_flight -= 1
        self._in_flight_usd = self._in_flight_usd - usd if self._n_in_flight else 0.0
        waiting, self._waiting = self._waiting, []
        for freed in waiting:
            if not freed.done():
                freed.set_result(None)

    def count(self, attempt: CallAttempt) -> None:
        """Count an attempt that has ended."""
        self.spent_usd += attempt_spent_usd(attempt)
        if attempt.kind == "completion" and attempt.error is None:
            before = self._reply_tokens.get(attempt.model, float(attempt.output_tokens))
            self._reply_tokens[attempt.model] = before + 0.2 * (attempt.output_tokens - before)
