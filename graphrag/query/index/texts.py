"""Opens the text units of an index and the word counts of their passages, mapped from files."""

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd

from graphrag.query.index.table_forms import TEXT_UNITS, Batch, Source, arrow
from graphrag.query.index.text_languages import FOLDER, WORDS_VERSION
from graphrag.query.passages import CutTexts, Passages, cut_texts
from graphrag.text.folder_cache import KeptFolder, Table, map_arrays, map_table, save_arrays
from graphrag.text.languages import Languages, find_languages, sample
from graphrag.text.ranking import WordIndex
from graphrag.text.word_counts import BM25, WordCounts

# Raised whenever the meaning of a byte in the kept files changes, or texts are cut elsewhere.
_FORMAT = 2
_TABLE = "text_units.arrow"
# Libraries whose tables of characters and stems decide what a word is.
_WORDS_BY = ("regex", "pystemmer", "py3langid")


class IndexTexts:
    """Contains the text units of an index, in their table's order, and their passages by size.

    Made by :func:`open_texts`. ``table`` has the columns of ``TEXT_UNITS``. The passages of a size
    are made once, by the first thread that asks, and shared by all methods that rank texts.
    """

    def __init__(
        self,
        table: Table,
        languages: Languages | None,
        name: str = "",
        home: Path | None = None,
    ) -> None:
        self.table = table
        self.languages = languages or _find_languages(table)
        """Languages of all texts; their words are stemmed in these."""
        self.name = name
        """Identifies the content of the table; "" if it is no file."""
        self._home = home
        self._by_size: dict[int | None, Passages] = {}
        self._making = Lock()

    def batches(self) -> Sequence[Batch]:
        """Return the table in pieces."""
        return self.table.to_batches(max_chunksize=TEXT_UNITS.batch_rows)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Id of a text unit -> its row."""
        return {name: row for row, name in enumerate(self.table.column("id").to_pylist())}

    def passages(self, size: int | None) -> Passages:
        """Return the passages of about ``size`` tokens; None: each text unit is one passage.

        The first call counts their words; see :class:`WordIndex`.
        """
        with self._making:
            if size not in self._by_size:
                self._by_size[size] = self._map(size) or self._make(size)
            return self._by_size[size]

    def _map(self, size: int | None) -> Passages | None:
        """Map passages and word counts from files; write the files first if they are missing."""
        if self._home is None:
            return None

        def write(folder: Path) -> None:
            for part in self._cut(size):
                save_arrays(folder, part)

        def read(folder: Path) -> Passages:
            cut, counts = map_arrays(folder, CutTexts), map_arrays(folder, WordCounts)
            if len(cut.first) != self.table.num_rows + 1 or cut.first[-1] != counts.n_texts[0]:
                raise ValueError("its files are of other texts")
            return Passages(cut, WordIndex(counts, self.languages))

        kind = f"words-{size or 'whole'}"
        kept = KeptFolder(
            home=self._home, kind=kind, content=self._digest_words(), what="words of the texts"
        )
        return kept.open(write, read)

    def _make(self, size: int | None) -> Passages:
        cut, counts = self._cut(size)
        return Passages(cut, WordIndex(counts, self.languages))

    def _cut(self, size: int | None) -> tuple[CutTexts, WordCounts]:
        texts, counts = (self.table.column(name).to_pylist() for name in ("text", "n_tokens"))
        return cut_texts(texts, counts, size, self.languages)

    def _digest_words(self) -> str:
        """Return a hash of everything that the words of the passages depend on."""
        seen = {
            "texts": self.name,
            "format": [_FORMAT, WORDS_VERSION],
            "languages": sorted(self.languages.by_script.items()),
            "bm25": BM25,
            "libraries": [unicodedata.unidata_version, *map(version, _WORDS_BY)],
        }
        return _digest(json.dumps(seen).encode())


def open_texts(source: Source, languages: Languages | None = None) -> IndexTexts:
    """Open the text units of an index; ``languages`` of None are found in the texts.

    The text units of a file are written once into the folder ``tog_graph`` next to it, named by the
    file's content, and mapped from there. They are kept in memory for a data frame, and if that
    folder can't be written. Raises UnreadableTableError if the table lacks a column or can't be
    read.
    """
    if not isinstance(source, Path):
        return IndexTexts(_read(source), languages)
    with source.open("rb") as file:
        content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    name, home = _digest(f"{_FORMAT} {source.suffix} {content}".encode()), source.parent / FOLDER
    kept = KeptFolder(home=home, kind="texts", content=name, what="text units")
    table = kept.open(
        lambda folder: _write(source, folder / _TABLE), lambda folder: map_table(folder / _TABLE)
    )
    if table is None:
        return IndexTexts(_read(source), languages, name)
    return IndexTexts(table, languages, name, home)


def _write(source: Path, file: Path) -> None:
    batches = TEXT_UNITS.stream(source)
    first = next(batches)
    with (
        arrow.OSFile(str(file), "wb") as sink,
        arrow.ipc.new_file(sink, first.schema) as writer,
    ):
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _read(source: "Path | pd.DataFrame | None") -> Table:
    return arrow.Table.from_batches([*TEXT_UNITS.stream(source)])


def _find_languages(table: Any) -> Languages:
    texts = table.column("text")
    return find_languages([texts[row].as_py() for row in sample(len(texts))])


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
