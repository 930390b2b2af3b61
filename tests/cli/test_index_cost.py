"""What building an index took, held against a server that counts, and when a dearer one pays."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from support.clock_evaluation import ROWS, flat

from graphrag.eval.report.run import describe_payoffs
from graphrag.eval.results.rows import Row
from graphrag.eval.results.terms import (
    Unit,
    costs_by_method,
    hold_against,
    hold_in_units,
    index_cost,
)
from graphrag.eval.runner.index_building import build_index, held_for_building
from graphrag.eval.store.index_costs import IndexCost, StepCost, read_index_cost


def read_cost(project: Path) -> Any:
    return json.loads((project / "output" / "index_cost.json").read_text(encoding="utf-8"))


def test_an_index_costs_what_the_server_counts_and_again_from_its_cache(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["bm25", "local"], metrics=[])
    evaluation.configure(indexes={"clock": "./clock", "tower": "./clock"})
    keys = ("clock", "tower")
    evaluation.write_rows([{**r, "imdb_key": k} for r, k in zip(ROWS[:2], keys, strict=True)])
    output = evaluation.project / "output"
    shutil.rmtree(output)
    before = len(server.records)
    result = evaluation.done("--index", "--full")
    assert flat(result.output).count("Built index") == 1
    asked = server.records[before:]
    cost = read_cost(evaluation.project)
    building = [r for r in asked if r.sequence <= before + sum(s["replies"] for s in cost["steps"])]
    by_kind = {"completion": "chat", "embedding": "embeddings"}
    for kind, endpoint in by_kind.items():
        steps = [step for step in cost["steps"] if step["kind"] == kind]
        sent = [record for record in building if record.endpoint == endpoint]
        assert sum(step["replies"] for step in steps) == len(sent) > 0
        assert sum(s["prompt_tokens"] for s in steps) == sum(r.prompt_tokens for r in sent)
        assert sum(s["output_tokens"] for s in steps) == sum(r.completion_tokens for r in sent)
    assert cost["cost_usd"] > 0
    shown = evaluation.read_results("summary")
    assert shown["index_cost"]["clock"]["tokens"] == cost["tokens"]
    assert f"{cost['tokens']:,} tokens" in flat(result.output)
    assert "local never pays by cost against bm25" in flat(result.output)

    # Built again, every reply is in the project's cache: nothing is asked, nothing is for free.
    shutil.rmtree(output)
    before = len(server.records)
    asyncio.run(build_index(evaluation.project, lambda _: None))
    again = read_cost(evaluation.project)
    assert len(server.records) == before
    assert again["cost_usd"] == cost["cost_usd"]
    assert all(step["n_cached"] == step["replies"] for step in again["steps"])
    assert again["fingerprint"] != cost["fingerprint"]
    assert again["documents"] == cost["documents"]


def test_an_index_that_another_process_builds_is_not_built_and_paid_for_beside_it(
    make_evaluation, server
):
    evaluation = make_evaluation(server.base_url, methods=["bm25"], metrics=[])
    output, before = evaluation.project / "output", len(server.records)
    output.rename(evaluation.root / "before")
    with held_for_building(evaluation.project):
        result = evaluation.done("--index", code=1)
    assert "Error: Another process is building the index of" in flat(result.stderr)
    assert len(server.records) == before
    assert not [*evaluation.project.glob("output*")]


def test_a_cost_is_only_of_the_tables_it_was_measured_with(built_project, tmp_path):
    folder = tmp_path / "output"
    folder.mkdir()
    text = (built_project / "output" / "index_cost.json").read_text(encoding="utf-8")
    (folder / "index_cost.json").write_text(text, encoding="utf-8")
    fingerprint = json.loads(text)["fingerprint"]
    measured = read_index_cost(folder, fingerprint, 1)
    assert measured is not None
    assert measured.cost_usd() == 0.0  # by the embedded models
    assert read_index_cost(folder, "another index", 1) is None
    # What graphrag index leaves tells the time alone, of a whole build of as many documents.
    stats = {"total_runtime": 7.0, "num_documents": 1, "workflows": {"w": {"overall": 2.5}}}
    (folder / "stats.json").write_text(json.dumps(stats), encoding="utf-8")
    elsewhere = read_index_cost(folder, "another index", 1)
    assert elsewhere == IndexCost("another index", {"w": 2.5})
    assert elsewhere.count_tokens() is None
    assert elsewhere.cost_usd() is None
    assert read_index_cost(folder, "another index", 2) is None
    (folder / "stats.json").write_text(json.dumps({**stats, "total_runtime": 0}), encoding="utf-8")
    assert read_index_cost(folder, "another index", 1) is None


def test_a_dearer_index_pays_by_what_its_searches_cost_less():
    cheap = {("film", f"q{n}"): 0.03 + 0.001 * (n % 3) for n in range(30)}
    dear = dict.fromkeys(cheap, 0.01)
    for names, usd, costs in (
        (("a", "b"), (5.0, 1.0), (dear, cheap)),
        (("b", "a"), (1.0, 5.0), (cheap, dear)),
    ):
        payoff = hold_against(names, usd, costs)
        assert payoff is not None
        assert (payoff.first, payoff.more, payoff.questions) == ("a", 4.0, 191)
        kept = payoff.to_dict()
        assert (kept["more_usd"], kept["more_tokens"], kept["saved_tokens"]) == (4.0, None, None)
        assert payoff.at_most is not None
        assert 191 < payoff.at_most < 200
        (told,) = describe_payoffs([payoff])
        assert told.startswith(
            "a pays after about 191 questions against b: its index costs $4.0000 more"
        )
        assert f"at most {payoff.at_most}" in told
    unsure = hold_against(("a", "b"), (5.0, 1.0), (dear, {**cheap, ("film", "q0"): -0.5}))
    assert unsure is not None
    assert unsure.at_most is None
    (told,) = describe_payoffs([unsure])
    assert "but 30 questions do not show that they cost less" in told
    never = hold_against(("a", "b"), (5.0, 1.0), (cheap, dear))
    assert never is not None
    assert never.questions is None
    (told,) = describe_payoffs([never])
    assert told.startswith("a never pays by cost against b: its index costs more")
    alike = hold_against(("a", "b"), (5.0, 1.0), (cheap, {**cheap, ("film", "q0"): 0.02}))
    assert alike is not None
    assert alike.questions is None
    (told,) = describe_payoffs([alike])
    assert told.startswith("a is not shown to pay by cost against b")
    assert hold_against(("a", "b"), (5.0, 5.0), (cheap, dear)) is None
    unknown = hold_against(("a", "b"), (None, 1.0), (dear, {**cheap, ("film", "q1"): None}))
    assert unknown is not None
    assert (unknown.more, unknown.saved, unknown.questions) == (None, None, None)


def test_an_index_that_several_keys_name_costs_once():
    def built(seconds: float) -> IndexCost:
        step = StepCost("extract_graph", "m", "completion", 2, 0, 900, 100, 0.5)
        return IndexCost("tables", {"extract_graph": seconds}, steps=(step,))

    shared = index_cost("tog", {"a": built(1.0), "b": built(1.0)}, "tokens")
    assert shared == index_cost("tog", {"a": built(1.0)}, "tokens") == 1000
    assert index_cost("tog", {"a": built(1.0), "b": built(2.0)}, "tokens") == 2000
    assert index_cost("tog", {"a": built(1.0), "b": None}, "tokens") is None


def test_ways_are_held_in_dollars_where_any_are_paid_and_in_answers_alone():
    cheap = {("film", f"q{n}"): 0.03 + 0.001 * (n % 3) for n in range(30)}
    dear: dict[Unit, Any] = {"cost_usd": dict.fromkeys(cheap, 0.01)}
    dear["tokens"] = dict.fromkeys(cheap, 900)
    costs: dict[Unit, Any] = {
        "cost_usd": (dear["cost_usd"], cheap),
        "tokens": (dear["tokens"], dict.fromkeys(cheap, 1000)),
    }
    tokens = (9000.0, 1000.0)
    # Built for nothing by another model than the paid one that answers: no tokens pay that back.
    assert hold_in_units(("a", "b"), {"cost_usd": (0.0, 0.0), "tokens": tokens}, costs) is None
    free = {**costs, "cost_usd": (dict.fromkeys(cheap, 0.0), dict.fromkeys(cheap, 0.0))}
    payoff = hold_in_units(("a", "b"), {"cost_usd": (0.0, 0.0), "tokens": tokens}, free)
    assert payoff is not None
    assert (payoff.unit, payoff.questions) == ("tokens", 80)
    unknown = hold_in_units(("a", "b"), {"cost_usd": (None, 1.0), "tokens": (None, 1.0)}, costs)
    assert unknown is not None
    assert (unknown.unit, unknown.more) == ("cost_usd", None)
    # A search that fails takes little, which is no saving.
    rows = [
        Row(f"q{n}", "film", "m", {}, {}, tokens=n, cost_usd=1.0, censored=n > 2) for n in range(4)
    ]
    assert costs_by_method(rows, "tokens") == {"m": {("film", f"q{n}"): n for n in range(3)}}


def test_two_indexes_of_the_same_documents_are_compared_by_cost(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["local"], metrics=["correctness"])
    evaluation.write_rows(ROWS[:2])
    settings = (evaluation.project / "settings.yaml").read_text(encoding="utf-8")
    for more in ("", "extract_graph: {max_gleanings: 3}\n"):
        evaluation.write_settings(settings + more)
        shutil.rmtree(evaluation.project / "output")
        assert evaluation.run("--index", "-q").exit_code in (0, 3)
    new, old = (run.run_id for run in evaluation.runs())
    assert "of the new run" in flat(evaluation.run("compare", new, old).output)
    (evaluation.project / "input" / "more.txt").write_text("Another text.", encoding="utf-8")
    shutil.rmtree(evaluation.project / "output")
    evaluation.run("--index", "-q")
    newest = evaluation.runs()[0].run_id
    told = flat(evaluation.run("compare", newest, old).output)
    assert "What the indexes of local of the new run and local of the baseline cost is not" in told
