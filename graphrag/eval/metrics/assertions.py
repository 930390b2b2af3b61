"""Checks by a judge which assertions of a question an answer supports.

Vital and okay statements come from nugget evaluation (Voorhees 2003, TREC question answering;
Pradeep et al. 2024, arXiv 2411.09607). How they are ruled on and counted is defined here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from graphrag.eval.dataset.dataset_reader import Assertion
from graphrag.eval.metrics.judge import (
    NO_REASON,
    JudgeModel,
    Numbered,
    fill_prompt,
    rule_on,
    write_prompt,
)
from graphrag.eval.metrics.scorer import Grading, Material, Scorer, ScoreSummary
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.structured_output import ReplyForm
from graphrag.text.json_records import Stored

_MEASURES = ("vital", "with_okay")
_ENDS = {"supported": "said", None: "unscored"}
"""Ruling on a vital assertion that is not met -> its name in the counts, if it is another one."""
_OKAY = 0.5
"""Weight of an okay assertion; a vital one has weight 1."""

Ruling = Literal["supported", "contradicted", "missing"]

_SHAPE = (
    '{"rulings": [{"number": 1, "reason": "...", '
    '"ruling": "supported", "contradicted" or "missing"}, ...]}'
)

ASSERTIONS_PROMPT = write_prompt(
    """Hold an answer against a numbered list of statements. Rule on each by itself:

supported: whoever reads the answer learns that the statement is true, in whatever words.
contradicted: the answer says something that can't be true together with the statement.
missing: the answer does neither. What is only near the statement, or true but not said, is missing.

Rule by what the answer says, not by what you know.
""",
    _SHAPE,
    "question answer statements",
    ", one ruling for each number, the reason (at most one\nsentence) before the ruling",
)
"""Fields: question, answer, and statements, a JSON object of number to text."""


class _Ruling(Numbered):
    reason: str = NO_REASON
    ruling: Ruling


class _Reply(ReplyForm):
    rulings: list[_Ruling]


@dataclass(frozen=True, slots=True)
class RuledAssertion:
    """One assertion and the judge's ruling on it.

    ``must``: "say", or "not_say" for a mistake that the answer must not make. ``ruling``: None if
    the judge gave none. ``is_met``: whether the answer does what ``must`` asks; None without a
    ruling.
    """

    text: str
    weight: str
    must: str
    ruling: Ruling | None
    reason: str
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class AssertionEvaluation(Stored):
    """The rulings on one answer, in the order of its question's assertions."""

    rulings: tuple[RuledAssertion, ...]
    failure: Failure | None = None

    @property
    def is_whole(self) -> bool | None:
        """Whether all vital assertions are met; None if one has no ruling, or there are none."""
        return None if self.vital is None else self.vital == 1

    @property
    def vital(self) -> float | None:
        """Share of the vital assertions that are met; None without any, or without a ruling."""
        return self._share({"vital": 1.0})

    @property
    def with_okay(self) -> float | None:
        """Share of all assertions met, okay ones at half weight; None if one has no ruling."""
        return self._share({"vital": 1.0, "okay": _OKAY})

    def _share(self, weights: Mapping[str, float]) -> float | None:
        pairs = [(weights[r.weight], r.is_met) for r in self.rulings if r.weight in weights]
        if not pairs or any(is_met is None for _, is_met in pairs):
            return None
        return sum(w for w, is_met in pairs if is_met) / sum(w for w, _ in pairs)

    def to_dict(self) -> dict[str, object]:
        """Return the shares, the rulings and the failure."""
        shares = {name: getattr(self, name) for name in _MEASURES}
        return {**shares, **asdict(self)}

    @classmethod
    def of_no_answer(cls, assertions: Sequence[Assertion]) -> "AssertionEvaluation":
        """Return the evaluation of a missing answer, which meets no assertion.

        It does not even meet those about what must not be said: saying nothing is not right. No
        judge is asked.
        """
        reason = "No answer was given, which meets no assertion."
        return cls(
            tuple(
                RuledAssertion(**a.model_dump(), ruling="missing", reason=reason, is_met=False)
                for a in assertions
            )
        )


async def judge_assertions(
    judge: JudgeModel, question: str, answer: str, assertions: Sequence[Assertion]
) -> AssertionEvaluation:
    """Rule on all assertions of a question in one call.

    If a reply leaves some out, they alone are asked for again, at most ``max_retries`` times. An
    assertion that is still left out has no ruling, and the answer then has no score. A failure is
    returned, not raised.
    """
    ruled, failure = await rule_on(
        judge,
        [assertion.text for assertion in assertions],
        lambda left: fill_prompt(
            ASSERTIONS_PROMPT, {"question": question, "answer": answer, "statements": left}
        ),
        _Reply,
        lambda reply: reply.rulings,
        lambda ruling: ruling.ruling,
    )
    rulings = [
        RuledAssertion(**assertion.model_dump(), ruling=None, reason="", is_met=None)
        if ruling is None
        else RuledAssertion(
            **assertion.model_dump(),
            ruling=ruling.ruling,
            reason=ruling.reason,
            is_met=(ruling.ruling == "supported") == (assertion.must == "say"),
        )
        for assertion, ruling in zip(assertions, ruled, strict=True)
    ]
    return AssertionEvaluation(tuple(rulings), failure)


async def _grade(judge: JudgeModel, material: Material) -> Grading:
    sample = material.sample
    if material.abstained and sample.answerable:
        return AssertionEvaluation.of_no_answer(sample.assertions).to_dict(), []
    result = await judge_assertions(judge, sample.question, material.response, sample.assertions)
    return result.to_dict(), [result.failure]


def _list_rulings(value: Mapping[str, object]) -> Iterator[str]:
    for ruling in AssertionEvaluation.from_dict(value).rulings:
        end = {True: "met", False: "not met", None: "unscored"}[ruling.is_met]
        kind = f"{ruling.weight}{'' if ruling.must == 'say' else ', must not be said'}"
        why = f"{ruling.ruling or 'no ruling'}: {ruling.reason or '-'}"
        yield f"assertion {end} ({kind}): {ruling.text} ({why})"


def _count(value: Mapping[str, object]) -> Counter[str]:
    rulings = AssertionEvaluation.from_dict(value).rulings
    return Counter(
        "met" if ruling.is_met else _ENDS.get(ruling.ruling, str(ruling.ruling))
        for ruling in rulings
        if ruling.weight == "vital"
    )


def _describe(summary: ScoreSummary) -> dict[str, object]:
    shares = {name: part.estimate for name, part in summary.parts.items()}
    return {**shares, "n_responses": summary.n_planned, "rulings": summary.counts}


ASSERTIONS = Scorer(
    name="assertions",
    title="Assertions met, in %",
    parts=_MEASURES,
    limits=(0.0, 1.0),
    in_percent=True,
    prompt=ASSERTIONS_PROMPT,
    version=1,  # raised when what a ruling means, or how it counts, changes
    reads=("question", "answer", "assertions"),
    grade=_grade,
    asks=lambda sample: bool(sample.assertions),
    of_no_answer=lambda sample: AssertionEvaluation.of_no_answer(sample.assertions).to_dict(),
    count=_count,
    counted={"contradicted": "contradicted", "missing": "missing", "said": "said wrongly"},
    note="A response's figure is the share of its question's vital assertions that it meets; with "
    "okay counts all, the okay ones half. A failed search and a declined answer meet none. The "
    "counts are of vital assertions not met.",
    words=_list_rulings,
    describe=_describe,
)
