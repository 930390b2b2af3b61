"""Hit rate, reciprocal rank, recall and precision of a ranked list of text units."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag.eval.scorers.evidence import Evidence, first_ranks

DEFAULT_CUTOFFS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class CutoffScores:
    """The scores of a list's first k ranks.

    ``hit_rate`` is 1 when any relevant item is found there, else 0 (Success@k); ``recall`` is the
    relevant items found there by all of them; ``precision`` is the text units among the first k
    that hold one, by k, also when the list is shorter (P@k as TREC computes it).
    """

    k: int
    hit_rate: float
    recall: float
    precision: float


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """The scores of one ranked list, all in [0, 1].

    Attributes
    ----------
    hit_rate, recall : float
        Over the whole list.
    precision : float
        Relevant text units by the list's length; 0 for an empty list.
    mrr : float
        1 / rank of the first relevant text unit, 0 when there is none; its mean over questions
        is the mean reciprocal rank.
    at : tuple of CutoffScores
    n_items, n_found : int
        Relevant items, and those found.
    n_unmatched : int
        Relevant items that no text unit of the index holds: they can't be found.
    n_retrieved : int
        Distinct text units in the list.
    has_list : bool
        False when the method gave no list, which scores 0 throughout.
    """

    hit_rate: float
    recall: float
    precision: float
    mrr: float
    at: tuple[CutoffScores, ...]
    n_items: int
    n_found: int
    n_unmatched: int
    n_retrieved: int
    has_list: bool


def score_retrieval(
    items: Sequence[Evidence],
    ranked: Sequence[str] | None,
    cutoffs: Sequence[int] = DEFAULT_CUTOFFS,
) -> RetrievalScores | None:
    """Score a ranked list of text units against the expected sources.

    Each of the relevant ``items`` is found where the first of its text units stands. ``ranked`` is
    text unit ids, best first: the position is the rank, there are no ties, and an id that comes
    again is left out; None, a missing list, scores 0. None is returned for a question without a
    labelled source, which is excluded, not 0. ValueError if a cutoff is below 1.

    Notes
    -----
    Manning, Raghavan and Schuetze 2008, chapter 8; reciprocal rank: Voorhees 1999, TREC-8.
    ``ir_measures`` gives the same Success@k, R@k, P@k and RR when each item has one text unit
    of its own and duplicates are removed.
    """
    if any(k < 1 for k in cutoffs):
        msg = f"every cutoff must be at least 1, not {min(cutoffs)}"
        raise ValueError(msg)
    if not items:
        return None
    unique = list(dict.fromkeys(ranked or ()))
    relevant = frozenset[str]().union(*(item.unit_ids for item in items))
    hits = [unit in relevant for unit in unique]
    ranks = [rank for rank in first_ranks(items, unique) if rank is not None]
    return RetrievalScores(
        hit_rate=float(bool(ranks)),
        recall=len(ranks) / len(items),
        precision=sum(hits) / len(hits) if hits else 0.0,
        mrr=1 / min(ranks) if ranks else 0.0,
        at=tuple(
            CutoffScores(
                k=k,
                hit_rate=float(any(hits[:k])),
                recall=sum(rank <= k for rank in ranks) / len(items),
                precision=sum(hits[:k]) / k,
            )
            for k in cutoffs
        ),
        n_items=len(items),
        n_found=len(ranks),
        n_unmatched=sum(not item.unit_ids for item in items),
        n_retrieved=len(unique),
        has_list=ranked is not None,
    )
