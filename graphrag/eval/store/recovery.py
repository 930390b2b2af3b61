"""A damaged store made anew from every row that can be read whole.

What was lost is asked again: a run that lost rows is unfinished from then on, and what the lost
rows had cost is marked as not known.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from graphrag.eval.dataset import Sample
from graphrag.eval.errors import StoreError
from graphrag.eval.records import Failure, Retrieved
from graphrag.eval.store.connection import CleanConnection
from graphrag.eval.store.records import RunDetails, now
from graphrag.eval.store.schema import FORMAT, prepare_database
from graphrag.eval.store.setup import RunSetup
from graphrag.query.usage import CallAttempt, Usage

_HEADER = 100  # bytes, before the first page's own content
_LEAST_ROW = 32  # bytes that a row with an id and a unit takes at least
_READERS: Mapping[str, Callable[[Any], object]] = {
    "setup": RunSetup,
    "details": RunDetails.from_dict,
    "sample": Sample.from_dict,
    "usage": Usage.from_dict,
    "failure": lambda value: Failure(**value),
    "retrieved": Retrieved.from_dict,
    "attempts": lambda value: [CallAttempt.from_dict(each) for each in value],
    "repeats": tuple,
    "value": dict,
    "reply": lambda value: value,
}
"""Columns that hold JSON, and what their values are read by."""
_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int)}
_OF_FORMATS = {2: "samples", 3: "runs.details", 4: "responses.abstained"}
_TABLES = (
    "runs",
    "samples",
    "responses",
    "verdicts",
    "judge_usage",
    "forgotten",
    "calls",
    "judgements",
)
_NOT_KNOWN = json.dumps(Usage(cost_usd=None, is_counted=False).to_dict())


@dataclass(frozen=True, slots=True)
class Recovery:
    """What came of a recovery.

    Attributes
    ----------
    damaged : Path
        Where the damaged file is now.
    kept, lost : dict
        Table -> rows; 0 lost ones of a table that is named: nobody can say how many.
    unfinished : tuple of str
        The runs that lost something, or may have, and go on with ``--resume``.
    """

    damaged: Path
    kept: dict[str, int]
    lost: dict[str, int]
    unfinished: tuple[str, ...]


class _Column(NamedTuple):
    name: str
    types: tuple[type, ...]
    required: bool
    in_key: bool


_Key = tuple[object, ...]


@dataclass(slots=True)
class _Losses:
    """Rows that were lost, and of which runs.

    ``known``: the runs that are there; ``anywhere``: nobody can say of which of them a row was.
    """

    rows: dict[str, int] = field(default_factory=dict[str, int])
    runs: set[str] = field(default_factory=set[str])
    known: set[str] = field(default_factory=set[str])
    anywhere: bool = False

    def add(self, table: str, run_id: object, n: int = 1) -> None:
        """Note rows; of a run that is lost itself, no other run lacks anything."""
        self.rows[table] = self.rows.get(table, 0) + n
        if isinstance(run_id, str):
            self.runs.add(run_id)
        else:
            self.anywhere = True


def recover_store(path: Path) -> Recovery:
    """Make a store anew from what can be read of it, and keep the damaged file beside it.

    Parameters
    ----------
    path : Path
        The database file.

    Raises
    ------
    StoreError
        If another process holds it, nothing can be read of it, or the folder can't be written.
        The damaged file is as it was then.
    """
    lock = FileLock(f"{path}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        msg = f"Another process is running an evaluation in {path.parent}; wait for it."
        raise StoreError(msg) from error
    stamp = now()[:19].replace("-", "").replace(":", "")
    damaged, made = path.with_name(f"{path.name}.damaged-{stamp}"), path.with_name(".recovering.db")
    try:
        return _recover(path, damaged, made)
    except OSError as error:
        msg = f"{path.parent} can't be written ({error.strerror}); free some space in it."
        raise StoreError(msg) from error
    except sqlite3.Error as error:
        msg = f"Nothing can be recovered of {path} ({error}); move it away to begin anew."
        raise StoreError(msg) from error
    finally:
        _remove(made)
        lock.release()


def _recover(path: Path, damaged: Path, made: Path) -> Recovery:
    scratch = path.with_name(".damaged.db")
    _remove(made)
    # A copy, as SQLite may write even into what is only read; the log belongs to it.
    for end in ("", "-wal"):
        if Path(f"{path}{end}").exists():
            shutil.copyfile(f"{path}{end}", f"{scratch}{end}")
    losses, kept = _Losses(), dict[str, int]()
    try:
        has_header = _mend_header(scratch, made)
        old, new = _connect(scratch), _connect(made)
        try:
            old.text_factory = bytes
            for (sql,) in old.execute("SELECT sql FROM sqlite_master WHERE type = 'table'"):
                new.execute(sql.decode())
            version = _one(old, "PRAGMA user_version") if has_header else 0
            if version not in range(1, FORMAT + 1):
                version = _guess_format(new)
            new.execute("PRAGMA synchronous = OFF")  # it is made sure of below, as a whole
            new.execute("BEGIN")
            for table in _TABLES:
                if _columns(new, table):
                    kept[table] = len(_copy_rows(old, new, table, losses))
            unfinished = sorted(losses.known if losses.anywhere else losses.known & losses.runs)
            _mark(new, unfinished, losses)
            new.execute("COMMIT")
            new.execute(f"PRAGMA user_version = {version}")
            prepare_database(new, made)
        finally:
            old.close()
            new.close()
    finally:
        _remove(scratch)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    for end in ("", "-wal"):
        _keep(Path(f"{path}{end}"), Path(f"{damaged}{end}"))
    # A log that is left would be read as the new file's.
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    made.replace(path)
    return Recovery(damaged, kept, losses.rows, tuple(unfinished))


def _copy_rows(
    old: sqlite3.Connection, new: sqlite3.Connection, table: str, losses: _Losses
) -> set[_Key]:
    """Copy the sound rows of a table, and return the keys (else row numbers) of what was copied."""
    columns = _columns(new, table)
    keys = [column.name for column in columns if column.in_key]
    numbers, is_told = _row_numbers(old, table)
    names, marks = ", ".join(c.name for c in columns), ", ".join("?" for _ in columns)
    found: set[_Key] = set()
    n_lost = 0
    for number, row in _sound_rows(old, table, names, numbers):
        values = None if row is None else _read_row(columns, row)
        if values is None or not (table == "runs" or values[0] in losses.known):
            n_lost += 1
            continue
        new.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", values)
        key = tuple(v for v, c in zip(values, columns, strict=True) if c.in_key)
        found.add(key or (number,))
    named = _index_keys(old, table, keys) if keys else None
    if named is None and (n_lost or keys):
        losses.add(table, None, n_lost if is_told else 0)
    for key in (named or set[_Key]()) - found:
        losses.add(table, key[0])
    if table == "runs":
        losses.known = {str(key[0]) for key in found}
    return found


def _index_keys(old: sqlite3.Connection, table: str, keys: list[str]) -> set[_Key] | None:
    """Return the keys that a table's own index names; None if it is damaged itself."""
    listed = ", ".join(keys)
    query = f"SELECT {listed} FROM {table} INDEXED BY sqlite_autoindex_{table}_1"
    try:
        return {tuple(_text(value) for value in row) for row in old.execute(query)}
    except sqlite3.DatabaseError:
        return None


def _sound_rows(
    old: sqlite3.Connection, table: str, names: str, numbers: Sequence[int]
) -> Iterator[tuple[int, tuple[Any, ...] | None]]:
    """Yield row number -> values, None for a row that is on a damaged page."""
    query = (
        f"SELECT rowid, {names} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    )
    spans = [(0, len(numbers) - 1)] if numbers else []
    while spans:
        low, high = spans.pop()
        try:
            got = old.execute(query, (numbers[low], numbers[high])).fetchall()
        except sqlite3.DatabaseError:
            if low == high:
                yield numbers[low], None
            else:
                middle = (low + high) // 2
                spans += [(middle + 1, high), (low, middle)]
            continue
        yield from ((row[0], row[1:]) for row in got)


def _row_numbers(old: sqlite3.Connection, table: str) -> tuple[Sequence[int], bool]:
    """Return the numbers of a table's rows, ascending, and whether there may be others."""
    index = f"{table} INDEXED BY sqlite_autoindex_{table}_1"
    try:
        return sorted(row[0] for row in old.execute(f"SELECT rowid FROM {index}")), True
    except sqlite3.DatabaseError:  # damaged, or the table has none
        most = _one(old, "PRAGMA page_count") * _one(old, "PRAGMA page_size") // _LEAST_ROW
    try:
        last = _one(old, f"SELECT max(rowid) FROM {table} NOT INDEXED") or 0
    except sqlite3.DatabaseError:
        last = most + 1
    return range(1, min(last, most) + 1), last <= most


def _read_row(columns: list[_Column], row: tuple[Any, ...]) -> tuple[object, ...] | None:
    """Return a row's values; None if one of them is not what the store writes."""
    values: list[object] = []
    for column, given in zip(columns, row, strict=True):
        value = _text(given)
        if value is None and not column.required and given is None:
            values.append(None)
            continue
        if not isinstance(value, column.types):
            return None
        if column.name in _READERS and isinstance(value, str):
            try:
                _READERS[column.name](json.loads(value))
            except (ValueError, TypeError, KeyError, AttributeError):
                return None
        values.append(value)
    return tuple(values)


def _text(value: object) -> object:
    """Return a value with its text read; None for text that is not UTF-8."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return None


def _mark(new: sqlite3.Connection, unfinished: list[str], losses: _Losses) -> None:
    """Let runs that lost something go on, and count what that had cost as not known."""
    lost_costs = losses.rows.get("judge_usage", 0)
    is_told = lost_costs or "judge_usage" not in losses.rows
    for run_id in unfinished:
        new.execute(
            "UPDATE runs SET status = 'unfinished', finished_at = NULL WHERE run_id = ?", (run_id,)
        )
        new.execute("INSERT INTO forgotten VALUES (?, '', ?)", (run_id, _NOT_KNOWN))
        judged = "SELECT DISTINCT run_id, unit, ? FROM verdicts WHERE run_id = ?"
        without = (
            f"{judged} AND unit NOT IN (SELECT unit FROM judge_usage "
            "WHERE judge_usage.run_id = verdicts.run_id)"
        )
        # More rows were lost than there are responses without one: any may be too low.
        n = _one(new, f"SELECT count(*) FROM ({without})", ("", run_id))
        chosen = without if is_told and lost_costs <= n else judged
        new.execute(f"INSERT INTO judge_usage {chosen}", (_NOT_KNOWN, run_id))
        if _columns(new, "judgements"):
            _forget_judgements(new, run_id)


def _forget_judgements(new: sqlite3.Connection, run_id: str) -> None:
    """Have a response judged again that is searched again, and pairs, of which either may be."""
    gone = (
        "run_id = ? AND (kind LIKE 'pairwise:%' OR kind IN ('rubric', 'quality') AND subject NOT "
        "IN (SELECT unit FROM responses WHERE responses.run_id = judgements.run_id))"
    )
    new.execute(
        f"INSERT INTO forgotten SELECT run_id, subject, usage FROM judgements WHERE {gone}",
        (run_id,),
    )
    new.execute(f"DELETE FROM judgements WHERE {gone}", (run_id,))


def _mend_header(damaged: Path, model: Path) -> bool:
    """Write a database's first bytes anew where they are gone, and lengthen one that was cut.

    Returns whether the first bytes were there.
    """
    with damaged.open("r+b") as file:
        first = file.read(_HEADER)
        if first[:16] == b"SQLite format 3\0":
            size = int.from_bytes(first[16:18], "big")  # SQLite refuses a file that was cut
            whole = int.from_bytes(first[28:32], "big") * (65536 if size == 1 else size)
            file.truncate(max(whole, damaged.stat().st_size))
            return True
        db = _connect(model)
        prepare_database(db, model)
        db.close()
        header = bytearray(model.read_bytes()[:_HEADER])
        _remove(model)
        n_pages = damaged.stat().st_size // int.from_bytes(header[16:18], "big")
        header[28:32] = n_pages.to_bytes(4, "big")
        header[32:40] = bytes(8)  # no page is known to be free
        file.seek(0)
        file.write(header)
    return False


def _guess_format(db: sqlite3.Connection) -> int:
    names = {f"{table}.{column.name}" for table in _TABLES for column in _columns(db, table)}
    names |= {name.partition(".")[0] for name in names}
    return max([1, *(number for number, name in _OF_FORMATS.items() if name in names)])


def _columns(db: sqlite3.Connection, table: str) -> list[_Column]:
    rows = db.execute(f"PRAGMA table_info({table})").fetchall()
    return [_Column(r[1], _TYPES[r[2]], bool(r[3] or r[5]), bool(r[5])) for r in rows]


def _one(db: sqlite3.Connection, query: str, values: tuple[object, ...] = ()) -> Any:
    return db.execute(query, values).fetchone()[0]


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, factory=CleanConnection)


def _keep(path: Path, to: Path) -> None:
    if not path.exists():
        return
    try:
        os.link(path, to)
    except OSError:  # of a file system without links
        shutil.copy2(path, to)


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
