"""How many of the expected entities the index has, and how many were shown."""

from graphrag.eval.scorers.entities import NameRule, score_entities
from graphrag.eval.scorers.measure_declaration import Measure
from graphrag.eval.scorers.response import MeasureInput


def _indexed(given: MeasureInput) -> float | None:
    rule = NameRule(aliases=given.settings.aliases)
    titles = (entity.title for entity in given.index.entities)
    return score_entities(titles, given.sample.expected_entities, rule).recall


def _retrieved(given: MeasureInput) -> float | None:
    shown = () if given.retrieved is None else given.retrieved.entities
    rule = NameRule(aliases=given.settings.aliases)
    return score_entities(shown, given.sample.expected_entities, rule).recall


MEASURES = (
    Measure(
        name="indexed_entity_recall",
        kind="share",
        group="entities",
        source="this project",
        needs=("expected_entities",),
        compute=_indexed,
        column=None,  # of the index, and so the same for every method
    ),
    Measure(
        name="retrieved_entity_recall",
        kind="share",
        group="entities",
        source="this project",
        needs=("expected_entities",),
        compute=_retrieved,
        needs_retrieved=True,
    ),
)
