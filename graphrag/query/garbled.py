"""Telling what no model says from what it may say, before it is taken for an answer.

A reply that is well-formed and well worded can be wrong all the same: nothing here says that it
is right.
"""

import re
from math import isfinite
from typing import Any, cast

from graphrag.query.calls import Answer, GarbledReplyError

MOST_CHARACTERS = 2_000_000
"""Of one reply: several times what any model writes at most."""
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_ENVELOPE = re.compile(
    r'\s*\{\s*"(?:choices"\s*:\s*\[|object"\s*:\s*"chat\.completion|id"\s*:\s*"chatcmpl-)'
)
_PAGE = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)


def check_size(n_characters: int, answer: Answer | None = None) -> None:
    """Refuse a reply that is longer than any model writes.

    Raises
    ------
    GarbledReplyError
        It is not asked for again.
    """
    if n_characters > MOST_CHARACTERS:
        msg = f"it has {n_characters:,} characters or more, where {MOST_CHARACTERS:,} are taken"
        raise GarbledReplyError(msg, answer, may_pass=False)


def holds_stray_control(text: str, shown: str) -> bool:
    """Say whether a text holds a control character, and the model was not shown it."""
    control = _CONTROL.search(text)
    return control is not None and control.group() not in shown


def check_content(answer: Answer, shown: str, takes_controls: bool = False) -> None:
    """Refuse a completion whose text was damaged on its way or is not the model's.

    Parameters
    ----------
    answer : Answer
        Its reply is text.
    shown : str
        What the model was shown: what stands in it may be repeated.
    takes_controls : bool
        Whether stray control characters are the model's own: they stood in its last reply to
        the same request, too.

    Raises
    ------
    GarbledReplyError
        If the text holds replacement or control characters that the model was not shown, or is a
        web page or a service's own envelope and none was shown, or it is longer than any model
        writes.
    """
    text = cast("str", answer.reply)
    check_size(len(text), answer)
    if _BROKEN in text and _BROKEN not in shown:
        raise GarbledReplyError("its text was damaged (replacement characters)", answer)
    if not takes_controls and holds_stray_control(text, shown):
        raise GarbledReplyError("its text was damaged (control characters)", answer)
    if _PAGE.match(text) and "<html" not in shown.lower():
        raise GarbledReplyError("it is a web page", answer)
    if _ENVELOPE.match(text) and '"choices"' not in shown:
        raise GarbledReplyError("it is the service's own envelope, not a model's text", answer)


def check_vectors(answer: Answer, n_texts: int) -> None:
    """Refuse embeddings that are not one vector of finite numbers for each text.

    Raises
    ------
    GarbledReplyError
        If there are more or fewer, one is empty or of another length, or holds something else
        than finite numbers.
    """
    vectors = cast("list[list[Any]]", answer.reply)
    if len(vectors) != n_texts:
        msg = f"{len(vectors)} embeddings came for {n_texts} texts"
        raise GarbledReplyError(msg, answer)
    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise GarbledReplyError("its embeddings are empty or of different lengths", answer)
    if not all(isfinite(number) for vector in vectors for number in vector):
        raise GarbledReplyError("its embeddings are not finite numbers", answer)
