"""``graphrag eval draft`` over HTTP: what is kept, said, and not paid for twice."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation, flat
from support.openai_server import Behaviour, Fault, LocalServer, offline_reply
from support.projects import server_settings

from graphrag.eval.errors import StoreError
from graphrag.eval.store.session import CallFile


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    return make_evaluation(server.base_url)


def drafted(evaluation: Evaluation) -> Path:
    return evaluation.root / "eval" / "drafted_questions.json"


def calls(evaluation: Evaluation, of: str = "questions") -> list[str]:
    path = evaluation.root / "eval" / f"drafted_{of}.calls.jsonl"
    return path.read_text("utf-8").splitlines()


def test_a_draft_that_was_stopped_goes_on_without_paying_twice(evaluation, server):
    draft = ("draft", "-n", "4", "--kinds", "fact,unanswerable")
    before = len(server.records)

    def refuse(n: int, _: object) -> Fault | None:
        return Fault(status=401, message="no key") if n > before + 5 else None

    server.behaviour = Behaviour(offline_reply(), refuse)
    assert "Continue with:" in evaluation.done(*draft, code=3).stderr
    kept = len(calls(evaluation))
    assert 0 < kept < 7
    server.behaviour = Behaviour(offline_reply())
    before = len(server.records)
    assert "4 questions kept of 4" in evaluation.done(*draft).stdout
    rows = json.loads(drafted(evaluation).read_text(encoding="utf-8"))
    assert [row["kind"] for row in rows] == ["fact", "fact", "unanswerable", "unanswerable"]
    sent = len(server.records) - before
    assert sent == len(calls(evaluation)) - kept
    told = evaluation.run(*draft).stdout
    assert f"{len(calls(evaluation))} of the calls are of an earlier draft and not sent" in told
    assert len(server.records) - before == sent
    assert "Then set dataset.path to eval/drafted_questions.json in eval_config.yaml." in told
    evaluation.configure(dataset={"path": "eval/drafted_questions.json"})
    assert "dataset.path" not in evaluation.run(*draft).stdout
    run = evaluation.done("--methods", "basic")
    unvetted = "No person has vetted any of the 4 questions; review them with: graphrag eval"
    assert f"{unvetted} view --review eval/drafted_questions.json --root" in flat(run.output)
    rows[0]["vetted_by"] = {"name": "Ann", "decision": "accepted", "time": "2026-01-01"}
    drafted(evaluation).write_text(json.dumps(rows), encoding="utf-8")
    first = evaluation.runs()[0].run_id
    again = evaluation.run("--methods", "basic")
    assert "1 of 4 questions are gold: a person accepted or mended them." in again.output
    shown = evaluation.run("show", first)  # as it was when that run began
    assert "No person has vetted any of the 4 questions" in shown.output, shown.output


def test_a_draft_whose_replies_can_not_be_kept_stops(evaluation, server, monkeypatch):
    def full(self: CallFile, key: str, call: object) -> None:
        raise StoreError("the file of calls can't be written: No space left; make room.")

    monkeypatch.setattr(CallFile, "finish", full)
    before = len(server.records)
    result = evaluation.done("draft", "-n", "30", "--kinds", "fact", code=1)
    assert "can't be written: No space left; make room." in flat(result.stderr)
    assert len(server.records) - before <= 30, "nothing is asked beside the first batch"


def test_a_limit_holds_for_the_whole_draft(evaluation, server):
    draft = ("draft", "-n", "4", "--kinds", "fact,unanswerable", "--max-cost", "0.005")
    for _ in range(2):  # what the first one paid is not there to be spent again
        stopped = flat(evaluation.done(*draft, code=3).stderr)
        spent = re.findall(r"Stopped at the allowed \$0.005: \$([\d.]+) is spent in all", stopped)
        assert 0.001 < float(spent[0]) < 0.007
    more = re.findall(r"--max-cost (\S+)", stopped.partition("Continue with: ")[2])
    assert float(more[0]) > 0.005
    before = len(server.records)
    fewer = ("draft", "-n", "2", "--kinds", "unanswerable", "--max-cost", "0.001")
    stopped = flat(evaluation.done(*fewer, code=3).stderr)
    assert f"${spent[0]} is spent in all" in stopped, "also for what is not drafted any more"
    assert len(server.records) == before


def test_a_limit_needs_a_price(evaluation, server):
    evaluation.write_settings(server_settings(server.base_url, "somebodys-model"))
    before = len(server.records)
    refused = flat(evaluation.done("draft", "-n", "1", "--max-cost", "1", code=2).stderr)
    assert "--max-cost needs the price of openai/somebodys-model" in refused
    assert refused.endswith("leave --max-cost out, and use -n to bound the cost.")
    assert len(server.records) == before


def test_a_dry_run_asks_nothing(evaluation, server):
    (evaluation.root / "questions.csv").write_text("question,answer\n")  # as init leaves it
    evaluation.configure(dataset={"path": "questions.csv"})
    before = len(server.records)
    assert "calls if every draft is kept" in evaluation.done("draft", "--dry-run").stdout
    assert len(server.records) == before
    assert not drafted(evaluation).exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--kinds", "facts"), "did you mean 'fact'? Known: fact, "),
        (("--kinds", ","), "names none"),
        (("--styles", "keyword"), "there is no style 'keyword'; did you mean 'keywords'?"),
        (("--for", " "), "--for names nobody"),
        (("--output", "results"), "ends in .json"),
        (("--max-cost", "0.0000001", "-n", "1", "--kinds", "fact"), "0 questions kept of 1"),
        (
            ("--max-cost", "0.0000001", "-n", "99", "--kinds", "link"),
            "sources to draft link questions from; 99 were wanted.",
        ),
    ],
)
def test_what_can_not_be_drafted_is_said(evaluation, flags, said):
    result = evaluation.run("draft", *flags)
    assert result.exit_code in (2, 3), result.output
    assert said in flat(result.output)


def test_an_index_without_places_for_a_kind_says_what_its_texts_lack(evaluation):
    (evaluation.project / "output" / "relationships.parquet").unlink()
    told = flat(evaluation.done("draft", "--dry-run", "-n", "15", "--kinds", "link").stdout)
    lacking = "clock has no name that joins a few of its texts, so no question of kind link can be"
    assert f"{lacking} drafted (15 wanted)." in told


def test_assertions_are_proposed_for_rows_and_kept_where_these_support_them(evaluation, server):
    rows = [
        {"id": "q1", "question": "Who built the clock?", "answer": "Idris Vane", "level": 2},
        {
            "id": "q2",
            "question": "Which bank does Petra Holm own?",
            "answer": "The Ashcombe Bank",
            "evidence": ["Petra Holm owns the Ashcombe Bank. Tobias Reed left Ashcombe."],
        },
        {"id": "q3", "question": "Where?", "expected_sources": ["clock.txt"]},
        {"id": "q4", "question": "When?", "assertions": ["At noon."]},
    ]
    evaluation.write_rows(rows)
    offline = offline_reply()

    def reply(request: dict[str, Any]) -> str:
        text = offline(request)
        if text.startswith('{"assertions"') and "Petra" in text:
            made_up = {"text": "Petra Holm was born in Ulm.", "weight": "okay", "must": "say"}
            return json.dumps({"assertions": [*json.loads(text)["assertions"], made_up]})
        return text

    draft = ("draft", "--assertions", "questions.json")
    before = len(server.records)
    assert "About 6 calls for 3 rows" in evaluation.done(*draft, "--dry-run").stdout
    assert len(server.records) == before

    def refuse(n: int, _: object) -> Fault | None:
        # The second request is under way when the first row's next one stops it all.
        return Fault(hang_s=1.0) if n == before + 2 else refused if n > before + 2 else None

    refused = Fault(status=401, message="no key")
    server.behaviour = Behaviour(reply, refuse)
    assert "Continue with:" in evaluation.done(*draft, code=3).stderr
    assert len(calls(evaluation, "assertions")) == 2
    server.behaviour = Behaviour(reply)
    result = evaluation.done(*draft, code=3)  # q3 says nothing that one could be held to
    assert "2 of 3 rows got assertions, 2 of them vital and 1 okay." in result.stdout
    assert "1 thrown away: the row has neither an answer nor quotes" in result.stdout
    assert "1 thrown away: the row's answer and quotes do not bear it out" in result.stdout
    answered = [record for record in server.records[before:] if record.status == 200]
    assert len(answered) == 4
    path = evaluation.root / "eval" / "drafted_assertions.json"
    q1, q2, q3, q4 = json.loads(path.read_text(encoding="utf-8"))
    vital = {"text": "Idris Vane", "weight": "vital", "must": "say"}
    assert q1 == {**rows[0], "imdb_key": "clock", "assertions": [vital]}
    assert [each["weight"] for each in q2["assertions"]] == ["vital", "okay"]
    assert q3 == {**rows[2], "imdb_key": "clock"}
    assert q4["assertions"] == [{**vital, "text": "At noon."}]
    evaluation.configure(dataset={"path": "eval/drafted_assertions.json"})
    evaluation.done("--methods", "basic")


def test_a_draft_of_the_embedded_models_is_a_rehearsal_and_its_rows_say_so(make_evaluation):
    evaluation = make_evaluation()
    done = evaluation.done("draft", "-n", "1", "--kinds", "unanswerable")
    assert done.stderr.startswith("Starting ...\nThis is a rehearsal: "), done.stderr
    assert done.stdout.startswith("Rehearsal: 1 question kept of 1")
    (row,) = json.loads(drafted(evaluation).read_text(encoding="utf-8"))
    assert row["tags"] == ["rehearsal"]
    evaluation.configure(dataset={"path": "eval/drafted_questions.json"})
    assert "1 of 1 question is a rehearsal" in evaluation.run("--dry-run").output
    evaluation.write_rows([{"question": "Who built the clock?", "answer": "Vane", "tags": "mine"}])
    done = evaluation.run("draft", "--assertions", "questions.json")
    assert done.stdout.startswith("Rehearsal: 1 of 1 row got assertions")
    (row,) = json.loads((evaluation.root / "eval" / "drafted_assertions.json").read_text("utf-8"))
    assert row["tags"] == ["mine", "rehearsal"]


def test_a_draft_of_a_language_model_is_no_rehearsal(evaluation):
    done = evaluation.done("draft", "-n", "1", "--kinds", "unanswerable")
    assert "ehearsal" not in done.output
    (row,) = json.loads(drafted(evaluation).read_text(encoding="utf-8"))
    assert "tags" not in row


def test_a_draft_in_a_file_of_its_own_says_what_was_sent_before_and_what_to_type_next(
    evaluation, server
):
    draft = ("draft", "-n", "2", "--kinds", "fact", "--output", "eval/own.json")
    before = len(server.records)
    fault = lambda n, _: Fault(status=500) if n == before + 2 else None  # noqa: E731
    server.behaviour = Behaviour(offline_reply(), fault)
    evaluation.done(*draft)
    sent = len(server.records) - before
    told = flat(evaluation.done(*draft).stdout)
    assert len(server.records) == before + sent
    # The attempt that failed was sent as well, and is sent no more.
    assert f"{sent} calls" in told
    assert f"{sent} of the calls are of an earlier draft" in told
    line = told.partition("vet them with ")[2].partition(" Then set")[0]
    assert shlex.split(line)[2:] == [
        *("view", "--review", str(evaluation.root / "eval" / "own.json")),
        *("--root", str(evaluation.root)),
    ]


def test_a_draft_that_came_short_asks_again_for_replies_that_can_not_be_used(evaluation, server):
    draft, offline, requests = ("draft", "-n", "1", "--kinds", "fact"), offline_reply(), []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return offline(request) if len(requests) == 1 else "Yes."

    server.behaviour = Behaviour(reply)
    said = flat(evaluation.done(*draft, code=3).stdout)
    assert "Ask again for replies that can't be used with: graphrag eval draft" in said
    server.behaviour = Behaviour(offline)
    said = flat(evaluation.done(*draft).stdout)
    assert "1 question kept of 1" in said
    assert "Ask again" not in said
    assert "3 of the calls are of an earlier draft" in said, "the proposal, and two of its proof"


def test_a_second_draft_into_the_same_file_is_told_so_and_sends_nothing(evaluation, server):
    draft, before = ("draft", "-n", "2", "--kinds", "fact"), len(server.records)
    with CallFile(drafted(evaluation).with_suffix(".calls.jsonl")):
        told = flat(evaluation.done(*draft, code=1).stderr)
    assert "Another process writes" in told
    assert "wait for it, or choose another --output" in told
    assert len(server.records) == before
    assert not drafted(evaluation).exists()
    evaluation.done(*draft)
