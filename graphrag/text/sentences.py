"""Texts by sentences: where they end, and what of a text stands first."""

import re
from itertools import pairwise
from pathlib import Path


def word_lists(file: Path) -> dict[str, str]:
    """Return name -> words of each list in a file; [name] stands above each."""
    return dict(re.findall(r"\[(\w+)\]\n([^\[]+)", file.read_text("utf-8")))


LISTS = word_lists(Path(__file__).with_name("words.txt"))
ABBREVIATIONS = frozenset(LISTS["abbreviations"].split())

STOPS = "。\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u17d4\u17d5\u104b\u0f0d"
"""Marks of other scripts at the end of a sentence, after which there need be no blank."""
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
"""Characters in which an abbreviation and the article before it have room."""


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


def ends_sentence(text: str) -> bool:
    """Say whether a text ends with the mark of a sentence's end, and what closes after it."""
    return _END.search(text) is not None


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
