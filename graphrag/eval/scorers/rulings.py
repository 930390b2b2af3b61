"""Rulings on a numbered list of texts, one call for all; what a reply leaves out is asked again."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from graphrag.eval.records import Failure
from graphrag.eval.scorers.judge import JudgeForm, JudgeModel, Unanswered


class NumberedRuling(BaseModel):
    """One ruling of a reply."""

    model_config = ConfigDict(extra="ignore")

    number: int
    ruling: str


R = TypeVar("R", bound=NumberedRuling)


class RulingsReply(JudgeForm, Generic[R]):
    """What the judge must reply."""

    rulings: list[R]


async def rule_on(
    judge: JudgeModel,
    texts: Sequence[str],
    prompt: Callable[[Mapping[int, str]], str],
    form: type[RulingsReply[R]],
) -> tuple[list[R | None], Failure | None]:
    """Ask for a ruling on each text, at most ``max_retries`` times more for what is left out.

    Parameters
    ----------
    prompt : callable
        Takes number, from 1, -> text.

    Returns
    -------
    tuple
        One ruling a text, None where the judge gave none or two different ones; and why, where
        one is missing.
    """
    ruled: dict[int, R] = {}
    for _ in range(judge.max_retries + 1):
        left = {n: text for n, text in enumerate(texts, 1) if n not in ruled}
        if not left:
            break
        reply = await judge.ask(prompt(left), form)
        if isinstance(reply, Unanswered):
            return [ruled.get(n) for n in range(1, len(texts) + 1)], reply.failure
        given: dict[int, set[str]] = {}
        for each in reply.rulings:
            given.setdefault(each.number, set()).add(each.ruling)
        ruled |= {
            r.number: r for r in reply.rulings if r.number in left and len(given[r.number]) == 1
        }
    rulings = [ruled.get(n) for n in range(1, len(texts) + 1)]
    if None not in rulings:
        return rulings, None
    msg = f"the judge gave no clear ruling on {rulings.count(None)} of {len(texts)}"
    return rulings, Failure("judge", "unreadable", msg)
