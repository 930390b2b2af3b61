"""Claims and assertions are ruled on one by one, and what is left out is asked for again."""

import json
from dataclasses import replace
from unittest.mock import AsyncMock, MagicMock

import pytest
from graphrag_llm.config import ModelConfig

from graphrag.eval.dataset.dataset_reader import Assertion
from graphrag.eval.metrics.assertions import AssertionEvaluation, RuledAssertion, judge_assertions
from graphrag.eval.metrics.claims import Claim, ClaimEvaluation, judge_claims, split_sentences
from graphrag.eval.metrics.judge import JudgeModel
from graphrag.eval.types.verdicts import combine_repeats
from graphrag.query.client.models import open_completion

SHOWN = """-----Sources-----
id|text
1|Vane built it.
2|Holm paid.

-----Entities-----
id|entity
5|VANE
"""


class Judge:
    """Takes each sentence as a claim, and names the rows that support each."""

    def __init__(self, *supports: list[str]) -> None:
        self.supports = supports

    async def completion_async(self, messages, **_):
        material = json.loads(messages[0]["content"].rpartition("Material:\n")[2])
        if "sentences" in material:
            made = [{"number": n, "claims": [text]} for n, text in material["sentences"].items()]
            return json.dumps({"sentences": made})
        ruled = [
            {"number": n, "reason": "row", "texts": texts, "ruling": "Supported"}
            for n, texts in enumerate(self.supports, 1)
        ]
        return json.dumps({"claims": ruled})


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        ("# On it\nDr. Vane came. He\nleft.", ["# On it", "Dr. Vane came.", "He\nleft."]),
        ("Two:\n- one is\n2. two is", ["Two:", "- one is", "2. two is"]),
        (
            "Seit dem 1. September, d. h. ca. 3 Jahre. Gut.",
            ["Seit dem 1. September, d. h. ca. 3 Jahre.", "Gut."],
        ),
        (
            "La hizo la Sra. Azcárate. Fue en 12. Luego no.",
            ["La hizo la Sra. Azcárate.", "Fue en 12.", "Luego no."],
        ),
        ("It is. [Data: Sources (1)] So is 7.", ["It is. [Data: Sources (1)]", "So is 7."]),
        (
            "そうです。はい。\n\n[Data: Sources (1)]",
            ["そうです。", "はい。\n\n[Data: Sources (1)]"],
        ),
        ("42. [Data: Sources (1)]", ["42. [Data: Sources (1)]"]),
        ("[Data: Sources (1)]", []),
    ],
)
def test_sentences_are_those_of_the_answer_letter_by_letter(answer, sentences):
    assert [each.text for each in split_sentences(answer)] == sentences


@pytest.mark.parametrize(
    ("answer", "supports", "misplaced"),
    [
        ("Vane did [Data: Sources (2)].", [["Sources (1)"]], ["Sources (2)"]),
        ("Vane did [Data: sources (1); Entities (5)].", [["source (1)", "Entities (5)"]], []),
        # After its end, a citation stands for the sentences before it as well.
        ("Vane did. Holm paid. [Data: Sources (1, 2)]", [["Sources (1)"], ["Sources (2)"]], []),
        ("वेन ने बनाया। होल्म ने दिया। [Data: Sources (1, 2)]", [["Sources (1)"], ["2"]], []),
        ("وين بنى؟ هولم دفع؟ [Data: Sources (1، 2)]", [["Sources (1)"], ["2"]], []),
        ("Vane did. Holm paid [Data: Sources (1)].", [["Sources (1)"], ["2"]], ["Sources (1)"]),
        ("Vane did [Data: Entities (5)]. Holm paid [Data: Sources (2)].", [[1, "5"], "2"], []),
        ("Vane did.\n\nHolm paid. [Data: Sources (1)]", [["1"], ["2"]], ["Sources (1)"]),
        # What is not known is no finding: no row named, or one that was not shown.
        ("Vane did [Data: Sources (2)].", [[]], []),
        ("Vane did [Data: Sources (9)].", [["Sources (1)"]], []),
    ],
)
async def test_a_citation_is_held_against_the_claims_that_it_stands_for(
    answer, supports, misplaced
):
    found = await judge_claims(JudgeModel(Judge(*supports)), "Who?", answer, SHOWN)
    assert found.failure is None
    assert found.supported == 1
    assert [each.citation for each in found.misplaced] == misplaced
    assert {each.reason for each in found.claims} == {"row"}


async def test_an_answer_that_only_says_what_its_sources_lack_claims_nothing():
    prompts: list[str] = []

    async def reply(messages, **_):
        prompts.append(messages[0]["content"])
        return json.dumps({"sentences": [{"number": 1, "claims": []}]})

    judge = JudgeModel(MagicMock(completion_async=reply))
    found = await judge_claims(judge, "What is above it?", "The excerpt does not say.", SHOWN)
    assert (found.supported, found.verdict.reason) == (None, "Nothing to judge: no claims")
    (told,) = (" ".join(prompt.split()) for prompt in prompts)  # nothing is left to rule on
    assert "What an answer says about its sources is no claim" in told
    assert "complete a short answer by its question" in told
    old = {"text": "c", "sentence": "s", "ruling": "supported", "texts": []}  # of 1.0.0
    kept = ClaimEvaluation.from_dict({"claims": [old], "n_citations": 0, "misplaced": []})
    assert kept.claims == (Claim("c", "s", "supported"),)


def test_contradictions_are_named_first_and_repeats_keep_the_claims_of_their_verdict():
    claims = tuple(Claim(f"c{n}", "s", "not_found") for n in range(4))
    false = ClaimEvaluation(
        (*claims, Claim("no", "s", "contradicted"), Claim("yes", "s", "supported"))
    )
    assert false.verdict.reason == (
        'Not supported: 5 of 6 claims (contradicted: "no"; not found: "c0"; not found: "c1"; and 2 '
        "more)."
    )
    right = replace(false, claims=false.claims[-1:])
    combined = combine_repeats([right.verdict, false.verdict, false.verdict])
    assert (combined.score, combined.repeats) == (0, (1, 0, 0))
    assert combined.claims is not None
    assert ClaimEvaluation.from_dict(combined.claims) == false


async def test_the_embedded_judge_goes_by_words_names_and_numbers():
    model = open_completion(ModelConfig(type="offline", model_provider="offline", model="rules"))
    shown = "-----Sources-----\nid|text\n1|Idris Vane built the tower clock in 1911.\n2|It rained."
    answer = (
        "1. The clock was built by Vane in 1911 [Data: Sources (2)].\n2. Vane built it in 1912."
    )
    found = await judge_claims(JudgeModel(model), "Who built the clock?", answer, shown)
    assert [(each.ruling, each.texts) for each in found.claims] == [
        ("supported", ("Sources (1)",)),
        ("not_found", ()),
    ]
    assert [each.citation for each in found.misplaced] == ["Sources (2)"]
    declined = await judge_claims(JudgeModel(model), "Who?", "I don't know.", shown)
    assert (declined.supported, declined.verdict.score) == (None, None)


HELD = [
    Assertion.model_validate("The clock was built by Idris Vane."),
    Assertion(text="It was built in 1911."),
    Assertion(text="It has four faces.", weight="okay"),
    Assertion(text="The bank paid for it.", must="not_say"),
]


def ruled(**rulings: str) -> list[dict[str, object]]:
    return [{"number": int(n[1:]), "reason": "r", "ruling": r} for n, r in rulings.items()]


async def rule(*replies: object) -> AssertionEvaluation:
    """Let a model rule that gives lists of rulings in turn, or what else it is told."""
    said = [json.dumps({"rulings": r}) if isinstance(r, list) else r for r in replies]
    judge = JudgeModel(MagicMock(completion_async=AsyncMock(side_effect=said)))
    return await judge_assertions(judge, "Who built it?", "Vane did, in 1912.", HELD)


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
    found = await rule(*replies)
    assert found.failure is not None
    assert found.failure.kind == kind
    assert found.is_whole is None


async def test_only_vital_assertions_make_an_answer_whole():
    rulings = ruled(n1="supported", n2="supported", n3="missing", n4="contradicted")
    assert (await rule(rulings)).is_whole is True
    okay = AssertionEvaluation((RuledAssertion("a", "okay", "say", "supported", "", is_met=True),))
    assert okay.is_whole is None
