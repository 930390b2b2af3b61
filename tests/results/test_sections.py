"""The figures beyond the verdicts, from ``graphrag eval`` to its files and its terminal."""

import base64
import gzip
import json
import re
from collections import Counter
from typing import Any

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat
from support.lighthouse import METHODS
from support.openai_server import Behaviour, Fault, offline_reply

from graphrag.eval.store.database import EvaluationStore

ERROR, USAGE, INCOMPLETE = 1, 2, 3
EVIDENCE = {
    "q1": ["Idris Vane built the tower clock of Ashcombe."],
    "q2": ["Petra Holm owns the Ashcombe Bank."],
    "q3": ["Tobias Reed stole the silver pendulum of the tower clock."],
}
LABELLED = [
    {
        **row,
        "evidence": EVIDENCE.get(row["id"], []),
        "keywords": ["Idris Vane"] if row["id"] == "q1" else [],
        "expected_entities": ["IDRIS VANE"] if row["id"] == "q1" else [],
    }
    for row in ROWS
]
JUDGES = {"rubric": True, "quality": True, "pairwise": [["tog", "basic"]]}


def kinds_of(evaluation: Evaluation) -> dict[str, int]:
    with EvaluationStore(evaluation.store_path) as store:
        judgements = store.judgements(store.runs()[0].run_id)
    kinds = [judged.kind for judged in judgements]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def is_rubric(request: Any) -> bool:
    return "groundedness" in json.dumps(request.get("response_format", ""))


@pytest.fixture
def labelled(make_evaluation: MakeEvaluation) -> Evaluation:
    evaluation = make_evaluation(methods=["tog", "local", "basic", "closed_book"])
    evaluation.write_rows(LABELLED)
    return evaluation


def test_retrieval_is_measured_and_losses_are_traced(labelled):
    labelled.configure(
        measures={
            "cutoffs": [1, 3],
            "criteria": [
                {"metric": "hit_rate", "minimum": 0.1, "target": 0.2},
                {"metric": "recall", "minimum": 1.1, "target": 1.2},
            ],
        }
    )
    result = labelled.done("--full", COLUMNS="250")
    summary = labelled.read_results("summary")
    hits = {m: found["measures"]["hit_rate"] for m, found in summary["measures"].items()}
    for method in ("tog", "local", "basic"):
        assert hits[method]["estimate"]["n"] == len(EVIDENCE)
        assert hits[method]["n_excluded"] == len(ROWS) - len(EVIDENCE)
        assert hits[method]["estimate"]["mean"] == 1
    assert hits["closed_book"]["estimate"]["mean"] is None  # it retrieves nothing to measure
    loss = {(row["imdb_key"], row["method"]): row for row in summary["loss"]}
    assert loss["clock", "closed_book"]["lost"]["in_context"] == len(EVIDENCE)
    assert {row["n_untraced"] for row in loss.values()} == {len(ROWS) - len(EVIDENCE)}
    assert {c["result"] for c in summary["criteria"] if c["metric"] == "recall"} == {
        "missed",
        "not measured",
    }
    shown = flat(result.output)
    for text in (
        "Measured without a model, in % (95 % interval)",
        "Where answers were lost: each question once, by the first stage",
        "Success criteria",
        "1.000 met target 1.000 met target",
    ):
        assert text in shown.partition("(offline baseline models): ")[2]
    report = json.loads((labelled.output / "retrieval_results.json").read_text("utf-8"))
    assert report["num_questions"] == len(ROWS)
    assert "all  tog" not in result.output  # of one index, that would be the same row again
    assert report["metadata"]["embedded_models"] == "offline baseline models"
    assert "NaN" not in json.dumps(report)
    # what was retrieved is measured again from the store
    labelled.done("judge", "latest", "-q")
    after = labelled.read_results("summary", labelled.newest_folder)
    assert (after["measures"], after["loss"]) == (summary["measures"], summary["loss"])


def test_every_row_of_losses_adds_up_to_the_score_of_every_method(make_evaluation):
    """On the page, on the terminal and in the files, whatever a method needs of the graph."""
    methods = [*METHODS, "closed_book", "oracle"]
    evaluation = make_evaluation(methods=methods, metrics=["correctness"])
    # No entity stands in the evidence of two, one has none, and two are wrong whatever is said.
    evidence = {**EVIDENCE, "q4": ["arrested"], "q5": ["is married to"], "q6": []}
    wrong = {"q3": "Nobody at all", "q6": "A lighthouse"}
    rows = [
        {
            **r,
            "evidence": evidence[r["id"]],
            **({"answer": wrong[r["id"]]} if r["id"] in wrong else {}),
        }
        for r in ROWS
    ]
    evaluation.write_rows(rows)
    shown = evaluation.done("--full", COLUMNS="250").output
    summary = evaluation.read_results("summary")
    table = shown.partition("Where answers were lost")[2].partition("Each question counts")[0]
    page = (evaluation.newest_folder / "report.html").read_text("utf-8")
    packed = page.partition('id="packed-index" type="text/plain">')[2].partition("<")[0]
    index = json.loads(gzip.decompress(base64.b64decode(packed)))
    for row in summary["loss"]:
        scores = [
            of["methods"][row["method"]]["scores"]["correctness"]
            for of in evaluation.read_results("detailed")["results"]
            if row["method"] in of["methods"]
        ]
        n_right = row["n_kept"] + sum(row["right_anyway"].values())
        n_wrong = sum(row["lost"].values()) + row["n_unknown"]
        assert (n_right, n_wrong, row["n_unjudged"]) == (sum(scores), scores.count(0), 0)
        # An oracle is asked only what has evidence.
        assert row["n"] == len(scores) == len(rows) - (row["method"] == "oracle")
        ends = Counter(
            answer["end"]
            for question in index["questions"]
            for answer in question["answers"]
            if answer["method"] == row["method"]
        )
        told = {"right": row["n_kept"], "right_anyway": n_right - row["n_kept"], **row["lost"]}
        assert dict(ends) == {k: n for k, n in (told | {"unknown": row["n_unknown"]}).items() if n}
    for line in [line.split() for line in table.splitlines() if line.startswith("clock ")]:
        assert sum(map(int, line[2:])) == len(rows) - (line[1] == "oracle"), line
    # No red badge beside evidence that was found: what was shown was not lost before.
    for question in index["questions"]:
        for answer in question["answers"]:
            if answer["share"] == 1:
                assert answer.get("lost") in (None, "in_context", "in_answer", "judged_correct")


def test_further_judges_are_asked_once_and_paid_for(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, judge=JUDGES, metrics=["correctness"])
    evaluation.write_rows(LABELLED[:3])
    result = evaluation.done("--full", COLUMNS="250")
    assert kinds_of(evaluation) == {"rubric": 6, "quality": 6, "pairwise:tog:basic": 3}
    summary = evaluation.read_results("summary")
    assert set(summary["rubric"]) == {"tog", "basic"}
    for found in summary["rubric"].values():
        assert {each["n_scored"] for each in found.values()} == {3}
    assert summary["quality"]["tog"]["overall_score"]["n"] == 3
    pair = summary["pairwise"]["tog vs basic"]
    assert pair["n_a"] + pair["n_b"] + pair["n_ties"] == pair["n_pairs"] == 3
    assert summary["further_judges_cost_usd"] > 0
    assert summary["further_judges"]["calls"] == 6 + 6 + 3 * 2
    for text in ("Rubric, 1 to 5", "Quality, 0 to 1", "tog vs basic", "further judges "):
        assert text in result.output
    before = len(server.records)
    evaluation.configure(judge={**JUDGES, "rubric": False})
    evaluation.done("--limit", "1", "-q")
    asked = server.records[before:]
    assert sum(record.endpoint == "chat" for record in asked) == before_count(evaluation) + 2 + 2
    assert kinds_of(evaluation) == {"quality": 2, "pairwise:tog:basic": 1}


def test_progress_counts_the_tokens_that_the_end_of_the_run_counts(make_evaluation, server):
    def broken(n: int, request: Any) -> Fault | None:
        is_third = ROWS[2]["question"] in json.dumps(request.get("messages", ""))
        return Fault(status=400) if is_third and not is_rubric(request) else None

    server.behaviour = Behaviour(offline_reply(), faults=broken)
    evaluation = make_evaluation(server.base_url, methods=["basic"], judge={"rubric": True})
    first = told_tokens(evaluation.done("--limit", "3", "--full").output)
    server.behaviour = Behaviour(offline_reply())
    again = told_tokens(evaluation.done("--limit", "3", "--retry-errors", "--full").output)
    assert first[-2] == first[-1] == again[0]
    assert again[-2] == again[-1] > first[-1]


def told_tokens(output: str) -> list[int]:
    """Return the tokens of the lines of progress, and of the table of what the run took."""
    progress = re.findall(r"^\d+/\d+ ([\d,]+) tokens", output, re.MULTILINE)
    took = re.findall(r"total +[\d,]+ +([\d,]+)", output.split("What the run took")[1])
    return [int(n.replace(",", "")) for n in (*progress, took[0])]


def before_count(evaluation: Evaluation) -> int:
    """Return the completions of the searches and of the verdicts of the newest run."""
    with EvaluationStore(evaluation.store_path) as store:
        run_id = store.runs()[0].run_id
        searches = sum(r.usage.llm_calls for r in store.responses(run_id).values())
        judged = [u for usages in store.judge_usage(run_id).values() for u in usages]
    return searches + sum(usage.llm_calls for usage in judged)


def test_a_rubric_that_stays_unreadable_is_unscored_and_asked_again(make_evaluation, server):
    def broken(n: int, request: Any) -> Fault | None:
        return Fault(content="five stars") if is_rubric(request) else None

    server.behaviour = Behaviour(offline_reply(), faults=broken)
    evaluation = make_evaluation(server.base_url, methods=["basic"], judge={"rubric": True})
    first = evaluation.done(code=INCOMPLETE)
    assert f"rubric: {len(ROWS)} judgments unscored" in first.output
    assert "--retry-errors" in first.output
    found = evaluation.read_results("summary")["rubric"]["basic"]["relevance"]
    assert (found["n_planned"], found["n_scored"], found["mean"]) == (len(ROWS), 0, None)
    server.behaviour = Behaviour(offline_reply())
    before = len(server.records)
    evaluation.done("--retry-errors", "-q")
    assert len(server.records) - before == len(ROWS)
    found = evaluation.read_results("summary")["rubric"]["basic"]["relevance"]
    assert found["n_scored"] == len(ROWS)


def test_a_refused_further_judge_stops_the_run_and_it_can_be_resumed(make_evaluation, server):
    def refused(n: int, request: Any) -> Fault | None:
        return Fault(status=401) if is_rubric(request) else None

    server.behaviour = Behaviour(offline_reply(), faults=refused)
    evaluation = make_evaluation(server.base_url, methods=["basic"], judge={"rubric": True})
    stopped = evaluation.done(code=ERROR)
    assert "The judge's service refuses the requests" in flat(stopped.output)
    server.behaviour = Behaviour(offline_reply())
    before = len(server.records)
    evaluation.done("--resume", "-q")
    assert len(server.records) - before == len(ROWS)


def test_wrong_pairs_are_one_sentence(labelled):
    labelled.configure(judge={"pairwise": [["tog", "drift"]]})
    result = labelled.done("-q", code=USAGE)
    assert "tog and drift are not two of the methods" in flat(result.output)
