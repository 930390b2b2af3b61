"""What is looked at in an index before the first call: its texts, and how long they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphrag_storage import create_storage
from graphrag_storage.file_storage import FileStorage
from graphrag_storage.tables.table_provider_factory import create_table_provider

from graphrag.eval.measures import SourceIndex, counts_of, phrase_key, texts_of

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from graphrag.query.index_header import IndexHeader

_MOST_UNITS = 5_000
"""The most text units that are read word by word; of more, every second, third, ..."""


class IndexPreview:
    """An index of which only the columns that are asked for are read, and nothing is kept."""

    def __init__(self, header: "IndexHeader") -> None:
        self._header = header

    async def read_sources(self) -> SourceIndex | None:
        """Return where quotes are looked for, None for an index without text units."""
        units = await self._read("text_units", ("id", "human_readable_id", "text", "document_id"))
        if units is None:
            return None
        return SourceIndex(units, await self._read("documents", ("id", "title", "text")))

    async def count_tokens(self) -> list[int] | None:
        """Return the tokens of each text unit as the index counted them, None if it did not."""
        units = await self._read("text_units", ("n_tokens",))
        if units is None:
            return None
        return counts_of(units, "n_tokens")

    async def read_words(self) -> list[list[str]]:
        """Return the words of its text units, as :func:`phrase_key` gives them.

        Of more than 5,000 text units so many are taken, evenly spaced.
        """
        texts = texts_of(await self._read("text_units", ("text",)), "text")
        every = -(-len(texts) // _MOST_UNITS) or 1
        return [phrase_key(text).split() for text in texts[::every]]

    async def read_title_words(self) -> set[str]:
        """Return the words of its entities' titles."""
        titles = texts_of(await self._read("entities", ("title",)), "title")
        return {word for title in titles for word in phrase_key(title).split()}

    async def _read(self, name: str, columns: Sequence[str]) -> "pd.DataFrame | None":
        """Read columns of a table, None if it is missing or lacks one of them."""
        config = self._header.config
        storage = create_storage(config.output_storage)
        provider = create_table_provider(config.table_provider, storage=storage)
        if not await provider.has(name):
            return None
        kind = config.table_provider.type
        if isinstance(storage, FileStorage) and kind == "parquet":
            return _read_parquet(storage.get_path(f"{name}.{kind}"), columns)
        frame: Any = await provider.read_dataframe(name)
        return frame[list(columns)] if set(columns) <= set(frame.columns) else None


def _read_parquet(path: "Path", columns: Sequence[str]) -> "pd.DataFrame | None":
    import pandas as pd
    import pyarrow.parquet as pq

    reader: Any = pq
    if not set(columns) <= set(reader.read_schema(path).names):
        return None
    return pd.read_parquet(path, columns=list(columns))
