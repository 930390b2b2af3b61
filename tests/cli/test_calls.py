"""What models were told and said, kept beside each answer and shown with it."""

import json
import sqlite3
import zlib
from collections import Counter
from contextlib import closing

import pytest
from support.chromium import browser, findings, overflow, watched
from support.clock_evaluation import ROWS, Evaluation, flat
from support.openai_server import Behaviour, Fault, offline_reply

from graphrag.eval.store.exchanges import _cut
from graphrag.query.client.usage import MOST_OF_A_SCOPE, MOST_OF_A_TEXT, CallAttempt, Exchanges

__all__ = ["browser"]
NOT_KEPT = "Calls: not kept; output.keep_calls keeps them"
UNSEEN = "Calls of the search: none were seen"


def shown(evaluation: Evaluation, *flags: str) -> str:
    return evaluation.done("show", *flags, "--question", "q1", "--calls").output


def test_each_request_that_was_sent_is_kept_as_it_was_with_its_reply(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["tog", "local", "basic"])
    evaluation.write_rows(ROWS[:2])
    failing = iter([Fault(status=500)])
    shows = ROWS[0]["question"]  # of the two, and the order of their requests is not fixed
    server.behaviour = Behaviour(
        offline_reply(),
        lambda n, request: next(failing, None) if shows in str(request.get("messages")) else None,
    )
    before = len(server.records)
    evaluation.done("-q")
    records = server.records[before:]
    asked = Counter(str(m["content"]) for each in records for m in each.messages)
    calls = [each for of in evaluation.calls().values() for each in of]
    chats = [each for each in calls if each["sent"][0][0] != "input"]
    sent = Counter("".join(text) for each in chats for _, text in each["sent"])
    assert sent == asked
    assert len(calls) == len(records) == evaluation.count_calls()
    (failed,) = (each for each in calls if "error" in each["attempt"])
    assert failed["reply"] is None
    embedded = next(each for each in calls if each["sent"][0][0] == "input")
    assert "".join(embedded["reply"] or ()) == "[vectors of 384 numbers]"
    told = shown(evaluation, "--full")
    assert "correctness by openai/gpt-4o" in told
    assert "failed: " in told
    one = next(text for each in chats for _, text in each["sent"] if "built the tower" in str(text))
    assert "".join(one).strip() in told


def test_an_interrupted_run_keeps_what_it_was_told_before(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["local"])
    evaluation.write_rows(ROWS[:1])
    down = Fault(status=401)
    server.behaviour = Behaviour(
        offline_reply(), lambda n, request: down if "messages" in request else None
    )
    evaluation.done("-q", code=1)
    before = len(server.records)
    server.behaviour = Behaviour(offline_reply())
    evaluation.done("-q", "--resume")
    works = {work: [e["attempt"] for e in of] for (_, work), of in evaluation.calls().items()}
    assert {each.endpoint for each in server.records[before:]} == {"chat"}  # the rest is replayed
    assert [a["kind"] for a in works["search"]] == ["embedding", "completion"]
    assert sorted(str(a["phase"]) for a in works["judge"]) == sorted(
        ["correctness", "faithfulness", "relevance", "completeness"]
    )


def test_a_verdict_that_version_1_1_took_from_another_run_is_shown_as_such(asked_copy):
    """Its exchange has no attempt, but the id of that run."""
    with closing(sqlite3.connect(asked_copy.store_path)) as db, db:
        kept = db.execute("SELECT rowid, said FROM exchanges WHERE work = 'judge'").fetchall()
        for row, said in kept:
            old = {"attempt": {}, "earlier_run": "2026-11-01T000000-00000000"}
            exchanges = [{**each, **old} for each in json.loads(zlib.decompress(said))]
            packed = zlib.compress(json.dumps(exchanges).encode())
            db.execute("UPDATE exchanges SET said = ? WHERE rowid = ?", (packed, row))
    told = shown(asked_copy, "--method", "tog")
    assert told.count("the reply of another run: nothing was sent") == 4


def test_responses_judged_again_come_with_the_calls_of_their_searches(asked_copy):
    (first,) = asked_copy.runs()
    asked_copy.done("judge", "latest", "--metrics", "relevance")
    again = asked_copy.runs()[0].run_id
    told, before = (shown(asked_copy, run, "--method", "tog") for run in (again, first.run_id))
    assert told.count("Calls of the judge: 1") == 1
    search = before.partition("Calls of the search")[2].partition("Calls of the judge")[0]
    assert search
    assert search in told


def test_calls_that_are_not_kept_or_not_seen_are_told_apart(make_evaluation):
    evaluation = make_evaluation(
        methods=["own"], variants={"own": {"function": "mine:answer"}}, metrics=["correctness"]
    )
    (evaluation.root / "mine.py").write_text("def answer(question):\n    return 'Idris Vane'\n")
    evaluation.done("-q")
    assert UNSEEN in flat(shown(evaluation))
    evaluation.configure(output={"keep_calls": False})
    evaluation.done("-q")
    assert NOT_KEPT in shown(evaluation)
    with sqlite3.connect(evaluation.store_path) as db:  # as every earlier release left it
        db.executescript("DROP TABLE exchanges; DROP TABLE exchange_parts")
    assert NOT_KEPT in shown(evaluation)
    refused = evaluation.run("show", "--calls")
    assert (refused.exit_code, "--calls goes with --question" in refused.output) == (2, True)


def test_what_has_the_form_of_a_key_is_left_out_of_what_is_kept(make_evaluation, monkeypatch):
    known, formed = "zx81.of.the.environment", "sk-proj-an0therOnesKey4tTheSameService"
    monkeypatch.setenv("PLANTED_API_KEY", known)
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness"])
    evaluation.write_rows([{**ROWS[0], "question": f"Who built the clock? {formed} {known}"}])
    evaluation.done("-q")
    told = str(evaluation.calls())
    assert "Who built the clock? [redacted] [redacted]" in told
    assert formed not in told
    assert known not in told


def test_the_page_unfolds_each_call_by_keys_in_light_and_dark(asked_copy, browser):
    page = (asked_copy.output / "report.html").as_uri()
    for scheme in ("light", "dark"):
        with watched(browser, color_scheme=scheme, viewport={"width": 390, "height": 844}) as tab:
            tab.goto(f"{page}#id=q1")
            tab.locator(".calls > details > summary", has_text="tog").focus()
            tab.keyboard.press("Enter")
            tab.wait_for_selector(".calls li")
            assert tab.inner_text(".calls h3 >> nth=0").startswith("Calls of the search: ")
            assert tab.inner_text(".calls li p >> nth=0").startswith("embedding by openai/text-emb")
            tab.locator(".calls li summary", has_text="system, ").first.focus()
            tab.keyboard.press("Enter")
            assert len(tab.locator(".calls li details[open] pre").first.inner_text()) > 1200
            assert ROWS[0]["question"] in tab.inner_text(".calls")
            assert findings(tab) == []
            assert overflow(tab) == 0


@pytest.mark.parametrize("end", ["\n", "\\n"])
def test_a_passage_makes_equal_parts_wherever_it_stands(end):
    passage = end.join(f"{n}|{'Idris Vane built the tower clock. ' * (n % 9)}" for n in range(600))
    first: dict[int, str] = {}
    second: dict[int, str] = {}
    for before, parts in (("Rules.\n", first), ('Others.\n{"context": "', second)):
        text = f"{before}{passage}"
        pieces = _cut(text, parts)
        assert "".join(parts[p] if isinstance(p, int) else p for p in pieces) == text
    shared = sum(len(text) for number, text in first.items() if number in second)
    assert shared > 0.8 * len(passage)


def test_what_is_held_of_calls_is_bounded():
    exchanges = Exchanges()
    attempt = CallAttempt("completion", "m", "response", 1, 1, "provider", 0.1)
    for number in range(40):
        text = f"{number} begins {'x' * 2 * MOST_OF_A_TEXT} ends"
        exchanges.add(attempt, {"messages": [{"role": "user", "content": text}]}, "so")
    (_, first), (_, last) = (exchanges.listed[n].sent[0] for n in (0, -1))
    assert first.startswith("0 begins x")
    assert first.endswith("x ends")
    assert f"{MOST_OF_A_TEXT + 14:,} characters are left out here" in first
    assert "characters are left out here" in last
    held = sum(len(text) for each in exchanges.listed for _, text in each.sent)
    assert held < MOST_OF_A_SCOPE + 40 * 100
