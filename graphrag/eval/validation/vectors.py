"""The stored vectors: are they there, complete, of the right length and indexed (LanceDB)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.eval.validation.records import (
    MAX_EXAMPLES,
    VECTORS,
    CheckResult,
    Metric,
    PhaseValidation,
    Thresholds,
    judge,
    skip,
)
from graphrag.eval.validation.tables import compute, read_ids

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

NAME = "vectors_stored"
_SOURCES = {
    entity_description_embedding: "entities",
    text_unit_text_embedding: "text_units",
    community_full_content_embedding: "community_reports",
}


@dataclass(frozen=True, slots=True)
class _Source:
    """The table of the index whose rows have vectors."""

    config: "GraphRagConfig"
    table: str


def check_vectors(config: "GraphRagConfig", thresholds: Thresholds) -> PhaseValidation:
    """Check that the vectors that the settings ask for are stored, and for which rows.

    A store that is missing, or whose table can't be searched, fails the check. That some rows
    have no vector, or no index, is warned of. Only LanceDB can be looked at.
    """
    store = config.vector_store
    wanted = [name for name in _SOURCES if name in config.embed_text.names]
    metrics: dict[str, Metric] = {f"{name}_vectors": None for name in wanted}
    if not wanted:
        return _phase(skip(NAME, "embed_text.names asks for no vectors"), metrics)
    if str(store.type) != "lancedb":
        return _phase(skip(NAME, f"a store of type {store.type} can't be looked at"), metrics)
    place = str(store.db_uri)
    if "://" not in place and not Path(place).is_dir():
        message = f"there is no vector store at {place}; build the index anew"
        return _phase(judge(NAME, False, message), metrics)
    import lancedb

    connection: Any = lancedb.connect(place)
    present = set(connection.list_tables().tables)
    problems: list[str] = []
    warnings: list[str] = []
    for name in wanted:
        schema = store.index_schema[name]
        if schema.index_name not in present:
            problems.append(f"{place} has no table {schema.index_name}")
            continue
        try:
            table: Any = connection.open_table(schema.index_name)
            metrics[f"{name}_vectors"] = int(table.count_rows())
            found = _find_problems(table, schema)
            problems += found
            if not found:
                warnings += _check_rows(table, schema, _Source(config, _SOURCES[name]))
                warnings += _check_index(table, schema, thresholds)
        except (OSError, RuntimeError, ValueError) as error:
            cause = " ".join(str(error).split())[:200]
            problems.append(f"{schema.index_name} can't be read ({cause})")
    message = "; ".join(problems) or f"the vectors of {', '.join(wanted)} are stored"
    return _phase(judge(NAME, not problems, message), metrics, warnings)


def _phase(
    check: CheckResult, metrics: dict[str, Metric], warnings: Sequence[str] = ()
) -> PhaseValidation:
    return PhaseValidation(VECTORS, (check,), metrics, tuple(warnings))


def _find_problems(table: Any, schema: Any) -> list[str]:
    """Return why the vectors of a table can't be searched."""
    columns = {schema.vector_field, schema.id_field}
    if not columns <= set(table.schema.names):
        missing = " or ".join(sorted(columns))
        return [f"the table {schema.index_name} has no column {missing}"]
    return _check_length(table, schema)


def _check_length(table: Any, schema: Any) -> list[str]:
    stored = int(getattr(table.schema.field(schema.vector_field).type, "list_size", -1))
    if stored == schema.vector_size:
        return []
    length = str(stored) if stored >= 0 else "no fixed length"
    return [
        f"the vectors of {schema.index_name} have {length} as their length, but "
        f"vector_store.vector_size is {schema.vector_size} (name the embedding model that built "
        "the index, or build it anew)"
    ]


def _check_rows(table: Any, schema: Any, source: _Source) -> list[str]:
    ids = read_ids(source.config, source.table)
    if ids is None:
        return []
    count = int(table.count_rows())
    filled = f"{schema.vector_field} IS NOT NULL"
    stored: Any = (
        table.search().where(filled).select([schema.id_field]).limit(max(count, 1)).to_arrow()
    )
    named = compute.cast(stored.column(schema.id_field), ids.type)
    absent = ids.filter(compute.invert(compute.is_in(ids, value_set=named)))
    if not len(absent):
        return []
    examples = ", ".join(str(value) for value in absent[:MAX_EXAMPLES].to_pylist())
    return [
        f"Missing vectors: {len(absent)} of {len(ids)} {source.table} have none in "
        f"{schema.index_name}, such as {examples}."
    ]


def _check_index(table: Any, schema: Any, thresholds: Thresholds) -> list[str]:
    """Warn of many vectors outside of an index; below that a search compares them quickly."""
    count = int(table.count_rows())
    indexed = 0
    for index in table.list_indices():
        statistics = table.index_stats(index.name)
        if schema.vector_field in index.columns and statistics is not None:
            indexed = max(indexed, int(statistics.num_indexed_rows))
    if count - indexed <= thresholds.max_unindexed_vectors:
        return []
    return [
        f"Unoptimised vectors: {count - indexed} of {count} in {schema.index_name} are outside of "
        "its index, so that every search compares them one by one."
    ]
