"""Indexes vector tables in LanceDB, graphrag's default store, so that look-ups stay fast.

graphrag makes a table's index while the table is empty, so every search compares all vectors.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graphrag.query.index.vector_tables import VectorStoreError, open_vector_tables

if TYPE_CHECKING:
    from graphrag_vectors import IndexSchema
    from lancedb.table import IndexStatistics, Table

    from graphrag.config.models.graph_rag_config import GraphRagConfig

SMALL_TABLE = 2_000
"""Most vectors of a table that gets no index: comparing all takes a few milliseconds."""

_PARTITIONS = 20
# LanceDB searches 20 partitions by default, and graphrag does not change that. With more
# partitions a search by ids (as Think-on-Graph scores entities) silently misses some ids.
_ROWS_A_PARTITION = 256
_PROBED = 64

Action = Literal["indexed", "left exact", "already indexed"]
"""The result of :func:`optimise_vectors` for a table; a small one is left exact."""


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Describes how a table of vectors is searched.

    ``is_complete``: whether a search limited to known ids found all of them. Up to 64 ids spread
    over the table are looked for.
    """

    name: str
    rows: int
    indexed_rows: int
    is_complete: bool

    @property
    def unindexed_rows(self) -> int:
        """Vectors that every search compares one by one."""
        return self.rows - self.indexed_rows

    @property
    def needs_optimising(self) -> bool:
        """Whether searches are slower than they need to be, or miss vectors."""
        return self.unindexed_rows > SMALL_TABLE or not self.is_complete


@dataclass(frozen=True, slots=True)
class OptimisedTable:
    """Reports the optimization of a table: its state before and after, and the seconds it took."""

    before: VectorTable
    after: VectorTable
    action: Action
    seconds: float


def vector_state(config: "GraphRagConfig") -> tuple[VectorTable, ...]:
    """Return the state of the vector tables that searches read, without changing them.

    Raises VectorStoreError if the store is not LanceDB, or there is none.
    """
    return tuple(_read_state(v.table, v.schema) for v in open_vector_tables(config))


def optimise_vectors(config: "GraphRagConfig") -> tuple[OptimisedTable, ...]:
    """Index every vector table that is large enough, in a way that keeps searches exact.

    The index has at most as many partitions as LanceDB looks into by default. So a search still
    sees every vector and finds what comparing them one by one would; it is faster because the
    vectors are stored together. Tables of up to ``SMALL_TABLE`` vectors, and tables optimized
    before, are left as they are. Searches may go on meanwhile. Raises VectorStoreError if the store
    is not LanceDB, there is none, or it can't be written.
    """
    return tuple(_optimise(v.table, v.schema) for v in open_vector_tables(config))


def _read_state(table: "Table", schema: "IndexSchema") -> VectorTable:
    rows, indexed = int(table.count_rows()), count_indexed(table, schema)
    is_complete = not indexed or _finds_all(table, schema, rows)
    return VectorTable(
        name=schema.index_name, rows=rows, indexed_rows=indexed, is_complete=is_complete
    )


def count_indexed(table: "Table", schema: "IndexSchema") -> int:
    """Return how many vectors of a table its index contains."""
    indexes = (statistics for _, statistics in _vector_indexes(table, schema))
    return max((int(stats.num_indexed_rows) for stats in indexes if stats is not None), default=0)


def _vector_indexes(
    table: "Table", schema: "IndexSchema"
) -> "list[tuple[str, IndexStatistics | None]]":
    return [
        (index.name, table.index_stats(index.name))
        for index in table.list_indices()
        if schema.vector_field in index.columns
    ]


def _finds_all(table: Any, schema: "IndexSchema", rows: int) -> bool:
    """Search for ids spread over the table and return whether all of them are found."""
    offsets = sorted({rows * at // _PROBED for at in range(_PROBED)})
    columns = [schema.id_field, schema.vector_field]
    sample: Any = table.take_offsets(offsets).select(columns).to_arrow()
    ids = {str(value) for value in sample.column(schema.id_field).to_pylist()}
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    hits: Any = (
        table.search(
            sample.column(schema.vector_field)[0].as_py(), vector_column_name=schema.vector_field
        )
        .where(f"{schema.id_field} IN ({quoted})", prefilter=True)
        .select([schema.id_field, "_distance"])
        .limit(len(offsets))
        .to_arrow()
    )
    return ids == {str(value) for value in hits.column(schema.id_field).to_pylist()}


def _optimise(table: "Table", schema: "IndexSchema") -> OptimisedTable:
    started = time.perf_counter()
    before = _read_state(table, schema)
    if before.needs_optimising:
        try:
            _rebuild(table, schema, before.rows)
        except (OSError, RuntimeError, ValueError) as error:
            cause = " ".join(str(error).split())[:200]
            msg = f"the vectors {before.name} can't be indexed ({cause})"
            raise VectorStoreError(msg) from error
        action: Action = "indexed"
    else:
        action = "already indexed" if before.indexed_rows > SMALL_TABLE else "left exact"
    after = _read_state(table, schema) if action == "indexed" else before
    return OptimisedTable(
        before=before, after=after, action=action, seconds=time.perf_counter() - started
    )


def _rebuild(table: "Table", schema: "IndexSchema", rows: int) -> None:
    """Make the index anew: LanceDB's own ``optimize`` splits partitions into more than 20."""
    from lancedb.index import IvfFlat

    existing = _vector_indexes(table, schema)
    metrics = [statistics.distance_type for _, statistics in existing if statistics is not None]
    metric: Any = next((kind for kind in metrics if kind), "l2")
    for name, _ in existing:
        table.drop_index(name)
    table.optimize()  # with no index left it only joins the small files that indexing wrote
    partitions = max(1, min(_PARTITIONS, rows // _ROWS_A_PARTITION))
    table.create_index(
        schema.vector_field, config=IvfFlat(distance_type=metric, num_partitions=partitions)
    )
