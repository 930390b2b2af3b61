"""``graphrag eval init``: a project of a folder of texts, and what it refuses."""

import asyncio
import json
import shutil

import pytest
import yaml
from support.clock_evaluation import TEXT, flat, in_process
from support.projects import OFFLINE_SETTINGS, build_project, server_settings

from graphrag.eval.runner.index_building import build_index

USAGE = 2
ALL = ["tog", "ppr", "bm25", "local", "basic"]


def init(root, *flags):
    return in_process("init", *map(str, flags), "--root", str(root))


def config_of(root):
    return yaml.safe_load((root / "eval_config.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "clock.md").write_text(TEXT, encoding="utf-8")
    (folder / "deep" / "old.txt").write_bytes("The café of Ashcombe is closed.".encode("cp1252"))
    (folder / "scan.pdf").write_bytes(b"%PDF-1.7")
    (folder / "noise.txt").write_bytes(b"\0\1\2")
    return folder


def test_a_folder_of_texts_becomes_a_project_that_runs(texts, tmp_path):
    root = tmp_path / "new" / "mine"
    made = init(root, "--offline", "--input", texts)
    assert made.exit_code == 0, made.output
    assert "Left out 2 files, such as noise.txt (it is not text)." in made.output
    assert "deep/old.txt is not UTF-8" in flat(made.output)
    assert sorted(p.name for p in (root / "input").rglob("*.txt")) == ["clock.md.txt", "old.txt"]
    assert "café" in (root / "input" / "deep" / "old.txt").read_text(encoding="utf-8")
    config = config_of(root)
    assert config["methods"] == ALL
    assert config["equal_terms"]["max_context_tokens"] == 600
    assert config["dataset"]["path"] == "eval/drafted_questions.json"
    rows = json.loads((root / "eval" / "drafted_questions.json").read_text(encoding="utf-8"))
    assert {tag for row in rows for tag in row["tags"]} == {"rehearsal"}
    assert "Rehearsal: " in made.output
    run = in_process("--root", str(root), "--limit", "2")
    assert run.exit_code == 0, run.output
    # The same again changes nothing; another folder would be mixed with it.
    assert init(root, "--offline", "--input", texts).exit_code == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "clock.md").write_text("Another clock.", encoding="utf-8")
    refused = init(root, "--offline", "--input", other)
    assert refused.exit_code == USAGE
    assert "would be mixed with the texts" in flat(refused.output)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "does not exist"),
        ("empty", "is empty; put your texts there"),
        ("file.txt", "is a file; name the folder"),
        ("scans", "has no text: its only file is none, as in a.pdf (.pdf is not read as text)"),
        (".", "contains the project's folder"),
    ],
)
def test_a_folder_that_can_not_be_taken_is_refused_and_nothing_written(tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("A text.")
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.pdf").write_bytes(b"%PDF-1.7")
    root = tmp_path / "mine"
    refused = init(root, "--offline", "--input", tmp_path / name)
    assert refused.exit_code in (1, USAGE)
    assert said in flat(refused.output)
    assert not root.exists()


def test_a_project_that_can_not_be_made_is_refused(texts, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file; name a folder" in flat(init(tmp_path / "file", "--offline").output)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "input").write_text("")  # where its texts are to go
    refused = init(tmp_path / "mine", "--offline", "--input", texts)
    assert "can't be written" in flat(refused.output)
    (tmp_path / "mine" / "input").unlink()
    others = server_settings("http://127.0.0.1:9/v1")
    (tmp_path / "mine" / "settings.yaml").write_text(others, encoding="utf-8")
    refused = init(tmp_path / "mine", "--offline")
    assert "names its own models; leave --offline out" in flat(refused.output)
    (empty := tmp_path / "empty").mkdir()
    for root, before in ((empty, f"--root {empty}"), (tmp_path / "none", "GraphRAG project")):
        told = f"{before}; or, with the embedded models: graphrag eval init --offline --root {root}"
        assert told in flat(init(root).output)


def test_texts_no_sentence_of_which_holds_two_names_are_said_to_lack_them(tmp_path):
    (texts := tmp_path / "texts").mkdir()
    (texts / "a.txt").write_text("The clock was built by Idris. It stands in Ashcombe.")
    refused = init(tmp_path / "mine", "--offline", "--input", texts)
    assert refused.exit_code == 1
    assert "detected during extraction. No sentence of these texts has two names; add" in flat(
        refused.output
    )


def test_methods_that_an_index_can_not_run_are_left_out(tmp_path):
    root = build_project(tmp_path / "clock", clock=TEXT)
    shutil.rmtree(root / "output" / "lancedb")
    made = init(root)
    assert made.exit_code == 0
    assert flat(made.output).endswith(f"then: graphrag eval --root {root}")
    assert config_of(root)["methods"] == ["tog", "ppr", "bm25"]
    assert "Warning: local and basic are left out: the index has no vector store: " in flat(
        made.output
    )
    assert "Warning" not in init(root).output  # as the configuration that is there is kept
    made = init(tmp_path / "waiting", "--offline")
    assert made.exit_code == 0, made.output
    assert "put your texts into" in made.output
    assert config_of(tmp_path / "waiting")["methods"] == ALL


def test_init_asks_for_questions_only_where_there_are_none(tmp_path):
    root = build_project(tmp_path / "clock", clock=TEXT)
    questions = root / "eval" / "questions.csv"
    asked = f"Next: put questions into {questions}, then: "
    assert asked in flat(init(root).output)
    questions.write_bytes(b"\xef\xbb\xbf" + questions.read_bytes().replace(b"\n", b"\r\n"))
    assert asked in flat(init(root).output), "a spreadsheet saved the header"
    with questions.open("a", encoding="utf-8") as file:
        file.write("q1,Who built the tower clock?,Idris Vane,,\n")
    again = flat(init(root).output)
    assert f"{questions} exists and is left as it is" in again
    assert again.endswith(f"Next: graphrag eval --root {root}")
    config = root / "eval_config.yaml"
    own = config.read_text(encoding="utf-8").replace("eval/questions.csv", "mine.json")
    config.write_text(own, encoding="utf-8")
    questions.unlink()
    assert f"Next: put questions into {root / 'mine.json'}, then: " in flat(init(root).output)
    assert not questions.exists(), "nothing reads it"


def test_a_key_that_is_not_set_leaves_out_no_method(tmp_path):
    root = build_project(tmp_path / "clock", clock=TEXT)
    with (root / "settings.yaml").open("a", encoding="utf-8") as file:
        file.write("concurrent_requests: ${REQUESTS_OF_THE_CLOCK}\n")
    made = init(root)
    assert made.exit_code == 0, made.output
    assert "Warning: Index clock: " in made.output
    assert "${REQUESTS_OF_THE_CLOCK} is not set; put REQUESTS_OF_THE_CLOCK=" in flat(made.output)
    assert config_of(root)["methods"] == ALL


@pytest.mark.parametrize(
    ("n_texts", "n_characters", "budget"),
    [
        (0, 0, 4000),  # nothing is known yet
        (1, 100, 600),
        (100, 100, 600),  # short notes: two of them fit any budget
        (20, 4000, 4000),
        (3, 4000, 2000),  # two whole texts
        (2, 40_000, 4000),
        (1, 20_000, 2400),  # two text units of 1,200 tokens
    ],
)
def test_the_budget_goes_by_the_texts_that_are_there(tmp_path, n_texts, n_characters, budget):
    settings = OFFLINE_SETTINGS.replace("size: 60, overlap: 10", "size: 1200, overlap: 100")
    (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
    (tmp_path / "input").mkdir()
    for n in range(n_texts):
        (tmp_path / "input" / f"{n}.txt").write_text("a" * n_characters, encoding="utf-8")
    made = init(tmp_path)
    assert made.exit_code == 0
    assert flat(made.output).endswith(f"then: graphrag eval --root {tmp_path} --index")
    assert config_of(tmp_path)["equal_terms"]["max_context_tokens"] == budget


def test_the_budget_goes_by_the_rows_of_a_table(tmp_path):
    """Before the index is built by its file, then by its longest text unit, too."""
    longer = OFFLINE_SETTINGS.replace("size: 60, overlap: 10", "size: 1200, overlap: 100")
    root, table = tmp_path / "clock", "input: {type: csv, text_column: text}\n"
    for settings, n_rows, budget in ((OFFLINE_SETTINGS, 320, 2000), (longer, 32, 800)):
        (root / "input").mkdir(parents=True, exist_ok=True)
        (root / "settings.yaml").write_text(settings + table, encoding="utf-8")
        rows = [f'"{TEXT[:94]:94}{n:4}"\n' for n in range(n_rows)]
        (root / "input" / "rows.csv").write_text("".join(["text\n", *rows]), encoding="utf-8")
        (root / "eval_config.yaml").unlink(missing_ok=True)
        assert init(root).exit_code == 0
        assert config_of(root)["equal_terms"]["max_context_tokens"] == budget
    asyncio.run(build_index(root, lambda _: None))
    (root / "eval_config.yaml").unlink()
    assert init(root).exit_code == 0
    assert config_of(root)["equal_terms"]["max_context_tokens"] == 600


def test_a_configuration_that_is_there_and_can_not_be_read_is_told(tmp_path):
    (tmp_path / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    (tmp_path / "eval_config.yaml").write_text("dataset: {path: [q.csv}\n", encoding="utf-8")
    made = init(tmp_path)
    assert made.exit_code == 0, made.output
    assert "Warning: " in made.output
    assert "eval_config.yaml is not valid YAML: line 1, column 23" in flat(made.output)
