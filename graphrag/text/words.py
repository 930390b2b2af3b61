"""Text to sentences, words and comparable terms; and how much of one text another covers."""

import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, lru_cache
from typing import cast

from graphrag.text.lexicon import ABBREVIATIONS, IRREGULAR, NUMBER_WORDS, STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:['\u2019.,](?=[^\W_])[^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”\u2019»)\]]*(?=\s)|[。\uff01\uff1f]+[”\u2019」』\uff09]*")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0002ffff]+"
)
_LAST_WORD = re.compile(r"(?:\b(an?|the) )?\b([^\W\d_]+)\.$", re.IGNORECASE)
_LONGEST_END = 64
"""Characters in which an abbreviation and the article before it have room."""
_DIGITS_COMMA = re.compile(r"(?<=\d),(?=\d{3}\b)")


def normalize(text: str) -> str:
    """Fold case and width (NFKC), straighten apostrophes."""
    return unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a normalized English word without its ending (Snowball), never empty.

    Words of other scripts stay as they are.
    """
    return _stemmers.stem(IRREGULAR.get(word, word)) if word.isascii() else word


class _Stemmers(threading.local):
    """A stemmer for each thread: one keeps the word that it works on in itself."""

    @cached_property
    def stem(self) -> Callable[[str], str]:
        import snowballstemmer  # loads the stemmers of all languages, which takes a moment

        return cast("Callable[[str], str]", snowballstemmer.stemmer("english").stemWord)


_stemmers = _Stemmers()


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """List the comparable terms of a text, in order, with repetitions.

    Words are case-folded, freed of possessives, stemmed, and numbers written as digits; stop
    words are left out unless `keep_stop_words`. Scripts without spaces give character pairs.
    """
    found: list[str] = []
    for match in WORD.finditer(_DIGITS_COMMA.sub("", normalize(text))):
        word = match.group()
        if not word.isascii() and _UNSPACED.search(word):
            for run in _UNSPACED.findall(word):
                found += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
            word = _UNSPACED.sub("", word)
        word = word.removesuffix("'s")
        if not word or (not keep_stop_words and word in STOP_WORDS and word != "one"):
            continue
        found.append(NUMBER_WORDS.get(word) or stem(word))
    return found


def unspaced_characters(text: str) -> list[str]:
    """List the characters of scripts written without spaces, in order, with repetitions."""
    return [character for run in _UNSPACED.findall(text) for character in run]


def sentences(text: str) -> list[str]:
    """Split into sentences; an empty line ends one, an abbreviation or an initial does not."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        block = " ".join(block.split())
        start = 0
        for match in _SENTENCE_END.finditer(block):
            end = match.end()
            if match.group() == "." and _is_abbreviation(block, start, end):
                continue
            found.append(block[start:end].strip())
            start = end
        if block[start:].strip():
            found.append(block[start:].strip())
    return found


def _is_abbreviation(block: str, start: int, end: int) -> bool:
    # The end alone: a list of initials is one piece, which is looked at again at each of them.
    word = _LAST_WORD.search(block[max(start, end - _LONGEST_END) : end])
    if word is None:
        return False
    article, last = word.groups()
    if len(last) == 1:
        return last.isupper() and last not in {"I", "V", "X"} and article is None
    return last.casefold() in ABBREVIATIONS


def shorten(text: str, max_words: int) -> str:
    """At most `max_words` words of a text; a cut is marked with an ellipsis."""
    parts = text.split()
    return " ".join(parts) if len(parts) <= max_words else " ".join(parts[:max_words]) + " …"


def share_covered(wanted: Iterable[str], present: Collection[str]) -> float:
    """Return the share, in [0, 1], of distinct wanted terms that are present; 0 of none."""
    distinct = set(wanted)
    return sum(term in present for term in distinct) / len(distinct) if distinct else 0.0
