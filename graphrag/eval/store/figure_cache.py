"""Keeps figures of finished runs in eval.db, and marks them as outdated when a row changes.

The table comes into a store with the first figures, as that of notes does, so that every release of
this format reads a store with the table or without. Triggers come with it: when anybody changes a
row of a run, an earlier release or a person by SQL, they mark its figures as outdated.
"""

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, cast

from graphrag.eval.store.records import Run
from graphrag.eval.store.sqlite import CleanConnection, explain_errors, open_shared
from graphrag.eval.types.metric_definitions import BUILT_IN
from graphrag.text.redaction import redact_data

OUTDATED = ""
"""The key of figures whose rows have changed since."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS kept_figures (run_id TEXT NOT NULL REFERENCES runs, "
    "name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, digest TEXT NOT NULL, "
    "PRIMARY KEY (run_id, name))"
)
_WATCHED = (
    *("runs", "samples", "responses", "verdicts", "judge_usage", "forgotten", "calls"),
    "judgements",
)
_RUN_OF = {"INSERT": "NEW.run_id", "UPDATE": "OLD.run_id, NEW.run_id", "DELETE": "OLD.run_id"}
_TRIGGERS = {
    f"outdate_{table}_{event.lower()}": f"AFTER {event} ON {table} BEGIN "
    f"UPDATE kept_figures SET key = '{OUTDATED}' WHERE run_id IN ({run}); END"
    for table in _WATCHED
    for event, run in _RUN_OF.items()
}
"""Name of a trigger -> what it does."""
_ARE_THERE = (
    "SELECT name, sql FROM sqlite_master WHERE name LIKE 'outdate%' OR name = 'kept_figures'"
)
_BEGIN = "INSERT OR REPLACE INTO kept_figures VALUES (?, ?, ?, '', '')"
_KEEP = (
    "UPDATE kept_figures SET key = ?, value = ?, digest = ? WHERE run_id = ? AND name = ? "
    "AND key = ? AND run_id IN (SELECT run_id FROM runs WHERE status = 'finished')"
)


class KeptFigures(NamedTuple):
    """Figures of a run as they are kept, as JSON text.

    ``key``: the digest of their code, and their inputs besides the run's rows. OUTDATED if a row
    has changed since.
    """

    key: str
    value: str


def read_kept(db: CleanConnection, name: str, run_id: str | None) -> dict[str, KeptFigures]:
    """Return run id -> figures that are kept under a name, of one run or of all.

    Damaged figures are left out. Empty if a trigger is missing, so that changes may have gone
    unnoticed.
    """
    if not _is_watched(db):
        return {}
    sql, values = "SELECT run_id, key, value, digest FROM kept_figures WHERE name = ?", (name,)
    rows = db.execute(
        sql if run_id is None else f"{sql} AND run_id = ?", (*values, *filter(None, [run_id]))
    )
    return {
        str(run): KeptFigures(str(key), str(value))
        for run, key, value, digest in rows
        if digest == _digest(str(value))
    }


def begin_keeping(path: Path, name: str, run_ids: Iterable[str]) -> str:
    """Announce figures of runs that will be kept; return the token for :func:`keep_figures`.

    Call it before the rows are read: changes are noticed from then on. Raises StoreError if nothing
    can be written.
    """
    token = f"computing {secrets.token_hex(8)}"
    with explain_errors(path), closing(open_shared(path)) as db, db.transaction():
        if not _is_watched(db):
            db.execute(_TABLE)
            for trigger, does in _TRIGGERS.items():
                db.execute(f"CREATE TRIGGER IF NOT EXISTS {trigger} {does}")
            db.execute("UPDATE kept_figures SET key = ?", (OUTDATED,))
        db.executemany(_BEGIN, [(run_id, name, token) for run_id in run_ids])
    return token


def keep_figures(path: Path, name: str, token: str, figures: Mapping[str, KeptFigures]) -> None:
    """Keep figures of runs that are finished and have not changed since :func:`begin_keeping`.

    ``figures``: run id -> figures. Raises StoreError if nothing can be written.
    """
    with explain_errors(path), closing(open_shared(path)) as db, db.transaction():
        for run, (key, value) in figures.items():
            clean = redact_data(value)
            db.execute(_KEEP, (key, clean, _digest(clean), run, name, token))


def can_keep(path: Path) -> bool:
    """Return whether figures can be written next to the rows of a store."""
    return os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)


def uses_own_code(run: Run) -> bool:
    """Return whether a user's own code has a part in a run's figures; nobody sees it change."""
    measures = cast("Mapping[str, Sequence[str]]", run.details.config.get("measures") or {})
    judges = {*(run.setup.metrics or ()), *run.setup.further}
    return bool(judges - BUILT_IN or measures.get("further"))


def _is_watched(db: CleanConnection) -> bool:
    there = dict(db.execute(_ARE_THERE).fetchall())
    return "kept_figures" in there and all(
        str(there.get(name, "")).endswith(does) for name, does in _TRIGGERS.items()
    )


def _digest(value: str) -> str:
    return hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=8).hexdigest()
