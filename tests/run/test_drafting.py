"""A drafted question is kept only when every proof holds; the model here is scripted."""

import asyncio
import gc
import json
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pandas as pd
import pytest
from pydantic import BaseModel

from graphrag.eval.dataset.drafts import Asker, Cause
from graphrag.eval.runner.draft_materials import Materials
from graphrag.eval.runner.drafting import Drafted, Drafter, _as_rows
from graphrag.query.client.usage import CallLog
from graphrag.query.index.tables import IndexTables

TEXTS = {
    "u1": "Idris Vane built the tower clock of Ashcombe.",
    "u2": "Petra Holm paid Idris Vane. Petra Holm owns the Ashcombe Bank.",
    "u3": "The ship Wren belongs to Magnus Crowe.",
}
EDGES = [
    ("IDRIS VANE", "CLOCK", "Idris Vane built the clock.", ["u1"]),
    ("PETRA HOLM", "IDRIS VANE", "Petra Holm paid Idris Vane.", ["u2"]),
]
BUILT, OWNS = "Idris Vane built the tower clock", "Petra Holm owns the Ashcombe Bank."
FACT = {"question": "Who built Ashcombe's clock?", "answer": "Idris Vane", "quotes": [BUILT]}
LINK = {
    "question": "Which firm belongs to who paid the builder of the tower clock?",
    "answer": "The Ashcombe Bank",
    "quotes": [BUILT, OWNS],
}
GLOBAL = {
    **LINK,
    "assertions": [{"text": "Vane built it.", "weight": "vital"}, "Holm owns a bank."],
}
MISSING = {"question": "When was Idris Vane born?", "answer": "", "quotes": [BUILT]}


def materials() -> Materials:
    units = pd.DataFrame(
        {"id": [*TEXTS], "text": [*TEXTS.values()], "document_id": ["a", "b", "c"]}
    )
    edges = pd.DataFrame(EDGES, columns=["source", "target", "description", "text_unit_ids"])
    communities = pd.DataFrame(
        {"community": [0], "level": [0], "title": ["Clock"], "text_unit_ids": [["u1", "u2"]]}
    )
    tables = IndexTables(text_units=units, relationships=edges, communities=communities)
    return Materials(tables)


def rule(shown: Mapping[str, Any], missing: Collection[str] = ()) -> dict[str, Any]:
    """Return rulings on what is shown: supported, but for some numbers."""
    ruled = {n: "missing" if n in missing else "supported" for n in shown["statements"]}
    return {"rulings": [{"number": int(n), "reason": "", "ruling": r} for n, r in ruled.items()]}


def is_whole(shown: Mapping[str, Any]) -> bool:
    """Say whether what is held against the statements is more than a single text."""
    return shown["answer"] not in TEXTS.values()


class Model:
    """Answers each of the prompts as it is told to; ``None`` is a reply that can't be read."""

    def __init__(self, made: Mapping[str, Any], **replies: Any) -> None:
        def oracle(shown: dict[str, Any]) -> object:
            is_enough = all(any(q in t["text"] for t in shown["texts"]) for q in made["quotes"])
            found = is_enough and bool(made["answer"])
            return {"found": found, "answer": made["answer"] if found else ""}

        self.prompts: list[str] = []
        self.replies: dict[str, Callable[[dict[str, Any]], object]] = {
            "draft": lambda _: {"difficulty": "easy", **made},
            "oracle": oracle,
            "repair": lambda _: {"quotes": made["quotes"]},
            "closed": lambda _: {"found": False, "answer": ""},
            "judge": lambda shown: {
                "reason": "",
                "score": int(shown["predicted"] == shown["ground_truth"]),
            },
            "same": lambda shown: {"difference": "", "same": int(shown["one"] == shown["other"])},
            "rulings": lambda shown: rule(shown, () if is_whole(shown) else {"2"}),
            **{name: (lambda _, reply=reply: reply) for name, reply in replies.items()},
        }

    async def completion_async(self, messages, response_format, **_):
        self.prompts.append(messages[0]["content"])
        shown = json.loads(messages[0]["content"].rpartition("Material:\n")[2])
        fields = {*response_format.model_fields}
        names = {"rulings": "rulings", "score": "judge", "same": "same", "quotes": "draft"}
        answering = "oracle" if "texts" in shown else "closed"
        asked = next((name for field, name in names.items() if field in fields), answering)
        asked = "repair" if fields == {"quotes"} else asked
        reply = self.replies[asked](shown)
        return "no JSON" if reply is None else json.dumps(reply)


async def draft(kind: str, model: Model, n: int = 1, asked: tuple[str, ...] = ()) -> Drafted:
    return await Drafter(model, CallLog).draft(materials(), {kind: n}, asked)


def test_text_units_of_graphrag_2_are_read_too():
    units = {"id": ["u1"], "text": [BUILT], "document_ids": [["a"]]}
    documents = {"id": ["a"], "title": ["clock.txt"]}
    tables = IndexTables(text_units=pd.DataFrame(units), documents=pd.DataFrame(documents))
    (passage,) = Materials(tables).best(BUILT)
    assert (passage.text, passage.document, passage.title) == (BUILT, "clock.txt", "")


def test_links_are_of_relationships_in_different_texts_that_share_what_few_texts_name():
    n = 60
    units = [f"u{number}" for number in range(n)]
    names = {"id": units, "text": [f"Text {u}." for u in units]}
    given = pd.DataFrame({**names, "document_id": [f"d{number // 6}" for number in range(n)]})
    rows = [("HUB", f"A{at}", "holds", [units[at]]) for at in range(n)]  # in every text
    rows += [(f"A{at}", f"B{at % 20}", "knows", [units[at]]) for at in range(n)]
    rows += [("LOOP", "LOOP", "is itself", ["u1"]), ("LOOP", "LOOP", "again", ["u1", "u2"])]
    rows += [("ONCE", "ALONE", "one edge, two texts", ["u3", "u4"])]
    rows += [("C", "D", "twice", ["u5"]), ("C", "D", "twice", ["u6", "gone"]), ("C", "E", "", [])]
    edges = pd.DataFrame(rows, columns=["source", "target", "description", "text_unit_ids"])
    tables = IndexTables(text_units=given, relationships=edges)

    without = IndexTables(text_units=given, relationships=edges.assign(text_unit_ids=None))
    assert [*Materials(without).of("link")] == []
    links = [*Materials(tables).of("link")]
    assert links == [*Materials(tables).of("link")]
    joined = [link.about.split(" joins them. ")[0] for link in links]
    assert sorted(joined) == sorted([*(f"B{number}" for number in range(20)), "LOOP", "C", "D"])
    for link in links:
        said = link.about.split(" joins them. ")[1].split("; ")
        assert len(set(link.passages)) == len(said)
        assert len(said) in ((2, 3) if link.form == "set" else (2,))
    assert {link.form for link in links} == {"bridge", "comparison", "set"}
    assert len({link.passages[0].document for link in links[:8]}) == 8


def test_a_text_is_called_by_its_documents_heading_where_its_title_names_a_file():
    texts = [f"The clock of Ashcombe\n\n{BUILT}.", OWNS]
    units = pd.DataFrame({"id": ["u1", "u2"], "text": texts, "document_id": ["a", "a"]})
    documents = pd.DataFrame({"id": ["a"], "title": ["clock.txt"]})
    (passage,) = Materials(IndexTables(text_units=units, documents=documents)).best(OWNS, 1)
    assert (passage.text, passage.document) == (OWNS, "clock.txt")
    assert _as_rows([passage]) == [{"title": "The clock of Ashcombe", "text": OWNS}]
    of_none = IndexTables(text_units=units.assign(document_id=None), documents=documents)
    assert [passage.title for passage in Materials(of_none).best(OWNS, 1)] == [""]


async def test_quotes_are_kept_in_the_letters_of_the_text_and_may_be_written_again():
    shown: list[Any] = []

    class Watched(Model):
        async def completion_async(self, messages, response_format, **_):
            shown.append(json.loads(messages[0]["content"].rpartition("Material:\n")[2]))
            return await super().completion_async(messages, response_format)

    broken = {**FACT, "quotes": ["Idris  Vane built\nthe tower clock"]}
    ((kept, _),) = (await draft("fact", Watched(broken, oracle=RIGHT))).kept
    assert kept.quotes == (BUILT,)
    assert {"title": "a", "text": BUILT} in [t for s in shown for t in s.get("texts", ())]

    wrong = {**FACT, "quotes": ["Vane made the clock"]}
    ((kept, _),) = (await draft("fact", Watched(wrong, oracle=RIGHT, repair=FACT))).kept
    assert kept.quotes == (BUILT,)
    found = await draft("fact", Model(wrong))
    assert set(found.causes()) == {Cause.NOT_IN_TEXT}


async def test_each_asker_has_a_share_the_prompt_says_who_asks_and_the_row_too():
    def made(shown: dict[str, Any]) -> dict[str, Any]:
        (text,) = (each["text"] for each in shown["texts"])
        return {"question": f"Tell {text[:14]}!", "answer": text, "quotes": [text]}

    model = Model(FACT)
    model.replies["draft"] = made
    model.replies["oracle"] = lambda shown: {"found": True, "answer": shown["texts"][0]["text"]}
    askers = [Asker("new employee", style) for style in ("keywords", "vague")] + [Asker("auditor")]
    found = await Drafter(model, CallLog, askers=askers).draft(materials(), {"fact": 3}, ())
    rows = [draft.row(None, proofs) for draft, proofs in found.kept]
    told = [(row["persona"], row.get("style")) for row in rows]
    assert told == [("new employee", "keywords"), ("new employee", "vague"), ("auditor", None)]
    drafting = [prompt for prompt in model.prompts if '"form"' in prompt]
    for prompt, said in zip(drafting, ("search box", "in a hurry", "auditor"), strict=True):
        assert said in prompt
        assert "says who asks" in prompt
        assert "Somebody asks" not in prompt
    assert all("asker" not in prompt for prompt in model.prompts if prompt not in drafting)


@pytest.mark.parametrize(
    ("kind", "reply", "is_short"),
    [("fact", FACT, True), ("global", GLOBAL, False), ("unanswerable", MISSING, False)],
)
async def test_no_short_answer_is_asked_for_where_it_must_say_all_that_is_vital(
    kind: str, reply: Mapping[str, Any], is_short: bool
):
    model = Model(reply)
    await draft(kind, model)
    assert ("as short as it can be" in model.prompts[0]) is is_short


async def test_a_hurried_question_without_an_answer_is_not_to_have_one_right_answer():
    model = Model(MISSING)
    hurried = Drafter(model, CallLog, askers=[Asker("new employee", "vague")])
    await hurried.draft(materials(), {"unanswerable": 1}, ())
    assert "in a hurry" in model.prompts[0]
    assert "right answer" not in model.prompts[0]


@pytest.mark.parametrize(("kind", "reply"), [("link", LINK), ("global", GLOBAL)])
async def test_no_request_asks_for_a_field_that_its_instructions_do_not_name(kind, reply):
    asked: list[tuple[str, type[BaseModel]]] = []

    class Watched(Model):
        async def completion_async(self, messages, response_format, **_):
            asked.append((messages[0]["content"], response_format))
            return await super().completion_async(messages, response_format)

    assert (await draft(kind, Watched(reply))).kept
    for prompt, form in asked:
        schema = form.model_json_schema()
        parts = [schema, *schema.get("$defs", {}).values()]
        names = {name for part in parts for name in part["properties"]}
        assert {name for name in names if f'"{name}"' not in prompt} == set()


async def test_what_is_known_is_asked_first_and_kept_with_a_tag_where_that_is_wanted():
    model = Model(FACT, closed=RIGHT)
    model.replies["oracle"] = lambda _: pytest.fail("the cheapest proof comes first")
    assert Cause.KNOWN_ALREADY in (await draft("fact", model)).causes()
    keeping = Drafter(Model(FACT, closed=RIGHT), CallLog, keeps_known=True)
    ((kept, proofs),) = (await keeping.draft(materials(), {"fact": 1}, ())).kept
    assert kept.row("town", proofs)["tags"] == ["known"]
    assert kept.row("town", proofs, is_rehearsal=True)["tags"] == ["rehearsal", "known"]


async def test_one_assertion_that_does_not_follow_is_dropped_and_not_the_question():
    three = {**GLOBAL, "assertions": [*GLOBAL["assertions"], "Crowe owns the Wren."]}

    def without(*numbers: str) -> Callable[[Mapping[str, Any]], object]:
        def ruled(shown: Mapping[str, Any]) -> object:
            if not is_whole(shown):
                return rule(shown, {"2"})
            return rule(shown, numbers if len(shown["statements"]) == 3 else ())

        return ruled

    model = Model(three)
    model.replies["rulings"] = without("3")
    ((kept, _),) = (await draft("global", model)).kept
    assert [each.text for each in kept.assertions] == ["Vane built it.", "Holm owns a bank."]
    model.replies["rulings"] = without("2", "3")
    assert Cause.ORACLE_FAILS in (await draft("global", model)).causes()
    okay = [GLOBAL["assertions"][0], *({"text": t, "weight": "okay"} for t in "BC")]
    model.replies["draft"] = lambda _: {"difficulty": "hard", **three, "assertions": okay}
    model.replies["rulings"] = without("1")
    assert Cause.ORACLE_FAILS in (await draft("global", model)).causes()  # no vital one is left


async def test_a_global_question_needs_more_than_one_text_and_an_answer_that_holds():
    model = Model(GLOBAL)
    model.replies["rulings"] = rule
    assert set((await draft("global", model)).causes()) == {Cause.ONE_TEXT_DOES}
    own = LINK["answer"]
    model.replies["rulings"] = lambda shown: rule(shown, {"1"} if shown["answer"] == own else ())
    assert set((await draft("global", model)).causes()) == {Cause.ORACLE_FAILS}


async def test_a_link_is_proven_beside_near_texts():
    shown: list[list[str]] = []
    model = Model(LINK)
    oracle = model.replies["oracle"]

    def watched(asked: Mapping[str, Any]) -> object:
        shown.append([each["text"] for each in asked["texts"]])
        return oracle(dict(asked))

    model.replies["oracle"] = watched
    assert len((await draft("link", model)).kept) == 1
    quotes, *without = shown
    assert quotes == LINK["quotes"]
    near = TEXTS["u3"]  # the one text that is no part of it
    assert sorted(without) == sorted([[TEXTS["u2"], near], [TEXTS["u1"], near]])


async def test_a_draft_that_is_interrupted_leaves_nothing_unawaited():
    drafting = asyncio.create_task(draft("fact", Model(FACT)))
    await asyncio.sleep(0)
    drafting.cancel()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(asyncio.CancelledError):
            await drafting
        gc.collect()


@pytest.mark.parametrize(
    ("kind", "reply", "row"),
    [
        ("fact", FACT, {"answer": "Idris Vane", "hops": 1, "answerable": True}),
        ("link", LINK, {"evidence": LINK["quotes"], "hops": 2, "documents": ["b", "a"]}),
        ("global", GLOBAL, {"kind": "global", "hops": 1}),
        ("unanswerable", MISSING, {"answerable": False, "evidence": []}),
    ],
)
async def test_a_proven_draft_is_kept(kind, reply, row):
    found = await draft(kind, Model(reply))
    ((kept, proofs),) = found.kept
    given = kept.row("town", proofs)
    assert {name: given[name] for name in row} == row
    assert given["vetted_by"] is None
    if kind == "global":
        texts = [each["text"] for each in given["assertions"]]
        assert texts == ["Vane built it.", "Holm owns a bank."]


WRONG = {"found": True, "answer": "Magnus Crowe"}
RIGHT = {"found": True, "answer": "Idris Vane"}
UNMET = {"rulings": [{"number": n, "reason": "", "ruling": "missing"} for n in (1, 2)]}


@pytest.mark.parametrize(
    ("kind", "model", "cause"),
    [
        ("fact", Model(FACT, draft=None), Cause.UNREADABLE),
        ("fact", Model({**FACT, "answer": ""}), Cause.UNREADABLE),
        ("fact", Model({"question": "", "answer": "", "quotes": []}), Cause.NO_QUESTION),
        ("fact", Model(FACT, oracle={"found": False, "answer": ""}), Cause.ORACLE_FAILS),
        ("fact", Model(FACT, oracle=WRONG), Cause.ORACLE_FAILS),
        ("fact", Model(FACT, same={"difference": "", "same": 0}), Cause.JUDGES_DIFFER),
        ("fact", Model(FACT, judge=None), Cause.UNREADABLE),
        ("fact", Model(FACT, closed=RIGHT), Cause.KNOWN_ALREADY),
        (
            "link",
            Model(LINK, oracle={"found": True, "answer": LINK["answer"]}),
            Cause.ONE_TEXT_DOES,
        ),
        ("unanswerable", Model(MISSING, oracle=WRONG), Cause.NOT_DECLINED),
        ("global", Model({**GLOBAL, "assertions": []}), Cause.UNREADABLE),
        ("global", Model(GLOBAL, rulings=UNMET), Cause.ORACLE_FAILS),
        ("global", Model(GLOBAL, closed=RIGHT), Cause.KNOWN_ALREADY),
    ],
)
async def test_a_draft_that_fails_a_proof_is_thrown_away(kind, model, cause):
    found = await draft(kind, model)
    assert found.kept == []
    # The scripted model quotes the same whatever it is shown.
    assert {cause} <= set(found.causes()) <= {cause, Cause.NOT_IN_TEXT}
    assert found.short == {kind: 1}
    assert cause.value in {each.to_dict()["cause"] for each in found.thrown_away}


async def test_the_same_question_is_not_kept_twice():
    found = await draft("fact", Model(FACT), n=3)
    assert (len(found.kept), found.short) == (1, {"fact": 2})
    assert set(found.causes()) <= {Cause.DUPLICATE, Cause.NOT_IN_TEXT}
    before = await draft("fact", Model(FACT), asked=("Who built Ashcombe's clock?",))
    assert before.kept == []


def test_materials_take_each_document_in_turn_and_the_same_ones_again():
    first = [each.passages[0].document for each in materials().of("fact")]
    assert sorted(first) == ["a", "b", "c"]
    assert first == [each.passages[0].document for each in materials().of("fact")]
    (link,) = materials().of("link")
    assert {passage.text for passage in link.passages} == {TEXTS["u1"], TEXTS["u2"]}
    assert "IDRIS VANE joins them" in link.about
