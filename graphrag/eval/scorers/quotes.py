"""Quotes and the texts that may hold them: folded, as words, and by the parts of a quote."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from graphrag.text.words import unspaced_characters

MIN_WORDS = 3
"""The fewest words of a part that is looked for by itself."""
MIN_LETTERS = 8
"""The fewest letters and digits of such a part."""

# Dashes to a hyphen, apostrophes to one kind; double quotes go, as tables double them, and so
# do soft hyphens and zero-width characters.
_FOLDED = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58", "-"),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", ""),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", ""),
}
_TO_FOLD = re.compile(f"[{''.join(_FOLDED)}]")
# A large corpus is folded before the first call: plain text takes the short way.
_NO_WORD = str.maketrans({chr(n): " " for n in range(128) if not chr(n).isalnum()})
_SEPARATOR = "\x00"
_WORD = re.compile(r"[^\W_]+")
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
# A hyphen within a word, and one at which a line was broken. A dash, also a double hyphen, is none.
_HYPHEN = re.compile(r"[\u00ad\u2010-\u2013\ufe63-](?<=[^\W\d_].)(?:[ \t]*\r?\n\s*)?(?=[^\W\d_])")


def fold_text(text: str) -> str:
    """Return a text in the form in which quotes are compared.

    NFKC, case folded, every run of white space one blank, one kind of hyphen and of apostrophe,
    no double quotes.
    """
    if not text.isascii():
        normal = unicodedata.normalize("NFKC", text)
        text = _TO_FOLD.sub(lambda found: _FOLDED[found[0]], normal)
    return " ".join(text.replace('"', "").replace("`", "'").casefold().split())


def phrase_key(text: str) -> str:
    """Return a text as words between blanks, so that whole phrases can be looked for in it.

    Each character of a script without spaces is a word of its own; punctuation is left out.
    ``phrase_key("Oak Hill")`` is part of ``phrase_key("at oak-hill.")``, not of
    ``phrase_key("oak hills")``. Empty when the text has no word.
    """
    folded = fold_text(text).replace("'", "")
    if folded.isascii():
        words = folded.translate(_NO_WORD).split()
    else:
        for character in set(unspaced_characters(folded)):
            folded = folded.replace(character, f" {character} ")
        words = _WORD.findall(folded)
    return f" {' '.join(words)} " if words else ""


def quote_key(text: str) -> str:
    """Return :func:`phrase_key` of a text without footnote marks, hyphenated words written as one.

    So "exca-", "vation" on two lines is "excavation", and "[T]he" is "the".
    """
    plain = _EDITED_LETTER.sub(r"\1", text) if "[" in text else text
    noted = _NOTE.sub(" ", plain) if "[" in plain or not plain.isascii() else plain
    return phrase_key(_HYPHEN.sub("", noted))


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote in the forms in which it is looked for; :func:`read_quote` makes it.

    Attributes
    ----------
    text : str
        As it was given.
    folded : tuple of str
        :func:`fold_text` of it, and of it without footnote marks where it has some.
    words : str
        See :func:`quote_key`; empty when it is too short to be told by its words alone.
    parts : tuple of str
        Its parts between ellipses, footnote marks and line breaks, as they were given, those
        below ``MIN_WORDS`` words or ``MIN_LETTERS`` letters left out.
    part_words : tuple of str
        :func:`quote_key` of each part.
    """

    text: str
    folded: tuple[str, ...]
    words: str
    parts: tuple[str, ...]
    part_words: tuple[str, ...]


def read_quote(text: str) -> Quote:
    """Take a quote apart."""
    words = quote_key(text)
    unmarked = fold_text(_NOTE.sub(" ", text))
    found = [(part.strip(), quote_key(part)) for part in _CUT.split(text)]
    long = [(part, key) for part, key in found if _is_telling(key)]
    return Quote(
        text=text,
        folded=tuple(f for f in dict.fromkeys((fold_text(text), unmarked)) if f),
        words=words if _is_telling(words) else "",
        parts=tuple(part for part, _ in long),
        part_words=tuple(key for _, key in long),
    )


def _is_telling(key: str) -> bool:
    words = key.split()
    return len(words) >= MIN_WORDS and sum(map(len, words)) >= MIN_LETTERS


class QuotableTexts:
    """Texts in which quotes are looked for; each form is made when it is first needed."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._given = texts

    @cached_property
    def folded(self) -> "JoinedTexts":
        """The texts as :func:`fold_text` folds them."""
        return JoinedTexts(map(fold_text, self._given))

    @cached_property
    def words(self) -> "JoinedTexts":
        """The texts as :func:`quote_key` gives them."""
        return JoinedTexts(map(quote_key, self._given))

    def rows_with_exactly(self, quote: Quote) -> list[int]:
        """Return the positions of the texts that hold a quote as it is."""
        for form in quote.folded:
            if found := list(self.folded.rows_with(form)):
                return found
        return []

    def rows_with(self, quote: Quote) -> list[int]:
        """Return the positions of the texts that hold a quote.

        Those that hold it as it is; else its words side by side; else all its parts, one after
        the other.
        """
        return (
            self.rows_with_exactly(quote)
            or list(self.words.rows_with(quote.words))
            or list(self.words.rows_in_order(quote.part_words))
        )


class JoinedTexts:
    """Texts of one form, joined, so that one pass finds every text that holds a string.

    Only the joined text is kept, as a corpus may be large.
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

    def rows_with(self, wanted: str) -> Iterator[int]:
        """Yield the positions of the texts that hold a string; of none, if it is empty."""
        at = self._joined.find(wanted) if wanted else -1
        while at >= 0:
            row = self._row_at(at)
            yield row
            if row + 1 == len(self._starts):
                return
            at = self._joined.find(wanted, self._starts[row + 1])

    def rows_in_order(self, wanted: Sequence[str]) -> Iterator[int]:
        """Yield the positions of the texts that hold strings one after the other."""
        if not wanted:
            return
        for row in self.rows_with(wanted[0]):
            at = self._starts[row]
            end = at + self._lengths[row]
            for each in wanted:
                at = self._joined.find(each, at, end)
                if at < 0:
                    break
                at += len(each) - 1  # the blank between two words belongs to both
            else:
                yield row

    def rows_cutting(self, wanted: str, least: int) -> Iterator[int]:
        """Yield the positions of the texts at whose border a string is cut, some more than once.

        Those that end with the first `least` (>= 1) characters of it or more, that begin with the
        last ones, or that lie inside it as a whole.
        """
        for at in self._places(wanted[:least]):
            row = self._row_at(at)
            if wanted.startswith(self._joined[at : self._starts[row] + self._lengths[row]]):
                yield row
        for at in self._places(wanted[-least:]):
            row = self._row_at(at)
            if wanted.endswith(self._joined[self._starts[row] : at + least]):
                yield row
        for row, (start, length) in enumerate(zip(self._starts, self._lengths, strict=True)):
            if 0 < length <= len(wanted) and self._joined[start : start + length] in wanted:
                yield row

    def _row_at(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1

    def _places(self, part: str) -> Iterator[int]:
        at = self._joined.find(part)
        while at >= 0:
            yield at
            at = self._joined.find(part, at + 1)


_POSSESSIVE = re.compile(r"(?<=\w)['\u2018\u2019\u02bc]s\b", re.IGNORECASE)


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


def name_key(text: str) -> str:
    """Return :func:`phrase_key` of a text without its possessive endings."""
    return phrase_key(_POSSESSIVE.sub("", text))
