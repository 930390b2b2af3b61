"""What changed between two runs on every figure, not on correctness alone."""

import json
from typing import Any

import pytest
from support.clock_evaluation import MakeEvaluation
from support.openai_server import Behaviour, LocalServer

from graphrag.eval.compare.figures import compare_figures
from graphrag.eval.results.runs import list_runs

N = 30


def test_a_fall_of_any_figure_is_named(make_evaluation: MakeEvaluation, server: LocalServer):
    evaluation = make_evaluation(
        server.base_url,
        methods=["basic"],
        metrics=["correctness", "completeness"],
        judge={"quality": True},
    )
    evaluation.write_rows(
        [{"id": f"q{i}", "question": f"Who is number {i}?", "answer": "Idris"} for i in range(N)]
    )
    level: dict[str, Any] = {"completeness": 1, "accuracy": 0.9, "words": 3}

    def reply(request: object) -> str:
        text = str(request)
        if "accuracy" in text:
            given = dict.fromkeys(("completeness", "relevance", "overall_score"), 0.5)
            return json.dumps({"reasoning": "said", "accuracy": level["accuracy"], **given})
        if "ground_truth" in text:
            return json.dumps({"reason": "said", "score": 1})
        if '"score"' in text or "score" in text:
            return json.dumps({"reason": "said", "score": level["completeness"]})
        return "Idris [Data: Sources (0)]. " * level["words"]

    server.behaviour = Behaviour(reply)
    assert evaluation.run("-q").exit_code == 0
    level.update(completeness=0, accuracy=0.4, words=40)
    assert evaluation.run("-q").exit_code == 0
    new, old = (run.run_id for run in list_runs(evaluation.store_path))
    changes = compare_figures(new, old, evaluation.store_path)
    found = {change.figure: change for change in changes}
    certain = {name for name, change in found.items() if change.is_certain and change.is_worse}
    assert {"completeness", "quality.accuracy", "tokens"} <= certain
    assert not found["correctness"].is_certain
    assert not found["quality.overall_score"].is_certain
    accuracy = found["quality.accuracy"]
    assert (accuracy.baseline, accuracy.new) == (pytest.approx(0.9), pytest.approx(0.4))
    assert accuracy.difference == pytest.approx(-0.5)
    assert accuracy.n_pairs == N
    shown = evaluation.run("compare", new, old, "--full", COLUMNS="200")
    assert "Undecided for " in shown.output  # it looks at correctness alone, as it did
    assert "Worse: basic, quality.accuracy: 0.9 -> 0.4 over 30 pairs" in shown.output
    assert "Worse: basic, completeness: 1 -> 0 over 30 pairs" in shown.output
    latency = found["latency_s"]
    assert (latency.p, latency.is_certain) == (None, False)
    assert "Latency: basic: " in shown.output
    assert "correctness:" not in shown.output.split("Of ")[1]
