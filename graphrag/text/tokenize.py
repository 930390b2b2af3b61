"""Splits texts of any script into comparable words, for search, names, measures and models.

Unicode's own data, by ``regex``, defines letters, marks, scripts and symbols. The tokens of
models are counted in ``graphrag.query.client.tokens``.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import regex

_LETTER = r"\p{L}\p{M}\p{N}"
_UNSPACED = (
    r"\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}\p{Hangul}\p{Line_Break=Complex_Context}"
)
# Only letters and marks of these scripts, because the scripts include 、 and 。 as well.
_RUN = rf"[[{_UNSPACED}]&&[\p{{L}}\p{{M}}]]"
_IN_WORD = rf"[[{_LETTER}]--{_RUN}]"
_HANGUL = regex.compile(r"\p{Hangul}")
_RUNS = regex.compile(rf"{_RUN}+", regex.V1)
_TERM = regex.compile(rf"({_RUN}+)|{_IN_WORD}+|\p{{So}}", regex.V1)
_KEY = regex.compile(rf"\p{{Hangul}}+|{_RUN}|{_IN_WORD}+|\p{{So}}", regex.V1)
# As Unicode's word boundaries have it, "don't" and "3.14" are one word.
_WORD = regex.compile(rf"{_RUN}+|{_IN_WORD}+(?:['.,]{_IN_WORD}+)*|\p{{So}}", regex.V1)
# The same for texts of ASCII characters only, many times as fast.
_ASCII_TERM = re.compile("[a-z0-9]+")
_ANY_ASCII_TERM = re.compile("[a-zA-Z0-9]+")
_NOT_ASCII_TOKEN = re.compile(r"([!-~]*[^\x00-\x7f]\S*)")  # no word goes on past a blank
_ASCII_WORD = re.compile("[a-z0-9]+(?:['.,][a-z0-9]+)*")
# Signs that keep an English text from being ASCII: ellipsis, quotation marks and dashes.
_PUNCTUATION: dict[int, str | None] = {
    **dict.fromkeys(map(ord, "\u2026\u201c\u201d\u2013\u2014"), " "),
    **dict.fromkeys(map(ord, "\u2018\u2019"), "'"),
}
_APOSTROPHES = "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u2032\u00b4`\ua78c"
_ASCII_APOSTROPHES = [c for c in _APOSTROPHES if c.isascii()]
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_FEW = 12
_IN_CYRILLIC = regex.compile(r"(?<=\p{Cyrillic})'(?=\p{Cyrillic})")
_STRESS = regex.compile(r"(?<=\p{Cyrillic})[\u0300\u0301]")


_VOWELS = (*range(0x7A6, 0x7B1), *range(0x7EB, 0x7F4))  # of Thaana, and the tones of N'Ko
_PLAIN: dict[int, str | None] = {
    **dict.fromkeys((*range(0xFE00, 0xFE10), ord("ـ"))),
    # i compares equal with and without its dot, because capitals don't show the difference.
    **{ord("ı"): "i"},  # noqa: RUF001
    **dict.fromkeys(map(ord, _APOSTROPHES), "'"),
    **{ord("ё"): "е", ord("ѐ"): "е", ord("ѝ"): "и"},  # noqa: RUF001
    # Letters of Arabic that are written for one another, by the writer or by the keyboard.
    **dict.fromkeys(map(ord, "أإآٱ"), "ا"),  # noqa: RUF001
    **dict.fromkeys(map(ord, "ىی"), "ي"),
    **{ord("ک"): "ك", ord("ہ"): "ه", ord("ۀ"): "ه"},  # noqa: RUF001
}


@lru_cache(maxsize=65_536)
def _plain_character(character: str) -> str | None:
    """Return the character that replaces another in comparisons; None to leave it out."""
    code = ord(character)
    if code in _PLAIN:
        return _PLAIN[code]
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    # Characters that only affect how others are shown, and the points of Hebrew, Arabic, Syriac.
    if category == "Cf" or (category == "Mn" and 0x590 <= code < 0x900 and code not in _VOWELS):
        return None
    if 0x370 <= code < 0x400 or 0x1F00 <= code < 0x2000:  # Greek capitals have no accents
        return unicodedata.normalize("NFD", character)[0]
    return character


def fold(text: str) -> str:
    """Return a text in comparable characters.

    It is in NFKC and case folded, so that i is equal with and without its dot; digits are 0 to 9,
    and apostrophes are of one kind. The points of Hebrew and Arabic, the accents of Greek,
    apostrophes between Cyrillic letters, and invisible characters are dropped.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return folded
    if not unicodedata.is_normalized("NFKC", folded):
        folded = unicodedata.normalize("NFKC", folded)
    if "\u0300" in folded or "\u0301" in folded:
        folded = _STRESS.sub("", folded)
    folded = folded.replace("i\u0307", "i")
    folded = _translate(folded, {ord(c): _plain_character(c) for c in _uncommon(folded)})
    return _IN_CYRILLIC.sub("", folded) if "'" in folded else folded


def _translate(text: str, table: dict[int, str | None]) -> str:
    """Return ``text.translate(table)``, faster if few characters are in the table.

    Most characters of most texts are ASCII, and are found in one pass.
    """
    new = {c: table[ord(c)] or "" for c in _uncommon(text) if table.get(ord(c), c) != c}
    replaced = new.keys()
    if len(replaced) > _FEW or not replaced.isdisjoint("".join(new.values())):
        return text.translate(table)
    for old, plain in new.items():
        text = text.replace(old, plain)
    return text


def _uncommon(text: str) -> set[str]:
    """Return the characters of a text that are not ASCII, or that are apostrophes."""
    return {*"".join(_NOT_ASCII.findall(text)), *(c for c in _ASCII_APOSTROPHES if c in text)}


def split_terms(texts: Sequence[str]) -> list[list[str]]:
    """Split each text into the terms by which it is searched, in order, with repetitions.

    Terms are words of :func:`fold` with their combining marks, split at all punctuation. Scripts
    without spaces, and Hangul, give pairs of neighboring characters; a lone character is a term
    itself. A symbol, such as an emoji, is a word.
    """
    return [_split_terms(text) for text in texts]


def _split_terms(text: str) -> list[str]:
    if not text.isascii():
        text = _translate(text, _PUNCTUATION)
    if text.isascii():
        return _ASCII_TERM.findall(text.lower())
    terms: list[str] = []
    for match in _TERM.finditer(fold(text)):
        if match[1] is None:
            terms.append(match[0])
        else:
            terms += pairs(match[0])
    return terms


def pairs(run: str) -> list[str]:
    """Return the pairs of neighboring characters of a text; a lone character is returned itself."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def split_words(text: str) -> list[str]:
    """Return the words of a text, in order, with repetitions.

    In contrast to :func:`split_terms`, apostrophes, points and commas inside a word stay in it, and
    text written without spaces is one word.
    """
    folded = fold(text)
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


def word_starts(text: str) -> list[int]:
    """Return the positions where words begin.

    In a script without spaces each character is a word.
    """
    pattern = _ANY_ASCII_TERM if text.isascii() else _KEY
    return [match.start() for match in pattern.finditer(text)]


def word_key(text: str) -> str:
    """Return a text as single words joined by one blank, so that equal names compare equal.

    Each character of a script without spaces, and each symbol, is a word of its own: a name can
    then be found in a sentence that has no spaces around it. Each syllable of Hangul is a word,
    too; the first one of a word gets ``^`` before it, because names begin where words do.
    """
    if not text.isascii():
        text = _translate(text, _PUNCTUATION)
    if text.isascii():
        return " ".join(_ASCII_TERM.findall(text.lower()))
    words: list[str] = []
    for number, part in enumerate(_NOT_ASCII_TOKEN.split(fold(text))):
        if number % 2 == 0:
            words += _ASCII_TERM.findall(part)
            continue
        for word in _KEY.findall(part):
            if _HANGUL.match(word):
                words.append(f"^{word[0]}")
                words += word[1:]
            else:
                words.append(word)
    return " ".join(words)


def word_keys(texts: Sequence[str]) -> list[str]:
    """Return :func:`word_key` of each text."""
    return [word_key(text) for text in texts]


@lru_cache(maxsize=65_536)
def unspaced_runs(word: str) -> tuple[str, ...]:
    """Return the parts of a word that are in scripts without spaces, or in Hangul."""
    return () if word.isascii() else tuple(_RUNS.findall(word))


def unspaced_characters(text: str) -> list[str]:
    """Return the characters of scripts without spaces, and Hangul, in order, with repetitions."""
    return [] if text.isascii() else [c for run in _RUNS.findall(text) for c in run]


def script_of(word: str) -> str:
    """Return the script of a word's first letter by Unicode's name, e.g. ``LATIN``."""
    return "LATIN" if word.isascii() else _script_of(next(filter(str.isalpha, word), word[:1]))


@lru_cache(maxsize=4096)
def _script_of(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]
