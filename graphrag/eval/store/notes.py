"""Keeps the label and the note that people give a run.

They are in a table that a store gets with the first of them, so that every release of this format
reads a store with the table or without. They are written even while a process holds the store,
so that a note need not wait for the end of a run.
"""

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from graphrag.eval.errors import ChangedElsewhere, StoreError, UsageError
from graphrag.eval.store.sqlite import (
    CleanConnection,
    explain_errors,
    open_connection,
    open_shared,
)

_TABLE = (
    "CREATE TABLE IF NOT EXISTS run_notes "
    "(run_id TEXT PRIMARY KEY REFERENCES runs, label TEXT NOT NULL, note TEXT NOT NULL)"
)
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'run_notes'"
_KEEP = (
    "INSERT INTO run_notes VALUES (?, ?, ?) "
    "ON CONFLICT (run_id) DO UPDATE SET label = excluded.label, note = excluded.note"
)
MOST_OF_A_LABEL, MOST_OF_A_NOTE = 60, 2_000
"""The most characters of each."""


@dataclass(frozen=True, slots=True)
class Note:
    """The name that people give a run (``label``, one line), and their note; "" for nothing."""

    label: str = ""
    note: str = ""


def read_notes(path: Path) -> dict[str, Note]:
    """Return run id -> its note, for runs that have one; StoreError if they can't be read."""
    with explain_errors(path), closing(open_connection(path, reads_only=True)) as db:
        return _notes(db)


def keep_note(path: Path, run_id: str, note: Note, seen: Note) -> Note:
    """Keep the note on a run and return it.

    ``seen``: the note that the writer saw there. Raises ChangedElsewhere if there is another by
    now, UsageError if there is no such run or the note is too long, StoreError if it can't be
    written.
    """
    note = Note(" ".join(note.label.split()), note.note.strip())
    if len(note.label) > MOST_OF_A_LABEL or len(note.note) > MOST_OF_A_NOTE:
        raise UsageError(
            f"A label has at most {MOST_OF_A_LABEL} characters, a note {MOST_OF_A_NOTE:,}; "
            "shorten it."
        )
    if not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path.parent} can't be written; copy it to elsewhere to note something.")
    with explain_errors(path), closing(open_shared(path)) as db, db.transaction():
        if db.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone() is None:
            raise UsageError(f"{path} has no run {run_id!r} any more; open the page again.")
        current = _notes(db).get(run_id, Note())
        if current not in (seen, note):
            raise ChangedElsewhere(current)
        db.execute(_TABLE)
        db.execute(_KEEP, (run_id, note.label, note.note))
    return read_notes(path)[run_id]


def _notes(db: CleanConnection) -> dict[str, Note]:
    if db.execute(_IS_THERE).fetchone() is None:
        return {}
    rows = db.execute("SELECT run_id, label, note FROM run_notes").fetchall()
    return {str(run): Note(str(label), str(note)) for run, label, note in rows}
