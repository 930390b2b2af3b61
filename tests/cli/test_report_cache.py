"""A finished run is shown as it is kept, until something that a figure hangs on has changed."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from support.clock_evaluation import Evaluation, flat
from support.viewed_store import serving_app

from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.view import app_of
from graphrag.eval.store.atomic_files import PAGE_FILE, SUMMARY_FILE

COMPUTING = "Computing the figures"
WIDE = {"COLUMNS": "160"}


def own_folder(evaluation: Evaluation) -> Path:
    (run,) = evaluation.runs()
    return evaluation.output / "runs" / run.run_id


def change_rows(evaluation: Evaluation, sql: str) -> None:
    with sqlite3.connect(evaluation.store_path) as db:
        db.execute(sql)


def shown(evaluation: Evaluation, *flags: str) -> tuple[str, str]:
    """Return what ``show`` prints of the run, and what it says beside that."""
    ended = evaluation.done("show", "latest", *flags, **WIDE)
    return ended.stdout, flat(ended.stderr)


def times_of(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("flags", [(), ("--full",), ("--quiet",)])
def test_a_run_is_shown_as_it_is_kept_and_as_it_is_computed(finished_copy, flags):
    before = times_of(own_folder(finished_copy))
    kept, said = shown(finished_copy, *flags)
    assert COMPUTING not in said
    assert times_of(own_folder(finished_copy)) == before
    change_rows(finished_copy, "DELETE FROM kept_figures")
    computed, said = shown(finished_copy, *flags)
    assert (COMPUTING in said) == ("--quiet" not in flags)
    assert computed == kept
    assert shown(finished_copy, *flags)[0] == kept


def test_a_verdict_that_is_changed_by_hand_is_shown(finished_copy):
    before, _ = shown(finished_copy)
    change_rows(finished_copy, "UPDATE verdicts SET score = 0 WHERE metric = 'correctness'")
    after, said = shown(finished_copy)
    assert after != before
    assert "again: the run in eval.db has changed." in said
    by_method = json.loads((finished_copy.output / SUMMARY_FILE).read_text("utf-8"))["by_method"]
    assert {means["correctness"] for means in by_method.values()} == {0}
    again, said = shown(finished_copy)
    assert again == after
    assert "again:" not in said
    assert COMPUTING not in said


def test_labels_that_are_written_changed_or_gone_are_seen(finished_copy):
    before, _ = shown(finished_copy, "--full")
    path = own_folder(finished_copy) / "audit_correctness.json"
    for text in ('{"labels": null}', "no labels"):
        path.write_text(text, encoding="utf-8")
        after, said = shown(finished_copy, "--full")
        assert "again: the labels on correctness have changed." in said
        assert after != before
        assert COMPUTING not in shown(finished_copy, "--full")[1]
        before = after
    path.unlink()
    assert "the labels on correctness have changed" in shown(finished_copy, "--full")[1]


def test_an_index_that_is_built_again_is_seen_and_one_that_is_put_back(finished_copy):
    before, _ = shown(finished_copy, "--full")
    table = finished_copy.project / "output" / "entities.parquet"
    content = table.read_bytes()
    files = {name: (own_folder(finished_copy) / name).read_bytes() for name in (SUMMARY_FILE,)}
    table.unlink()
    for computes in (True, False):
        after, said = shown(finished_copy, "--full")
        assert (COMPUTING in said) == computes
        assert "so that retrieval, paths and losses are not measured on it" in said
        assert "left as they are" in said
        assert after != before
    assert {name: (own_folder(finished_copy) / name).read_bytes() for name in files} == files
    table.write_bytes(content)
    again, said = shown(finished_copy, "--full")
    assert again == before
    assert COMPUTING not in said


def test_figures_of_another_version_are_made_anew(finished_copy):
    change_rows(
        finished_copy, """UPDATE kept_figures SET key = replace(key, 'code": "', 'code": "0')"""
    )
    assert "again: another version computed them." in shown(finished_copy)[1]
    assert COMPUTING not in shown(finished_copy)[1]


@pytest.mark.parametrize("name", [PAGE_FILE, SUMMARY_FILE, "evaluation_tog.json"])
def test_a_file_that_is_gone_or_damaged_is_made_again(finished_copy, name):
    path = own_folder(finished_copy) / name
    path.unlink()
    assert f"again: {name} is missing, or not as written." in shown(finished_copy)[1]
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-9])
    assert f"{name} is missing, or not as written." in shown(finished_copy)[1]
    assert path.read_bytes() == content
    (finished_copy.output / name).unlink()  # it is had from the run's own
    said = shown(finished_copy)[1]
    assert COMPUTING not in said
    assert (finished_copy.output / name).read_bytes() == content


def test_command_lines_name_the_place_that_they_are_shown_in(finished_copy, tmp_path):
    before, _ = shown(finished_copy)
    moved = tmp_path / "moved to here"
    shutil.copytree(finished_copy.output, moved)
    flags = ("--output", str(moved))
    ended = finished_copy.done("show", "latest", *flags, **WIDE)
    assert COMPUTING not in ended.stderr
    assert f"--output '{moved}'" in flat(ended.stdout)
    folder = str(tmp_path)
    lines = [line for line in before.splitlines() if folder not in line]
    assert [line for line in ended.stdout.splitlines() if folder not in line] == lines
    assert len(lines) > 5


def test_the_page_is_served_as_it_is_kept_until_figures_change(finished_copy):
    (run,) = finished_copy.runs()
    address = f"/runs/{run.run_id}"
    page = (own_folder(finished_copy) / PAGE_FILE).read_text("utf-8")
    place = Paths(root=finished_copy.root)
    with serving_app(app_of(place, patience_s=60)) as served:
        kept = served.client.get(address).text
        assert kept.partition("<main")[2].partition('id="how"')[0] in page
        change_rows(finished_copy, "UPDATE verdicts SET score = 0 WHERE metric = 'correctness'")
        changed = served.client.get(address).text
        assert changed != kept
        assert "No answer: correctness is 0 % for every method" in changed
    change_rows(finished_copy, "UPDATE verdicts SET score = 1 WHERE metric = 'correctness'")
    with serving_app(app_of(place, patience_s=60)) as served:
        assert "correctness is 0 %" not in served.client.get(address).text
    # A page that somebody changed is not the run's.
    shown(finished_copy)
    path = own_folder(finished_copy) / PAGE_FILE
    path.write_text(path.read_text("utf-8").replace("</main>", "<p>forged</p></main>"), "utf-8")
    with serving_app(app_of(place, patience_s=60)) as served:
        assert "forged" not in served.client.get(address).text
