"""How much of the evidence stood before the model, whatever else a method found."""

from graphrag.eval.scorers.loss import retrieval_stages
from graphrag.eval.scorers.measure_declaration import Measure
from graphrag.eval.scorers.response import MeasureInput

_SOURCES = ("expected_sources", "evidence")
_DEFINED = "this project: the stage in_context of a loss"


def _shown(given: MeasureInput) -> list[bool | None]:
    return [in_context for _, in_context in retrieval_stages(given.items, given.answered)]


def _hit(given: MeasureInput) -> float | None:
    shown = given.once(_shown)
    return 1.0 if True in shown else None if None in shown or not shown else 0.0


def _recall(given: MeasureInput) -> float | None:
    shown = given.once(_shown)
    known = [each for each in shown if each is not None]
    return None if len(known) < len(shown) or not known else sum(known) / len(known)


MEASURES = (
    Measure(
        name="shown_hit_rate",
        kind="binary",
        group="ranking",
        source=_DEFINED,
        compute=_hit,
        needs=_SOURCES,
        column=None,
    ),
    Measure(
        name="shown_recall",
        kind="share",
        group="ranking",
        source=_DEFINED,
        compute=_recall,
        needs=_SOURCES,
        column=None,
    ),
)
