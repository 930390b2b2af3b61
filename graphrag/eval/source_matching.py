"""Where a sample's evidence stands in an index: quotes, documents and text units looked up."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Literal

from graphrag.eval.dataset import Sample
from graphrag.eval.index_columns import texts_of
from graphrag.offline.words import unspaced_characters

if TYPE_CHECKING:
    import pandas as pd

MIN_PART = 0.5
# Dashes to a hyphen, apostrophes to one kind; double quotes go, as tables double them, and so
# do soft hyphens and zero-width characters.
_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032`\u00b4", "'"),
        **dict.fromkeys('"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033', None),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)
_SEPARATOR = "\x00"
_WORD = re.compile(r"[^\W_]+")


def fold_text(text: str) -> str:
    """Return a text in the form in which quotes are compared.

    NFKC, case folded, every run of white space one blank, one kind of hyphen and of apostrophe,
    no double quotes.
    """
    return " ".join(unicodedata.normalize("NFKC", text).translate(_FOLDED).casefold().split())


def phrase_key(text: str) -> str:
    """Return a text as words between blanks, so that whole phrases can be looked for in it.

    Each character of a script without spaces is a word of its own; punctuation is left out.
    ``phrase_key("Oak Hill")`` is part of ``phrase_key("at oak-hill.")``, not of
    ``phrase_key("oak hills")``. Empty when the text has no word.
    """
    folded = fold_text(text).replace("'", "")
    if not folded.isascii():
        for character in set(unspaced_characters(folded)):
            folded = folded.replace(character, f" {character} ")
    words = _WORD.findall(folded)
    return f" {' '.join(words)} " if words else ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One expected source of a sample, looked up in an index.

    Attributes
    ----------
    text : str
        As the sample gives it.
    kind : {"document", "text_unit", "quote"}
    unit_ids : frozenset of str
        The text units that hold it; empty when none does.
    in_source : bool or None
        Whether a document holds it; None for a quote that no text unit holds, of an index
        whose documents are not given.
    """

    text: str
    kind: Literal["document", "text_unit", "quote"]
    unit_ids: frozenset[str]
    in_source: bool | None


class SourceIndex:
    """Finds evidence in the text of one index; texts are normalised once.

    Parameters
    ----------
    text_units : pandas.DataFrame
        ``id``, ``human_readable_id``, ``text``, ``document_id``.
    documents : pandas.DataFrame or None
        ``id``, ``title``, ``text``. Without them a source can't be named by its title.
    min_part : float
        The part of a quote's characters, in (0, 1], that a text unit at whose border the quote is
        cut must hold to count for it.

    Raises
    ------
    ValueError
        If `min_part` is outside (0, 1].
    """

    def __init__(
        self,
        text_units: "pd.DataFrame",
        documents: "pd.DataFrame | None" = None,
        min_part: float = MIN_PART,
    ) -> None:
        if not 0 < min_part <= 1:
            msg = f"min_part must lie in (0, 1], not {min_part}"
            raise ValueError(msg)
        self._min_part = min_part
        self._ids = texts_of(text_units, "id")
        self._texts = [fold_text(text) for text in texts_of(text_units, "text")]
        self._joined = _SEPARATOR.join(self._texts)
        ends = accumulate(len(text) + 1 for text in self._texts)
        self._starts = [0, *ends][: len(self._texts)]
        self._by_name: dict[str, str] = {}
        for short, unit in zip(texts_of(text_units, "human_readable_id"), self._ids, strict=True):
            self._by_name.setdefault(short, unit)
        self._by_name.update((unit, unit) for unit in self._ids)
        of_document: dict[str, set[str]] = {}
        for document, unit in zip(texts_of(text_units, "document_id"), self._ids, strict=True):
            of_document.setdefault(document, set()).add(unit)
        self._documents = {name: frozenset(units) for name, units in of_document.items()}
        self._source: str | None = None
        if documents is not None:
            named = zip(texts_of(documents, "id"), texts_of(documents, "title"), strict=True)
            for document, title in named:
                units = frozenset(of_document.get(document, ()))
                self._documents[document] = units
                known = self._documents.get(fold_text(title), frozenset())
                self._documents[fold_text(title)] = known | units
            self._source = _SEPARATOR.join(map(fold_text, texts_of(documents, "text")))

    def evidence_of(self, sample: Sample) -> tuple[Evidence, ...]:
        """Return a sample's expected sources, or else its evidence quotes, looked up.

        An entry of ``expected_sources`` is the title or id of a document, the id or
        human_readable_id of a text unit, or else a quote. Empty when the sample names none.
        """
        if sample.expected_sources:
            return tuple(self._look_up(entry) for entry in sample.expected_sources if entry.strip())
        return tuple(self._quote(entry) for entry in sample.evidence if fold_text(entry))

    def units_with(self, quote: str) -> frozenset[str]:
        """Return the ids of the text units that hold a quote.

        Those that hold all of it; when there are none, those at whose border it is cut and that
        hold at least ``min_part`` of its characters, and those that lie inside it.
        """
        wanted = fold_text(quote)
        if not wanted:
            return frozenset()
        whole = frozenset(self._containing(wanted))
        return whole or frozenset(self._holding_part(wanted))

    def _look_up(self, entry: str) -> Evidence:
        name = entry.strip()
        units = self._documents.get(name, self._documents.get(fold_text(name)))
        if units is not None:
            return Evidence(entry, "document", units, in_source=True)
        if name in self._by_name:
            return Evidence(entry, "text_unit", frozenset({self._by_name[name]}), in_source=True)
        return self._quote(entry)

    def _quote(self, entry: str) -> Evidence:
        units = self.units_with(entry)
        known = None if self._source is None else fold_text(entry) in self._source
        return Evidence(entry, "quote", units, in_source=bool(units) or known)

    def _containing(self, wanted: str) -> Iterable[str]:
        at = self._joined.find(wanted)
        while at >= 0:
            row = bisect_right(self._starts, at) - 1
            yield self._ids[row]
            if row + 1 == len(self._starts):
                return
            at = self._joined.find(wanted, self._starts[row + 1])

    def _holding_part(self, wanted: str) -> Iterable[str]:
        # The blank at which a quote is cut is in neither part.
        least = max(1, ceil(self._min_part * (len(wanted) - 1)))
        first, last = wanted[:least], wanted[-least:]
        for unit, text in zip(self._ids, self._texts, strict=True):
            begins = any(wanted.startswith(text[at:]) for at in _places(first, text))
            ends = any(wanted.endswith(text[: at + least]) for at in _places(last, text))
            if begins or ends or (text and text in wanted):
                yield unit


def _places(part: str, text: str) -> Iterable[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def first_ranks(items: Sequence[Evidence], ranked: Sequence[str]) -> list[int | None]:
    """Return the rank, from 1, at which each item is first found; None when it is not."""
    rank_of: dict[str, int] = {}
    for rank, unit in enumerate(dict.fromkeys(ranked), 1):
        rank_of[unit] = rank
    found = [[rank_of[unit] for unit in item.unit_ids if unit in rank_of] for item in items]
    return [min(ranks) if ranks else None for ranks in found]
