"""The gate's answers in the list of runs are kept until a run or the baseline changes."""

import sqlite3

from support.viewed_store import keep_run

from graphrag.eval.compare.compare import pin_baseline
from graphrag.eval.results.runs import read_rows
from graphrag.eval.web.runs import StorePages


def test_the_gate_is_kept_until_the_run_or_the_baseline_changes(tmp_path):
    path = tmp_path / "eval.db"
    good, bad = keep_run(tmp_path, 0, 60), keep_run(tmp_path, 40, 60)
    pin_baseline(read_rows(good, path), path)

    def fails() -> bool:
        """Return whether a gate fails on the page of the runs."""
        return ">FAIL<" in StorePages(path).page()

    assert fails()
    with sqlite3.connect(path) as db:  # as it is kept, no row is read
        assert db.execute("SELECT value FROM kept_figures WHERE name = 'gate'").fetchall() == [
            ("FAIL",)
        ]
        db.execute("UPDATE verdicts SET score = 1 WHERE run_id = ?", (bad,))
    assert not fails()
    worse = keep_run(tmp_path, 45, 60)
    pin_baseline(read_rows(worse, path), path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE verdicts SET score = 0 WHERE run_id = ?", (bad,))
    assert fails()
    pin_baseline(read_rows(bad, path), path)
    assert not fails()
