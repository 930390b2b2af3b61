"""Runs in a folder in which nothing can be written, as an artifact of CI or somebody else's."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from support.clock_evaluation import flat
from support.commands import each, ends
from support.older_stores import unpack_store
from support.viewed_store import keep_run

from graphrag.eval.store.database import EvaluationStore, open_store

DONE, ERROR, INCOMPLETE = 0, 1, 3
_NOBODY = 65534
_MAIN = "import sys; sys.argv[0] = 'graphrag'; from graphrag.cli.main import app; app()"
_VIEW = """
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.viewed_store import serving
with serving(Path(sys.argv[3])) as served:
    for path in ("/", "/runs/" + sys.argv[4]):
        answer = served.client.get(path)
        assert answer.status_code == 200, answer.text
        assert "tog" in answer.text
"""


class ReadOnly:
    """A folder that the processes which are started here can't write: root is not held by modes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._before: list[str] = []
        self._user: dict[str, int] = {}
        if os.geteuid() != 0:
            return
        mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        for self._before, self._user in (
            (["unshare", "-m", "sh", "-c", mount, str(folder)], {}),
            ([], {"user": _NOBODY}),
        ):
            # It has to be able to read the project, and not to write here.
            tried = self.python("import graphrag.eval, sys; open(sys.argv[1], 'w')", folder / "x")
            (folder / "x").unlink(missing_ok=True)
            if "Read-only file system" in tried.stderr or "Permission denied" in tried.stderr:
                return
        pytest.skip("nothing here keeps root from writing: no mount namespace, no other user")

    def python(self, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run code on the folder as it is now, which is not to be changed."""
        return self._run(sys.executable, "-c", code, *map(str, arguments))

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        words = (*self._before, *words)
        return subprocess.run(words, text=True, capture_output=True, timeout=120, **self._user)  # pyright: ignore

    def eval(self, *words: object) -> subprocess.CompletedProcess[str]:
        return self.python(_MAIN, "eval", *words, "--output", self.folder)

    def eval_each(self, viewed: str, *commands: tuple[object, ...]) -> list[tuple[int, str, str]]:
        """Run one command after the other in one process, which then serves the pages of a run.

        Return how each command ended and what it said.
        """
        words = [("eval", *words, "--output", self.folder) for words in commands]
        python, _, program, given = each(*words)
        tests = str(Path(__file__).parents[1])
        return ends(
            self._run(python, "-c", program + _VIEW, given, tests, str(self.folder), viewed)
        )


@pytest.fixture
def read_only() -> Generator[ReadOnly]:
    # Not below pytest's folder, which others can't look into.
    parent = Path(tempfile.mkdtemp())
    parent.chmod(0o755)
    folder = parent / "artifact"
    folder.mkdir()
    keep_run(folder, wrong=5)
    keep_run(folder)
    try:
        yield ReadOnly(folder)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(parent)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow  # many processes
def test_runs_are_shown_and_nothing_is_written(read_only, tmp_path):
    folder = read_only.folder
    with open_store(folder / "eval.db") as store:
        new, old = (run.run_id for run in store.runs())
    before = contents(folder)
    folder.chmod(0o555)
    open_to_all = Path(tempfile.mkdtemp(dir=folder.parent))
    open_to_all.chmod(0o777)
    ended = read_only.eval_each(
        new,
        ("show", "latest"),
        ("show", "--failed"),
        ("show", "--changed", old),
        ("show",),
        ("history", "--json"),
        ("compare", new, old),
        ("show", new, "--html", folder / "page.html"),
        ("show", new, "--html", open_to_all / "page.html"),
    )
    shown, *others, compared, refused, page = (
        (code, flat(out), flat(err)) for code, out, err in ended
    )
    for code, out, err in (shown, *others):
        assert code == DONE, err
        assert "tog" in out
    assert "can't be written" in shown[2]
    assert "name the copy with --output" in shown[2]
    assert compared[0] in (DONE, INCOMPLETE)
    assert refused[0] == ERROR
    assert "choose another --html" in refused[2]
    assert page[0] == DONE
    assert (open_to_all / "page.html").stat().st_size > 1000
    assert contents(folder) == before


def test_what_sqlite_has_not_taken_over_from_its_log_counts(read_only):
    """A run that was killed, or is at work, leaves ``-wal`` behind; copies may lack ``-shm``."""
    folder = read_only.folder
    kept = folder.with_name("kept")
    with EvaluationStore(folder / "eval.db") as store:
        run = store.runs()[0]
        store.reopen_run(run.run_id)
        shutil.copytree(folder, kept)
    for name in ("eval.db", "eval.db-wal", "eval.db-shm"):
        shutil.copy(kept / name, folder / name)
    before = contents(folder)
    assert len(before["eval.db-wal"]) > 0
    folder.chmod(0o555)
    listed = read_only.eval("history", "--json")
    assert listed.returncode == DONE, listed.stderr
    statuses = {each["run_id"]: each["status"] for each in json.loads(listed.stdout)}
    assert statuses[run.run_id] == "unfinished"
    assert contents(folder) == before
    folder.chmod(0o755)
    (folder / "eval.db-shm").unlink()
    folder.chmod(0o555)
    refused = read_only.eval("history", "--json")
    assert refused.returncode == ERROR
    assert "copy its folder to elsewhere" in " ".join(refused.stderr.split())


def test_a_run_is_shown_while_another_is_at_work(tmp_path):
    keep_run(tmp_path)
    there = {path.name for path in tmp_path.iterdir()}
    with EvaluationStore(tmp_path / "eval.db"):
        words = [sys.executable, "-c", _MAIN, "eval", "show", "latest", "--output", str(tmp_path)]
        shown = subprocess.run(words, text=True, capture_output=True, timeout=120)
    assert shown.returncode == DONE, shown.stderr
    assert "No file is written: Another process is running" in " ".join(shown.stderr.split())
    assert {path.name for path in tmp_path.iterdir()} == there


@pytest.mark.slow  # many processes
def test_a_store_of_an_older_format_is_read_there_as_well(read_only):
    folder = read_only.folder
    unpack_store("format_4", folder / "eval.db")
    with closing(sqlite3.connect(folder / "eval.db")) as db:
        ((old,),) = db.execute("SELECT run_id FROM runs ORDER BY started_at LIMIT 1")
    before = contents(folder)
    folder.chmod(0o555)
    listed, shown = read_only.eval_each(old, ("show", "--json"), ("show", old, "--full"))
    assert listed[0] == DONE, listed[2]
    assert [run["run_id"] for run in json.loads(listed[1])][-1] == old
    assert shown[0] == DONE, shown[2]
    assert "tog 4, bm25 4, basic 3" in shown[1]
    assert contents(folder) == before
