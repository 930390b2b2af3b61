"""A dataset reviewed by a person, in a real browser: accepted, mended, rejected by key."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page
from support.chromium import findings, overflow, watched
from support.viewed_store import Served, serving_app

from graphrag.eval.annotation.review import Decision, Review, RowChanged, keep_decisions
from graphrag.eval.dataset.dataset_reader import count_gold, fingerprint_samples, read_samples
from graphrag.eval.errors import UsageError
from graphrag.eval.runner.draft_materials import Materials
from graphrag.eval.web.app import make_review_app
from graphrag.query.index.tables import IndexTables

TEXTS = [
    "😀 Ada kept the light for nine years. <b>Then</b> she sold her boat to Ben.",
    "Ben sailed north in 1901.\nHe never came back.",
]
UNITS = pd.DataFrame(
    {"id": ["u0", "u1"], "text": TEXTS, "document_id": ["d0", "d1"], "n_tokens": 9}
)
DOCUMENTS = pd.DataFrame({"id": ["d0", "d1"], "title": ["ada.txt", "ben.txt"]})


def _row(question: str, answer: str, *quotes: str, **more: object) -> dict[str, object]:
    row = {"question": question, "answer": answer, "evidence": list(quotes), "kind": "fact"}
    proofs = {"oracle": answer, "closed_book": None}
    return {**row, "vetted_by": None, "proofs": proofs, "own": {"x": [1.0]}, **more}


ROWS = [
    _row("How long did Ada keep the light?", "nine years", "Ada kept the light for nine years."),
    _row("When did Ben sail?", "1902", "Ben sailed north in 1901.", "she sold her boat"),
    _row("What did he do?", "sail", "a quote of nowhere"),
    _row("Whom did Ben marry?", "The documents do not say.", answerable=False),
]


@pytest.fixture(params=["drafts.json", "drafts.jsonl"])
def review(request: pytest.FixtureRequest, tmp_path: Path) -> Review:
    path = tmp_path / request.param
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    path.write_text(lines if path.suffix == ".jsonl" else json.dumps(ROWS, indent=1), "utf-8")
    materials = Materials(IndexTables(text_units=UNITS, documents=DOCUMENTS))
    return Review(path, {"p": materials}, "Ann")


@pytest.fixture
def served(review: Review) -> Iterator[Served]:
    with serving_app(make_review_app(review)) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    with watched(browser, served.origin, "Failed to load resource") as tab:
        tab.goto(served.listener.address)
        yield tab


def _read(path: Path) -> list[dict[str, object]]:
    text = path.read_text("utf-8")
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def test_a_person_accepts_mends_and_rejects_by_key(page, review):
    page.wait_for_selector("#texts mark")
    assert page.locator("#texts mark").all_inner_texts() == ["Ada kept the light for nine years."]
    assert TEXTS[0] in page.locator("#texts .text").all_inner_texts()
    assert "Nobody has decided" in page.inner_text("#item")
    assert "declined to answer" in page.inner_text("#item")
    assert (findings(page), overflow(page) <= 0) == ([], True)
    page.keyboard.press("a")
    page.wait_for_selector("text=Question 2 of 4: 1 decided, 3 open.")
    page.locator("#texts mark").nth(1).wait_for()
    page.keyboard.press("m")
    page.fill("#answer", "In 1901")
    page.locator(".cited").nth(2).fill("one more")
    assert page.locator(".cited").count() == 4, "one is always empty"
    page.locator(".cited").nth(2).fill("")
    page.locator(".cited").nth(1).fill("Ben sailed south")
    page.keyboard.press("r")  # a letter in a field, and no decision
    assert findings(page) == []
    page.click("#save")
    page.wait_for_selector("text=No text unit contains this quote letter by letter")
    page.locator(".cited").nth(1).fill("")
    page.click("#save")
    page.wait_for_selector("text=Question 3 of 4: 2 decided, 2 open.")
    page.wait_for_selector("text=A quote that is in no text unit")
    page.keyboard.press("r")
    page.wait_for_selector("text=Question 3 of 3: 2 decided, 1 open.")
    page.wait_for_selector("text=Among the nearest texts")
    assert "answerable: false" in page.inner_text("#item")
    page.reload()
    page.wait_for_selector("text=Question 3 of 3: 2 decided, 1 open.")
    page.keyboard.press("k")
    page.wait_for_selector("text=mended by Ann")

    accepted, mended, left = _read(review.path)
    assert accepted.pop("vetted_by")["decision"] == "accepted"
    assert accepted == {k: v for k, v in ROWS[0].items() if k != "vetted_by"}
    said = mended["vetted_by"]
    assert (said["name"], said["decision"], said["time"][:2]) == ("Ann", "mended", "20")
    assert said["before"]["answer"] == "1902"
    assert (mended["answer"], mended["evidence"]) == ("In 1901", ["Ben sailed north in 1901."])
    assert (mended["own"], left) == (ROWS[1]["own"], ROWS[3])
    (rejected,) = _read(review.rejected_path)
    assert rejected.pop("vetted_by")["decision"] == "rejected"
    assert rejected == {k: v for k, v in ROWS[2].items() if k != "vetted_by"}
    assert count_gold(read_samples(review.path, "p")) == 2


def test_a_question_is_mended_by_keys_and_the_focus_stays(page, review):
    page.focus("#change")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "question"
    named = ("accept", "change", "reject", "back", "next", "open")
    assert not any(page.is_enabled(f"#{name}") for name in named), "they would do nothing"
    page.keyboard.press("Escape")
    assert page.is_hidden("#mend")
    assert page.evaluate("document.activeElement.id") == "change"
    assert [name for name in named if page.is_enabled(f"#{name}")] == [*named[:3], *named[4:]]
    page.keyboard.press("Enter")
    page.fill("#answer", "9 years")
    page.focus("#save")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Question 2 of 4: 1 decided, 3 open.")
    assert page.evaluate("document.activeElement.id") == "change"


def test_what_another_program_changed_is_not_overwritten(page, review):
    rows = _read(review.path)
    rows[0]["answer"], rows[3]["note"] = "nine", "new"
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    review.path.write_text(lines if review.path.suffix == ".jsonl" else json.dumps(rows), "utf-8")
    page.keyboard.press("r")
    page.wait_for_selector("text=Another program changed this question")
    page.wait_for_selector("#item >> text=/^nine$/")
    assert _read(review.path) == rows
    page.keyboard.press("r")
    page.wait_for_selector("text=Question 1 of 3: 0 decided, 3 open.")
    assert _read(review.path) == rows[1:]


def test_who_vetted_a_row_changes_no_fingerprint(review):
    before = fingerprint_samples(read_samples(review.path, "p"))
    review.decide(Decision(seen=review.rows()[0]["seen"], decision="accepted"))
    assert fingerprint_samples(read_samples(review.path, "p")) == before


def test_a_quote_is_kept_with_the_blanks_and_line_breaks_of_its_text(review):
    _, second, *_ = review.rows()
    typed = "Ben sailed\u00a0north in 1901. He never came back."
    mended = Decision(
        seen=second["seen"], decision="mended", question="When?", answer="1901", evidence=[typed]
    )
    review.decide(mended)
    assert _read(review.path)[1]["evidence"] == [TEXTS[1]]


def test_what_can_not_be_kept_is_refused(review, tmp_path):
    first, second, *_ = review.rows()
    content = review.path.read_bytes()
    same = Decision(
        seen=second["seen"], decision="mended", question=ROWS[0]["question"], answer="2"
    )
    for change, said in (
        (same.model_copy(update={"seen": "gone"}), "Another program"),
        (same, "different answers"),
        (same.model_copy(update={"question": ""}), "Write a question"),
        (same.model_copy(update={"answer": ""}), "Write an answer"),
    ):
        with pytest.raises((UsageError, RowChanged), match=said):
            review.decide(change)
    blind = Review(review.path, {}, "Ann")
    quoted = Decision(
        seen=first["seen"], decision="mended", question="Q", answer="A", evidence=["new"]
    )
    with pytest.raises(UsageError, match="index can't be read"):
        blind.decide(quoted)
    assert blind.texts(first["seen"]) == {"texts": [], "missing": []}
    assert review.path.read_bytes() == content
    table = tmp_path / "rows.csv"
    table.write_text("question,answer\nQ,A\n", "utf-8")
    with pytest.raises(UsageError, match="JSON"):
        Review(table, {}, "Ann").check()


def test_assertions_go_with_the_question_and_the_answer_they_were_of(review):
    held = [{"text": "She sold her boat.", "weight": "vital"}]
    rows = [{**row, "assertions": held} for row in ROWS[:3]]
    content = (
        json.dumps(rows) if review.path.suffix == ".json" else "\n".join(map(json.dumps, rows))
    )
    review.path.write_text(content, "utf-8")
    as_it_was = {"answer": "nine years", "evidence": ["Ada kept the light for nine years."]}
    for n, values in (
        (0, {"question": ROWS[0]["question"], **as_it_was}),
        (1, {"question": "Q?", "answer": "1"}),
    ):
        seen = review.rows()[n]["seen"]
        review.decide(Decision(seen=seen, decision="mended", **values))
    same, other, _ = _read(review.path)
    assert same["assertions"] == other["vetted_by"]["before"]["assertions"] == held
    assert "assertions" not in other
    assert "assertions" not in same["vetted_by"]["before"]


def test_drafting_again_keeps_what_a_person_decided(review):
    seen = [row["seen"] for row in review.rows()]
    review.decide(Decision(seen=seen[0], decision="accepted"))
    mended = Decision(seen=seen[1], decision="mended", question="Which year?", answer="1901")
    review.decide(mended)
    review.decide(Decision(seen=seen[2], decision="rejected"))
    kept = keep_decisions(review.path, ROWS)
    assert [row["question"] for row in kept] == [
        *(ROWS[0]["question"], "Which year?", ROWS[3]["question"])
    ]
