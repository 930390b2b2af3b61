"""Copies the vectors that graphrag 0.3 to 0.5 wrote into its tables to a store in LanceDB.

Searches read the copy; the owner's files stay as they are.
"""

import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.config.table_files import find_table_files, is_unreadable

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

_Arrow = Any  # typed in part
COLUMNS = {
    entity_description_embedding: ("entities", "description_embedding"),
    text_unit_text_embedding: ("text_units", "text_embedding"),
    community_full_content_embedding: ("community_reports", "full_content_embedding"),
}
"""Embedding -> the table and column that contain its vectors."""
_FOLDER = Path("tog_graph", "vectors")


def copy_vectors(config: "GraphRagConfig", embedding: str) -> Path | None:
    """Copy the vectors in a table's column to a LanceDB store, and return its folder.

    The folder is in ``tog_graph`` next to the tables and is used until the table changes. If it
    can't be written there, it is a temporary folder of this process. None if there are no such
    vectors.
    """
    folder, (name, column) = Path(config.output_storage.base_dir or ""), COLUMNS[embedding]
    path = find_table_files(folder, (name,), "parquet").get(name)
    if not folder.parts or path is None or is_unreadable(path):
        return None
    from pyarrow import parquet

    read: _Arrow = parquet
    if not {"id", column} <= set(read.read_schema(path).names):
        return None
    status = path.stat()
    kept = folder / _FOLDER / f"{embedding}-{status.st_size}-{status.st_mtime_ns}"
    if kept.is_dir():
        return kept
    table = _fixed_length(read.read_table(path, columns=["id", column]), column)
    if table is None:
        return None
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        return _write(table, embedding, kept)
    except OSError:
        return _write(table, embedding, _own_folder() / kept.name)


def _fixed_length(table: _Arrow, column: str) -> _Arrow | None:
    """Return ids and vectors in LanceDB's form.

    None if there is no vector, or they differ in length.
    """
    import pyarrow as pa
    from pyarrow import compute as untyped

    arrow: _Arrow = pa
    compute: _Arrow = untyped
    table = table.filter(compute.field(column).is_valid())
    lengths = compute.unique(compute.list_value_length(table.column(column))).to_pylist()
    if len(lengths) != 1 or not lengths[0]:
        return None
    numbers = compute.list_flatten(table.column(column)).combine_chunks().cast(arrow.float32())
    vectors = arrow.FixedSizeListArray.from_arrays(numbers, lengths[0])
    return arrow.table({"id": table.column("id").cast(arrow.string()), "vector": vectors})


def _write(table: _Arrow, embedding: str, folder: Path) -> Path:
    import lancedb

    if folder.is_dir():
        return folder
    making = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        lancedb.connect(str(making)).create_table(embedding, data=table)
        os.rename(making, folder)
    except OSError:
        shutil.rmtree(making, ignore_errors=True)
        if not folder.is_dir():  # else another process was first
            raise
    return folder


@lru_cache(maxsize=1)
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gtog-vectors-"))
