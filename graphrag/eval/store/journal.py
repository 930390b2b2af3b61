"""The finished calls of one search or one judging, kept in the store."""

from dataclasses import dataclass

from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import CallScope
from graphrag.query.usage import RecordedCall


@dataclass(frozen=True, slots=True)
class StoreJournal:
    """Keeps the finished calls of one search or one judging; see ``usage.CallJournal``.

    ``kept`` holds those that are in the store, call -> reply, as the session read them when it
    was opened: in a run that was never interrupted nothing is looked up.
    """

    store: EvaluationStore
    run_id: str
    scope: CallScope
    kept: dict[str, RecordedCall]

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        return self.kept.get(key)

    def finished(self) -> dict[str, RecordedCall]:
        """Return every finished call by its key, for work that is done in another process."""
        return dict(self.kept)

    def start(self, key: str) -> None:
        """Note that the call is about to be sent."""
        self.store.write_call(self.run_id, self.scope, key, None)

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call that was answered."""
        self.store.write_call(self.run_id, self.scope, key, call)
        self.kept[key] = call

    def abandon(self, key: str) -> None:
        """Note that the call has failed for good and is no longer in flight."""
        self.store.drop_call(self.run_id, self.scope, key)
