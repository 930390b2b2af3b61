"""Results whose contexts stay in the store, given whole to those who need them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee

from graphrag.eval.records import QueryResult
from graphrag.eval.runner.units import Unit
from graphrag.eval.store.contexts import StoredContexts


@dataclass(frozen=True, slots=True)
class WholeResults:
    """Reads the contexts of a run's results; a ``ReadWhole``, as long as the store is open."""

    contexts: StoredContexts
    units: Sequence[Unit]

    def __call__(self, results: Iterable[QueryResult]) -> Iterator[QueryResult]:
        """Yield results with what they were shown and retrieved, a few of them at a time."""
        keys = {(u.sample.imdb_key, u.sample.id, u.method, u.trial): u.key for u in self.units}
        outlines, asked = tee(results)
        units = (keys[r.imdb_key, r.sample_id, r.method, r.trial] for r in asked)
        for outline, found in zip(outlines, self.contexts.read(units), strict=True):
            yield replace(outline, context_text=found.context_text, retrieved=found.retrieved)
