"""Splits texts into sentences, and reads the lists of words in ``words.txt``."""

import re
from itertools import pairwise
from pathlib import Path


def word_lists(file: Path) -> dict[str, str]:
    """Read a file of word lists: name -> words. A line ``[name]`` precedes each list."""
    return dict(re.findall(r"\[(\w+)\]\n([^\[]+)", file.read_text("utf-8")))


LISTS = word_lists(Path(__file__).with_name("words.txt"))
"""The lists ``abbreviations``, ``stop_words`` and ``irregular`` (English forms)."""
ABBREVIATIONS = frozenset(LISTS["abbreviations"].split())

STOPS = "。\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u17d4\u17d5\u104b\u0f0d"
"""Marks that end a sentence in other scripts; no blank needs to follow."""
_BOUNDARY = re.compile(
    rf"(?P<mark>[.!?…]+[\"'”\u2019»)\]]*(?=\s)|[{STOPS}]+[”\u2019」』\uff09]*)\s*"
    r"|\n\s*\n\s*"
)
_END = re.compile(rf"[.!?…{STOPS}][\"'”\u2019»)\]」』\uff09]*\s*$")
_LAST_WORD = re.compile(r"(?:\b(an?|the) )?\b([^\W\d_]+)\.$", re.IGNORECASE)
_GOES_ON = re.compile(
    r"(?<![\w.,])\d{1,2}\.\s+(?:\(?[a-zà-ÿ]"
    r"|(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b)"
    r"|\b[a-z]\.\s+[^\W\d_]\.|(?<=\b[a-z]\.\s)[^\W\d_]\.\s+[a-zà-ÿ(]"
)
"""After a day or an abbreviation of letters: "3. Februar", "2. von", "d. h. bis", "z. B."."""
_LONGEST_END = 64
"""Characters that leave room for an abbreviation and the article before it."""


def sentences(text: str) -> list[str]:
    """Split a text into sentences.

    An empty line ends a sentence; an abbreviation or an initial does not.
    """
    pieces = pairwise((0, *sentence_ends(text), len(text)))
    return [piece for start, end in pieces if (piece := " ".join(text[start:end].split()))]


def sentence_ends(text: str) -> list[int]:
    """Return the positions at which sentences end, after the blanks that follow."""
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


def ends_sentence(text: str) -> bool:
    """Say whether a text ends with a sentence's mark, perhaps before closing quotes or brackets."""
    return _END.search(text) is not None


def _is_abbreviation(block: str, start: int, end: int) -> bool:
    if any(_GOES_ON.match(block, begin) for begin in range(max(start, end - 3), end - 1)):
        return True
    # Only the end is read, because a long list of initials is read again at each of them.
    word = _LAST_WORD.search(" ".join(block[max(start, end - _LONGEST_END) : end].split()[-2:]))
    if word is None:
        return False
    article, last = word.groups()
    if len(last) == 1:
        return last.isupper() and last not in {"I", "V", "X"} and article is None
    return last.casefold() in ABBREVIATIONS


def first_words(text: str, max_words: int) -> str:
    """Return at most ``max_words`` words of a text; a cut is marked with an ellipsis."""
    parts = text.split()
    return " ".join(parts) if len(parts) <= max_words else " ".join(parts[:max_words]) + " …"
