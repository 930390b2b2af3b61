"""Records numbers of production code in a SQLite file of their own, and summarizes them."""

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

_ID = 0x67746F67  # distinguishes the file from other SQLite databases
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
    """One recorded value: a finite number, its time (UTC), and its labels, which may be empty."""

    at: datetime
    value: float
    labels: Mapping[str, str]


class MetricSummary(TypedDict):
    """A summary of a metric's points; ``low`` and ``high`` are limits of a t interval (95 %).

    ``mean`` and ``latest`` are None without points. The limits are None for fewer than two points,
    or if all are equal.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None
    latest: float | None


class MetricsCollector:
    """Keeps named numbers with their times and labels; many threads and processes may record.

    The SQLite file and its folder are made if they are missing. Raises StoreError if the file can't
    be used, or is something else.

    Examples
    --------
    >>> collector = MetricsCollector(path="eval/results/metrics.db")
    >>> collector.record(name="answer_s", value=2.4, labels={"method": "tog"})
    >>> collector.summary(name="answer_s", last=100)["latest"]
    2.4
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
        """Keep a finite number under a name, with JSON-ready labels.

        ``at`` is when it was measured; None: now. A time without a time zone is local time, a text
        is ISO 8601, a number is seconds since 1970. Raises ValueError if the name is empty, or the
        value, the labels or the time can't be kept. Raises StoreError if the file can't be written.
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
        """Return the points of a metric, the oldest first; empty if it was never recorded."""
        query = "SELECT at, value, labels FROM points WHERE name = ? ORDER BY at, rowid"
        with self._open() as db:
            rows = db.execute(query, (name,)).fetchall()
        return [MetricPoint(datetime.fromisoformat(at), v, json.loads(raw)) for at, v, raw in rows]

    def summary(self, name: str, last: int | None = None) -> MetricSummary:
        """Summarize the newest ``last`` points of a metric, or all of them.

        The interval takes the points as independent: a metric that drifts, or depends on its last
        value, varies more than the interval shows. Raises ValueError if ``last`` is below 1.
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
        """Open a connection for one task; threads may not share one."""
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
