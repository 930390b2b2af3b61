"""An index that graphrag's fast workflow builds, of the same documents as a standard one."""

import json
from pathlib import Path
from typing import Any

import yaml
from support.clock_evaluation import Evaluation, flat
from support.projects import copy_project

FAST = [
    *("load_input_documents", "create_base_text_units", "create_final_documents"),
    *("extract_graph_nlp", "prune_graph", "finalize_graph", "create_communities"),
    *("create_final_text_units", "create_community_reports_text", "generate_text_embeddings"),
]


def add_fast(evaluation: Evaluation, **changes: Any) -> Path:
    """Copy the project, have the fast workflow build the copy, and have both asked."""
    fast = evaluation.root / "clock-fast"
    copy_project(evaluation.project, fast, workflows=FAST, **changes)
    variant = {"name": "local-fast", "method": "local", "index": {"clock": "clock-fast"}}
    evaluation.configure(methods=["local", variant], metrics=[])
    return fast


def test_fast_says_what_it_lacks_and_builds_nothing(make_evaluation, monkeypatch):
    import nltk

    monkeypatch.setattr(nltk.data, "path", [])
    evaluation = make_evaluation()
    fast = add_fast(evaluation)
    lacking = flat(evaluation.done("--index", code=2).output)
    assert "needs brown, treebank, punkt, punkt_tab and averaged_perceptron_tagger_eng" in lacking
    assert "-m nltk.downloader brown treebank" in lacking
    settings = yaml.safe_load((fast / "settings.yaml").read_text(encoding="utf-8"))
    analyzer = {"extractor_type": "syntactic_parser", "model_name": "no_such_model"}
    settings["extract_graph_nlp"] = {"text_analyzer": analyzer}
    (fast / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert "needs the spaCy model no_such_model" in flat(evaluation.done("--index", code=2).output)
    assert not list(fast.glob("output*"))


def test_a_fast_index_is_built_and_asked_beside_a_standard_one(make_evaluation, tmp_path):
    import spacy  # here, as every worker of the tests imports what stands above

    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"IS_TITLE": True}]], {"POS": "PROPN"})  # pyright: ignore
    nlp.to_disk(tmp_path / "names")
    evaluation = make_evaluation()
    analyzer = {"extractor_type": "cfg", "model_name": str(tmp_path / "names")}
    add_fast(evaluation, extract_graph_nlp={"text_analyzer": analyzer})
    evaluation.done("--index", "-q")
    costs = evaluation.read_results("summary")["index_cost"]
    workflows = {step["workflow"] for step in costs["clock-fast"]["steps"]}
    assert workflows == {"create_community_reports_text", "generate_text_embeddings"}
    assert 0 < costs["clock-fast"]["tokens"] < costs["clock"]["tokens"]
    facts = evaluation.runs()[0].details.indexes
    assert facts["clock-fast"]["extraction model"] == "none (noun phrases)"
    # As after `graphrag index --method fast`, of which the settings tell nothing.
    fast = evaluation.root / "clock-fast"
    settings = yaml.safe_load((fast / "settings.yaml").read_text(encoding="utf-8"))
    text = yaml.safe_dump({**settings, "workflows": None})
    (fast / "settings.yaml").write_text(text, encoding="utf-8")
    evaluation.done("--limit", "1", "-q")
    assert evaluation.runs()[0].details.indexes == facts
    (fast / "output" / "index_cost.json").unlink()  # the release leaves this in its place
    stats = {
        "total_runtime": 3.0,
        "num_documents": facts["clock-fast"]["documents"],
        "workflows": {"extract_graph_nlp": {"overall": 2.0}, "create_communities": {"overall": 1}},
    }
    (fast / "output" / "stats.json").write_text(json.dumps(stats), encoding="utf-8")
    evaluation.done("--limit", "1", "-q")
    assert evaluation.runs()[0].details.indexes == facts
