"""A second project of the same documents: its settings, what it refers to, what is refused."""

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from support.clock_evaluation import TEXT, Evaluation, flat, in_process
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.config.load_config import load_config
from graphrag.config.project_settings import read_settings

MODEL = "extract_graph_nlp.text_analyzer.model_name"
KIND = "extract_graph_nlp.text_analyzer.extractor_type"


def write_project(folder: Path, settings: str) -> Path:
    """Write a project with a prompt file, its documents and its variables."""
    for name in ("input", "prompts"):
        (folder / name).mkdir(parents=True)
    (folder / "input" / "clock.txt").write_text(TEXT, encoding="utf-8")
    (folder / "prompts" / "report.txt").write_text("Report on {input_text}", encoding="utf-8")
    (folder / ".env").write_text("CLOCK_KEY=of-the-first\n", encoding="utf-8")
    (folder / "settings.yaml").write_text(settings, encoding="utf-8")
    return folder


def contents_of(folder: Path) -> dict[str, str]:
    """Return path -> hash of what a folder holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_second_project_reads_the_first_ones_documents(tmp_path, monkeypatch):
    settings = server_settings("http://localhost:1/v1").replace("key: test", "key: ${CLOCK_KEY}")
    settings += "community_reports: {graph_prompt: prompts/report.txt}\ninput_storage:\n"
    settings += f"output_storage: {{type: file, base_dir: {tmp_path / 'first' / 'output'}}}\n"
    first = write_project(tmp_path / "first", settings)
    before = contents_of(first)
    second = tmp_path / "deep" / "second"
    made = in_process("init", "--like", str(first), str(second), "--set", "chunking.size=600")
    assert made.exit_code == 0, made.output
    assert contents_of(first) == before
    assert sorted(path.name for path in second.iterdir()) == [".env", "settings.yaml"]
    assert "{name: local-second, method: local, index: {first:" in flat(made.output)

    ours = read_settings(second)
    assert (ours.chunking.size, read_settings(first).chunking.size) == (600, 1200)
    assert ours.input_storage.base_dir == str(first / "input")
    assert ours.output_storage.base_dir == str(second / "output")
    assert ours.community_reports.graph_prompt == str(first / "prompts" / "report.txt")
    # As the release reads it: from the folder itself, with the variables that the link leads to.
    monkeypatch.chdir(second)
    monkeypatch.delenv("CLOCK_KEY", raising=False)
    theirs = load_config(second)
    assert theirs.completion_models["default_completion_model"].api_key == "of-the-first"
    assert Path(theirs.input_storage.base_dir or "").resolve() == first / "input"
    assert (second / str(theirs.community_reports.graph_prompt)).is_file()
    monkeypatch.setenv("CLOCK_KEY", "")  # what the release took from .env is undone with it


def test_next_names_the_configuration_beside_the_first_project(tmp_path, monkeypatch):
    first = write_project(tmp_path / "first", OFFLINE_SETTINGS)
    monkeypatch.chdir(tmp_path)
    assert in_process("init", "--root", "first").exit_code == 0
    told = flat(in_process("init", "--like", "first", "second").output)
    assert "under methods of first/eval_config.yaml: - {name: local-second" in told
    assert "index: {first: ../second}}" in told
    assert told.endswith(f"graphrag eval --root {first} --index")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "chunking.sizes=600"], "chunking has no setting 'sizes'; did you mean 'size'?"),
        (["--set", "chunking.size=many"], "chunking.size: Input should be a valid integer"),
        (["--set", "chunking"], "write a setting and its value, such as chunking.size=600"),
        (["--set", "chunking.size.max=6"], "chunking.size is a value and holds no settings"),
        (["--method", "fats"], "graphrag builds an index by standard or fast"),
    ],
)
def test_settings_that_graphrag_would_not_take_leave_nothing(tmp_path, words, told):
    first = write_project(tmp_path / "first", OFFLINE_SETTINGS)
    refused = in_process("init", "--like", str(first), str(tmp_path / "second"), *words)
    assert refused.exit_code == 2
    assert told in flat(refused.output)
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


def test_what_the_first_project_writes_to_is_never_shared(tmp_path):
    first = write_project(
        tmp_path / "first", f"{OFFLINE_SETTINGS}output_storage: {{type: blob, container_name: c}}\n"
    )
    words = ["init", "--like", str(first), str(tmp_path / "second")]
    assert "output_storage is of type blob" in flat(in_process(*words).output)
    assert in_process(*words, "--set", "output_storage.container_name=d").exit_code == 0
    assert f"{tmp_path / 'second'} is a project" in in_process(*words).output
    without = in_process("init", "--like", str(first))
    assert "--like takes a folder for the second project" in flat(without.output)
    mixed = in_process("init", "--like", str(first), str(tmp_path / "third"), "--offline")
    assert "--like takes a folder for the second project" in flat(mixed.output)


def add_fast(evaluation: Evaluation, *changes: str) -> Path:
    """Make a second project that is built by the fast workflow, and have both asked."""
    fast = evaluation.root / "clock-fast"
    flags = [word for change in changes for word in ("--set", change)]
    words = ("init", "--like", str(evaluation.project), str(fast), "--method", "fast", *flags)
    assert in_process(*words, "--root", str(evaluation.root)).exit_code == 0
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
    add_fast(evaluation, f"{KIND}=cfg", f"{MODEL}={tmp_path / 'names'}")
    dry = flat(evaluation.done("--dry-run", "--index").output)
    assert "No model is asked for its graph, only for reports and vectors" in dry
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
