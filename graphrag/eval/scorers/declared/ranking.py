"""Hit rate, reciprocal rank, recall and precision of the list that a method gave."""

from collections.abc import Callable

from graphrag.eval.scorers.measure_declaration import Measure
from graphrag.eval.scorers.ranking import CutoffScores, RetrievalScores, score_retrieval
from graphrag.eval.scorers.response import MeasureInput

SOURCES = ("expected_sources", "evidence")
_MANNING = "Manning, Raghavan and Schuetze 2008, chapter 8"


def _scores(given: MeasureInput) -> RetrievalScores | None:
    ranked = None if given.retrieved is None else given.retrieved.text_unit_ids
    return score_retrieval(given.items, ranked, given.settings.cutoffs)


def _of(read: Callable[[RetrievalScores], float]) -> Callable[[MeasureInput], float | None]:
    def compute(given: MeasureInput) -> float | None:
        scores = given.once(_scores)
        return None if scores is None else read(scores)

    return compute


def _at(read: Callable[[CutoffScores], float]) -> Callable[[MeasureInput, int], float | None]:
    def compute(given: MeasureInput, k: int) -> float | None:
        scores = given.once(_scores)
        return None if scores is None else next(read(at) for at in scores.at if at.k == k)

    return compute


HIT_RATE = Measure(
    name="hit_rate",
    kind="binary",
    group="ranking",
    source=_MANNING,
    compute=_of(lambda scores: scores.hit_rate),
    compute_at=_at(lambda scores: scores.hit_rate),
    needs=SOURCES,
    needs_retrieved=True,
)
MEASURES = (
    HIT_RATE,
    Measure(
        name="mrr",
        kind="share",
        group="ranking",
        source="Voorhees 1999, TREC-8",
        compute=_of(lambda scores: scores.mrr),
        needs=SOURCES,
        needs_retrieved=True,
    ),
    Measure(
        name="recall",
        kind="share",
        group="ranking",
        source=_MANNING,
        compute=_of(lambda scores: scores.recall),
        compute_at=_at(lambda scores: scores.recall),
        needs=SOURCES,
        needs_retrieved=True,
        shows_cutoff=True,
    ),
    Measure(
        name="precision",
        kind="share",
        group="ranking",
        source=_MANNING,
        compute=_of(lambda scores: scores.precision),
        compute_at=_at(lambda scores: scores.precision),
        needs=SOURCES,
        needs_retrieved=True,
        shows_cutoff=True,
    ),
)
