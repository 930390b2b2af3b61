"""Which questions are done well in one run and not in another, one record each."""

from dataclasses import dataclass

from graphrag.eval.compare.pairing import Joined, pairs_of_metric


@dataclass(frozen=True, slots=True)
class Flip:
    """One question that flipped for one method on one metric, as the gate counts it.

    Attributes
    ----------
    method, metric, document, question_id : str
        The document is "" where neither run knows it.
    question : str or None
        Its text; None where neither run was kept with it.
    newly : {"wrong", "right"}
        What it is in the new run; in the baseline it was the other.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    newly: str


def flips_of(joined: Joined, method: str, metric: str) -> tuple[Flip, ...]:
    """Return the questions of a method that flipped, the newly wrong first, else in their order.

    They are those that the gate counts: a missing verdict flips nothing.
    """
    pairs = pairs_of_metric(joined, metric)
    texts = {
        (new.document or old.document, old.question_id): new.question or old.question
        for new, old in joined.pairs
    }
    flips = [
        Flip(method, metric, document, name, texts[document, name], "right" if now else "wrong")
        for (now, then), document, name in zip(
            pairs.scores, pairs.documents, pairs.ids, strict=True
        )
        if now is not None and then is not None and now != then
    ]
    return tuple(sorted(flips, key=lambda flip: flip.newly == "right"))
