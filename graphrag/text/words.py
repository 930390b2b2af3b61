"""Text to sentences, words and comparable terms; and how much of one text another covers."""

import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import cast


def word_lists(file: Path) -> dict[str, str]:
    """Return name -> words of each list in a file; [name] stands above each."""
    return dict(re.findall(r"\[(\w+)\]\n([^\[]+)", file.read_text("utf-8")))


_LISTS = word_lists(Path(__file__).with_name("words.txt"))
STOP_WORDS = frozenset(_LISTS["stop_words"].split())
IRREGULAR = {
    form: base
    for base, _, forms in (line.partition(": ") for line in _LISTS["irregular"].splitlines())
    for form in forms.split()
}
_NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty"""
NUMBER_WORDS = {word: str(n) for n, word in enumerate(_NUMBERS.split()) if n} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "hundred": "100",
}
"""Spelled numbers; ``zero`` is left out because it is also a name."""

ABBREVIATIONS = frozenset(_LISTS["abbreviations"].split())

WORD = re.compile(r"[^\W_]+(?:['\u2019.,](?=[^\W_])[^\W_]+)*")
_BOUNDARY = re.compile(
    r"(?P<mark>[.!?…]+[\"'”\u2019»)\]]*(?=\s)|[。\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u1362\u17d4\u17d5\u104b]+[”\u2019」』\uff09]*)\s*"
    r"|\n\s*\n\s*"
)
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0002ffff]+"
)
_LAST_WORD = re.compile(r"(?:\b(an?|the) )?\b([^\W\d_]+)\.$", re.IGNORECASE)
_GOES_ON = re.compile(
    r"(?<![\w.,])\d{1,2}\.\s+(?:\(?[a-zà-ÿ]"
    r"|(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b)"
    r"|\b[a-z]\.\s+[^\W\d_]\.|(?<=\b[a-z]\.\s)[^\W\d_]\.\s+[a-zà-ÿ(]"
)
"""After a day or an abbreviation of letters: "3. Februar", "2. von", "d. h. bis", "z. B."."""
_LONGEST_END = 64
"""Characters in which an abbreviation and the article before it have room."""
_DIGITS_COMMA = re.compile(r",(?<=\d,)(?=\d{3}\b)")


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
    words = WORD.findall(_DIGITS_COMMA.sub("", normalize(text)))
    return [term for word in words for term in _terms_of(word, keep_stop_words)]


@lru_cache(maxsize=65_536)
def _terms_of(word: str, keep_stop_words: bool) -> tuple[str, ...]:
    pairs: list[str] = []
    if not word.isascii() and _UNSPACED.search(word):
        for run in _UNSPACED.findall(word):
            pairs += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
        word = _UNSPACED.sub("", word)
    word = word.removesuffix("'s")
    if not word or (not keep_stop_words and word in STOP_WORDS and word != "one"):
        return tuple(pairs)
    return (*pairs, NUMBER_WORDS.get(word) or stem(word))


def unspaced_characters(text: str) -> list[str]:
    """List the characters of scripts written without spaces, in order, with repetitions."""
    return [character for run in _UNSPACED.findall(text) for character in run]


def sentences(text: str) -> list[str]:
    """Split into sentences; an empty line ends one, an abbreviation or an initial does not."""
    pieces = pairwise((0, *sentence_ends(text), len(text)))
    return [piece for start, end in pieces if (piece := " ".join(text[start:end].split()))]


def sentence_ends(text: str) -> list[int]:
    """Return where sentences end, what is blank after them included."""
    offsets: list[int] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        end = match.end()
        ends = match["mark"] != "." or match.group().count("\n") > 1
        if not ends and _is_abbreviation(text, start, match.end("mark")):
            continue
        offsets.append(end)
        start = end
    return offsets


def _is_abbreviation(block: str, start: int, end: int) -> bool:
    if any(_GOES_ON.match(block, begin) for begin in range(max(start, end - 3), end - 1)):
        return True
    # The end alone: a list of initials is one piece, which is looked at again at each of them.
    word = _LAST_WORD.search(" ".join(block[max(start, end - _LONGEST_END) : end].split()[-2:]))
    if word is None:
        return False
    article, last = word.groups()
    if len(last) == 1:
        return last.isupper() and last not in {"I", "V", "X"} and article is None
    return last.casefold() in ABBREVIATIONS


def first_words(text: str, max_words: int) -> str:
    """At most `max_words` words of a text; a cut is marked with an ellipsis."""
    parts = text.split()
    return " ".join(parts) if len(parts) <= max_words else " ".join(parts[:max_words]) + " …"


def share_covered(expected: Iterable[str], present: Collection[str]) -> float:
    """Return the share, in [0, 1], of distinct expected terms that are present; 0 of none."""
    distinct = set(expected)
    return sum(term in present for term in distinct) / len(distinct) if distinct else 0.0
