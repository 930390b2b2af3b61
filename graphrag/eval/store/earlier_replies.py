"""A judge's readable replies, kept so that a later run need not ask for them again.

A reply that a run asked for stands in for one call of each later run, so that repeats, and equal
answers of several methods, never share one: what varies in a judge stays visible.
"""

from collections.abc import Callable
from dataclasses import dataclass

from graphrag.eval.store.connection import Statement, Values

TABLE = (
    "CREATE TABLE IF NOT EXISTS judge_replies (key TEXT NOT NULL, run_id TEXT NOT NULL, "
    "scope TEXT NOT NULL, nth INTEGER NOT NULL, reply TEXT NOT NULL, source INTEGER, "
    "PRIMARY KEY (key, run_id, scope, nth))"
)
_OWN = (
    "SELECT reply, source FROM judge_replies WHERE key = ? AND run_id = ? AND scope = ? AND nth = ?"
)
_EARLIER = (
    "SELECT rowid, reply FROM judge_replies WHERE key = ?1 AND run_id <> ?2 AND source IS NULL "
    "AND rowid NOT IN (SELECT source FROM judge_replies WHERE key = ?1 AND run_id = ?2 AND source "
    "IS NOT NULL) ORDER BY rowid LIMIT 1"
)
_KEEP = "INSERT INTO judge_replies VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"


@dataclass(frozen=True, slots=True)
class EarlierReplies:
    """Those of a store, as one judging of a run sees them; see ``query.usage.ReplyReuse``."""

    read: Callable[[str, tuple[object, ...]], list[Values]]
    write: Callable[[Statement], None]
    run_id: str
    scope: str

    def take(self, key: str, nth: int) -> str | None:
        """Return a reply to what is asked for the nth time here; None if it is to be asked.

        An interrupted run takes what it took before, and asks what it asked before.
        """
        own = (key, self.run_id, self.scope, nth)
        for reply, source in self.read(_OWN, own):
            return None if source is None else str(reply)
        for source, reply in self.read(_EARLIER, (key, self.run_id)):
            self.write((_KEEP, (*own, reply, source)))
            return str(reply)
        return None

    def keep(self, key: str, nth: int, reply: str) -> None:
        """Keep a reply that was asked for."""
        self.write((_KEEP, (key, self.run_id, self.scope, nth, reply, None)))
