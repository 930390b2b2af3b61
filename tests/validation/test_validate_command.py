"""The command: what it prints, writes and returns."""

import json
import re
from pathlib import Path

import lancedb
import pytest
from click.testing import Result
from support.projects import OFFLINE_SETTINGS, build_project
from typer.testing import CliRunner

from graphrag.eval.validation import validate_index

DENSE = """\
Marta Quill married Jonas Feld. Jonas Feld knows Berta Lindqvist. Berta Lindqvist taught Oswin
Tarrant. Oswin Tarrant knows Rufus Doyle. Rufus Doyle hired Agnes Thorne. Agnes Thorne paid Silas
Crane. Silas Crane knows Nadia Sorrel. Nadia Sorrel met Magnus Crowe. Magnus Crowe robbed Petra
Holm. Petra Holm knows Tobias Reed. Tobias Reed saw Clara Reed. Clara Reed loves Idris Vane. Idris
Vane met Lucia Ferrer. Lucia Ferrer met Pedro Salas. Pedro Salas knows Marta Quill.
"""


def run(root: Path, *flags: str) -> Result:
    from graphrag.cli.main import app

    words = ["eval", "validate", "--root", str(root), *flags]
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a configuration, and a project of one short document with many names."""
    root = tmp_path_factory.mktemp("projects")
    build_project(root / "dense", OFFLINE_SETTINGS.replace("size: 60", "size: 600"), names=DENSE)
    (root / "eval_config.yaml").write_text("indexes: {names: dense}\n", encoding="utf-8")
    return root


@pytest.mark.parametrize("flags", [(), ("--fix",)])
def test_a_short_text_with_many_entities_is_warned_of_and_passes(projects, tmp_path, flags):
    found = run(projects / "dense", *flags, "--json", str(tmp_path / "r.json"))
    assert found.exit_code == 0, found.output
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    (phase,) = (each for each in report["phases"] if each["name"] == "graph_construction")
    assert phase["metrics"]["entities_per_chunk"] > 10
    (check,) = (each for each in phase["checks"] if "ratio" in each["name"])
    assert (check["status"], check["passed"]) == ("warning", False)
    assert report["overall_passed"] is True
    assert "Warning: Many entities:" in found.output
    assert re.search(r"failed: 0; .* warnings: [1-9]", found.output)


def test_a_folder_with_a_configuration_stands_for_its_indexes(projects, index):
    found = run(projects)
    assert found.exit_code == 0, found.output
    assert f"{projects / 'dense'}: passed" in found.output
    config = projects / "both.yaml"
    config.write_text(f"indexes: {{names: dense, other: '{index.root}'}}\n", encoding="utf-8")
    both = run(projects, "--config", "both.yaml", "-q")
    assert (both.exit_code, both.stdout.count(": passed.")) == (0, 2), both.output
    (index.output / "relationships.parquet").unlink()
    assert run(projects, "--config", "both.yaml", "-q").exit_code == 100
    refused = run(projects, "--config", "both.yaml", "--json", "r.json")
    assert (refused.exit_code, "name one by --root" in refused.output) == (2, True)
    config.write_text("indexes: {}\n", encoding="utf-8")
    nothing = run(projects, "--config", "both.yaml")
    assert (nothing.exit_code, "configures no index" in nothing.output) == (2, True)
    # A project that has a configuration beside its settings stands for itself.
    (index.root / "eval_config.yaml").write_text("indexes: {gone: gone}\n", encoding="utf-8")
    assert run(index.root, "-q").exit_code == 100


def test_a_sound_index_ends_with_0(index):
    found = run(index.root)
    assert found.exit_code == 0
    for name in ("document_processing", "content_coverage", "graph_connectivity"):
        assert name in found.output
    assert "Checks passed: 16/18; failed: 0; not applicable: 2; warnings: 0." in found.output
    quiet = run(index.root, "-q")
    assert re.fullmatch(r"\S+: passed\. Checks passed: 16/18;.*\n", quiet.output)


def test_what_a_search_can_live_with_is_warned_of_and_written(index, tmp_path):
    entity = index.set_cell("entities", 1, "confidence", 1.7)
    index.add_row("entities", id="a|b", title=" \n ")
    file = tmp_path / "new" / "report.json"
    result = run(index.root, "--json", str(file))
    assert result.exit_code == 0
    assert "failed: 0; with a warning: 2;" in result.output
    assert "Warning: Missing vectors" in result.output
    written = json.loads(file.read_text(encoding="utf-8"))
    assert (written["overall_passed"], written["total_checks"]) == (True, 18)
    checks = {check["name"]: check for phase in written["phases"] for check in phase["checks"]}
    assert checks["confidence_scores_valid"]["status"] == "warning"
    assert checks["confidence_scores_valid"]["examples"] == [entity]
    page = validate_index(index.root).detailed_report()
    assert r"| a\|b |" in page
    found = "1 of 1 confidences are not within 0 and 1"
    assert f"| confidence_scores_valid | warning | {found} | {entity} |" in page


def test_what_can_not_be_validated_ends_with_2(index, tmp_path):
    unwritable = str(index.root / "settings.yaml" / "report.json")
    refused = [run(tmp_path / "nowhere"), run(index.root, "--json", unwritable)]
    index.output.rename(tmp_path / "gone")
    for each in (*refused, run(index.root)):
        assert each.exit_code == 2
        assert each.stderr.splitlines()[-1].startswith("Error: ")
        assert "Traceback" not in each.stderr


def test_a_run_over_an_index_that_lacks_vectors_says_so(index):
    """The score of a search that can't find some texts looks like one of the method."""
    from graphrag.cli.main import app

    (index.root / "questions.csv").write_text("question,answer\nWho knows?,Marta\n", "utf-8")
    config = "dataset: {path: questions.csv}\nindexes: {isle: .}\nmethods: [basic]\n"
    (index.root / "eval_config.yaml").write_text(config, encoding="utf-8")
    line = ["eval", "--root", str(index.root)]
    assert "Missing vectors" not in CliRunner().invoke(app, line).output
    unit, n = index.read("text_units")["id"].iloc[0], len(index.read("text_units"))
    stored = lancedb.connect(str(index.output / "lancedb")).open_table("text_unit_text")
    stored.update(where=f"id = '{unit}'", values={"vector": None})
    warned = CliRunner().invoke(app, line, env={"COLUMNS": "400"}).output
    assert f"isle: Missing vectors: 1 of {n} text_units have none in text_unit_text" in warned
    assert "No search by meaning finds these: build the index anew" in warned
