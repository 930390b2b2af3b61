"""The assertions of a question are ruled on one by one, and what is left out is asked for again."""

import json

import pytest

from graphrag.eval.dataset.samples import Assertion
from graphrag.eval.scorers.assertions import AssertionEvaluation, RuledAssertion, judge_assertions
from graphrag.eval.scorers.judge import JudgeModel

HELD = [
    Assertion.model_validate("The clock was built by Idris Vane."),
    Assertion(text="It was built in 1911."),
    Assertion(text="It has four faces.", weight="okay"),
    Assertion(text="The bank paid for it.", must="not_say"),
]


class Judge:
    """Gives replies in turn."""

    def __init__(self, *replies: object) -> None:
        self.replies = list(replies)

    async def completion_async(self, **_):
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, str) else json.dumps({"rulings": reply})


def ruled(**rulings: str) -> list[dict[str, object]]:
    return [{"number": int(n[1:]), "reason": "r", "ruling": r} for n, r in rulings.items()]


async def rule(judge: Judge) -> AssertionEvaluation:
    return await judge_assertions(JudgeModel(judge), "Who built it?", "Vane did, in 1912.", HELD)


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ([ruled(n1="supported")] * 3, "unreadable"),
        ([[*ruled(n4="missing"), *ruled(n1="missing", n4="supported")]] * 3, "unreadable"),
        (["not JSON"] * 3, "unreadable"),
        ([RuntimeError("the service is gone")], "error"),
    ],
)
async def test_without_every_ruling_there_is_no_score(replies, kind):
    found = await rule(Judge(*replies))
    assert found.failure is not None
    assert found.failure.kind == kind
    assert found.is_whole is None


async def test_only_vital_assertions_make_an_answer_whole():
    judge = Judge(ruled(n1="supported", n2="supported", n3="missing", n4="contradicted"))
    assert (await rule(judge)).is_whole is True
    okay = AssertionEvaluation((RuledAssertion("a", "okay", "say", "supported", "", is_met=True),))
    assert okay.is_whole is None
