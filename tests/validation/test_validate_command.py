"""The command: what it prints, writes and returns."""

import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from support.commands import code_of
from support.damaged_index import DamagedIndex

from graphrag.eval.cli.location import Place
from graphrag.eval.cli.validate import validate, validate_indexes


def test_a_sound_index_ends_with_0(index: DamagedIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(Place(index.root)) == 0
    printed = capsys.readouterr().out
    for name in ("document_processing", "content_coverage", "graph_connectivity"):
        assert name in printed
    assert "Checks passed: 16/18; failed: 0; not applicable: 2; warnings: 0." in printed


def test_a_failed_check_ends_with_100_and_is_written(
    index: DamagedIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entity = index.set_cell("entities", 1, "confidence", 1.7)
    index.add_row("entities", id="a|b", title=" \n ")
    written_to = {"json": tmp_path / "new" / "report.json", "markdown": tmp_path / "report.md"}
    assert validate(Place(index.root), **written_to) == 100
    printed = capsys.readouterr().out
    assert "failed" in printed
    assert "Warning: Missing vectors" in printed
    written = json.loads((tmp_path / "new" / "report.json").read_text(encoding="utf-8"))
    assert written["overall_passed"] is False
    assert written["total_checks"] == 18
    assert written["failed_phases"] == ["entity_extraction"]
    (confidence,) = (
        check
        for phase in written["phases"]
        for check in phase["checks"]
        if check["name"] == "confidence_scores_valid"
    )
    assert confidence["status"] == "failed"
    assert confidence["examples"] == [entity]
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## entity_extraction: failed" in page
    assert r"| a\|b |" in page
    found = "1 of 1 confidences are not within 0 and 1"
    assert f"| confidence_scores_valid | failed | {found} | {entity} |" in page


def test_quiet_prints_the_answer_alone(
    index: DamagedIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(Place(index.root), quiet=True) == 0
    shown = capsys.readouterr()
    assert re.fullmatch(r"\S+: passed\. Checks passed: 16/18;.*\n", shown.out)
    assert shown.err == ""


@pytest.mark.parametrize("what", ["nowhere", "unindexed", "unwritable"])
def test_what_can_not_be_validated_ends_with_2(
    index: DamagedIndex, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root, json_file = index.root, None
    if what == "nowhere":
        root = tmp_path / "nowhere"
    elif what == "unindexed":
        index.output.rename(tmp_path / "gone")
    else:
        json_file = index.root / "settings.yaml" / "report.json"
    assert code_of(validate, Place(root), json=json_file) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in captured.err


def test_an_evaluation_is_told_whether_its_indexes_are_sound(
    index: DamagedIndex, sound_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = validate_indexes({"sound": sound_project}, Console())
    assert sound["sound"].overall_passed
    index.set_cell("relationships", 0, "source", "NOBODY")
    both = validate_indexes({"bad": index.root, "sound": sound_project}, Console())
    assert [report.overall_passed for report in both.values()] == [False, True]
    printed = capsys.readouterr().out
    assert "relationship_entities_exist: 1 of" in printed
    assert "Orphaned relationships" in printed


async def test_it_runs_in_a_notebook_whose_loop_is_running(index: DamagedIndex) -> None:
    assert index.validate().overall_passed
