"""``graphrag eval judge``: responses judged again, without a search being paid for."""

import json
from typing import Any

import pandas as pd
import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, Fault, LocalServer, Record, offline_reply
from support.projects import server_settings

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


def asked_since(server: LocalServer, before: int) -> list[Record]:
    return server.records[before:]


@pytest.fixture
def judged(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    evaluation = make_evaluation(server.base_url)
    assert evaluation.run("-q").exit_code == DONE
    return evaluation


def test_another_judge_is_asked_and_no_search_is(judged: Evaluation, server: LocalServer):
    (first,) = runs_of(judged)
    before = len(server.records)
    result = judged.run(
        "judge", first.run_id, "--model", "openai/gpt-4.1", "--metrics", "relevance"
    )
    assert result.exit_code == DONE, result.output
    asked = asked_since(server, before)
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
    assert evaluation.run("-q").exit_code == DONE
    (first,) = runs_of(evaluation)
    both = evaluation.run("judge", first.run_id, "--metrics", "relevance")
    assert "Compare with:" in both.output
    second = runs_of(evaluation)[0]
    compared = evaluation.run("compare", second.run_id, first.run_id)
    assert "verdicts asked of it" not in " ".join(compared.output.split())
    assert "relevance" in compared.output
    neither = evaluation.run("judge", first.run_id, "--metrics", "completeness")
    assert neither.exit_code == DONE, neither.output
    assert "Compare with:" not in neither.output


def test_responses_without_verdicts_are_nothing_to_compare_with(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness"])
    assert evaluation.run("-q", "--skip-judge").exit_code == DONE
    result = evaluation.run("judge", "latest")
    assert result.exit_code == DONE, result.output
    assert "Compare with:" not in result.output


def test_it_works_after_the_index_and_the_dataset_are_gone(judged: Evaluation):
    (judged.root / "questions.json").unlink()
    for table in (judged.project / "output").glob("*.parquet"):
        table.unlink()
    result = judged.run("judge", "latest")
    assert result.exit_code == DONE, result.output
    assert "index clock is not the one that was searched any more" in " ".join(
        result.output.split()
    )
    assert judged.read_results("summary", judged.newest_folder)["measures"] == {}


def test_nothing_is_measured_on_an_index_that_was_rebuilt(judged: Evaluation):
    table = judged.project / "output" / "relationships.parquet"
    frame = pd.read_parquet(table)
    frame["id"] = [f"new-{number}" for number in range(len(frame))]
    frame.to_parquet(table)
    result = judged.run("judge", "latest")
    assert result.exit_code == DONE, result.output
    assert "is not the one that was searched any more" in " ".join(result.output.split())
    assert judged.read_results("summary", judged.newest_folder)["measures"] == {}


def test_a_judging_of_a_judging_goes_back_to_the_searches(judged: Evaluation):
    (first,) = runs_of(judged)
    for _ in range(2):
        assert judged.run("judge", "latest", "-q").exit_code == DONE
    assert [run.setup.responses_of for run in runs_of(judged)] == [
        first.run_id,
        first.run_id,
        None,
    ]


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
    stopped = judged.run("judge", "latest", "--max-cost", f"{spent / 4:f}")
    assert stopped.exit_code == INCOMPLETE
    assert "is spent, and the next call takes about $0.0" in " ".join(stopped.output.split())


def test_the_terms_are_those_under_which_was_searched(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"])
    assert evaluation.run("--limit", "1", "-q", "--equal-terms").exit_code == DONE
    terms = evaluation.read_results("summary")["metadata"]["equal_terms"]
    assert terms is not None
    assert evaluation.run("judge", "latest", "-q").exit_code == DONE
    judged = evaluation.read_results("summary", evaluation.newest_folder)
    assert judged["metadata"]["equal_terms"] == terms


def test_failed_verdicts_are_asked_for_again(judged: Evaluation, server: LocalServer):
    def broken(n: int, request: Any) -> Fault | None:
        return Fault(content="no grade") if "Petra" in str(request["messages"]) else None

    server.behaviour = Behaviour(offline_reply(), faults=broken)
    first = judged.run("judge", "latest", "--metrics", "completeness")
    assert first.exit_code == INCOMPLETE
    assert "--retry-errors" in first.output
    with EvaluationStore(judged.store_path) as store:
        verdicts = store.verdicts(store.runs()[0].run_id).values()
    n_failed = sum(verdict["completeness"].failure is not None for verdict in verdicts)
    server.behaviour = Behaviour(offline_reply())
    before = len(server.records)
    again = judged.run("judge", "latest", "--metrics", "completeness", "--retry-errors")
    assert again.exit_code == DONE, again.output
    assert 0 < len(asked_since(server, before)) == n_failed < 2 * len(ROWS)
    assert len(runs_of(judged)) == 2


def test_repeated_verdicts_are_paid_for_and_their_majority_counts(
    judged: Evaluation, server: LocalServer
):
    answered: dict[str, int] = {}

    def unsteady(request: Any) -> str:
        key = str(request["messages"])
        answered[key] = answered.get(key, 0) + 1
        return json.dumps({"reason": "said", "score": int(answered[key] != 2)})

    server.behaviour = Behaviour(unsteady)
    before = len(server.records)
    result = judged.run("judge", "latest", "--metrics", "completeness", "--repeats", "3")
    assert result.exit_code == DONE, result.output
    assert len(asked_since(server, before)) == 3 * 2 * len(ROWS)
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


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("nothing",), "holds no run 'nothing'"),
        (("latest", "--repeats", "2"), "must be odd"),
        (("latest", "--metrics", "relevanc"), "did you mean 'relevance'"),
        (("latest", "--resume"), "no unfinished run"),
    ],
)
def test_wrong_use_is_one_sentence(judged: Evaluation, flags: tuple[str, ...], sentence: str):
    result = judged.run("judge", *flags)
    assert result.exit_code == USAGE, result.output
    assert sentence in " ".join(result.output.split())


def test_a_judge_of_the_same_family_is_warned_of(judged: Evaluation):
    family = "of the same family as openai/gpt-4o"
    assert family in " ".join(judged.run("judge", "latest").output.split())
    judged.write_settings(
        server_settings("http://127.0.0.1:9/v1", "gpt-4o").replace(
            "embedding_models:",
            "  other: {model_provider: anthropic, model: claude-sonnet-4-5, api_key: test}\n"
            "embedding_models:",
        )
    )
    other = judged.run("judge", "latest", "--model", "other", "--max-cost", "0")
    assert other.exit_code == INCOMPLETE, other.output
    assert "same family" not in other.output
