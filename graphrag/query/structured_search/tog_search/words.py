"""Comparable words of texts in any script, and word statistics (BM25) over them."""

import unicodedata
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Scripts written without spaces; ー and 々 belong to them but have no script of their own.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々]"
_NOT_A_WORD = r"[^\p{L}\p{M}\p{N}\p{So}]+"
# Not a space to str.split, and no letter, so it is in no folded text.
_RUN = "\x01"

# pyarrow is not typed.
_arrow: Any = pa
_compute: Any = pc


def split_terms(texts: Sequence[str]) -> list[list[str]]:
    """Split texts into comparable terms, in order, with repetitions.

    Case and width are folded (NFKC). A word keeps its combining marks; a script without
    spaces gives pairs of neighbouring characters, a lone character itself.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    list of list of str
        One list for each text, in the same order.
    """
    marked = _substitute(_words(texts), f"({_UNSPACED}+)", f" {_RUN}\\1 ")
    return [
        [term for word in text.split() for term in _pairs(word)]
        for text in cast("list[str]", marked.to_pylist())
    ]


def word_keys(texts: Sequence[str]) -> list[str]:
    """Return texts as single words joined by one space, so that equal names compare equal.

    Each character of a script without spaces, and each symbol, is a word of its own: a name
    can then be looked for in a sentence that has no spaces around it.
    """
    single = _substitute(_words(texts), rf"({_UNSPACED}|\p{{So}})", r" \1 ")
    joined = _compute.utf8_trim_whitespace(_substitute(single, r"\s+", " "))
    return cast("list[str]", joined.to_pylist())


def shorten(text: str, max_chars: int) -> str:
    """Return a text on one line, cut at a space where there is one; a cut ends with ``…``."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    return (cut[: cut.rfind(" ")] if " " in cut else cut) + "…"


def bm25_scores(question: str, documents: Sequence[list[str]]) -> npt.NDArray[np.float64]:
    """Score documents against a question by Okapi BM25 (Lucene's variant).

    Parameters
    ----------
    question : str
    documents : sequence of list of str
        Each document's terms, from :func:`split_terms`. They are also the collection that
        word frequencies are taken from.

    Returns
    -------
    numpy.ndarray
        float64, shape (len(documents),), >= 0; 0 where no word is shared.
    """
    wanted = list(dict.fromkeys(split_terms([question])[0]))
    if not wanted or not any(documents):
        return np.zeros(len(documents))
    import bm25s

    index = bm25s.BM25(method="lucene")
    index.index(list(documents), show_progress=False)  # pyright: ignore[reportUnknownMemberType]
    scores = cast("Any", index).get_scores(wanted)
    return np.asarray(scores, dtype=np.float64)


def _words(texts: Sequence[str]) -> Any:
    folded = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    return _substitute(_arrow.array(folded, type=_arrow.string()), _NOT_A_WORD, " ")


def _substitute(texts: Any, pattern: str, put: str) -> Any:
    return _compute.replace_substring_regex(texts, pattern=pattern, replacement=put)


def _pairs(word: str) -> list[str]:
    if not word.startswith(_RUN):
        return [word]
    run = word[1:]
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]
