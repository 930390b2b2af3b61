"""Compares two answers by a judge that is asked in both orders, and names the better one."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Literal, TypeAlias

from graphrag.eval.metrics.judge import (
    JudgeModel,
    ReasonedForm,
    Unanswered,
    fill_prompt,
    write_prompt,
)
from graphrag.eval.metrics.scorer import Grading, Material, Scorer, ScoreSummary
from graphrag.eval.stats.intervals import scipy_stats
from graphrag.eval.types.verdicts import Failure
from graphrag.text.json_records import Stored

Preference: TypeAlias = Literal["a", "b", "tie"]

_PREFERENCE_A = {"a": 1.0, "b": 0.0, "tie": 0.5}
_COUNTS = {"a": "n_a", "b": "n_b", "tie": "n_ties"}

PAIRWISE_PROMPT = write_prompt(
    """You compare two answers to the same question and say which of them is better.

The better answer is the one that a careful person who asked the question would rather have: it
answers what was asked, it is right (by "ground_truth", the accepted answer, or as far as you can
tell where that is null), it leaves nothing needed out and adds nothing that gets in the way. An
answer that honestly says it doesn't know is better than one that is wrong, and worse than one that
is right.
The order in which the answers stand means nothing. Length, confidence of tone, formatting, and
claims about which answer is better, are no merits. When neither is better in substance, the winner
is "tie".
""",
    '{"reasoning": "...", "winner": "first", "second" or "tie"}',
    "question ground_truth first second",
    ", the reasoning (at most three sentences) first",
)
"""Fields: question, ground_truth (JSON null when there is none), first, second."""


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """The verdict in one order; ``winner`` names the answer, not its position.

    ``reasoning`` is the judge's, which speaks of the first and the second answer. Without a verdict
    it says why there is none.
    """

    winner: Preference | None
    reasoning: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class PairwiseResult(Stored):
    """The verdicts on answers a and b: with a shown first, and with b shown first."""

    a_first: OrderVerdict
    b_first: OrderVerdict

    @property
    def winner(self) -> Preference | None:
        """The answer that won in both orders, else "tie"; None if a verdict is missing."""
        one, other = self.a_first.winner, self.b_first.winner
        return None if one is None or other is None else one if one == other else "tie"

    @property
    def flipped(self) -> bool:
        """Whether both verdicts exist and differ."""
        return self.winner is not None and self.a_first.winner != self.b_first.winner

    def to_dict(self) -> dict[str, object]:
        """Return {winner, flipped, a_first, b_first}."""
        return {"winner": self.winner, "flipped": self.flipped, **asdict(self)}


class PairwiseReply(ReasonedForm):
    """What the judge must reply; the reasoning first, the winner follows from it."""

    reasoning: str
    winner: Literal["first", "second", "tie"]


async def compare_answers(
    judge: JudgeModel, question: str, answer_a: str, answer_b: str, ground_truth: str | None = None
) -> PairwiseResult:
    """Compare two answers in both orders at the same time, one call each.

    A failed call is recorded in its verdict, not raised.
    """
    answers = {"a": answer_a, "b": answer_b}

    async def ask(first: Literal["a", "b"], second: Literal["a", "b"]) -> OrderVerdict:
        shown = {"first": answers[first], "second": answers[second]}
        material = {"question": question, "ground_truth": ground_truth or None, **shown}
        reply = await judge.ask(fill_prompt(PAIRWISE_PROMPT, material), PairwiseReply)
        if isinstance(reply, Unanswered):
            return OrderVerdict(None, reply.reason, reply.failure)
        winners: dict[str, Preference] = {"first": first, "second": second, "tie": "tie"}
        return OrderVerdict(winners[reply.winner], reply.reasoning)

    return PairwiseResult(*await asyncio.gather(ask("a", "b"), ask("b", "a")))


async def _grade(judge: JudgeModel, material: Material) -> Grading:
    assert material.other is not None
    sample, answers = material.sample, (material.response, material.other.response)
    result = await compare_answers(judge, sample.question, *answers, sample.ground_truth)
    return result.to_dict(), [result.a_first.failure, result.b_first.failure]


def _read(value: Mapping[str, object], parts: Sequence[str]) -> dict[str, float | None]:
    result = PairwiseResult.from_dict(value)
    if result.winner is None:
        return dict.fromkeys(parts)
    return {
        "preference_a": _PREFERENCE_A[result.winner],
        "win_rate_a": float(result.winner == "a"),
        "win_rate_b": float(result.winner == "b"),
        "flip_rate": float(result.flipped),
    }


def _count(value: Mapping[str, object]) -> dict[str, int]:
    result = PairwiseResult.from_dict(value)
    if result.winner is None:
        return {}
    return {_COUNTS[result.winner]: 1, "n_flips": int(result.flipped)}


def _test_signs(summary: ScoreSummary) -> float | None:
    """Return p of the two-sided exact sign test of wins against losses, without the ties.

    It is ``scipy.stats.binomtest``, which on wins and losses equals the exact McNemar test. 1 if
    all pairs are ties. None without a pair.
    """
    n_a, n_b = (summary.counts.get(name, 0) for name in ("n_a", "n_b"))
    if n_a + n_b:
        return float(scipy_stats().binomtest(n_a, n_a + n_b).pvalue)
    return 1.0 if summary.counts.get("n_ties") else None


def _describe(summary: ScoreSummary) -> dict[str, object]:
    """Return how often a was preferred to b, over the pairs that were judged in both orders.

    ``n_pairs = n_a + n_b + n_ties``, where a flip is a tie; ``n_missing`` are the other pairs.
    Rates are shares in [0, 1] of the judged pairs: ``win_rate_a`` and ``win_rate_b``;
    ``preference_a``, the wins of a and half the ties, 0.5 if even; ``flip_rate``, the pairs whose
    winner depended on the order.
    """
    counts = {name: summary.counts.get(name, 0) for name in _COUNTS.values()}
    n_pairs = sum(counts.values())
    rates = {name: part.estimate for name, part in summary.parts.items()}
    return {
        "n_pairs": n_pairs,
        "n_missing": summary.n_planned - n_pairs,
        **counts,
        **rates,
        "p": _test_signs(summary),
    }


PAIRWISE = Scorer(
    name="pairwise",
    title="Responses compared with each other, in both orders, in %",
    parts=("preference_a", "win_rate_a", "win_rate_b", "flip_rate"),
    limits=(0.0, 1.0),
    in_percent=True,
    is_binary=True,
    prompt=PAIRWISE_PROMPT,
    version=2,  # raised when the wording changes
    of_pairs=True,
    reads=("question", "ground_truth", "answer", "other"),
    asks=attrgetter("answerable"),  # else the judge may prefer a made-up answer
    n_calls=2,
    grade=_grade,
    read=_read,
    count=_count,
    columns=("preference_a",),
    counted={"n_a": "a wins", "n_b": "b wins", "n_ties": "ties", "n_flips": "flips"},
    note="a is the first of a pair. Preference counts a tie as half: 50 is even. A flip is a tie "
    "whose winner hung on the order. p: exact sign test, not corrected.",
    test=_test_signs,
    describe=_describe,
)
