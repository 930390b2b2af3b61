"""The records of one index, by the ids that methods cite and walk, and names found in texts."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from graphrag.eval.measures.index_columns import id_lists_of, texts_of
from graphrag.eval.measures.quotes import fold_text, phrase_key

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.index_tables import Tables

_POSSESSIVE = re.compile(r"(?<=\w)['\u2018\u2019\u02bc]s\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredEdge:
    """A relationship as the index stores it: the titles of its ends, and its text units' ids."""

    source: str
    target: str
    text_unit_ids: tuple[str, ...]


class NamedText:
    """A text in which names are looked for as whole words; it is normalised once.

    Case, punctuation, white space and a possessive ``'s`` do not count; other names (aliases)
    are not known. A name without letters or digits, such as an emoji, is looked for as it stands.
    """

    __slots__ = ("_folded", "_key")

    def __init__(self, text: str) -> None:
        self._key = name_key(text)
        self._folded = fold_text(text)

    def __contains__(self, name: str) -> bool:
        """Whether the name stands in the text; a blank name never does."""
        key = name_key(name)
        if key:
            return key in self._key
        folded = fold_text(name)
        return bool(folded) and folded in self._folded

    @property
    def words(self) -> list[str]:
        """The normalised words, in order."""
        return self._key.split()


class IndexRecords:
    """Looks up records of one index.

    Parameters
    ----------
    tables : Tables
        Of the index that was searched; ``text_units``, ``relationships`` and ``entities`` are
        read, and one that is missing counts as empty.

    Attributes
    ----------
    edges : dict
        Id of a relationship -> as it is stored.
    cited : dict
        "sources", "relationships", "entities" -> the id in a citation (human_readable_id) -> the
        id in the table; an entity's is its title.
    """

    def __init__(self, tables: "Tables") -> None:
        units, relationships, entities = (
            tables.table(name) if tables.has(name) else None
            for name in ("text_units", "relationships", "entities")
        )
        self._texts = _columns(units, "id", "text")
        self._named: dict[str, NamedText] = {}
        self.edges: dict[str, StoredEdge] = {
            relationship: StoredEdge(source, target, unit_ids)
            for relationship, source, target, unit_ids in zip(
                texts_of(relationships, "id"),
                texts_of(relationships, "source"),
                texts_of(relationships, "target"),
                id_lists_of(relationships, "text_unit_ids"),
                strict=True,
            )
        }
        self.cited: dict[str, dict[str, str]] = {
            "sources": _columns(units, "human_readable_id", "id"),
            "relationships": _columns(relationships, "human_readable_id", "id"),
            "entities": _columns(entities, "human_readable_id", "title"),
        }

    def text_of(self, text_unit_id: str) -> NamedText | None:
        """Return the text of a text unit; None when the index has no such unit."""
        if text_unit_id not in self._texts:
            return None
        if text_unit_id not in self._named:
            self._named[text_unit_id] = NamedText(self._texts[text_unit_id])
        return self._named[text_unit_id]

    def entities_in(self, text: str) -> tuple[str, ...]:
        """Return the titles of the index that stand in a text as whole words, each once.

        Where titles overlap the longest one counts: with both in the index, "Oak Hill" is not
        also "Hill". Of titles that differ only in case or punctuation the first one stands
        for all.
        """
        named = NamedText(text)
        words = named.words
        found: dict[str, None] = {}
        at = 0
        while at < len(words):
            step = 1
            for length in self._title_lengths:
                title = self._titles.get(f" {' '.join(words[at : at + length])} ")
                if title is not None:
                    found[title] = None
                    step = length
                    break
            at += step
        found.update((title, None) for title in self._wordless_titles if title in named)
        return tuple(found)

    @cached_property
    def _titles(self) -> dict[str, str]:
        titles: dict[str, str] = {}
        for title in self.cited["entities"].values():
            titles.setdefault(name_key(title), title)
        titles.pop("", None)
        return titles

    @cached_property
    def _title_lengths(self) -> tuple[int, ...]:
        return tuple(sorted({len(key.split()) for key in self._titles}, reverse=True))

    @cached_property
    def _wordless_titles(self) -> tuple[str, ...]:
        return tuple(title for title in self.cited["entities"].values() if not name_key(title))


def name_key(text: str) -> str:
    """Return :func:`phrase_key` of a text without its possessive endings."""
    return phrase_key(_POSSESSIVE.sub("", text))


def _columns(table: "pd.DataFrame | None", key: str, value: str) -> dict[str, str]:
    return dict(zip(texts_of(table, key), texts_of(table, value), strict=True))
