"""The responses of a run read from the store a few at a time, for those who go through all."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from graphrag.eval.errors import StoreError
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import StoredResponse

_READ_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class StoredContexts:
    """What the searches of a run showed to their models, as long as the store is open."""

    store: EvaluationStore
    run_id: str

    def read(self, units: Iterable[str]) -> Iterator[StoredResponse]:
        """Yield the responses of units, in this order; at most 64 of them are held.

        Raises
        ------
        StoreError
            If one is there no more.
        """
        left = iter(units)
        while block := list(islice(left, _READ_AT_ONCE)):
            found = self.store.responses(self.run_id, block)
            for unit in block:
                if unit not in found:
                    msg = f"Run {self.run_id} changed while it was read; ask for it again."
                    raise StoreError(msg)
                yield found[unit]
