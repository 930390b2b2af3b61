"""Figures that no answer can take: they fail that answer, and make no run unreadable."""

import json
import sqlite3
from typing import Any
from uuid import uuid4

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.http_service import serving

LARGE = "1" + "0" * 400
METHOD = """
from graphrag.eval.runner import MethodAnswer
async def answer(question):
    NaN, Infinity, true = float("nan"), float("inf"), True
    figures = {{"llm_calls": 1, "prompt_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}}
    if question == {question!r}:
        figures["{name}"] = {value}
    return MethodAnswer("Idris Vane", **figures)
"""

SILENT = """
async def answer(question):
    if question != {answered!r}:
        raise RuntimeError("down")
    return "Idris Vane"
"""
QUOTE = "Idris Vane built the tower clock of\nAshcombe."


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    evaluation = make_evaluation()
    evaluation.write_rows(ROWS[:2])
    return evaluation


def ask_function(evaluation: Evaluation, code: str) -> None:
    module = f"mine_{uuid4().hex}"
    (evaluation.root / f"{module}.py").write_text(code, encoding="utf-8")
    evaluation.configure(methods=[{"name": "own", "function": f"{module}:answer"}])
    evaluation.done("--skip-judge")


def check_one_failed(evaluation: Evaluation, name: str, value: str) -> None:
    failed, answered = evaluation.responses()
    if failed.failure is None:
        failed, answered = answered, failed
    assert (answered.failure, answered.usage.cost_usd, answered.usage.is_counted) == (
        *(None, 0.5),
        True,
    )
    said = failed.failure.message
    assert f"{name} is " in said
    assert "can only be a number from 0 to 1,000,000" in said
    assert value.strip('"')[:2].casefold() in said.casefold()
    assert len(said) < 300
    assert (failed.usage.cost_usd, failed.usage.is_counted) == (None, False)
    for line in (("show",), ("show", "latest", "--full"), ("--resume",)):
        evaluation.done(*line)


@pytest.mark.parametrize(
    ("name", "value"),
    [("cost_usd", "NaN"), ("cost_usd", "-1"), ("prompt_tokens", LARGE), ("llm_calls", "true")],
)
def test_an_absurd_figure_of_a_function_fails_its_answer(evaluation, name, value):
    code = METHOD.format(question=ROWS[0]["question"], name=name, value=value)
    ask_function(evaluation, code)
    check_one_failed(evaluation, name, value)


@pytest.mark.parametrize("value", ["1e308", "Infinity", LARGE, '"12"'])
def test_an_absurd_figure_of_a_service_fails_its_answer(evaluation, value):
    first = json.dumps(ROWS[0]["question"]).encode()

    def answer(_: str, body: bytes, __: Any) -> tuple[int, bytes]:
        cost = value if first in body else "0.5"
        return 200, f'{{"answer": "Idris Vane", "n": 1, "cost": {cost}}}'.encode()

    told = {"llm_calls": 1, "prompt_tokens": "n", "output_tokens": "n", "cost_usd": "cost"}
    with serving(answer) as address:
        block = {"url": address, "body": {"q": "{question}"}, **told}
        evaluation.configure(methods=[{"name": "rag", "http": block}])
        evaluation.done("--skip-judge")
        check_one_failed(evaluation, "cost", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("cost_usd", "1e308"), ("cost_usd", "NaN"), ("llm_calls", LARGE)],
)
def test_a_store_that_holds_one_is_shown_and_resumed(evaluation, name, value):
    code = METHOD.format(question="", name="cost_usd", value="0")
    ask_function(evaluation, code)
    with sqlite3.connect(evaluation.output / "eval.db") as db:
        unit, usage = db.execute("SELECT unit, usage FROM responses").fetchone()
        changed = json.loads(usage) | {name: "@"}
        text = json.dumps(changed).replace('"@"', value)
        db.execute("UPDATE responses SET usage = ?, latency_s = 1e308 WHERE unit = ?", (text, unit))
    db.close()
    for line in (("show",), ("show", "latest", "--full"), ("--resume",)):
        evaluation.done(*line)
    odd = next(each for each in evaluation.responses() if each.unit == unit)
    assert (odd.usage.cost_usd, odd.usage.is_counted, odd.latency_s) == (None, False, None)
    assert odd.response == "Idris Vane"


def test_failed_searches_are_no_figure_of_what_nobody_knows_or_asks(evaluation):
    rows = [{**row, "evidence": [QUOTE]} for row in ROWS[:3]]
    evaluation.write_rows([*rows[:2], {**rows[2], "answerable": False}])
    module = f"mine_{uuid4().hex}"
    code = SILENT.format(answered=ROWS[0]["question"])
    (evaluation.root / f"{module}.py").write_text(code, encoding="utf-8")
    evaluation.configure(
        methods=[{"name": "own", "function": f"{module}:answer"}], judge={"quality": True}
    )
    evaluation.done()
    measures = evaluation.read_results("summary")["measures"]["own"]["measures"]
    shown = ("shown_hit_rate", "shown_recall", "shown_unit_recall")
    assert [measures[name]["estimate"]["n"] for name in shown] == [0, 0, 0]
    results = evaluation.read_json("evaluation.json")["results"]
    assert [row["judge_score"] for row in results[1:]] == [0.0, None]
    assert results[0]["judge_score"] > 0
