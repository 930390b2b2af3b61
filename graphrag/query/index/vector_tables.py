"""Finds and opens the stored vectors of an index, whatever their tables' names and lengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from graphrag.config.embeddings import (
    all_embeddings,
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.config.older_settings import VECTOR_TABLES
from graphrag.config.table_files import is_lfs_pointer
from graphrag.query.delayed_imports import leave_client
from graphrag.query.index.parquet_vectors import copy_vectors

if TYPE_CHECKING:
    from graphrag_vectors import IndexSchema, VectorStore

    from graphrag.config.models.graph_rag_config import GraphRagConfig

_Table: TypeAlias = Any  # lancedb types its tables in part
EMBEDDED = {
    entity_description_embedding: "entities",
    text_unit_text_embedding: "text units",
    community_full_content_embedding: "community reports",
}
"""Embedding -> the records that have such vectors, in words."""
VECTORS_OF = {
    "local": (entity_description_embedding,),
    "drift": (entity_description_embedding, community_full_content_embedding),
    **dict.fromkeys(("basic", "hybrid", "agentic"), (text_unit_text_embedding,)),
}
"""Search method -> the embeddings that it needs."""
_OF_0 = {entity_description_embedding: "entity_description_embeddings"}
"""Embedding -> name of its table in graphrag 0.3 to 0.5."""
_SUFFIX = ".lance"
_PROBED = 64
_COPY = "copy it from where the index was built"


class VectorStoreError(ValueError):
    """Raised when a project's vectors can't be looked at; the message says why and what to do."""


class NoVectorsError(VectorStoreError):
    """Raised when vectors of a kind are missing or can't be read; the message says why."""


class OtherLengthError(VectorStoreError):
    """Raised when the embedding model's vectors have another length than the stored ones."""


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Contains a table of vectors, its folder, and its schema with the table's name and length."""

    embedding: str
    table: _Table
    schema: "IndexSchema"
    folder: Path


def uses_lancedb(config: "GraphRagConfig") -> bool:
    """Say whether a project's vectors are in LanceDB, the only store that is looked into here."""
    return str(config.vector_store.type) == "lancedb"


def open_vectors(config: "GraphRagConfig", embedding: str) -> "VectorStore":
    """Open the vectors of an embedding for searches, in the store that the settings name.

    Raises NoVectorsError if LanceDB has none that can be read.
    """
    from graphrag_vectors import create_vector_store

    settings, schema = config.vector_store, config.vector_store.index_schema[embedding]
    if uses_lancedb(config):
        vectors = find_vectors(config, embedding)
        settings = settings.model_copy(update={"db_uri": str(vectors.folder)})
        schema = vectors.schema
    store = create_vector_store(settings, schema)
    store.connect()
    return store


def find_vectors(config: "GraphRagConfig", embedding: str) -> StoredVectors:
    """Return the LanceDB table that contains the vectors of an embedding.

    Vectors that graphrag 0.3 to 0.5 wrote into a column of a table are first copied into one.
    Raises NoVectorsError if there is no table, it is empty, or it can't be read.
    """
    folder = Path(str(config.vector_store.db_uri))
    schema, whose = config.vector_store.index_schema[embedding], EMBEDDED[embedding]
    name = _find_name(folder, embedding, schema.index_name)
    copy = copy_vectors(config, embedding) if name is None else None
    if copy is not None:
        folder, name = copy, embedding
    if not folder.is_dir():
        raise NoVectorsError(f"the index has no vector store: there is no folder {folder}")
    if copy is None:
        _check_own_name(config, embedding)
    if name is None:
        raise NoVectorsError(
            f"the index has no vectors of its {whose}: {folder} has no table {schema.index_name}"
        )
    leave_client()
    import lancedb

    try:
        table: _Table = lancedb.connect(str(folder)).open_table(name)
        field = table.schema.field(schema.vector_field)
        length, rows = int(getattr(field.type, "list_size", -1)), int(table.count_rows())
        if rows and length > 0:
            _read_some(table, schema, rows, length)
    except KeyError as error:
        msg = f"the table {name} in {folder} has no column {schema.vector_field}"
        raise NoVectorsError(f"{msg}, so that the {whose} have no vectors") from error
    except (OSError, RuntimeError, ValueError) as error:
        msg = f"the vectors of the {whose} can't be read: {describe_broken(folder, name, error)}"
        raise NoVectorsError(msg) from error
    if not rows:
        raise NoVectorsError(f"the table {name} in {folder} is empty: the {whose} have no vectors")
    if length < 1:
        raise NoVectorsError(f"the vectors in the table {name} in {folder} have no fixed length")
    changes = {"index_name": name, "vector_size": length}
    return StoredVectors(
        embedding=embedding, table=table, schema=schema.model_copy(update=changes), folder=folder
    )


def _check_own_name(config: "GraphRagConfig", embedding: str) -> None:
    """Raise NoVectorsError if the settings name one table for several embeddings.

    Each then overwrote the other.
    """
    schemas = config.vector_store.index_schema
    name = schemas[embedding].index_name
    others = [EMBEDDED[e] for e in EMBEDDED if e != embedding and schemas[e].index_name == name]
    if others:
        raise NoVectorsError(
            f"the settings name one table, {name}, for the vectors of the {EMBEDDED[embedding]} "
            f"and of the {' and the '.join(others)}, so that only the last written are there; give "
            f"each an index_name of its own under vector_store.index_schema"
        )


def _read_some(table: _Table, schema: "IndexSchema", rows: int, length: int) -> None:
    """Read vectors spread over a table, because only reading shows that a file is missing."""
    try:
        offsets = sorted({rows * at // _PROBED for at in range(_PROBED)})
        table.take_offsets(offsets).select([schema.vector_field]).to_arrow()
    except (
        OSError,
        RuntimeError,
        ValueError,
    ):  # files of graphrag 0.3 to 1 can only be searched
        query = table.search([0.0] * length, vector_column_name=schema.vector_field)
        query.bypass_vector_index().limit(1).to_arrow()


def check_length(vector: "Sequence[float]", store: "VectorStore", model: str) -> None:
    """Check that a question's vector is as long as the stored vectors.

    Raises OtherLengthError if it is not: another model made the stored ones.
    """
    if len(vector) != store.vector_size:
        raise OtherLengthError(
            f"{model} gives a question a vector of {len(vector):,} numbers, and the stored ones "
            f"have {store.vector_size:,}; name the model that made them in embedding_models, or "
            "the length in its call_args as dimensions"
        )


def _find_name(folder: Path, embedding: str, configured: str) -> str | None:
    """Return the name of an embedding's table: the configured one, else that of some version."""
    there = sorted(p.name.removesuffix(_SUFFIX) for p in folder.glob(f"*{_SUFFIX}"))
    ending = VECTOR_TABLES[embedding]
    names = (configured, embedding, f"default-{ending}", _OF_0.get(embedding))
    others = [name for name in there if name.endswith(f"-{ending}")]
    chosen = next((name for name in names if name in there), None)
    return others[0] if chosen is None and len(others) == 1 else chosen


def describe_broken(store: Path, name: str, error: Exception) -> str:
    """Return why a table of vectors can't be read, and the remedy."""
    folder = store / f"{name}{_SUFFIX}"
    files = [path for path in folder.rglob("*") if path.is_file()]
    if any(map(is_lfs_pointer, files)):
        return f"{folder} contains pointers of Git LFS; fetch the files with: git lfs pull"
    if not any(path.suffix == ".manifest" for path in files):
        return (
            f"{folder / '_versions'} is missing (a line *.manifest in a .gitignore leaves it out); "
            f"{_COPY}"
        )
    cause = " ".join(str(error).split())
    if "not found" in cause.casefold():
        data = folder / "data"
        return f"a file of {data} is missing (a .gitignore may leave it out); {_COPY}"
    return f"{folder}: {cause[:200]}"


def open_vector_tables(config: "GraphRagConfig") -> Iterator[StoredVectors]:
    """Yield the vector tables that exist and can be read.

    Raises VectorStoreError if the store is not LanceDB, or there is none.
    """
    store = config.vector_store
    if not uses_lancedb(config):
        raise VectorStoreError(
            f"vector_store.type is {store.type}; only lancedb is optimized here, other stores "
            "keep indexes of their own"
        )
    folder, has_any = Path(str(store.db_uri)), False
    for name in sorted(all_embeddings):
        if name in store.index_schema:
            try:
                vectors = find_vectors(config, name)
            except NoVectorsError:
                continue
            has_any = True
            yield vectors
    if not has_any and not folder.is_dir():
        msg = f"there is no vector store at {folder}; build the project's index first"
        raise VectorStoreError(msg)
