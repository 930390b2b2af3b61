"""Joins several accepted answers to a question into one ground truth, and splits it again."""

from collections.abc import Iterable

from graphrag.text.message_phrases import fold_line

_LEAD = "Each of these answers is right:\n- "
_BETWEEN = "\n- "


def fold_wording(text: str) -> str:
    """Return a text without case, extra blanks and a final period."""
    return fold_line(text).rstrip(".").rstrip()


def join_answers(answers: Iterable[str]) -> str:
    """Return a ground truth that lists several answers, each wording once.

    A ground truth that was joined before counts as its answers. A single answer stays as it is; ""
    if there is none.
    """
    distinct: dict[str, str] = {}
    for text in answers:
        for answer in split_answers(text):
            distinct.setdefault(fold_wording(answer), answer)
    kept = [*distinct.values()]
    return f"{_LEAD}{_BETWEEN.join(kept)}" if len(kept) > 1 else "".join(kept)


def split_answers(ground_truth: str) -> list[str]:
    """Return the answers that a ground truth accepts; only one if it was not joined."""
    if ground_truth.startswith(_LEAD):
        return ground_truth.removeprefix(_LEAD).split(_BETWEEN)
    return [ground_truth]
