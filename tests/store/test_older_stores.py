"""Stores of older formats: brought to this one in place, whole at any moment, figures as then.

``kept/`` holds a project of each, made by the program of its time: a run of three methods that was
judged, one judged again, a suite, and one that is to be resumed; ``then/`` holds what that program
said of them.
"""

import json
import multiprocessing
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from support.clock_evaluation import Evaluation, flat
from support.deaths import kill_self, killed_at_a_file
from support.older_stores import (
    MIGRATED,
    N_RUNS,
    PROJECTS,
    Rows,
    copy_beside,
    is_whole,
    read_all,
    schema_of,
    unpack,
    unpack_store,
)
from support.small_runs import in_child, watched_writes
from support.viewed_store import serving

from graphrag.eval.errors import StoreError
from graphrag.eval.store.database import EvaluationStore, open_store
from graphrag.eval.store.notes import Note, keep_note, read_notes
from graphrag.eval.store.sqlite import CleanConnection

CHANGED_SINCE = {"answer", "loss", "break_even", "corrected_means", "metadata"}
"""Sections of the summary that later versions compute in another way, or say in other words."""
_STATEMENTS = ("BEGIN", "CREATE", "INSERT", "UPDATE", "ALTER", "DROP", "PRAGMA USER", "COMMIT")


class Kept(Evaluation):
    """A kept project."""

    @property
    def output(self) -> Path:
        return self.root / "results"

    def then(self, name: str) -> Any:
        return json.loads((self.root / "then" / f"{name}.json").read_text(encoding="utf-8"))

    def files_of(self, run_id: str, name: str) -> Any:
        path = self.output / "runs" / run_id / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=PROJECTS)
def unpacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def kept(unpacked: Path, tmp_path: Path) -> Kept:
    return Kept(shutil.copytree(unpacked, tmp_path / "kept"))


@pytest.fixture(params=MIGRATED)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return an eval.db that is to be migrated."""
    return unpack_store(request.param, tmp_path / "kept" / "eval.db")


_NEW_OR_GONE = {
    *("shown_unit_recall", "path_edges_exist", "path_joins_meet", "path_edges_supported"),
    *("answer_entities_traced", "judge_reused_replies", "reused_replies"),
}


def without_new_or_gone(value: Any) -> Any:
    """Return what files hold without the figures that 1.0.0 or this version does not know."""
    if not isinstance(value, dict):
        return value
    return {k: without_new_or_gone(v) for k, v in value.items() if k not in _NEW_OR_GONE}


@pytest.mark.slow  # each step of it reads an index
def test_what_was_kept_gives_the_figures_of_then(kept):
    with open_store(kept.store_path) as store:
        unfinished, other, again, suite, judged = (run.run_id for run in store.runs())
    shown = kept.done("show", judged, "--full")
    rows = (kept.root / "then" / "shown.txt").read_text(encoding="utf-8").splitlines()
    scores = [row for row in rows if row.startswith(("tog  ", "bm25  ", "basic  ")) and "(" in row]
    assert len(scores) > 5
    now = {flat(row) for row in shown.output.splitlines()}
    now |= {re.sub(r" n \d+", "", row) for row in now}  # then it stood below a table of measures
    assert {flat(row) for row in scores} <= now
    for name in ("detailed", "summary"):
        then, now = kept.then(f"judged_{name}"), kept.files_of(judged, f"eval_results_{name}")
        for section in then.keys() - CHANGED_SINCE:
            assert without_new_or_gone(now[section]) == without_new_or_gone(then[section]), section
    assert then["by_method"]["tog"]["correctness"]

    kept.done("show", again)
    figures_of_again = kept.then("again_detailed")["results"]
    assert kept.files_of(again, "eval_results_detailed")["results"] == figures_of_again
    kept.done("judge", judged, "--metrics", "relevance")
    judged_now = kept.files_of(kept.runs()[0].run_id, "eval_results_detailed")
    assert judged_now["results"] == figures_of_again

    kept.done("show", suite)
    report = kept.then("suite_results")
    assert kept.files_of(suite, "suite_results") == report
    kept.run("suite", "all")
    run_now = kept.files_of(kept.runs()[0].run_id, "suite_results")
    assert scores_of(run_now) == scores_of(report)

    said = flat(kept.done("--resume", "--methods", "bm25,basic", code=2).output)
    assert "Its judge had the prompts of an earlier version. Judge what it answered with:" in said
    kept.done("judge", unfinished, "--metrics", "correctness")
    compared = kept.root / "compared.json"
    kept.run("compare", kept.runs()[0].run_id, judged, "--json", str(compared))
    items = json.loads(compared.read_text(encoding="utf-8"))["items"]
    assert {each["metric"] for each in items} == {"correctness"}

    with serving(kept.output) as served:
        page = served.client.get(f"/runs/{judged}").text
        assert "Of 6 questions right: tog 4, bm25 4, basic 3." in flat(page)
        assert all(run in served.client.get("/").text for run in (judged, again, other))


@pytest.mark.parametrize("unpacked", ["release_1.0.0"], indirect=True)
def test_a_run_with_settings_that_are_gone_is_judged_instead_of_resumed(kept):
    with closing(sqlite3.connect(kept.store_path)) as db, db:
        runs = [run_id for (run_id,) in db.execute("SELECT run_id FROM runs ORDER BY started_at")]
        db.execute("UPDATE runs SET status = 'finished'")
        db.execute("UPDATE runs SET status = 'unfinished' WHERE run_id = ?", (runs[0],))
    said = flat(kept.done("--resume", code=2).output)
    assert "graph_share: 0.1 -> not set" in said
    assert "Undo" not in said
    assert f"Judge what it answered with: graphrag eval judge {runs[0]}" in said
    kept.done("judge", runs[0], "--metrics", "relevance")


def scores_of(report: Any) -> list[Any]:
    """Return every score below a suite's report, in order."""
    if isinstance(report, list):
        return [score for part in report for score in scores_of(part)]
    if not isinstance(report, dict):
        return []
    own = [report[key] for key in ("score", "overall_score") if key in report]
    return own + scores_of(list(report.values()))


def test_it_becomes_a_store_of_today_with_a_copy_beside_it(path, tmp_path):
    before, bytes_before = read_all(path), path.read_bytes()
    EvaluationStore(tmp_path / "new" / "eval.db").close()
    with open_store(path) as store:
        assert len(store.runs()) == N_RUNS
    assert read_all(path) == before
    assert schema_of(path) == schema_of(tmp_path / "new" / "eval.db")
    copy = copy_beside(path)
    assert read_all(copy) == before
    assert schema_of(copy) != schema_of(path)
    copied = copy.stat()
    with EvaluationStore(path) as store:
        run = store.runs()[-1].run_id
        store.reopen_run(run)
    assert copy.stat() == copied
    # The copy itself is a store: put in its place, it is read again.
    for name in ("eval.db-wal", "eval.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    copy.replace(path)
    with open_store(path) as store:
        assert store.runs()[-1].status == "finished"
    assert len(bytes_before) == copy_beside(path).stat().st_size
    assert sorted(each.name for each in path.parent.iterdir() if each.suffix != ".lock") == [
        *("eval.db", copy.name)
    ]


def test_a_note_is_kept_on_an_older_store(path):
    with closing(sqlite3.connect(path)) as db:
        (run,) = db.execute("SELECT run_id FROM runs LIMIT 1").fetchone()
    assert keep_note(path, run, Note("base"), Note()) == Note("base")
    assert read_notes(path) == {run: Note("base")}
    assert copy_beside(path).is_file()


def die_at(number: int, is_done: bool) -> Callable[[int, bool], None]:
    def die(n: int, done: bool) -> None:
        if (n, done) == (number, is_done):
            kill_self()

    return die


def test_killed_at_every_statement_it_is_whole_and_the_next_opening_ends_it(path, tmp_path):
    before, count = read_all(path), 0
    whole = tmp_path / "whole.db"
    shutil.copy(path, whole)
    codes: list[int] = []
    for number in range(1, 100):
        for is_done in (False, True):
            clear(path, whole)
            with watched_writes(die_at(number, is_done), only=_STATEMENTS):
                codes.append(in_child(lambda: open_store(path).close()))
            if codes[-1] == 0:
                continue
            count += 1
            assert codes[-1] == -signal.SIGKILL
            check_it_goes_on(path, before, schema_of(whole))
        if codes[-1] == 0:
            break
    assert count >= 12  # begin, four statements of a migration, its number, and commit


def test_killed_in_the_middle_of_its_copy_or_beside_it(path, tmp_path, monkeypatch):
    before = read_all(path)
    whole = tmp_path / "whole.db"
    shutil.copy(path, whole)
    backup = CleanConnection.backup

    def killed_at_a_page() -> None:
        def copy(self: CleanConnection, target: sqlite3.Connection, **_: Any) -> None:
            backup(self, target, pages=1, progress=lambda *_: kill_self())

        CleanConnection.backup = copy

    for die in (killed_at_a_page, lambda: killed_at_a_file(1)):
        clear(path, whole)
        assert in_child(lambda die=die: (die(), open_store(path).close())) == -signal.SIGKILL
        assert not [*path.parent.glob("eval.format-*.db")]
        check_it_goes_on(path, before, schema_of(whole))


def clear(path: Path, whole: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    shutil.copy(whole, path)


def check_it_goes_on(path: Path, before: Rows, schema: list[str]) -> None:
    beside = shutil.copytree(path.parent, path.parent.with_name("beside"))
    assert is_whole(beside / path.name)
    found = schema_of(beside / path.name)
    assert read_all(beside / path.name) == before
    shutil.rmtree(beside)
    with open_store(path) as store:
        assert len(store.runs()) == N_RUNS
    assert read_all(path) == before
    assert is_whole(copy_beside(path))
    assert read_all(copy_beside(path)) == before
    assert schema_of(copy_beside(path)) == schema
    assert found in (schema, schema_of(path))
    assert not [each for each in path.parent.iterdir() if each.name.startswith(".")]


def test_beside_a_process_that_holds_the_folder_it_is_read_and_not_changed(path):
    before = read_all(path)
    content = path.read_bytes()
    with FileLock(f"{path}.lock"):
        with open_store(path) as store:
            assert len(store.runs()) == N_RUNS
            run = store.runs()[0].run_id
        with pytest.raises(StoreError, match="Another process is running"):
            EvaluationStore(path)
        with pytest.raises(StoreError, match="Another process is running"):
            keep_note(path, run, Note("base"), Note())
    assert path.read_bytes() == content
    with EvaluationStore(path) as store:
        assert len(store.runs()) == N_RUNS
    assert read_all(path) == before


def test_of_several_processes_at_once_one_migrates_and_all_read_it(path):
    before = read_all(path)
    begin = multiprocessing.get_context("fork").Barrier(4)

    def read() -> None:
        begin.wait(30)
        with open_store(path) as store:
            assert len(store.runs()) == N_RUNS

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(in_child, [read] * 4)] == [0] * 4
    assert read_all(path) == before
    assert is_whole(path)
    assert read_all(copy_beside(path)) == before
