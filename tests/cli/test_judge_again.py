"""``graphrag eval judge``: responses judged again, without a search being paid for."""

import json
import re

import pandas as pd
import pytest
from support.clock_evaluation import ROWS, flat
from support.openai_server import Behaviour

from graphrag.eval.results.runs import list_runs
from graphrag.eval.store.database import EvaluationStore

INCOMPLETE = 3


def test_another_judge_is_asked_and_no_search_is(asked_copy, server):
    (first,) = asked_copy.runs()
    before = len(server.records)
    pairs = {"pairwise": [["tog", "bm25"]]}  # of which the run lacks one
    asked_copy.configure(methods=["tog", "basic", "bm25"], judge=pairs)
    asked_copy.done("judge", first.run_id, "--model", "openai/gpt-4.1", "--metrics", "relevance")
    asked = server.records[before:]
    assert {(each.endpoint, each.model) for each in asked} == {("chat", "gpt-4.1")}
    assert len(asked) == 2 * len(ROWS)
    second, _ = asked_copy.runs()
    assert second.setup.flat()["judge.model"] == "openai/gpt-4.1"
    assert second.setup.metrics == ("relevance",)
    assert second.status == "finished"
    assert asked_copy.responses(second.run_id) == asked_copy.responses(first.run_id)
    figures = json.loads(
        (asked_copy.newest_folder / "eval_results_summary.json").read_text("utf-8")
    )
    assert figures["metadata"]["run_id"] == second.run_id
    assert figures["counts"]["tog"]["n_scored"] == {
        "correctness": 0,
        "faithfulness": 0,
        "relevance": len(ROWS),
        "completeness": 0,
    }
    assert "relevance" in asked_copy.done("show", second.run_id).output


def test_a_comparison_is_proposed_where_there_is_one(make_evaluation):
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness", "relevance"])
    evaluation.configure(equal_terms={})
    evaluation.done("-q", "--skip-judge")
    unjudged = evaluation.done("judge", "latest")
    assert "Compare with:" not in unjudged.output
    evaluation.done("-q", "--resume")
    (_, first) = evaluation.runs()
    both = evaluation.run("judge", first.run_id, "--metrics", "relevance")
    assert "Compare with:" in both.output
    second = evaluation.runs()[0]
    compared = evaluation.run("compare", second.run_id, first.run_id)
    assert "verdicts asked of it" not in " ".join(compared.output.split())
    assert "relevance" in compared.output
    neither = evaluation.done("judge", first.run_id, "--metrics", "completeness")
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
def test_nothing_is_measured_on_an_index_that_is_another(asked_copy, is_gone):
    table = asked_copy.project / "output" / "relationships.parquet"
    if is_gone:
        (asked_copy.root / "questions.json").unlink()
        for each in table.parent.glob("*.parquet"):
            each.unlink()
    else:
        frame = pd.read_parquet(table)
        frame["id"] = [f"new-{number}" for number in range(len(frame))]
        frame.to_parquet(table)
    result = asked_copy.done("judge", "latest")
    assert "is not the one that was searched any more" in " ".join(result.output.split())
    assert asked_copy.read_results("summary", asked_copy.newest_folder)["measures"] == {}


def test_what_the_searches_cost_does_not_count_as_spent(asked_copy):
    (first,) = asked_copy.runs()
    searches = sum(each.usage.cost_usd or 0 for each in asked_copy.responses(first.run_id))
    assert searches > 0
    line = asked_copy.run("judge", "latest").output
    with EvaluationStore(asked_copy.store_path) as store:
        judging = store.judge_usage(store.runs()[0].run_id)
    spent = sum(each.cost_usd or 0 for usages in judging.values() for each in usages)
    assert re.findall(r"The run took .* tokens and \$([\d.]+)\.", line) == [f"{spent:.4f}"]
    full = flat(asked_copy.run("show", asked_copy.runs()[0].run_id, "--full").output)
    assert f"The searches are those of run {first.run_id}, which paid for them." in full
    again, origin = list_runs(asked_copy.store_path)
    assert again.cost_usd == pytest.approx(spent)
    assert origin.cost_usd is not None
    assert origin.cost_usd > searches
    asked_copy.done("judge", "latest", "--max-cost", f"{spent * 2:f}")
    # A judging of a judging goes back to the searches.
    assert [run.setup.responses_of for run in asked_copy.runs()] == [
        *(first.run_id, first.run_id, None)
    ]
    stopped = asked_copy.done("judge", "latest", "--max-cost", f"{spent / 4:f}", code=INCOMPLETE)
    assert "is spent in all, and the next call takes about $0.0" in " ".join(stopped.output.split())


def test_repeated_verdicts_are_paid_for_and_their_majority_counts(asked_copy, server):
    answered: dict[str, int] = {}

    def unsteady(request: dict[str, object]) -> str:
        key = str(request["messages"])
        answered[key] = answered.get(key, 0) + 1
        return json.dumps({"reason": "said", "score": int(answered[key] != 2)})

    server.behaviour = Behaviour(unsteady)
    before = len(server.records)
    asked_copy.configure(judge={"repeats": 3})
    asked_copy.done("judge", "latest", "--metrics", "completeness")
    assert len(server.records[before:]) == 3 * 2 * len(ROWS)
    with EvaluationStore(asked_copy.store_path) as store:
        verdicts = store.verdicts(store.runs()[0].run_id)
    for verdict in verdicts.values():
        assert verdict["completeness"].score == 1
        assert sorted(verdict["completeness"].repeats) == [0, 1, 1]
    repeats = asked_copy.read_results("summary", asked_copy.newest_folder)["repeats"]
    assert (repeats["n_trials"], repeats["n_verdicts"]) == (1, 3)
    for figures in repeats["figures"]:
        assert figures["judge_flip_rate"] == pytest.approx(2 / 3)
        assert figures["search_flip_rate"] is None
