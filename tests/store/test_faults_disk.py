"""A disk that is full or only read: one sentence, what is kept stays, and the run goes on."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clock_evaluation import flat
from support.older_stores import N_RUNS, copy_beside, read_all, unpack_store
from support.small_runs import SmallRun, noting

from graphrag.eval.errors import StoreError
from graphrag.eval.runner.preflight import check_output
from graphrag.eval.store.database import EvaluationStore, open_store


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of its own of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and not _mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", folder)
    if not mounted:
        pytest.skip("file systems can be mounted by root alone")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def _mount(*flags: str | Path) -> int:
    return subprocess.run(["mount", *flags], check=False, capture_output=True).returncode


def fill(folder: Path, leave: int) -> Path:
    rest = os.statvfs(folder)
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * max(0, rest.f_bavail * rest.f_frsize - leave))
    return ballast


def test_a_disk_that_fills_up_stops_the_run_and_space_lets_it_go_on(disk):
    run, asked = SmallRun(disk / "results", 8), Counter[str]()
    ballast: list[Path] = []

    def note(said: str) -> None:
        asked.update([flat(said)])
        if asked.total() == 12:
            ballast.append(fill(disk, 0))

    with noting(note):
        with pytest.raises(StoreError, match=r"its content is kept.*run again with --resume"):
            run.go()
        refused = asked.total()
        ballast[0].unlink()
        in_flight, n_kept = run.noted_calls()
        run.go_on()
    assert asked.total() - 8 * 4 <= refused - n_kept <= run.concurrency + 1
    assert in_flight <= run.concurrency + 1
    status, _, responses, verdicts, *_ = run.kept()[0]
    assert (status, len(responses), len(verdicts)) == ("finished", 8, 8)


def test_a_disk_that_can_only_be_read_is_refused_beforehand(disk):
    run = SmallRun(disk / "results", 2)
    run.go()
    assert not _mount("-o", "remount,ro", disk)
    with pytest.raises(StoreError, match=r"can't be written .*Read-only file system.*--output"):
        check_output(run.folder, 1)
    with pytest.raises(StoreError, match=r"can't be (written|used)"):
        run.go(resume=True)
    assert not _mount("-o", "remount,rw", disk)
    assert run.kept()[0][0] == "finished"


@pytest.mark.parametrize("room", [100_000, 300_000, 700_000])
def test_without_room_an_older_store_is_read_and_stays_as_it_was(disk, room):
    path = unpack_store("format_4", disk / "results" / "eval.db")
    before = read_all(path)
    ballast = fill(disk, room)  # for nothing, for a part of the copy, for the copy alone
    for _ in range(2):
        with open_store(path) as store:
            assert len(store.runs()) == N_RUNS
        with pytest.raises(StoreError, match=r"its content is kept.*Free some space"):
            EvaluationStore(path)
        assert read_all(path) == before
        assert not [each for each in path.parent.iterdir() if each.name.startswith(".")]
    ballast.unlink()
    with EvaluationStore(path) as store:
        assert len(store.runs()) == N_RUNS
    assert read_all(path) == before == read_all(copy_beside(path))
