"""Comparable terms of texts in any script."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

# Scripts written without spaces; ー and 々 belong to them but have no script of their own.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々]"
_NOT_A_WORD = r"[^\p{L}\p{M}\p{N}\p{So}]+"
# The same for texts of ASCII characters only, many times as fast.
_ASCII_WORD = re.compile("[a-z0-9]+")
# What keeps an English text from being ASCII: ellipsis, quotation marks and dashes.
_PUNCTUATION = str.maketrans(dict.fromkeys("\u2026\u201c\u201d\u2018\u2019\u2013\u2014", " "))
# Not a space to str.split, and no letter, so it is in no folded text.
_RUN = "\x01"

_Column: TypeAlias = Any
"""A pyarrow.Array: pyarrow is not typed."""
_arrow, _compute = cast("_Column", pa), cast("_Column", pc)

_Split = TypeVar("_Split", str, list[str])


def split_terms(texts: Sequence[str]) -> list[list[str]]:
    """Split texts into comparable terms, in order, with repetitions.

    Case and width are folded (NFKC). A word keeps its combining marks; a script without
    spaces gives pairs of neighboring characters, a lone character itself.
    """
    return _by_script(texts, _ascii_words, _terms_of_any_script)


def word_keys(texts: Sequence[str]) -> list[str]:
    """Return texts as single words joined by one space, so that equal names compare equal.

    Each character of a script without spaces, and each symbol, is a word of its own: a name
    can then be looked for in a sentence that has no spaces around it.
    """
    return _by_script(texts, lambda text: " ".join(_ascii_words(text)), _keys_of_any_script)


def _by_script(
    texts: Sequence[str],
    split_ascii: Callable[[str], _Split],
    split_any: Callable[[list[str]], list[_Split]],
) -> list[_Split]:
    """Split ASCII texts one by one; the others together, as each call compiles its patterns."""
    texts = [text if text.isascii() else text.translate(_PUNCTUATION) for text in texts]
    others = [i for i, text in enumerate(texts) if not text.isascii()]
    rest = iter(split_any([texts[i] for i in others]) if others else [])
    return [split_ascii(text) if text.isascii() else next(rest) for text in texts]


def _ascii_words(text: str) -> list[str]:
    return _ASCII_WORD.findall(text.lower())


def _terms_of_any_script(texts: list[str]) -> list[list[str]]:
    marked = _substitute(_words(texts), f"({_UNSPACED}+)", f" {_RUN}\\1 ")
    return [
        [term for word in text.split() for term in _pairs(word)]
        for text in cast("list[str]", marked.to_pylist())
    ]


def _keys_of_any_script(texts: list[str]) -> list[str]:
    single = _substitute(_words(texts), rf"({_UNSPACED}|\p{{So}})", r" \1 ")
    joined = _compute.utf8_trim_whitespace(_substitute(single, r"\s+", " "))
    return cast("list[str]", joined.to_pylist())


def _words(texts: Sequence[str]) -> _Column:
    folded = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    return _substitute(_arrow.array(folded, type=_arrow.string()), _NOT_A_WORD, " ")


def _substitute(texts: _Column, pattern: str, replacement: str) -> _Column:
    return _compute.replace_substring_regex(texts, pattern=pattern, replacement=replacement)


def _pairs(word: str) -> list[str]:
    if not word.startswith(_RUN):
        return [word]
    run = word[1:]
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]
