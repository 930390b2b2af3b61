"""Finds quotes in the texts of an index, and with them the expected sources of a sample."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Literal

from ahocorasick_rs import AhoCorasick

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.query.index.tables import rows_of
from graphrag.text.inflection import Inflection
from graphrag.text.languages import Languages
from graphrag.text.stems import ENGLISH
from graphrag.text.tokenize import fold, word_key

if TYPE_CHECKING:
    import pandas as pd

MIN_PART = 0.5
"""Share of a quote's characters that a text unit must contain if the quote is cut at its border."""
MIN_WORDS = 3
"""The fewest words of a part that is searched by itself."""
MIN_LETTERS = 8
"""The fewest letters and digits of such a part."""
_BLOCK = 1_000_000
"""About how many characters are searched at once."""
_MANY = 64
"""From this number of strings on, one pass for all takes less time than a search for each."""

# Dashes become hyphens, apostrophes become one kind; double quotes are removed: tables double them.
_FOLDED = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58", "-"),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", ""),
}
_TO_FOLD = re.compile(f"[{''.join(_FOLDED)}]")
_SEPARATOR = "\x00"
# [1], [2, 3], [4-6], [a], [*], [sic], and raised digits.
_NOTE = re.compile(
    r"\[\s*(?:\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*|[a-z]|\*{1,3}|sic|citation needed)\s*\](?!\w)"
    r"|[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(
    r"[\[(]\s*(?:\u2026|\.(?:\s?\.)+)\s*[\])]|\u2026+|\.{2,}|\.(?:\s\.){2,}", re.IGNORECASE
)
_CUT = re.compile(f"(?:{_NOTE.pattern}|{_ELLIPSIS.pattern}|[\r\n]+)", re.IGNORECASE)
_EDITED_LETTER = re.compile(r"\[(\w)\](?=\w)")
# A hyphen within a word, and one at which a line was broken, but no dash and no double hyphen.
_HYPHEN = re.compile(r"[\u00ad\u2010-\u2013\ufe63-](?<=[^\W\d_].)(?:[ \t]*\r?\n\s*)?(?=[^\W\d_])")


def fold_text(text: str) -> str:
    """Return a text in the form in which quotes are compared.

    It is folded by :func:`fold`; each run of white space becomes one blank, hyphens and apostrophes
    become one kind each, and double quotes are removed.
    """
    folded = fold(text)
    if not folded.isascii():
        folded = _TO_FOLD.sub(lambda match: _FOLDED[match[0]], folded)
    return " ".join(folded.replace('"', "").replace("`", "'").split())


def phrase_key(text: str) -> str:
    """Return a text as words between blanks, in which whole phrases can be searched.

    The words are those of :func:`word_key`, without apostrophes. ``phrase_key("Oak Hill")`` is part
    of ``phrase_key("at oak-hill.")``, but not of ``phrase_key("oak hills")``. Empty if the text has
    no word.
    """
    words = word_key(fold_text(text).replace("'", ""))
    return f" {words} " if words else ""


def quote_key(text: str) -> str:
    """Return :func:`phrase_key` of a text without footnote marks, with hyphenated words joined.

    "exca-", "vation" on two lines becomes "excavation", and "[T]he" becomes "the".
    """
    plain = _EDITED_LETTER.sub(r"\1", text) if "[" in text else text
    noted = _NOTE.sub(" ", plain) if "[" in plain or not plain.isascii() else plain
    return phrase_key(_HYPHEN.sub("", noted))


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote in the forms in which it is searched; :func:`read_quote` makes it.

    - ``folded``: :func:`fold_text` of the quote, and of the quote without its footnote marks, if
      any.
    - ``words``: its :func:`quote_key`; empty if the quote is too short to be recognized by its
      words.
    - ``parts``: the texts between ellipses, footnote marks and line breaks, as they were given,
      except those below ``MIN_WORDS`` words or ``MIN_LETTERS`` letters; ``part_words``: their keys.
    """

    folded: tuple[str, ...]
    words: str
    parts: tuple[str, ...]
    part_words: tuple[str, ...]


def read_quote(text: str) -> Quote:
    """Split a quote into the forms in which it is searched."""
    words = quote_key(text)
    unmarked = fold_text(_NOTE.sub(" ", text))
    parts = [(part.strip(), quote_key(part)) for part in _CUT.split(text)]
    long = [(part, key) for part, key in parts if _is_distinctive(key)]
    return Quote(
        folded=tuple(f for f in dict.fromkeys((fold_text(text), unmarked)) if f),
        words=words if _is_distinctive(words) else "",
        parts=tuple(part for part, _ in long),
        part_words=tuple(key for _, key in long),
    )


def _is_distinctive(key: str) -> bool:
    words = key.split()
    return len(words) >= MIN_WORDS and sum(map(len, words)) >= MIN_LETTERS


class QuotableTexts:
    """Texts in which quotes are searched; each form is made when it is first needed."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def folded(self) -> "JoinedTexts":
        """The texts as :func:`fold_text` gives them."""
        return JoinedTexts(map(fold_text, self._texts))

    @cached_property
    def words(self) -> "JoinedTexts":
        """The texts as :func:`quote_key` gives them."""
        return JoinedTexts(map(quote_key, self._texts))

    def look_for(self, quotes: Sequence[Quote]) -> None:
        """Search many quotes at once; :meth:`rows_with` then returns the rows without a search."""
        self.folded.look_for(form for quote in quotes for form in quote.folded)
        left = [quote for quote in quotes if not self.rows_with_exactly(quote)]
        if len(left) >= _MANY:
            self.words.look_for(key for quote in left for key in (quote.words, *quote.part_words))

    def rows_with_exactly(self, quote: Quote) -> list[int]:
        """Return the positions of the texts that contain a quote as a whole, folded."""
        for form in quote.folded:
            if rows := list(self.folded.rows_with(form)):
                return rows
        return []

    def contains_half(self, quote: Quote) -> bool:
        """Return whether a text contains the first or the last ``MIN_PART`` of a quote's words."""
        words = quote.words.split()
        n = ceil(MIN_PART * len(words))
        halves = (f" {' '.join(part)} " for part in (words[:n], words[-n:]) if part)
        return any(next(self.words.rows_with(half), None) is not None for half in halves)

    def rows_with(self, quote: Quote) -> list[int]:
        """Return the positions of the texts that contain a quote.

        The whole folded quote is searched first, then its words, then all its parts in order; the
        first form that any text contains counts.
        """
        return (
            self.rows_with_exactly(quote)
            or list(self.words.rows_with(quote.words))
            or list(self.words.rows_in_order(quote.part_words))
        )


class JoinedTexts:
    """Joins texts of one form, so that one pass finds every text that contains a string.

    Only the joined text is kept, because a corpus may be large.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        lengths: list[int] = []

        def measured() -> Iterator[str]:
            for text in texts:
                lengths.append(len(text))
                yield text

        self._joined = _SEPARATOR.join(measured())
        ends = accumulate(length + 1 for length in lengths)
        self._starts = [0, *ends][: len(lengths)]
        self._lengths = lengths
        self._found: dict[str, list[int]] = {}

    def look_for(self, texts: Iterable[str]) -> None:
        """Search many strings in one pass; :meth:`rows_with` returns the rows without a search."""
        wanted = [text for text in dict.fromkeys(texts) if text and text not in self._found]
        if len(wanted) < _MANY:
            return
        self._found.update((text, []) for text in wanted)
        automaton = AhoCorasick(wanted)
        for begin, block in self._blocks():
            for number, start, _ in automaton.find_matches_as_indexes(block, overlapping=True):
                rows, row = self._found[wanted[number]], self._row_at(begin + start)
                if rows[-1:] != [row]:
                    rows.append(row)

    def _blocks(self) -> Iterator[tuple[int, str]]:
        """Yield parts of the joined text and where they begin; each ends with one of the texts.

        The automaton takes eight bytes a character of what it searches.
        """
        begin = 0
        while begin < len(self._joined):
            after = self._row_at(begin + _BLOCK) + 1
            end = self._starts[after] if after < len(self._starts) else len(self._joined)
            yield begin, self._joined[begin:end]
            begin = end

    def rows_with(self, text: str) -> Iterator[int]:
        """Yield the positions of the texts that contain a string; nothing for an empty string."""
        if text in self._found:
            yield from self._found[text]
            return
        offset = self._joined.find(text) if text else -1
        while offset >= 0:
            row = self._row_at(offset)
            yield row
            if row + 1 == len(self._starts):
                return
            offset = self._joined.find(text, self._starts[row + 1])

    def rows_in_order(self, texts: Sequence[str]) -> Iterator[int]:
        """Yield the positions of the texts that contain strings one after the other."""
        if not texts:
            return
        for row in self.rows_with(texts[0]):
            offset = self._starts[row]
            end = offset + self._lengths[row]
            for text in texts:
                offset = self._joined.find(text, offset, end)
                if offset < 0:
                    break
                offset += len(text) - 1  # the blank between two words belongs to both
            else:
                yield row

    def rows_cutting(self, text: str, least: int) -> Iterator[int]:
        """Yield the positions of the texts that cut a string at their border, some more than once.

        These texts end with at least the first ``least`` (>= 1) characters of the string, begin
        with at least its last ones, or lie inside it as a whole.
        """
        for offset in self._places(text[:least]):
            row = self._row_at(offset)
            if text.startswith(self._joined[offset : self._starts[row] + self._lengths[row]]):
                yield row
        for offset in self._places(text[-least:]):
            row = self._row_at(offset)
            if text.endswith(self._joined[self._starts[row] : offset + least]):
                yield row
        for row, (start, length) in enumerate(zip(self._starts, self._lengths, strict=True)):
            if 0 < length <= len(text) and self._joined[start : start + length] in text:
                yield row

    def _row_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def _places(self, part: str) -> Iterator[int]:
        offset = self._joined.find(part)
        while offset >= 0:
            yield offset
            offset = self._joined.find(part, offset + 1)


class NamedText:
    """A text in which names are searched as whole words; it is normalized once.

    Case, punctuation and white space make no difference, and in a ``language`` other than English
    endings make none. Aliases are not known. A name without letters or digits, such as a row of
    signs, is searched as it is.
    """

    def __init__(self, text: str, language: str = ENGLISH) -> None:
        self._key = phrase_key(text)
        self._folded = fold_text(text)
        self._inflection = inflection_of(language)

    def __contains__(self, name: str) -> bool:
        """Return whether the name occurs in the text; False for a blank name."""
        key = phrase_key(name)
        if key:
            return key in self._key or self._contains_form(key.split())
        folded = fold_text(name)
        return bool(folded) and folded in self._folded

    def _contains_form(self, name: Sequence[str]) -> bool:
        words, n, inflection = self.words, len(name), self._inflection
        return inflection is not None and any(
            inflection.distance(name, words[at : at + n]) is not None
            for at in range(len(words) - n + 1)
        )

    @cached_property
    def words(self) -> list[str]:
        """The normalized words, in order."""
        return self._key.split()


@lru_cache(maxsize=64)
def inflection_of(language: str) -> Inflection | None:
    """Return the inflection of a language; None for English, whose words are compared whole."""
    return None if language == ENGLISH else Inflection(Languages.named([language]))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One expected source of a sample, looked up in an index.

    - ``text``: the source as the sample gives it.
    - ``kind``: "source" is an entry of ``expected_sources`` that nothing in the index matches.
    - ``unit_ids``: the text units that contain it.
    - ``in_source``: whether a document contains it. None for a quote that no text unit contains, if
      the documents are not given.
    - ``is_cut``: whether these text units contain only a part of a quote, cut at their border.

    A quote whose parts occur in one document, but in no text unit together, becomes one Evidence
    for each part.
    """

    text: str
    kind: Literal["document", "text_unit", "quote", "source"]
    unit_ids: frozenset[str]
    in_source: bool | None
    is_cut: bool = False

    @property
    def is_matched(self) -> bool:
        """Whether the known text contains it."""
        return bool(self.unit_ids) or self.in_source is True

    @property
    def counts(self) -> bool:
        """Whether a search should find it; a quote that no text contains is a labeling error."""
        return self.is_matched or self.kind == "source"


class SourceIndex:
    """Finds the expected sources of samples in the texts of one index, normalized once.

    ``text_units`` has the columns ``id``, ``human_readable_id``, ``text`` and ``document_id``;
    ``documents`` has ``id``, ``title`` and ``text``. Without documents, no source can be given by
    its title.
    """

    def __init__(
        self, text_units: "pd.DataFrame | None", documents: "pd.DataFrame | None" = None
    ) -> None:
        units = rows_of(text_units, "id", "human_readable_id", "text", "document_id")
        self._ids: list[str] = [unit for unit, *_ in units]
        texts: list[str] = [text for *_, text, _ in units]
        self._units = QuotableTexts(texts)
        self._by_name: dict[str, str] = {}
        of_document: dict[str, list[int]] = defaultdict(list)
        for row, (unit, short_id, _, document) in enumerate(units):
            self._by_name.setdefault(short_id, unit)
            of_document[document].append(row)
        self._by_name.update(zip(self._ids, self._ids, strict=True))
        units_of = {d: frozenset(self._ids[row] for row in of_document[d]) for d in of_document}
        self._documents = dict(units_of)
        self._has_documents = documents is not None
        if documents is None:  # the joined text units of each document replace it
            joined = ["\n".join(texts[row] for row in rows) for rows in of_document.values()]
            self._source = QuotableTexts(joined)
            return
        rows = rows_of(documents, "id", "title", "text")
        self._source = QuotableTexts([text for *_, text in rows])
        for document, title, _ in rows:
            unit_ids = self._documents[document] = units_of.get(document, frozenset())
            title = fold_text(title)
            self._documents[title] = self._documents.get(title, frozenset()) | unit_ids

    def look_for(self, samples: Iterable[Sample]) -> None:
        """Search the quotes of many samples at once; :meth:`evidence_of` then returns sooner."""
        quotes = [
            read_quote(entry)
            for sample in samples
            for entry in sample.expected_sources or sample.evidence
            if self.units_of(entry.strip()) is None and entry.strip() not in self._by_name
        ]
        self._units.folded.look_for(form for quote in quotes for form in quote.folded)
        left = [quote for quote in quotes if not self._units.rows_with_exactly(quote)]
        if len(left) < _MANY:
            return
        self._source.look_for(left)
        self._units.look_for([quote for quote in left if self._source.rows_with(quote)])

    def evidence_of(self, sample: Sample) -> tuple[Evidence, ...]:
        """Return a sample's expected sources, or else its evidence quotes, looked up.

        An entry of ``expected_sources`` is the title or id of a document, the id or
        human_readable_id of a text unit, or else a quote. An entry that is none of these is a
        source that the index lacks, unless the sample's evidence has it as a quote too. Empty if
        the sample names no source and no quote.
        """
        if sample.expected_sources:
            quotes = {fold_text(quote) for quote in sample.evidence}
            return tuple(
                item
                if item.is_matched or fold_text(entry) in quotes
                else replace(item, kind="source", in_source=False)
                for entry in sample.expected_sources
                if entry.strip()
                for item in self._look_up(entry)
            )
        return tuple(
            item for entry in sample.evidence if fold_text(entry) for item in self._quote(entry)
        )

    def units_of(self, document: str) -> frozenset[str] | None:
        """Return the ids of a document's text units; None if no document has this title or id."""
        return self._documents.get(document, self._documents.get(fold_text(document)))

    def units_with(self, quote: str) -> frozenset[str]:
        """Return the ids of the text units that contain a quote.

        The first of these that any text unit fits: it contains the whole quote, folded; its words;
        its parts, in order; at least ``MIN_PART`` of it, cut at the text unit's border; or it lies
        inside it.
        """
        return self._units_with(read_quote(quote))[0]

    def _units_with(self, quote: Quote) -> tuple[frozenset[str], bool]:
        """Return the ids of the text units that contain a quote, and whether only a part of it."""
        exact = self._units.rows_with_exactly(quote)
        if exact:
            return frozenset(self._ids[row] for row in exact), False
        # A quote that is in no document need not be searched word by word, and at every border.
        if self._has_documents and not self._source.rows_with(quote):
            return frozenset(), False
        rows = self._units.rows_with(quote)
        if rows:
            return frozenset(self._ids[row] for row in rows), False
        return self._units_cutting(quote), True

    def _units_cutting(self, quote: Quote) -> frozenset[str]:
        for form in quote.folded:
            if self._may_contain(form, self._source.folded):
                cut = frozenset(self._units_with_part(form, self._units.folded))
                if cut:
                    return cut
        if quote.words and self._may_contain(quote.words, self._source.words):
            return frozenset(self._units_with_part(quote.words, self._units.words))
        return frozenset()

    def _may_contain(self, form: str, source: JoinedTexts) -> bool:
        return not self._has_documents or next(source.rows_with(form), None) is not None

    def _look_up(self, entry: str) -> list[Evidence]:
        name = entry.strip()
        units = self.units_of(name)
        if units is not None:
            return [Evidence(text=entry, kind="document", unit_ids=units, in_source=True)]
        if name in self._by_name:
            return [
                Evidence(
                    text=entry,
                    kind="text_unit",
                    unit_ids=frozenset({self._by_name[name]}),
                    in_source=True,
                )
            ]
        return self._quote(entry)

    def _quote(self, entry: str) -> list[Evidence]:
        quote = read_quote(entry)
        units, is_cut = self._units_with(quote)
        in_source: bool | None = True
        if not units and not self._source.rows_with(quote):
            in_source = False if self._has_documents else None
        elif not units and len(quote.parts) > 1:
            return [
                Evidence(text=part, kind="quote", unit_ids=self.units_with(part), in_source=True)
                for part in quote.parts
            ]
        return [
            Evidence(
                text=entry,
                kind="quote",
                unit_ids=units,
                in_source=in_source,
                is_cut=is_cut and bool(units),
            )
        ]

    def _units_with_part(self, form: str, texts: JoinedTexts) -> Iterable[str]:
        # The blank at which a quote is cut is in neither part.
        least = max(1, ceil(MIN_PART * (len(form) - 1)))
        return (self._ids[row] for row in texts.rows_cutting(form, least))
