"""A store that is damaged: found, named, and recovered as far as it can be read."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.small_runs import SmallRun, noting, one_line

from graphrag.eval.errors import StoreError
from graphrag.eval.store import EvaluationStore, RunSetup, check_pages, recover_store

N = 40
PAGE = 4096
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallRun, Counter[str]]:
    """Return a finished run of many pages, folded into one file, and what it asked."""
    run, asked = SmallRun(tmp_path_factory.mktemp("whole"), N, 8), Counter[str]()
    with noting(lambda said: asked.update([one_line(said)])):
        run.go()
    with sqlite3.connect(run.path) as db:
        db.execute("VACUUM")  # so that no page is a free one
    db.close()
    return run, asked


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


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_what_is_whole_is_recovered(
    name: str, whole: tuple[SmallRun, Counter[str]], tmp_path: Path
):
    lived, asked_once = whole
    run = SmallRun(tmp_path / "results", N, 8)
    shutil.copytree(lived.folder, run.folder)
    DAMAGES[name](run.path)
    content = run.path.read_bytes()
    with pytest.raises(StoreError, match=r"can't be used \(.*eval recover --output ") as caught:
        read_all(run.path)
    assert "\n" not in str(caught.value)
    if any(word in name for word in ("leaf", "tree", "cut", "header")):
        with pytest.raises(StoreError, match="recover"):
            run.go(resume=True)

    found = recover_store(run.path)
    assert found.damaged.read_bytes() == content
    harmless = "index" in name or name in ("header", "leaf 3 zeroed")  # which holds no row
    assert found.lost or found.unfinished or harmless
    read_all(run.path)
    if name == "setup":
        assert found.kept["runs"] == 0
        return
    with EvaluationStore(run.path) as store:
        runs = store.runs()
        assert len(runs) == found.kept["runs"]
        for each in runs:
            got, had = store.responses(each.run_id), N
            is_whole = len(got) == had and len(store.verdicts(each.run_id)) == had
            assert is_whole or each.status == "unfinished"
            n_kept = len(got)
    asked = Counter[str]()
    with noting(lambda said: asked.update([one_line(said)])):
        run.go_on()
    assert asked <= asked_once, "only what is missing is asked, once"
    before, after = lived.kept()[0], run.kept()[0]
    assert after[:4] == before[:4]
    if "index" in name or name == "header":
        assert not asked
    if name in ("json", "other json", "bytes"):
        assert n_kept == N - 1
        assert asked.total() == 4, "a search, and verdicts on what it says now"
    usages = [usage for each in after[4].values() for usage in each] + after[5]
    same = after[4] == before[4] and not found.unfinished
    assert same or not all(usage.is_counted for usage in usages), "what is lost has no price"


def test_a_run_that_lost_nothing_stays_finished(tmp_path: Path):
    first = SmallRun(tmp_path / "results", 3)
    first.go()
    second = SmallRun(first.folder, 5)
    second.go()
    ids = [kept.run_id for kept in _runs(first.path)]
    change(f"UPDATE responses SET usage = '?' WHERE run_id = '{ids[0]}'")(first.path)
    found = recover_store(first.path)
    assert found.unfinished == (ids[0],)
    assert found.lost == {"responses": 5}
    assert [run.status for run in _runs(first.path)] == ["unfinished", "finished"]


def _runs(path: Path):
    with EvaluationStore(path) as store:
        return store.runs()


def test_what_is_in_the_log_alone_is_recovered_too(tmp_path: Path):
    path = tmp_path / "results" / "eval.db"
    with EvaluationStore(path) as store:
        run = store.add_run(RunSetup({}))
        left = tmp_path / "left"
        left.mkdir()
        for file in path.parent.glob("eval.db*"):
            shutil.copy(file, left)
    overwrite(left / "eval.db", 0, 100)
    recover_store(left / "eval.db")
    assert [each.run_id for each in _runs(left / "eval.db")] == [run.run_id]


def test_a_store_that_another_process_holds_is_not_recovered(tmp_path: Path):
    path = tmp_path / "eval.db"
    with EvaluationStore(path), pytest.raises(StoreError, match="Another process"):
        recover_store(path)


def test_nothing_that_is_no_store_is_replaced(tmp_path: Path):
    path = tmp_path / "eval.db"
    path.write_bytes(b"not a database at all" * 300)
    with pytest.raises(StoreError, match="Nothing can be recovered"):
        recover_store(path)
    assert path.read_bytes() == b"not a database at all" * 300
    assert sorted(file.name for file in tmp_path.iterdir()) == ["eval.db", "eval.db.lock"]
