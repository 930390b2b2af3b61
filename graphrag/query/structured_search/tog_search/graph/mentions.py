"""Which entities stand in a text unit: the entities table's lists of text units, turned round."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphrag.query.structured_search.tog_search.graph.row_tables import RowTable

# pyarrow is not typed.
_arrow: Any = pa


@dataclass(frozen=True, slots=True)
class Mentions:
    """Compressed sparse rows: the entities of text unit i lie at ``indptr[i]:indptr[i + 1]``.

    Attributes
    ----------
    numbers : dict of str to int
        Text unit id -> its row here.
    indptr : numpy.ndarray
        int64, shape (n_units + 1,).
    nodes : numpy.ndarray
        int32: nodes, ascending in each row.
    """

    numbers: dict[str, int]
    indptr: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]

    def entities_in(self, unit_id: str, cap: int) -> list[int]:
        """Return at most `cap` entities of a text unit, the first of the table first."""
        number = self.numbers.get(unit_id)
        if number is None:
            return []
        begin = int(self.indptr[number])
        return self.nodes[begin : min(int(self.indptr[number + 1]), begin + cap)].tolist()


def read_mentions(entities: RowTable, cited_ids: RowTable) -> Mentions:
    """Turn the ``text_unit_ids`` of the entities round, in O(n log n) of their number."""
    ids: list[str] = [name for part in cited_ids.column("id") for name in part.to_pylist()]
    lists = _arrow.chunked_array(entities.column("text_unit_ids"), type=_arrow.list_(pa.int32()))
    counts: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    units: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    for part in lists.chunks:
        counts.append(part.value_lengths().to_numpy(zero_copy_only=False).astype(np.int32))
        units.append(part.flatten().to_numpy(zero_copy_only=False).astype(np.int32))
    unit = np.concatenate(units)
    node = np.repeat(np.arange(entities.n_rows, dtype=np.int32), np.concatenate(counts))
    order = np.argsort(unit, kind="stable")
    indptr = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(np.bincount(unit, minlength=len(ids)), out=indptr[1:])
    return Mentions({name: row for row, name in enumerate(ids)}, indptr, node[order])
