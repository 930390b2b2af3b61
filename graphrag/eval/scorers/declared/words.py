"""What an answer says, by its words; and whether it came in time."""

from graphrag.eval.dataset.samples import TIME_LIMIT_TAG
from graphrag.eval.scorers.measure_declaration import Measure
from graphrag.eval.scorers.response import MeasureInput
from graphrag.eval.scorers.wording import aspect_coverage, keyword_relevance, time_score


def _in_time(given: MeasureInput) -> float | None:
    own: float | str | None = given.sample.tags.get(TIME_LIMIT_TAG, given.settings.time_limit_s)
    if own is None:
        return None
    return 0.0 if given.answered.failed else time_score(given.answered.latency_s, float(own))


MEASURES = (
    Measure(
        name="keyword_relevance",
        kind="share",
        group="words",
        source="this project",
        needs=("keywords",),
        compute=lambda given: keyword_relevance(given.sample.keywords, given.said),
    ),
    Measure(
        name="aspect_coverage",
        kind="share",
        group="words",
        source="this project",
        needs=("aspects",),
        compute=lambda given: aspect_coverage(
            given.sample.aspects, given.said, given.settings.aspect_share
        ),
    ),
    Measure(
        name="time_score",
        kind="share",
        group="words",
        source="this project",
        needs=(TIME_LIMIT_TAG,),
        compute=_in_time,
    ),
)
