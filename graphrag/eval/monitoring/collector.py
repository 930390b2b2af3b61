"""Numbers that production code records as it runs, kept in a SQLite file of their own."""

import json
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from graphrag.eval.errors import StoreError
from graphrag.eval.stats.intervals import t_estimate

_ID = 0x67746F67  # tells the file from other SQLite databases
_WAIT_S = 30.0
_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS points (
    name TEXT NOT NULL,
    at TEXT NOT NULL,
    value REAL NOT NULL,
    labels TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_name ON points (name, at);
PRAGMA application_id = {_ID};
PRAGMA user_version = 1;
COMMIT;
"""


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One recorded value: when (UTC), a finite number, and its labels, empty without any."""

    at: datetime
    value: float
    labels: Mapping[str, str]


class MetricSummary(TypedDict):
    """A metric over its points; the limits are of a t interval (95 %).

    ``mean`` and ``latest`` are None without points, ``low`` and ``high`` under two points or where
    all are equal.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None
    latest: float | None


class MetricsCollector:
    """Keeps named numbers with the time and labels; many threads and processes may record.

    The SQLite file is made with its folder when missing. StoreError if it can't be used, or holds
    something else.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{self.path.parent} can't be written ({error.strerror}); choose another path."
            raise StoreError(msg) from error
        with self._open() as db:
            if db.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                db.execute("PRAGMA journal_mode=WAL")
                db.executescript(_TABLES)
            elif db.execute("PRAGMA application_id").fetchone()[0] != _ID:
                msg = f"{self.path} is a database of something else; choose another path."
                raise StoreError(msg)

    def record(
        self,
        name: str,
        value: float,
        labels: Mapping[str, str] | None = None,
        at: datetime | str | float | None = None,
    ) -> None:
        """Keep a finite number under a name that is not empty, with JSON-ready labels.

        ``at`` is when it was measured: now when None; without a time zone it is local time; text is
        ISO 8601, a number is seconds since 1970. ValueError if something of it can't be kept;
        StoreError if it can't be written.
        """
        if not name:
            raise ValueError("a metric needs a name")
        raw = cast("object", value)
        is_number = isinstance(raw, int | float | np.number) and not isinstance(raw, bool)
        if not is_number or not isfinite(float(value)):
            raise ValueError(f"{name}: a metric is a finite number, not {value!r}")
        try:
            text = json.dumps(dict(labels or {}), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: the labels can't be kept ({error})") from error
        row = (name, _moment(at).isoformat(timespec="microseconds"), float(value), text)
        with self._open() as db:
            db.execute("INSERT INTO points VALUES (?, ?, ?, ?)", row)

    def names(self) -> list[str]:
        """Return the names that have a value, sorted."""
        with self._open() as db:
            return [row[0] for row in db.execute("SELECT DISTINCT name FROM points ORDER BY name")]

    def history(self, name: str) -> list[MetricPoint]:
        """Return the points of a metric, the oldest first; empty for one never recorded."""
        query = "SELECT at, value, labels FROM points WHERE name = ? ORDER BY at, rowid"
        with self._open() as db:
            rows = db.execute(query, (name,)).fetchall()
        return [MetricPoint(datetime.fromisoformat(at), v, json.loads(raw)) for at, v, raw in rows]

    def summary(self, name: str, last: int | None = None) -> MetricSummary:
        """Reduce the newest points of a metric, ``last`` of them (>= 1, else ValueError) or all.

        The interval takes the points as independent; a metric that drifts, or that hangs on its
        last value, varies more than it says.
        """
        if last is not None and last < 1:
            raise ValueError(f"last must be at least 1, not {last!r}")
        values = [point.value for point in self.history(name)][-(last or 0) :]
        estimate = t_estimate(np.array(values, dtype=np.float64), None)
        return {
            "n": len(values),
            "mean": estimate.mean,
            "low": estimate.low,
            "high": estimate.high,
            "latest": values[-1] if values else None,
        }

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """Open a connection for one task: they may not be shared by threads."""
        try:
            opened = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None)
            with closing(opened) as db:
                yield db
        except sqlite3.DatabaseError as error:
            msg = f"{self.path} can't be used ({error}); free some space or choose another path."
            raise StoreError(msg) from error


def _moment(at: datetime | str | float | None) -> datetime:
    if at is None:
        return datetime.now(UTC)
    if isinstance(at, str):
        at = datetime.fromisoformat(at)
    if isinstance(at, int | float):
        try:
            return datetime.fromtimestamp(at, UTC)
        except (OverflowError, OSError) as error:
            raise ValueError(f"{at!r} is not a time in seconds since 1970") from error
    return at.astimezone(UTC)
