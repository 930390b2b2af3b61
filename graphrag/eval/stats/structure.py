"""Which interval and which test fit the documents: one choice for means and differences."""

from collections.abc import Hashable, Mapping
from enum import StrEnum

import numpy as np

from graphrag.eval.stats.clustered import degrees_of_freedom

FEW_DOCUMENTS = 10
MOST_QUESTIONS = 0.95
LEAST_DF = 5.0


class Structure(StrEnum):
    """How the documents of the questions enter an interval.

    ``POOLED``: not at all, as there is one or they are not known. ``STRATIFIED``: they are fixed,
    and the questions on each are drawn: new questions on these documents. ``CLUSTERED``: they
    are drawn as well: new questions on documents like these.
    """

    POOLED = "pooled"
    STRATIFIED = "stratified"
    CLUSTERED = "clustered"


def choose_structure(sizes: Mapping[Hashable, int]) -> Structure:
    """Choose by the number of documents and of questions on each.

    Parameters
    ----------
    sizes : dict
        Document -> questions on it, >= 1. A document None is one that is not known.

    Returns
    -------
    Structure
        ``POOLED`` for one document, or when one is not known. ``CLUSTERED`` for ten documents or
        more, unless fewer than ten hold 95 % of the questions or they are so unequal that fewer
        than 5 degrees of freedom are left. Else ``STRATIFIED``.

    Notes
    -----
    With fewer than 4 to 5 degrees of freedom the t approximation fails: Pustejovsky and Tipton
    2018, doi:10.1080/07350015.2016.1247004. ``benchmarks/coverage.py`` measures the choice.
    """
    if len(sizes) < 2 or None in sizes:
        return Structure.POOLED
    if len(sizes) < FEW_DOCUMENTS:
        return Structure.STRATIFIED
    asked = np.sort(np.array(list(sizes.values()), dtype=np.float64))[::-1]
    most = float(asked[: FEW_DOCUMENTS - 1].sum())
    if most >= MOST_QUESTIONS * float(asked.sum()) or float(degrees_of_freedom(asked)) < LEAST_DF:
        return Structure.STRATIFIED
    return Structure.CLUSTERED


def name_interval(kind: str, structure: Structure) -> str:
    """Return the name of an interval, with how the documents enter unless there is one."""
    return kind if structure is Structure.POOLED else f"{kind}, {structure.value} by document"


def warn_of_documents(sizes: Mapping[Hashable, int]) -> str | None:
    """Say what a test between methods can't know where documents are few.

    Parameters
    ----------
    sizes : dict
        As in ``choose_structure``.

    Returns
    -------
    str or None
        A sentence without a full stop; None for one document, for documents that are not known,
        of one question each, or many enough to be taken as drawn.
    """
    few = choose_structure(sizes) is Structure.STRATIFIED and max(sizes.values()) > 1
    if not few:
        return None
    return (
        f"p takes the questions as independent: with {len(sizes)} documents a shift that all "
        "questions of a document share can't be told from a difference"
    )
