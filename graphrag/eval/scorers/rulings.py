"""Rulings on a numbered list of texts, one call for all; what a reply leaves out is asked again."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from graphrag.eval.records import Failure
from graphrag.eval.scorers.judge import Form, JudgeModel, Unanswered


class NumberedRuling(Protocol):
    """One ruling of a reply, and what it comes to."""

    @property
    def number(self) -> int:
        """Which of the texts it is on, from 1."""
        ...

    @property
    def ruling(self) -> str:
        """What two rulings on one text must agree in."""
        ...


R = TypeVar("R", bound=NumberedRuling)


async def rule_on(
    judge: JudgeModel,
    texts: Sequence[str],
    prompt: Callable[[Mapping[int, str]], str],
    form: type[Form],
    read: Callable[[Form], Sequence[R]],
) -> tuple[list[R | None], Failure | None]:
    """Ask for a ruling on each text, at most ``max_retries`` times more for what is left out.

    Parameters
    ----------
    prompt : callable
        Takes number, from 1, -> text.
    read : callable
        Returns the rulings of a reply.

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
        rulings = read(reply)
        for each in rulings:
            given.setdefault(each.number, set()).add(each.ruling)
        ruled |= {r.number: r for r in rulings if r.number in left and len(given[r.number]) == 1}
    found = [ruled.get(n) for n in range(1, len(texts) + 1)]
    if None not in found:
        return found, None
    msg = f"the judge gave no clear ruling on {found.count(None)} of {len(texts)}"
    return found, Failure("judge", "unreadable", msg)
