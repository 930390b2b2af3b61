"""``graphrag eval judge``: responses judged again, without a search being paid for."""

import json

import pandas as pd
import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, LocalServer

from graphrag.eval.results.runs import list_runs
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, StoredResponse

DONE, USAGE, INCOMPLETE = 0, 2, 3


def runs_of(evaluation: Evaluation) -> list[Run]:
    with EvaluationStore(evaluation.store_path) as store:
        return store.runs()


def responses_of(evaluation: Evaluation, run_id: str) -> dict[str, StoredResponse]:
    with EvaluationStore(evaluation.store_path) as store:
        return store.responses(run_id)


@pytest.fixture
def judged(asked_copy: Evaluation) -> Evaluation:
    """Return a copy of an evaluation with one finished run."""
    return asked_copy


def test_another_judge_is_asked_and_no_search_is(judged: Evaluation, server: LocalServer):
    (first,) = runs_of(judged)
    before = len(server.records)
    result = judged.run(
        "judge", first.run_id, "--model", "openai/gpt-4.1", "--metrics", "relevance"
    )
    assert result.exit_code == DONE, result.output
    asked = server.records[before:]
    assert {(each.endpoint, each.model) for each in asked} == {("chat", "gpt-4.1")}
    assert len(asked) == 2 * len(ROWS)
    second, _ = runs_of(judged)
    assert second.setup.judge_model == "openai/gpt-4.1"
    assert second.setup.metrics == ("relevance",)
    assert second.status == "finished"
    assert responses_of(judged, second.run_id) == responses_of(judged, first.run_id)
    figures = json.loads((judged.newest_folder / "eval_results_summary.json").read_text("utf-8"))
    assert figures["metadata"]["run_id"] == second.run_id
    assert figures["counts"]["tog"]["n_scored"] == {
        "correctness": 0,
        "faithfulness": 0,
        "relevance": len(ROWS),
        "completeness": 0,
    }


def test_a_comparison_is_proposed_where_there_is_one(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness", "relevance"])
    evaluation.configure(equal_terms={})
    assert evaluation.run("-q", "--skip-judge").exit_code == DONE
    unjudged = evaluation.run("judge", "latest")
    assert unjudged.exit_code == DONE, unjudged.output
    assert "Compare with:" not in unjudged.output
    assert evaluation.run("-q", "--resume").exit_code == DONE
    (_, first) = runs_of(evaluation)
    both = evaluation.run("judge", first.run_id, "--metrics", "relevance")
    assert "Compare with:" in both.output
    second = runs_of(evaluation)[0]
    compared = evaluation.run("compare", second.run_id, first.run_id)
    assert "verdicts asked of it" not in " ".join(compared.output.split())
    assert "relevance" in compared.output
    neither = evaluation.run("judge", first.run_id, "--metrics", "completeness")
    assert neither.exit_code == DONE, neither.output
    assert "Compare with:" not in neither.output
    # The terms are those under which was searched.
    searched, judged = (
        evaluation.read_results("summary", evaluation.output / "runs" / run.run_id)
        for run in (first, second)
    )
    terms = searched["metadata"]["equal_terms"]
    assert terms is not None
    assert judged["metadata"]["equal_terms"] == terms


@pytest.mark.parametrize("is_gone", [True, False])
def test_nothing_is_measured_on_an_index_that_is_another(judged: Evaluation, is_gone: bool):
    table = judged.project / "output" / "relationships.parquet"
    if is_gone:
        (judged.root / "questions.json").unlink()
        for each in table.parent.glob("*.parquet"):
            each.unlink()
    else:
        frame = pd.read_parquet(table)
        frame["id"] = [f"new-{number}" for number in range(len(frame))]
        frame.to_parquet(table)
    result = judged.run("judge", "latest")
    assert result.exit_code == DONE, result.output
    assert "is not the one that was searched any more" in " ".join(result.output.split())
    assert judged.read_results("summary", judged.newest_folder)["measures"] == {}


def test_what_the_searches_cost_does_not_count_as_spent(judged: Evaluation):
    (first,) = runs_of(judged)
    searches = sum(each.usage.cost_usd or 0 for each in responses_of(judged, first.run_id).values())
    assert searches > 0
    line = judged.run("judge", "latest").output
    with EvaluationStore(judged.store_path) as store:
        judging = store.judge_usage(store.runs()[0].run_id)
    spent = sum(each.cost_usd or 0 for usages in judging.values() for each in usages)
    assert f"${spent:.4f}" in line
    again, origin = list_runs(judged.store_path)
    assert again.cost_usd == pytest.approx(spent)
    assert origin.cost_usd is not None
    assert origin.cost_usd > searches
    assert judged.run("judge", "latest", "--max-cost", f"{spent * 2:f}").exit_code == DONE
    # A judging of a judging goes back to the searches.
    assert [run.setup.responses_of for run in runs_of(judged)] == [
        *(first.run_id, first.run_id, None)
    ]
    stopped = judged.run("judge", "latest", "--max-cost", f"{spent / 4:f}")
    assert stopped.exit_code == INCOMPLETE
    assert "is spent, and the next call takes about $0.0" in " ".join(stopped.output.split())


def test_repeated_verdicts_are_paid_for_and_their_majority_counts(
    judged: Evaluation, server: LocalServer
):
    answered: dict[str, int] = {}

    def unsteady(request: dict[str, object]) -> str:
        key = str(request["messages"])
        answered[key] = answered.get(key, 0) + 1
        return json.dumps({"reason": "said", "score": int(answered[key] != 2)})

    server.behaviour = Behaviour(unsteady)
    before = len(server.records)
    result = judged.run("judge", "latest", "--metrics", "completeness", "--repeats", "3")
    assert result.exit_code == DONE, result.output
    assert len(server.records[before:]) == 3 * 2 * len(ROWS)
    with EvaluationStore(judged.store_path) as store:
        verdicts = store.verdicts(store.runs()[0].run_id)
    for verdict in verdicts.values():
        assert verdict["completeness"].score == 1
        assert sorted(verdict["completeness"].repeats) == [0, 1, 1]
    repeats = judged.read_results("summary", judged.newest_folder)["repeats"]
    assert (repeats["n_trials"], repeats["n_verdicts"]) == (1, 3)
    for figures in repeats["figures"]:
        assert figures["judge_flip_rate"] == pytest.approx(2 / 3)
        assert figures["search_flip_rate"] is None


def test_wrong_use_is_one_sentence(judged: Evaluation):
    for flags, sentence in {
        (): "Name the run whose responses",
        ("nothing",): "holds no run 'nothing'",
        ("latest", "--repeats", "2"): "must be odd",
        ("latest", "--metrics", "relevanc"): "did you mean 'relevance'",
        ("latest", "--resume"): "no unfinished run",
    }.items():
        result = judged.run("judge", *flags)
        assert result.exit_code == USAGE, result.output
        assert sentence in " ".join(result.output.split())
