"""A comparison names what was set differently, and another index."""

import asyncio
import re
from dataclasses import replace

import yaml
from support.clock_evaluation import Evaluation

from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.results.runs import list_runs, read_rows
from graphrag.eval.runner.index_building import build_index
from graphrag.eval.stats.gates import GateOutcome
from graphrag.prompts.index.extract_graph import GRAPH_EXTRACTION_PROMPT

DONE, INCONCLUSIVE = 0, 3
WIDE = {"COLUMNS": "400"}


def set_in_project(evaluation: Evaluation, **sections: dict[str, object]) -> None:
    path = evaluation.project / "settings.yaml"
    settings = yaml.safe_load(path.read_text("utf-8"))
    for name, section in sections.items():
        settings[name] = {**settings.get(name, {}), **section}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def test_another_index_is_inconclusive_unless_one_accepts_it(make_evaluation):
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness"])
    evaluation.write_rows(
        [{"id": f"q{i}", "question": f"Who built clock {i}?", "answer": "Vane"} for i in range(70)]
    )
    assert evaluation.run("-q").exit_code == DONE
    assert evaluation.run("compare", "latest", "--pin").exit_code == DONE
    assert evaluation.run("-q").exit_code == DONE
    path = evaluation.store_path
    new, old = (read_rows(each.run_id, path) for each in list_runs(path))
    assert compare_runs(new, old).outcome is GateOutcome.PASS
    # What was embedded again is another index: its tables and their fingerprint are the same.
    facts = {"clock": {**new.metadata.indexes["clock"], "embedding model": "openai/other"}}
    moved = new._replace(metadata=replace(new.metadata, indexes=facts))
    assert compare_runs(moved, old).outcome is GateOutcome.INCONCLUSIVE

    prompt = evaluation.project / "extract.txt"
    prompt.write_text(f"{GRAPH_EXTRACTION_PROMPT} ", encoding="utf-8")
    set_in_project(evaluation, chunking={"size": 59}, extract_graph={"prompt": "extract.txt"})
    asyncio.run(build_index(evaluation.project, lambda _: None))
    assert evaluation.run("-q").exit_code == DONE
    compared = evaluation.run("compare", "latest", **WIDE)
    assert compared.exit_code == INCONCLUSIVE, compared.output
    assert "index of clock changed since the baseline" in compared.output
    assert "chunk size 60 -> 59" in compared.output
    assert re.search(r"prompts [0-9a-f]{8} -> [0-9a-f]{8}", compared.output)
    accepted = evaluation.run("compare", "latest", "--accept-index-change", **WIDE)
    assert accepted.exit_code == DONE, accepted.output
    said = " ".join(accepted.output.split())
    assert "the index of clock changed, and as you accepted it this takes each" in said


def test_what_was_set_differently_is_named(make_evaluation):
    evaluation = make_evaluation(metrics=["correctness"])

    def warnings_of_next_run(limit: int) -> list[str]:
        assert evaluation.run("-q", "--limit", str(limit)).exit_code == DONE
        newest = list_runs(evaluation.store_path)[:2]
        rows, base = (read_rows(run.run_id, evaluation.store_path) for run in newest)
        return list(compare_runs(rows, base).warnings)

    assert evaluation.run("-q", "--limit", "2").exit_code == DONE
    assert warnings_of_next_run(2) == []
    set_in_project(evaluation, basic_search={"k": 1})
    assert warnings_of_next_run(2) == ["the settings of basic differ (k: 10 -> 1)"]
    new, old, _ = (run.run_id for run in list_runs(evaluation.store_path))
    shown = evaluation.run("compare", new, old, COLUMNS="200")
    assert "the settings of basic differ (k: 10 -> 1)" in shown.output
    evaluation.configure(max_output_tokens=300, trials=2, judge={"temperature": 0.5})
    repeats, questions, judge, own = warnings_of_next_run(3)
    assert repeats == "of the 2 searches of each question in the new run the first one is compared"
    assert questions.startswith("the questions differ (")
    assert "questions: 2 -> 3" in questions
    assert judge == "the judges differ (temperature: 0.0 -> 0.5)"
    assert own == (
        "the runs' own settings differ (max_output_tokens: not set -> 300, trials: not set -> 2)"
    )
