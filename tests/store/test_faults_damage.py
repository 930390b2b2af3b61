"""A store that is damaged: found and named, and nothing of it taken for a result."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from support.small_runs import SmallRun, noting

from graphrag.eval.errors import StoreError
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.sqlite import check_pages

N = 40
PAGE = 4096
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """Return a finished run of many pages, folded into one file."""
    run = SmallRun(tmp_path_factory.mktemp("whole"), N, 8)
    run.go()
    with sqlite3.connect(run.path) as db:
        db.execute("VACUUM")  # so that no page is a free one
    db.close()
    return run


def pages_of(path: Path, kind: int) -> list[int]:
    content = path.read_bytes()
    return [n for n in range(1, len(content) // PAGE) if content[n * PAGE] == kind]


def overwrite(path: Path, at: int, n: int, by: bytes = b"\0") -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(by * n)


def zero_page(kind: int, which: int) -> Damage:
    return lambda path: overwrite(path, pages_of(path, kind)[which] * PAGE, PAGE)


def garble_page(kind: int, which: int) -> Damage:
    return lambda path: overwrite(path, pages_of(path, kind)[which] * PAGE + 8, 2000, b"\xc3")


def cut_half(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 77)


def change(sql: str) -> Damage:
    def damage(path: Path) -> None:
        with sqlite3.connect(path) as db:
            assert db.execute(sql).rowcount >= 1
        db.close()

    return damage


LEAF, INTERIOR, INDEX_LEAF = 13, 5, 10
DAMAGES = {
    **{f"leaf {n} zeroed": zero_page(LEAF, n) for n in (0, 3, 5, 9, 14, 18)},
    **{f"leaf {n} garbled": garble_page(LEAF, n) for n in (4, 7, 12, 21)},
    **{f"index {n} zeroed": zero_page(INDEX_LEAF, n) for n in range(3)},
    "tree zeroed": zero_page(INTERIOR, 0),
    "cut": cut_half,
    "header": lambda path: overwrite(path, 0, 100),
    "json": change("UPDATE responses SET usage = '{\"llm_calls\": 3' WHERE rowid = 7"),
    "other json": change("UPDATE responses SET usage = '{\"calls\": 3}' WHERE rowid = 7"),
    "bytes": change("UPDATE responses SET response = CAST(x'c3c3' AS TEXT) WHERE rowid = 7"),
    "cost": change("UPDATE judge_usage SET usage = 'x' WHERE rowid = 3"),
    "setup": change("UPDATE runs SET details = '{' WHERE rowid = 1"),
}


def read_all(path: Path) -> None:
    check_pages(path)
    with EvaluationStore(path) as store:
        for run in store.runs():
            for read in (
                store.samples,
                store.responses,
                store.verdicts,
                store.judge_usage,
                store.judgements,
                store.forgotten_usage,
                store.unclaimed_usage,
            ):
                read(run.run_id)


def test_what_is_whole_is_read(whole):
    read_all(whole.path)


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_in_one_sentence_and_nothing_is_asked_on_top_of_it(name, whole, tmp_path):
    run = SmallRun(tmp_path / "a folder", N, 8)
    shutil.copytree(whole.folder, run.folder)
    DAMAGES[name](run.path)
    content, asked = run.path.read_bytes(), list[str]()
    with pytest.raises(StoreError, match=r"can't be used \(.*; nothing of it is shown") as caught:
        read_all(run.path)
    assert "\n" not in str(caught.value)
    if any(word in name for word in ("leaf", "index", "tree", "cut", "header")):
        line = f"sqlite3 '{run.path}' .recover | sqlite3 '{run.path.with_name('new.db')}'"
        assert str(caught.value).endswith(f" Save what can be read with: {line}")
        with noting(asked.append), pytest.raises(StoreError, match="can't be used"):
            run.go(resume=True)
    else:  # of which SQLite sees nothing, so that it would copy it
        assert "Restore an earlier copy" in str(caught.value)
    assert not asked
    assert run.path.read_bytes() == content
