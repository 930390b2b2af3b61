"""The judge's score, and one number for evidence found, answer quality and tokens spent."""

from graphrag.eval.scorers.combined import CombinedInput, combined_score
from graphrag.eval.scorers.declared.ranking import HIT_RATE, SOURCES
from graphrag.eval.scorers.measure_declaration import Measure, MeasureForm
from graphrag.eval.scorers.response import MeasureInput


def combined_input(given: MeasureInput) -> CombinedInput:
    """Return what the combined score of one response is made of."""
    return CombinedInput(
        hit_rate=MeasureForm(HIT_RATE).compute(given),
        judge=given.judge_score,
        tokens=given.answered.tokens,
    )


MEASURES = (
    Measure(
        name="judge_score",
        kind="share",
        group="combined",
        source="this project",
        compute=lambda given: given.judge_score,
    ),
    Measure(
        name="combined_score",
        kind="unbounded",
        group="combined",
        source="this project",
        compute=lambda given: combined_score(combined_input(given), given.settings.combined),
        needs=SOURCES,
        needs_retrieved=True,
    ),
)
