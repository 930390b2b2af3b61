"""Reading the tables of a built index and checking that it is complete."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag_storage import create_storage
from graphrag_storage.tables.table_provider_factory import create_table_provider

from graphrag.config.embeddings import entity_description_embedding, text_unit_text_embedding
from graphrag.data_model.data_reader import DataReader

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.config.models.graph_rag_config import GraphRagConfig

_TABLES = ("entities", "relationships", "text_units", "communities", "community_reports")


class IndexNotBuiltError(ValueError):
    """A project has no complete index; the message names what is missing and what to run."""


@dataclass(frozen=True, slots=True)
class IndexTables:
    """The tables of a built index as graphrag 3.3 writes them; covariates only with claims."""

    entities: "pd.DataFrame | None" = None
    relationships: "pd.DataFrame | None" = None
    text_units: "pd.DataFrame | None" = None
    communities: "pd.DataFrame | None" = None
    community_reports: "pd.DataFrame | None" = None
    covariates: "pd.DataFrame | None" = None

    def table(self, name: str) -> "pd.DataFrame":
        """Return a copy of a table, as the released readers write into what they are given."""
        found: pd.DataFrame | None = getattr(self, name)
        if found is None:
            msg = f"the index has no {name} table, which this search needs"
            raise IndexNotBuiltError(msg)
        return found.copy()


async def fingerprint_tables(config: "GraphRagConfig", root: Path) -> str:
    """Return the hash of the content of an index's tables.

    Raises
    ------
    IndexNotBuiltError
        If a table is missing.
    """
    storage = create_storage(config.output_storage)
    provider = create_table_provider(config.table_provider, storage=storage)
    missing = [name for name in _TABLES if not await provider.has(name)]
    if missing:
        msg = (
            f"{root} is not indexed: {', '.join(missing)} missing in "
            f"{config.output_storage.base_dir}; build it with: graphrag index --root {root}"
        )
        raise IndexNotBuiltError(msg)
    digest = hashlib.blake2b(digest_size=16)
    for name in _TABLES:
        content = await storage.get(f"{name}.{config.table_provider.type}", as_bytes=True)
        digest.update(f"{name}:{len(content or b'')}:".encode())
        digest.update(content or b"")
    return digest.hexdigest()


async def read_tables(config: "GraphRagConfig") -> IndexTables:
    """Read the tables of a complete index."""
    storage = create_storage(config.output_storage)
    provider = create_table_provider(config.table_provider, storage=storage)
    names = [*_TABLES, *(["covariates"] if await provider.has("covariates") else [])]
    reader = DataReader(provider)
    frames = {name: await getattr(reader, name)() for name in names}
    return IndexTables(**frames)


def check_vectors(config: "GraphRagConfig", root: Path) -> None:
    """Compare the stored vectors' length with the settings', where the store is LanceDB.

    Raises
    ------
    IndexNotBuiltError
        If vectors are missing or of another length.
    """
    store = config.vector_store
    if store.type != "lancedb":
        return
    import lancedb

    rebuild = f"rebuild the index with: graphrag index --root {root}"
    if not Path(str(store.db_uri)).is_dir():
        msg = f"{root} has no vector store at {store.db_uri}; {rebuild}"
        raise IndexNotBuiltError(msg)
    connection = lancedb.connect(str(store.db_uri))
    present = set(connection.list_tables().tables)
    for name in (entity_description_embedding, text_unit_text_embedding):
        schema = store.index_schema[name]
        if schema.index_name not in present:
            msg = f"{root} has no vectors named {schema.index_name} in {store.db_uri}; {rebuild}"
            raise IndexNotBuiltError(msg)
        table = connection.open_table(schema.index_name)
        stored = int(cast("Any", table.schema).field(schema.vector_field).type.list_size)
        if stored != schema.vector_size:
            msg = (
                f"{root}: the index holds vectors of length {stored}, but vector_store.vector_size "
                f"in its settings is {schema.vector_size}; name the embedding model that built it, "
                f"or {rebuild}"
            )
            raise IndexNotBuiltError(msg)
