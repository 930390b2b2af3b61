"""A run that is watched: it stops when it has got worse, and every surface says FAIL."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation, judging
from support.openai_server import Behaviour, LocalServer

from graphrag.eval.statistics import EARLY_ALPHA, early_stop_evidence

PASS, USAGE, FAIL = 0, 2, 100
N = 60


@pytest.fixture
def pinned(pinned_run: Callable[[int], Evaluation]) -> Evaluation:
    """Return an evaluation of many questions whose pinned run answered them all rightly."""
    return pinned_run(N)


def test_a_run_that_gets_everything_wrong_stops_and_fails(pinned: Evaluation, server: LocalServer):
    server.behaviour = Behaviour(judging(lambda number: False))
    result = pinned.run("--baseline", "pinned", "--early-stop")
    assert result.exit_code == FAIL, result.output
    text = " ".join(result.output.split())
    assert "has got worse than the baseline beyond doubt (level 2.5 % over" in text
    assert "stopped early on the evidence of newly wrong answers" in text
    results = pinned.read_results()
    needed = next(n for n in range(N) if early_stop_evidence(n, 0) >= 1 / EARLY_ALPHA)
    assert needed <= len(results["results"]) <= needed + 1
    assert [entry["id"] for entry in results["results"]] != [f"q{i}" for i in range(needed)]


def test_an_unchanged_run_is_asked_to_the_end(pinned: Evaluation):
    result = pinned.run("--baseline", "pinned", "--early-stop", "-q")
    assert result.exit_code == PASS, result.output
    results = pinned.read_results()["results"]
    assert [entry["id"] for entry in results] == [f"q{i}" for i in range(N)]


def test_without_the_flag_every_question_is_asked(pinned: Evaluation, server: LocalServer):
    server.behaviour = Behaviour(judging(lambda number: False))
    assert pinned.run("--baseline", "pinned", "-q").exit_code == FAIL
    assert len(pinned.read_results()["results"]) == N


def test_the_level_that_is_left_for_the_end_is_half(pinned: Evaluation, server: LocalServer):
    # Five newly wrong: p = 1/32, below 5 % but not below 2.5 %.
    server.behaviour = Behaviour(judging(lambda number: number % 12 != 0))
    assert pinned.run("--baseline", "pinned", "-q").exit_code == FAIL
    watched = pinned.run("--baseline", "pinned", "--early-stop", "-q")
    assert watched.exit_code not in (PASS, FAIL), watched.output


def test_it_needs_a_baseline(pinned: Evaluation):
    result = pinned.run("--early-stop")
    assert result.exit_code == USAGE
    assert "--early-stop needs --baseline" in result.output


MODULE = """
from graphrag.eval.run.methods import MethodAnswer

async def good(question):
    return MethodAnswer("It was Idris.", (), 2, 30, 4, 0.0)

async def bad(question):
    return MethodAnswer("It was Nobody.", (), 3, 30, 4, 0.0)
"""


def test_a_run_stops_once_its_winner_is_certain(
    make_evaluation: MakeEvaluation, server: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    def grade(request: Any) -> str:
        return json.dumps(
            {"reason": "said", "score": int("Nobody" not in str(request["messages"]))}
        )

    server.behaviour = Behaviour(grade)
    evaluation = make_evaluation(
        server.base_url,
        methods=[{"name": name, "function": f"raced:{name}"} for name in ("bad", "good")],
        metrics=["correctness"],
    )
    (evaluation.root / "raced.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(evaluation.root)
    evaluation.write_rows(
        [{"id": f"q{i}", "question": f"Who is number {i}?", "answer": "Idris"} for i in range(N)]
    )
    result = evaluation.run("--early-stop", "--full", COLUMNS="200")
    assert result.exit_code == PASS, result.output
    text = " ".join(result.output.split())
    race = json.loads((evaluation.output / "eval_results_summary.json").read_text("utf-8"))[
        "metadata"
    ]
    stopped, n_done = race["early_stop"], race["n_done"]
    needed = next(n for n in range(N) if early_stop_evidence(n, 0) / 2 >= 1 / EARLY_ALPHA)
    assert (stopped["stopped_early"], stopped["winner"]) == (True, "good")
    assert stopped["questions_counted"] == needed < n_done / 2 + 1 < N
    assert f"Stopped after {needed} of {N} questions, as good beats every other method" in text
    saved = 2 * N - n_done
    assert f"{saved} of {2 * N} searches not made, and about {saved * 7 // 2} model calls" in text
    assert f"stopped early: {n_done} of {2 * N}" in text
    assert "good better than bad" in text
    assert "wherever a run stops" in text
    shown = evaluation.run("show", COLUMNS="200")
    assert "stopped early" in " ".join(shown.output.split()), shown.output

    resumed = evaluation.run("--resume", "--full", COLUMNS="200")
    assert resumed.exit_code == PASS, resumed.output
    assert "The run was watched for a winner" in " ".join(resumed.output.split())
    summary = json.loads((evaluation.output / "eval_results_summary.json").read_text("utf-8"))
    assert summary["metadata"]["early_stop"]["stopped_early"] is False
    (compared,) = summary["comparisons"]
    assert compared["n_pairs"] == N
    assert compared["p_holm"] == pytest.approx(2 * compared["p"])


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--metrics", "none"), "needs a metric to win on"),
        (("--skip-judge",), "--early-stop needs verdicts"),
    ],
)
def test_a_race_that_no_method_can_win_is_refused(
    make_evaluation: MakeEvaluation, flags: tuple[str, ...], sentence: str
):
    result = make_evaluation().run("--early-stop", *flags)
    assert result.exit_code == USAGE
    assert sentence in " ".join(result.output.split())
