"""What building an index took, held against a server that counts."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from support.clock_evaluation import ROWS, flat

from graphrag.eval.results.method_conditions import costs_by_method, index_cost
from graphrag.eval.results.scored_rows import Row
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


def test_an_index_that_several_keys_name_costs_once():
    def built(seconds: float) -> IndexCost:
        step = StepCost("extract_graph", "m", "completion", 2, 0, 900, 100, 0.5)
        return IndexCost("tables", {"extract_graph": seconds}, steps=(step,))

    shared = index_cost("tog", {"a": built(1.0), "b": built(1.0)}, "tokens")
    assert shared == index_cost("tog", {"a": built(1.0)}, "tokens") == 1000
    assert index_cost("tog", {"a": built(1.0), "b": built(2.0)}, "tokens") == 2000
    assert index_cost("tog", {"a": built(1.0), "b": None}, "tokens") is None


def test_a_search_that_fails_costs_little_which_is_no_price_of_an_answer():
    rows = [
        Row(f"q{n}", "film", "m", {}, {}, tokens=n, cost_usd=1.0, censored=n > 2) for n in range(4)
    ]
    assert costs_by_method(rows, "tokens") == {"m": {("film", f"q{n}"): n for n in range(3)}}
