"""Another index is no verdict on the system: undecided, unless one accepts it by name."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from support.clock_evaluation import Evaluation, MakeEvaluation

from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.results.runs import list_runs, read_rows
from graphrag.eval.runner.index_building import build_index
from graphrag.eval.stats.gates import GateOutcome
from graphrag.prompts.index.extract_graph import GRAPH_EXTRACTION_PROMPT

DONE, INCONCLUSIVE = 0, 3
WIDE = {"COLUMNS": "400"}


def rebuild(evaluation: Evaluation, **sections: Any) -> None:
    path = evaluation.project / "settings.yaml"
    settings = yaml.safe_load(path.read_text("utf-8"))
    for name, section in sections.items():
        settings[name] = {**settings.get(name, {}), **section}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    asyncio.run(build_index(evaluation.project, lambda _: None))


@pytest.fixture
def pinned(make_evaluation: MakeEvaluation) -> Evaluation:
    """Return an evaluation of one method whose run on the first index is pinned."""
    made = make_evaluation(methods=["basic"], metrics=["correctness"])
    made.write_rows(
        [{"id": f"q{i}", "question": f"Who built clock {i}?", "answer": "Vane"} for i in range(70)]
    )
    assert made.run("-q").exit_code == DONE
    assert made.run("compare", "latest", "--pin").exit_code == DONE
    return made


def test_another_chunk_size_is_inconclusive_whatever_is_added(pinned: Evaluation):
    prompt = pinned.project / "extract.txt"
    for size in (40, 30):
        prompt.write_text(f"{GRAPH_EXTRACTION_PROMPT}{' ' * size}", encoding="utf-8")
        rebuild(pinned, chunking={"size": size}, extract_graph={"prompt": "extract.txt"})
        assert pinned.run("-q").exit_code == DONE
    compared = pinned.run("compare", "latest", **WIDE)
    assert compared.exit_code == INCONCLUSIVE, compared.output
    assert "index of clock changed since the baseline" in compared.output
    assert "chunk size 60 -> 30" in compared.output
    assert re.search(r"prompts [0-9a-f]{8} -> [0-9a-f]{8}", compared.output)
    figures = pinned.run("compare", "latest", "--metric", "tokens=90%", **WIDE)
    assert figures.exit_code == INCONCLUSIVE, figures.output


def test_one_who_accepts_it_is_told_what_that_assumes(pinned: Evaluation):
    rebuild(pinned, chunking={"size": 59})
    assert pinned.run("-q").exit_code == DONE
    flags = ("--metric", "correctness,tokens=90%", "--accept-index-change")
    accepted = pinned.run("compare", "latest", *flags, **WIDE)
    assert accepted.exit_code == DONE, accepted.output
    said = " ".join(accepted.output.split())
    assert said.count("the index of clock changed, and as you accepted it this takes each") == 2


def test_what_was_embedded_again_is_another_index(pinned: Evaluation):
    """The tables are the same then, and so is their fingerprint."""
    assert pinned.run("-q").exit_code == DONE
    new, old = (read_rows(each.run_id, pinned.store_path) for each in list_runs(pinned.store_path))
    assert compare_runs(new, old).outcome is GateOutcome.PASS
    facts = {"clock": {**new.metadata.indexes["clock"], "embedding model": "openai/other"}}
    moved = new._replace(metadata=replace(new.metadata, indexes=facts))
    assert compare_runs(moved, old).outcome is GateOutcome.INCONCLUSIVE
