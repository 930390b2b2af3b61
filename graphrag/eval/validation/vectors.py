"""Checks that the vectors stored in LanceDB are complete, all of one length, and indexed."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.eval.validation.report import (
    MAX_EXAMPLES,
    Metric,
    PhaseValidation,
    Thresholds,
    judge,
    skip,
)
from graphrag.eval.validation.table_access import Array, as_text, compute, open_table
from graphrag.query.index.parquet_vectors import copy_vectors
from graphrag.query.index.vector_index import count_indexed, vector_state
from graphrag.query.index.vector_tables import (
    NoVectorsError,
    find_vectors,
    open_vector_tables,
    uses_lancedb,
)
from graphrag.text.cli_hints import eval_line_here

if TYPE_CHECKING:
    from graphrag_vectors.index_schema import IndexSchema

    from graphrag.config.models.graph_rag_config import GraphRagConfig
    from graphrag.query.index.header import IndexHeader

_Table: TypeAlias = Any  # lancedb types its tables only in part
_SOURCES = {
    entity_description_embedding: "entities",
    text_unit_text_embedding: "text_units",
    community_full_content_embedding: "community_reports",
}
"""Embedding -> the table of the index whose rows have vectors."""


def check_vectors(config: "GraphRagConfig", limits: Thresholds) -> PhaseValidation:
    """Check that the vectors that the settings ask for are stored, and for all rows.

    A missing store, and a table that can't be searched, is only a warning, because methods that
    need no vectors can search without it. Rows without a vector, and vectors outside the vector
    index, are warnings too. Only LanceDB can be checked.
    """
    kinds = [name for name in _SOURCES if name in config.embed_text.names]
    metrics: dict[str, Metric] = {f"{name}_vectors": None for name in kinds}
    problems, warnings = list[str](), list[str]()
    name, store = "vectors_stored", config.vector_store
    uri = str(store.db_uri)
    if not kinds:
        check = skip(name, "embed_text.names asks for no vectors")
    elif not uses_lancedb(config):
        check = skip(name, f"a store of type {store.type} can't be looked at")
    elif (
        "://" not in uri
        and not Path(uri).is_dir()
        and not any(copy_vectors(config, kind) for kind in kinds)
    ):
        message = f"there is no vector store at {uri}: local and basic can't search"
        check = judge(name, False, message, otherwise="warning")
    else:
        for kind in kinds:
            try:
                vectors = find_vectors(config, kind)
            except NoVectorsError as error:
                problems.append(str(error))
                continue
            table, schema = vectors.table, vectors.schema
            total = metrics[f"{kind}_vectors"] = int(table.count_rows())
            warnings += _check_rows(table, schema, config, _SOURCES[kind])
            # A search compares up to this many quickly.
            unindexed = total - count_indexed(table, schema)
            if unindexed > limits.max_unindexed_vectors:
                warnings.append(
                    f"Unoptimized vectors: {unindexed} of {total} in {schema.index_name} are "
                    "outside of its index, so that every search compares them one by one."
                )
        message = "; ".join(problems) or f"the vectors of {', '.join(kinds)} are stored"
        check = judge(name, not problems, message, otherwise="warning")
    return PhaseValidation(
        name="vector_store", checks=(check,), metrics=metrics, warnings=tuple(warnings)
    )


def count_absent(config: "GraphRagConfig", embedding: str) -> tuple[int, int]:
    """Return the number of rows of an index that lack a vector of an embedding, and of all rows.

    Both are 0 if there are no vectors at all, or the store is not LanceDB.
    """
    if not uses_lancedb(config):
        return 0, 0
    try:
        vectors = find_vectors(config, embedding)
    except NoVectorsError:
        return 0, 0
    absent, total = _find_absent(vectors.table, vectors.schema, config, _SOURCES[embedding])
    return len(absent), total


def _find_absent(
    table: _Table, schema: "IndexSchema", config: "GraphRagConfig", source: str
) -> tuple[Array, int]:
    frame = open_table(config, source)
    if frame is None or "id" not in frame:
        return [], 0
    ids = as_text(frame["id"])
    filled = table.search().where(f"{schema.vector_field} IS NOT NULL").select([schema.id_field])
    stored = filled.limit(max(int(table.count_rows()), 1)).to_arrow().column(schema.id_field)
    absent = ids.filter(compute.invert(compute.is_in(ids, value_set=as_text(stored))))
    return absent, len(ids)


def _check_rows(
    table: _Table, schema: "IndexSchema", config: "GraphRagConfig", source: str
) -> list[str]:
    absent, total = _find_absent(table, schema, config, source)
    if not len(absent):
        return []
    examples = ", ".join(map(str, absent[:MAX_EXAMPLES].to_pylist()))
    return [
        f"Missing vectors: {len(absent)} of {total} {source} have none in "
        f"{schema.index_name}, such as {examples}."
    ]


def list_vector_warnings(headers: "Mapping[str, IndexHeader]") -> list[str]:
    """Return warnings about vector tables whose searches are slow or miss some of the rows.

    Only LanceDB is checked. The call blocks while the tables are read.
    """
    warnings: list[str] = []
    for key, header in headers.items():
        config = header.config
        if not uses_lancedb(config):
            continue
        for vectors in open_vector_tables(config):
            source = _SOURCES[vectors.embedding]
            for problem in _check_rows(vectors.table, vectors.schema, config, source):
                warnings.append(
                    f"{key}: {problem} No search by meaning finds these: build the index anew"
                )
        for table in vector_state(config):
            if not table.needs_optimising:
                continue
            fault = (
                f"{table.unindexed_rows:,} of the {table.rows:,} vectors of {table.name} are not "
                "indexed, so every search compares them one by one"
            )
            if not table.is_complete:
                fault = (
                    f"a search by ids in {table.name} misses vectors, as its index hides some of "
                    "them"
                )
            mend = eval_line_here("validate", "--fix")
            warnings.append(f"{key}: {fault}; times are not comparable until: {mend}")
    return warnings
