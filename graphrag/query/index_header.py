"""A built index before it is searched: its settings, models, tables and fingerprint."""

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag_storage import create_storage
from graphrag_storage.file_storage import FileStorage

from graphrag.config.embeddings import entity_description_embedding, text_unit_text_embedding
from graphrag.config.models.basic_search_config import BasicSearchConfig
from graphrag.config.models.tog_search_config import RankedSearchConfig
from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import SEARCHED_TABLES, describe_unbuilt, prompt_files
from graphrag.query.methods import GRAPH_METHODS, RANKED, count_passages, embeds, section_name
from graphrag.query.model_facts import is_hashed
from graphrag.query.vector_index import open_vector_tables, uses_lancedb
from graphrag.text.command_lines import release_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd
    from graphrag_llm.config import ModelConfig
    from graphrag_storage import Storage

    from graphrag.config.models.graph_rag_config import GraphRagConfig


_FILES = ("parquet", "csv")
_DOCUMENT, _DOCUMENTS = "document_id", "document_ids"


class IndexNotBuiltError(ValueError):
    """A project has no complete index; the message names what is missing and what to run."""


class IndexTables:
    """The tables of a built index as graphrag 3.3 writes them; covariates there are with claims.

    Text units as graphrag 2 wrote them get a ``document_id`` too: the first of ``document_ids``.
    ``paths``: table name -> ``.parquet`` or ``.csv`` file of this machine, read when first asked
    for. ``**frames``: tables that were read before.
    """

    def __init__(
        self, paths: "Mapping[str, Path] | None" = None, /, **frames: "pd.DataFrame | None"
    ) -> None:
        self.paths = dict(paths or {})
        self._frames = {n: _with_document(f) for n, f in frames.items() if f is not None}

    def table(self, name: str) -> "pd.DataFrame":
        """Return a copy of a table, as the released readers write into what they are given.

        Raises IndexNotBuiltError if the index has no such table.
        """
        if not self.has(name):
            raise IndexNotBuiltError(f"the index has no {name} table, which this search needs")
        if name not in self._frames:
            self._frames[name] = _with_document(_read_file(self.paths[name], name))
        return self._frames[name].copy()

    def columns(self, name: str, columns: "Sequence[str]") -> "pd.DataFrame | None":
        """Return columns of a table as they are stored; None without the table or one of them.

        Of a table that was not read before they are not kept.
        """
        if name in self._frames:
            frame: Any = self._frames[name]
            return frame[list(columns)] if set(columns) <= set(frame.columns) else None
        if name not in self.paths:
            return None
        table = _read_columns(self.paths[name], columns)
        if table is None and _DOCUMENT in columns:  # perhaps of graphrag 2
            in_list = [_DOCUMENTS if column == _DOCUMENT else column for column in columns]
            if (older := _read_columns(self.paths[name], in_list)) is not None:
                frame = _with_document(older)
                return frame[list(columns)]
        return table

    def has(self, name: str) -> bool:
        """Whether there is a table."""
        return name in self._frames or name in self.paths


def _with_document(frame: "pd.DataFrame") -> "pd.DataFrame":
    table: Any = frame
    if _DOCUMENT in table or _DOCUMENTS not in table:
        return frame
    firsts = [next(iter(ids), "") for ids in _to_lists(table[_DOCUMENTS])]
    return table.assign(**{_DOCUMENT: firsts})


def rows_of(table: "pd.DataFrame | None", *columns: str) -> list[tuple[Any, ...]]:
    """Return columns row by row: texts, and of a column of ids tuples of them; of None nothing.

    CSV files hold a list as text, which is read as the release reads it; a missing list is empty.
    """
    frame: Any = table
    if frame is None:
        return []
    cells = (
        _to_lists(frame[c]) if c.endswith("_ids") else map(str, frame[c].tolist()) for c in columns
    )
    return list(zip(*cells, strict=True))


def _to_lists(column: Any) -> "Iterator[tuple[str, ...]]":
    from graphrag.data_model.dfs import split_list_column

    lists: Iterator[Any] = map(split_list_column, column.tolist())
    return (tuple(map(str, ids)) if hasattr(ids, "__len__") else () for ids in lists)


async def fingerprint_tables(
    config: "GraphRagConfig", root: Path, needed: "Iterable[str]" = SEARCHED_TABLES
) -> str:
    """Return the hash of the content of an index's tables.

    Raises IndexNotBuiltError if a table is missing that is needed.
    """
    storage = create_storage(config.output_storage)
    # Titles of documents, where there are some, change what a search of the graph finds.
    there = await _find_tables(config, storage, (*SEARCHED_TABLES, "documents"))
    if missing := [name for name in needed if name not in there]:
        raise IndexNotBuiltError(describe_unbuilt(root, missing, config.output_storage.base_dir))
    digest = hashlib.blake2b(digest_size=16)
    for name in there:
        key = f"{name}.{config.table_provider.type}"
        if isinstance(storage, FileStorage):
            await asyncio.to_thread(_hash_file, storage.get_path(key), name, digest)
            continue
        content = await storage.get(key, as_bytes=True) or b""
        digest.update(f"{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


async def _find_tables(
    config: "GraphRagConfig", storage: "Storage", names: "Sequence[str]"
) -> list[str]:
    kind = config.table_provider.type
    if kind in _FILES:  # what the release's providers ask; loading them loads pandas
        return [name for name in names if await storage.has(f"{name}.{kind}")]
    from graphrag_storage.tables.table_provider_factory import create_table_provider

    provider = create_table_provider(config.table_provider, storage=storage)
    return [name for name in names if await provider.has(name)]


def _hash_file(path: Path, name: str, digest: "hashlib.blake2b") -> None:
    """Hash a table piece by piece, as it may be larger than the memory."""
    with path.open("rb") as file:
        digest.update(f"{name}:{os.fstat(file.fileno()).st_size}:".encode())
        hashlib.file_digest(file, lambda: digest)


async def open_tables(
    config: "GraphRagConfig", names: "Sequence[str]" = (*SEARCHED_TABLES, "covariates", "documents")
) -> IndexTables:
    """Open those of the tables that there are: read later from files, at once from elsewhere."""
    storage = create_storage(config.output_storage)
    kind = config.table_provider.type
    present = await _find_tables(config, storage, names)
    if isinstance(storage, FileStorage) and kind in _FILES:
        return IndexTables({name: storage.get_path(f"{name}.{kind}") for name in present})
    from graphrag_storage.tables.table_provider_factory import create_table_provider

    from graphrag.data_model.data_reader import DataReader

    reader = DataReader(create_table_provider(config.table_provider, storage=storage))
    frames = {name: await getattr(reader, name)() for name in present}
    return IndexTables(**frames)


def _read_file(path: Path, name: str) -> "pd.DataFrame":
    import pandas as pd

    from graphrag.data_model import dfs

    frame = (
        pd.read_csv(path, keep_default_na=False) if path.suffix == ".csv" else pd.read_parquet(path)
    )
    return getattr(dfs, f"{name}_typed")(frame)


def _read_columns(path: Path, columns: "Sequence[str]") -> "pd.DataFrame | None":
    import pandas as pd
    import pyarrow.parquet as pq

    chosen = list(columns)
    if path.suffix == ".csv":
        frame = pd.read_csv(path, usecols=set(chosen).__contains__, keep_default_na=False)
        return frame if set(chosen) <= set(frame.columns) else None
    schema: Any = cast("Any", pq).read_schema(path)
    return pd.read_parquet(path, columns=chosen) if set(chosen) <= set(schema.names) else None


def check_vectors(config: "GraphRagConfig", root: Path) -> None:
    """Compare the stored vectors with the settings, where the store is LanceDB.

    Raises IndexNotBuiltError if vectors are missing, of another length or of another model, as far
    as that can be told.
    """
    store = config.vector_store
    if not uses_lancedb(config):
        return
    rebuild = f"rebuild the index with: {release_line('index', '--root', Path(root))}"
    if not Path(str(store.db_uri)).is_dir():
        raise IndexNotBuiltError(f"{root} has no vector store at {store.db_uri}; {rebuild}")
    tables: dict[str, Any] = {name: table for name, table, _ in open_vector_tables(config)}
    for name in (entity_description_embedding, text_unit_text_embedding):
        schema = store.index_schema[name]
        if name not in tables:
            msg = f"{root} has no vectors named {schema.index_name} in {store.db_uri}; {rebuild}"
            raise IndexNotBuiltError(msg)
        stored = int(tables[name].schema.field(schema.vector_field).type.list_size)
        if stored != schema.vector_size:
            raise IndexNotBuiltError(
                f"{root}: the index holds vectors of length {stored}, but vector_store.vector_size "
                f"in its settings is {schema.vector_size}; set it to {stored} if the embedding "
                f"model there built this index, else {rebuild}"
            )
    from graphrag.query.meaning import OtherVectorsError, open_text_vectors

    try:
        open_text_vectors(config)
    except OtherVectorsError as error:
        msg = f"{root}: {error}; {rebuild}, or name the model that made them"
        raise IndexNotBuiltError(msg) from error


_SECRET = re.compile(r"key|secret|password|header|authorization|ad_token", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What the released search functions take beside the settings, alike for all methods.

    ``community_level`` is the deepest that local, global and DRIFT read; None: all.
    """

    community_level: int | None = 2
    response_type: str = "Multiple Paragraphs"
    dynamic_community_selection: bool = False


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """An index's settings and the hash of its tables (None for tables that were handed over).

    ``vectors`` is the hash of its text units' vectors, None where they are hashed n-grams or can't
    be read. ``longest``: tokens of its longest text unit, None where they were not counted.
    """

    config: "GraphRagConfig"
    options: SearchOptions = SearchOptions()
    fingerprint: str | None = None
    vectors: str | None = None
    longest: int | None = None

    def section(self, method: str) -> Any:
        """Return a method's section of the settings."""
        section: Any = getattr(self.config, section_name(method))
        if section_name(method) != "basic_search":
            return section
        kind = RankedSearchConfig if method in RANKED else BasicSearchConfig
        values = section.model_dump(exclude_unset=True)
        return kind.model_validate({k: v for k, v in values.items() if k in kind.model_fields})

    def changed(self, method: str, changes: Mapping[str, object]) -> "IndexHeader":
        """Return this header with other values in a method's section of the settings."""
        name = section_name(method)
        section = getattr(self.config, name).model_copy(update=changes)
        return replace(self, config=self.config.model_copy(update={name: section}))

    def model_configs(self, method: str) -> dict[str, "ModelConfig"]:
        """Return the models of a method: ``completion`` and, where it embeds, ``embedding``.

        A search of the graph embeds where its model is there and tells more than which letters two
        texts share.
        """
        section = self.section(method)
        models = {
            "completion": self.config.get_completion_model_config(section.completion_model_id)
        }
        if embeds(method):
            models["embedding"] = self.config.get_embedding_model_config(section.embedding_model_id)
        elif method in GRAPH_METHODS:
            model = self.config.embedding_models.get(section.embedding_model_id or "")
            if model is not None and not is_hashed(model_name(model)):
                models["embedding"] = model
        return models

    def prompt_files(self, method: str) -> dict[str, Path]:
        """Return the prompt files that a method needs: setting -> file; SettingsError without."""
        return prompt_files(section_name(method), self.section(method))

    def describe(self, method: str) -> dict[str, object]:
        """Return everything that changes what a method answers, JSON-ready, without secrets.

        Prompt files are given by the hash of their content; SettingsError if one is not there.
        """
        self.prompt_files(method)
        section = cast("dict[str, object]", self.section(method).model_dump(mode="json"))
        size = cast("int | None", section.get("passage_tokens"))
        if size is None or (self.longest is not None and count_passages(self.longest, size) == 1):
            section.pop("passage_tokens", None)  # as earlier releases describe it
        named = {key: Path(str(v)) for key, v in section.items() if key.endswith("prompt") and v}
        prompts = {k: _hash(path.read_bytes()) for k, path in named.items() if path.is_file()}
        models = self.model_configs(method)
        return {
            "settings": {**section, **prompts},
            "options": asdict(self.options),
            "models": {r: describe_model(c) for r, c in models.items()},
            "index": self.fingerprint,
            **({"vectors": self.vectors} if "embedding" in models and self.vectors else {}),
        }


async def read_header(
    root: Path | str,
    data_dir: Path | str | None = None,
    options: SearchOptions = SearchOptions(),
    vectors: bool = True,
    tells_changes: bool = True,
    tables: "Iterable[str]" = SEARCHED_TABLES,
) -> IndexHeader:
    """Read a project's settings and check that its index is complete; see ``GraphIndex.open``.

    ``tells_changes``: whether it is to be known later if the vectors are the same still;
    ``tables``: those that must be there.
    """
    config = read_settings(root, data_dir)
    fingerprint = await fingerprint_tables(config, Path(root), tables)
    if vectors:
        check_vectors(config, Path(root))
    header = IndexHeader(config, options, fingerprint)
    if not tells_changes:
        return header
    hashed = await asyncio.to_thread(_read_vectors, config)
    units = await open_tables(config, ("text_units",))
    counted: Any = units.columns("text_units", ("n_tokens",))
    longest = None if counted is None else counted["n_tokens"].max()
    longest = int(longest) if isinstance(longest, Integral) else None
    return replace(header, vectors=hashed, longest=longest)


def _read_vectors(config: "GraphRagConfig") -> str | None:
    if all(is_hashed(model_name(model)) for model in config.embedding_models.values()):
        return None
    from graphrag.query.meaning import hash_vectors, open_text_vectors

    try:
        return hash_vectors(open_text_vectors(config))
    except Exception:  # of whichever store; a search that needs them says what is wrong
        return None


def describe_model(config: "ModelConfig") -> dict[str, object]:
    """Return a model's name and call arguments, what may be a secret replaced by its hash."""
    return {"model": model_name(config), "call_args": _hide_secrets(config.call_args)}


def _hide_secrets(values: Mapping[str, object]) -> dict[str, object]:
    return {
        name: _hash(repr(value).encode())
        if _SECRET.search(name)
        else _hide_secrets(cast("Mapping[str, object]", value))
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
    }


def model_name(config: "ModelConfig") -> str:
    """Return ``provider/model``."""
    return f"{config.model_provider}/{config.model}"


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
