"""What people say of a run: kept beside a run in progress, in a store of any 1.x release."""

import sqlite3

import pytest
from support.viewed_store import keep_run

from graphrag.eval.errors import ChangedElsewhere, UsageError
from graphrag.eval.results.runs import list_runs
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.notes import Note, keep_note, read_notes
from graphrag.text.redaction import _Known, know_settings  # pyright: ignore

NOTHING = Note()


def test_a_store_without_notes_gets_them_in_place(tmp_path):
    run, path = keep_run(tmp_path, n=2), tmp_path / "eval.db"
    with sqlite3.connect(path) as db:
        before = db.execute("PRAGMA user_version").fetchone()
        assert db.execute("SELECT 1 FROM sqlite_master WHERE name = 'run_notes'").fetchone() is None
    assert read_notes(path) == {}
    said = Note("base", "two\nlines")
    assert keep_note(path, run, Note("  base ", "two\nlines\n"), NOTHING) == said
    assert read_notes(path) == {run: said}
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == before
    (listed,) = list_runs(path)
    assert (listed.label, listed.note) == ("base", "two\nlines")
    assert listed.to_dict()["label"] == "base"


def test_it_is_kept_beside_the_process_that_holds_the_store(tmp_path):
    run, path = keep_run(tmp_path, n=2, n_asked=1), tmp_path / "eval.db"
    with EvaluationStore(path) as store:
        keep_note(path, run, Note("now"), NOTHING)
        store.finish_run(run)
    assert read_notes(path)[run].label == "now"


def test_what_was_not_seen_is_not_overwritten(tmp_path):
    run, path = keep_run(tmp_path, n=2), tmp_path / "eval.db"
    first = keep_note(path, run, Note("a"), NOTHING)
    with pytest.raises(ChangedElsewhere) as conflict:
        keep_note(path, run, Note("b"), NOTHING)
    assert conflict.value.current == first
    assert keep_note(path, run, NOTHING, first) == NOTHING


def test_what_is_too_long_or_of_no_run_is_one_sentence(tmp_path):
    run, path = keep_run(tmp_path, n=2), tmp_path / "eval.db"
    for note in (Note("x" * 61), Note("", "x" * 2001)):
        with pytest.raises(UsageError, match="at most 60 characters"):
            keep_note(path, run, note, NOTHING)
    with pytest.raises(UsageError, match="has no run 'other'"):
        keep_note(path, "other", Note("x"), NOTHING)
    assert read_notes(path) == {}


def test_a_key_is_no_note(tmp_path, monkeypatch):
    for name in ("shown", "data"):
        monkeypatch.setattr(_Known, name, getattr(_Known, name))
    know_settings({"api_key": "9f86d081884c7d659a2feaa0c55ad015"})
    run, path = keep_run(tmp_path, n=2), tmp_path / "eval.db"
    kept = keep_note(path, run, Note("", "with 9f86d081884c7d659a2feaa0c55ad015"), NOTHING)
    assert "9f86d081" not in kept.note
