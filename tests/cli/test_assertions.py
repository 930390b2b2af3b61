"""Assertions of a dataset's rows, ruled on in a run over HTTP, and what their rulings come to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat
from support.openai_server import Behaviour, Fault, LocalServer, Record, offline_reply

from graphrag.eval.results.runs import list_runs
from graphrag.eval.store.database import EvaluationStore

ERROR = 1
HELD = [
    "Idris Vane built it. S",
    {"text": "It was built in 1911. C"},
    {"text": "It has four faces. M"},
    {"text": "The bank paid for it. C", "must": "not_say"},
    {"text": "Clara Reed paid for it. S", "must": "not_say"},
    {"text": "It stands in Ashcombe. S", "weight": "okay"},
]
"""The letter at the end is the ruling that the server gives."""
VITAL, WITH_OKAY = 2 / 5, 2.5 / 5.5
_RULINGS = {"S": "supported", "C": "contradicted", "M": "missing"}
METHODS = """
from graphrag.eval.runner.custom_methods import MethodAnswer

async def said(question):
    return "Idris Vane."

async def silent(question):
    return MethodAnswer("No idea.", abstained=True)

async def frail(question):
    if "bank" in question:
        raise ConnectionError("the service is down")
    return "Idris Vane."
"""
_offline = offline_reply()


def statements_of(messages: Any) -> dict[str, str]:
    text = str(messages[-1]["content"])
    found = '"statements": ' in text
    return json.loads(text.partition("Material:\n")[2])["statements"] if found else {}


def reply(request: dict[str, Any], rulings: Mapping[str, str] = _RULINGS) -> str:
    """Rule on statements by their last letter; of several the last is skipped."""
    held = statements_of(request["messages"])
    if not held:
        return _offline(request)
    return json.dumps(
        {
            "rulings": [
                {"number": int(n), "reason": f"because {n}", "ruling": rulings[held[n][-1]]}
                for n in list(held)[: -1 if len(held) > 1 else None]
            ]
        }
    )


@pytest.fixture
def evaluation(
    make_evaluation: MakeEvaluation,
    server: LocalServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Evaluation:
    """q1 and q2 have assertions, q2 has no answer; q3 has an answer alone."""
    module = f"held_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{module}.py").write_text(METHODS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    server.behaviour = Behaviour(reply)
    names = ("said", "silent", "frail")
    made = make_evaluation(
        server.base_url,
        methods=[{"name": name, "function": f"{module}:{name}"} for name in names],
        metrics=["correctness"],
    )
    rows = [dict(row) for row in ROWS[:3]]
    rows[0]["assertions"] = rows[1]["assertions"] = HELD
    del rows[1]["answer"]
    made.write_rows(rows)
    return made


def rulings_of(records: list[Record]) -> list[dict[str, str]]:
    return [held for record in records if (held := statements_of(record.messages))]


def paid_for_rulings(evaluation: Evaluation) -> int:
    with EvaluationStore(evaluation.store_path) as store:
        kept = store.judgements(store.runs()[0].run_id)
    assert {each.kind for each in kept} == {"assertions"}
    return sum(each.usage.llm_calls for each in kept)


def test_each_response_is_held_to_its_assertions(evaluation, server):
    dry = evaluation.run("--dry-run")
    assert "Judge calls:      12," in dry.output, dry.output  # 6 verdicts, 6 responses held
    before = len(server.records)
    result = evaluation.done("--full")
    asked = rulings_of(server.records[before:])
    # Each reply skips the last: that one is asked for again, alone. Who says nothing is not held.
    assert sorted(map(len, asked)) == [1, 1, 1, 6, 6, 6]
    assert all(list(held) == ["6"] for held in asked if len(held) == 1)
    assert paid_for_rulings(evaluation) == len(asked)

    held = evaluation.read_results("summary")["assertions"]
    means = {m: (of["vital"]["mean"], of["with_okay"]["mean"]) for m, of in held.items()}
    assert means["said"] == pytest.approx((VITAL, WITH_OKAY))
    assert means["silent"] == (0, 0)  # not even of what must not be said
    assert means["frail"] == pytest.approx((VITAL / 2, WITH_OKAY / 2))  # a failed search is 0
    assert {of["vital"]["n"] for of in held.values()} == {2}
    assert held["said"]["rulings"] == {"met": 4, "contradicted": 2, "missing": 2, "said": 2}
    assert "Assertions met, in %" in result.output

    q1, q2, q3 = evaluation.read_results()["results"]
    assert q2["methods"]["said"]["scores"]["correctness"] is None
    assert "assertions" not in q3["methods"]["said"]
    ruled = q1["methods"]["said"]["assertions"]["rulings"]
    assert [each["is_met"] for each in ruled] == [True, False, False, True, False, True]

    shown = flat(evaluation.run("show", "--question", "q1").output)
    assert "assertion not met (vital, must not be said): Clara Reed paid for it. S" in shown
    assert "(contradicted: because 2)" in shown


def test_a_stopped_run_goes_on_without_paying_again(evaluation, server):
    evaluation.configure(concurrency=1)
    before, n_ruled = len(server.records), 0

    def third(n: int, request: Any) -> Fault | None:
        nonlocal n_ruled
        n_ruled += bool(statements_of(request["messages"]))
        return Fault(status=401) if n_ruled > 3 else None

    server.behaviour = Behaviour(reply, faults=third)
    evaluation.done(code=ERROR)
    server.behaviour = Behaviour(reply)
    evaluation.done("--resume")
    answered = [r for r in server.records[before:] if r.status == 200]
    assert len(rulings_of(answered)) == 6
    assert paid_for_rulings(evaluation) == 6
    (first,) = list_runs(evaluation.store_path)  # as history, compare and the dashboard have it
    assert first.means["frail"]["assertions.vital"] == pytest.approx(VITAL / 2)
    assert first.n["frail"]["assertions.vital"] == 2
    # Said of everything, what must not be said counts against it.
    rulings = dict.fromkeys(_RULINGS, "supported")
    server.behaviour = Behaviour(lambda request: reply(request, rulings))
    evaluation.done("-q")
    newest, first = list_runs(evaluation.store_path)
    means = [each.means["said"]["assertions.vital"] for each in (first, newest)]
    assert means == pytest.approx([0.4, 0.6])
