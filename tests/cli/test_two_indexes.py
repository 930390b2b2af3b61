"""Methods that ask indexes of their own, of the same documents: built, asked, priced, refused."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
import yaml
from support.clock_evaluation import ROWS, TEXT, Evaluation, flat, in_process
from support.projects import OFFLINE_SETTINGS, copy_project, server_settings

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.index_building import build_index

SMALL = {"name": "local-30", "method": "local", "index": {"clock": "./clock-30"}}


def add_project(evaluation: Evaluation, settings: str | None = None, text: str = TEXT) -> Path:
    """Write a project of the same text beside the first, with smaller text units."""
    project = evaluation.root / "clock-30"
    (project / "input").mkdir(parents=True)
    (project / "input" / "clock.txt").write_text(text, encoding="utf-8")
    values = yaml.safe_load(
        settings or (evaluation.project / "settings.yaml").read_text(encoding="utf-8")
    )
    values["chunking"] = {"type": "tokens", "size": 30, "overlap": 5}
    (project / "settings.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return project


def units_of(project: Path) -> dict[str, str]:
    """Return id -> text of a project's text units."""
    import pandas as pd

    frame = pd.read_parquet(project / "output" / "text_units.parquet")
    return dict(zip(frame["id"], frame["text"], strict=True))


def test_a_method_asks_an_index_of_its_own_which_is_built_and_priced(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["local", SMALL], metrics=["correctness"])
    quote = "Idris Vane built the tower clock"
    evaluation.write_rows([{**ROWS[0], "evidence": [quote]}, *ROWS[1:3]])
    project = add_project(evaluation)
    asyncio.run(build_index(evaluation.project, lambda _: None))
    dry = flat(evaluation.done("--dry-run", "--index").output)
    assert "Index clock-30 is not built" in dry
    assert "Index clock took" in dry
    assert not (project / "output").exists()
    before = len(server.records)
    result = evaluation.done("--index", "--full")
    kept = json.loads((project / "output" / "index_cost.json").read_text(encoding="utf-8"))
    building = server.records[before:][: sum(step["replies"] for step in kept["steps"])]
    sent = sum(r.prompt_tokens + r.completion_tokens for r in building)
    assert kept["tokens"] == sent > 0
    summary = evaluation.read_results("summary")
    assert summary["index_cost"]["clock-30"]["cost_usd"] == kept["cost_usd"] > 0
    assert set(summary["index_cost"]) == {"clock", "clock-30"}

    # Each shows its own text units, and the evidence is found in them.
    units = {name: units_of(evaluation.root / name) for name in ("clock", "clock-30")}
    for method, name in (("local", "clock"), ("local-30", "clock-30")):
        of = [r for r in evaluation.responses() if r.method == method]
        shown = {unit for r in of if r.retrieved for unit in r.retrieved.text_unit_ids}
        assert shown
        assert shown <= set(units[name])
        assert summary["measures"][method]["measures"]["hit_rate"]["estimate"]["mean"] == 1
    setup = evaluation.runs()[0].setup
    described = setup.indexes["clock"]
    assert described["local"].get("index") != described["local-30"].get("index")
    assert setup.searched() == {
        name: {described[method].get("index")}
        for method, name in (("local", "clock"), ("local-30", "clock-30"))
    }
    usd = {name: summary["index_cost"][name]["cost_usd"] for name in ("clock", "clock-30")}
    assert usd["clock-30"] > usd["clock"]
    assert (
        f"local-30's index took ${usd['clock-30']:.4f} to build, local's ${usd['clock']:.4f}."
        in flat(result.output)
    )
    page = (evaluation.output / "report.html").read_text(encoding="utf-8")
    for method, index in (("local", "clock"), ("local-30", "clock-30")):
        of_questions = 1000 * summary["efficiency"][method]["cost_usd"] / 3
        price = of_questions + summary["index_cost"][index]["cost_usd"]
        assert f"{method}, {price:.4g} US dollars of 1,000 questions with the index" in page

    # Nothing is asked again, and an index that is built again is no longer what was searched.
    before = len(server.records)
    evaluation.done("--resume")
    assert len(server.records) == before
    shutil.rmtree(project / "output")
    asyncio.run(build_index(project, lambda _: None))
    told = flat(evaluation.run("show", "latest").output)
    assert "index clock-30 is not the one that was searched any more" in told
    assert "index clock is not" not in told
    assert "clock-30" in flat(evaluation.run("--resume").output)


def test_only_the_indexes_that_methods_ask_are_built(make_evaluation):
    evaluation = make_evaluation(methods=[{**SMALL, "method": "bm25"}], metrics=[])
    project = add_project(evaluation, OFFLINE_SETTINGS)
    shutil.rmtree(evaluation.project / "output")
    assert "Index clock-30: " in flat(evaluation.run().output)
    evaluation.done("--index", "-q")
    assert (project / "output").is_dir()
    assert not (evaluation.project / "output").exists()


def test_validate_shows_the_indexes_side_by_side(make_evaluation):
    evaluation = make_evaluation(methods=["bm25", {**SMALL, "method": "bm25"}])
    project = add_project(evaluation, OFFLINE_SETTINGS)
    asyncio.run(build_index(project, lambda _: None))
    printed = in_process("validate", "--root", str(evaluation.root)).output
    _, table = printed.split("The indexes side by side")
    for name in ("clock", "clock-30"):
        n = str(len(units_of(evaluation.root / name)))
        (row,) = (line.split() for line in table.splitlines() if line.split()[:1] == [name])
        assert (row[1], row[4], row[6]) == (n, "1.000", n)
    # A project with a configuration beside it shows its variants' indexes; files are of it alone.
    config = {"dataset": {"path": "q.json"}, "indexes": {"clock": "."}}
    variant = {"name": "bm25-30", "method": "bm25", "index": {"clock": "../clock-30"}}
    path = evaluation.project / "eval_config.yaml"
    path.write_text(yaml.safe_dump({**config, "methods": ["bm25", variant]}), encoding="utf-8")
    words = ("validate", "--root", str(evaluation.project))
    assert "../clock-30" in in_process(*words).output.split("side by side")[1]
    assert in_process(*words, "--json", str(evaluation.root / "r.json"), "-q").exit_code == 0


def test_answers_by_another_model_are_not_compared_as_indexes_unsaid(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["bm25", {**SMALL, "method": "bm25"}])
    project = add_project(evaluation, server_settings(server.base_url, "gpt-4o-mini"))
    told = flat(evaluation.done("--index", "--dry-run").output)
    assert (
        "different models write the answers on different indexes (openai/gpt-4o those of bm25; "
        "openai/gpt-4o-mini those of local-30)" in told
    )
    add = yaml.safe_load(server_settings(server.base_url))
    add["completion_models"]["cheap"] = {"model_provider": "openai", "model": "gpt-4o-mini"}
    add["completion_models"]["cheap"] |= {"api_base": server.base_url, "api_key": "test"}
    add["extract_graph"] = {"completion_model_id": "cheap"}
    (project / "settings.yaml").write_text(yaml.safe_dump(add), encoding="utf-8")
    told = flat(evaluation.done("--index", "--dry-run").output)
    assert "different models" not in told


def test_indexes_of_other_documents_are_refused_by_name(make_evaluation):
    evaluation = make_evaluation(methods=["bm25", {**SMALL, "method": "bm25"}], metrics=[])
    project = add_project(
        evaluation, OFFLINE_SETTINGS, "Petra Holm owns the Ashcombe Bank. Tobias Reed left it."
    )
    (project / "input" / "more.txt").write_text("And more.", encoding="utf-8")
    assert "clock and clock-30 differ" in flat(
        evaluation.done("--index", "--dry-run", code=2).output
    )
    refused = flat(evaluation.done("--index", code=2).output)
    assert (
        "The documents of indexes clock and clock-30 differ: clock.txt only in clock; clock.txt "
        "and more.txt only in clock-30." in refused
    )
    assert not (project / "output").exists()
    asyncio.run(build_index(project, lambda _: None))
    assert "clock.txt only in clock;" in flat(evaluation.done(code=2).output)
    runner = EvaluationRunner(EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml"))
    with pytest.raises(ConfigError, match="indexes clock and clock-30 differ"):
        asyncio.run(runner.run_evaluation([{**ROWS[0], "imdb_key": "clock"}]))


def test_a_document_that_came_after_the_first_index_is_seen_before_the_second(make_evaluation):
    """The second project reads the first one's documents in place."""
    evaluation = make_evaluation(methods=["bm25", {**SMALL, "method": "bm25"}], metrics=[])
    second = copy_project(
        evaluation.project,
        evaluation.root / "clock-30",
        chunking={"size": 30},
        input_storage={"type": "file", "base_dir": "../clock/input"},
    )
    (evaluation.project / "input" / "more.txt").write_text("And more.", encoding="utf-8")
    refused = flat(evaluation.done("--index", code=2).output)
    assert "differ: more.txt only in clock-30. Methods are compared" in refused
    assert not (second / "output").exists()


def test_evidence_by_text_units_holds_for_one_index(make_evaluation):
    evaluation = make_evaluation(methods=["bm25", {**SMALL, "method": "bm25"}], metrics=[])
    project = add_project(evaluation, OFFLINE_SETTINGS)
    asyncio.run(build_index(project, lambda _: None))
    unit = next(iter(units_of(evaluation.project)))
    for source in (unit, "1"):
        evaluation.write_rows([{**ROWS[0], "expected_sources": [source]}])
        refused = flat(evaluation.done(code=2).output)
        assert f"q1 expects the text unit {source} of index clock" in refused
    evaluation.write_rows([{**ROWS[0], "expected_sources": ["clock.txt"]}])
    evaluation.done()


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        ({"index": {"clok": "clock-30"}}, "variants.local-30.index: indexes has no key 'clok'"),
        ({"index": {}}, "variants.local-30.index names no project for clock"),
        ({"method": None, "function": "m:f"}, "index names other projects for a method"),
    ],
)
def test_an_index_is_named_for_every_key_of_a_search(make_evaluation, variant, told):
    evaluation = make_evaluation(methods=[{**SMALL, **variant}])
    refused = flat(in_process("--root", str(evaluation.root)).output)
    assert told in refused


@pytest.mark.parametrize("at", ["clock-30/", "./x/../clock-30", "{root}/clock-30", "link"])
def test_a_folder_is_one_index_in_whatever_way_it_is_written(tmp_path, at):
    (tmp_path / "link").symlink_to(tmp_path / "clock-30")
    other = {**SMALL, "name": "bm25-30", "method": "bm25", "index": {"clock": at}}
    other["index"]["clock"] = at.format(root=tmp_path)
    values = {"indexes": {"clock": "./clock"}, "methods": ["bm25", other, SMALL]}
    for methods, name in ((values["methods"], None), (["bm25", SMALL, other], "clock-30")):
        path = tmp_path / "eval_config.yaml"
        path.write_text(yaml.safe_dump({**values, "methods": methods}), encoding="utf-8")
        config = EvaluationConfig.from_yaml(path)
        names = {config.index_of("clock", each) for each in ("bm25-30", "local-30")}
        assert len(names) == 1
        assert name in {None, *names}
        assert list(config.projects()) == ["clock", *names]
        assert list(config.own_projects()) == [*names]


def test_suites_ask_the_configured_indexes_alone(make_evaluation):
    evaluation = make_evaluation(methods=["bm25", {**SMALL, "method": "bm25"}])
    path = evaluation.write_suite(
        "answers.yaml",
        {
            "name": "answers",
            "evaluator": "query_response",
            "methods": ["local-30"],
            "cases": [
                {"id": "c1", "input_data": {"query": "Who?"}, "expected_output": {"answer": "I"}}
            ],
        },
    )
    refused = in_process("suite", str(path), "--root", str(evaluation.root))
    assert refused.exit_code == 2
    assert "local-30 has an index of its own" in flat(refused.output)
