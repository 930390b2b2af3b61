"""Computes the mean of each measure by method, with its interval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf

from graphrag.eval.config.sections import MeasuresSettings
from graphrag.eval.metrics.measures import (
    DEFAULT_MEASURES,
    MeasuredAnswer,
    MeasureForm,
    combined_score,
)
from graphrag.eval.stats.intervals import Estimate, grouped, mean_binary, mean_real


@dataclass(frozen=True, slots=True)
class MeasureSummary:
    """The mean of one measure of one method, with its interval.

    ``estimate`` is over the responses that have a value; ``n_excluded`` responses have none.
    """

    form: MeasureForm
    estimate: Estimate
    n_excluded: int


@dataclass(frozen=True, slots=True)
class CombinedSummary:
    """One method's combined score, averaged in two ways over the same questions.

    ``mean_of_scores`` is the mean of the questions' scores. ``score_of_means`` is the score of the
    mean hit rate, mean judge score and mean tokens. The two may rank methods differently. Both are
    None if no question has a score.
    """

    mean_of_scores: float | None
    score_of_means: float | None
    n: int
    n_excluded: int


@dataclass(frozen=True, slots=True)
class MethodMeasures:
    """One method's measures by name, and counts of its responses.

    - ``n_without_list``: responses without a ranked list. They score 0 in every retrieval measure;
      if the method never gives a list, they have no score.
    - ``n_with_unmatched_sources``: responses to questions with an expected source that the index's
      text does not contain.
    - ``n_without_matched_sources``: those of them for which it contains no expected source at all.
    """

    measures: Mapping[str, MeasureSummary]
    combined: CombinedSummary
    n_without_list: int
    n_with_unmatched_sources: int
    n_without_matched_sources: int

    def to_dict(self) -> dict[str, object]:
        """Return the figures by name, JSON-ready."""
        values = asdict(self)
        for summary in values["measures"].values():
            del summary["form"]
        return values

    def means(self) -> dict[str, float | None]:
        """Return name -> mean, for success criteria."""
        return {name: summary.estimate.mean for name, summary in self.measures.items()}


def summarize_measures(
    rows: Iterable[MeasuredAnswer], settings: MeasuresSettings = DEFAULT_MEASURES
) -> dict[str, MethodMeasures]:
    """Return method -> means of its measures, with their intervals.

    Binary measures have an interval for 0/1 scores. All others have a t interval, cut to [0, 1], or
    to [0, infinity) for unbounded measures.
    """
    return {
        method: MethodMeasures(
            measures={form.name: _summarize(form, own) for form in own[0].forms},
            combined=_summarize_combined(own, settings),
            n_without_list=sum(not row.has_list for row in own),
            n_with_unmatched_sources=sum(row.n_unmatched > 0 for row in own),
            n_without_matched_sources=sum(row.n_unmatched > 0 and not row.n_sources for row in own),
        )
        for method, own in grouped((row.method, row) for row in rows).items()
    }


def _summarize(form: MeasureForm, rows: Sequence[MeasuredAnswer]) -> MeasureSummary:
    scores = [row.values[form.name] for row in rows]
    documents = [row.imdb_key for row in rows]
    if form.measure.kind == "binary":
        estimate = mean_binary(scores, documents)
    else:
        limits = (0.0, inf if form.measure.kind == "unbounded" else 1.0)
        estimate = mean_real(scores, documents, limits)
    return MeasureSummary(form, estimate, scores.count(None))


def _summarize_combined(
    rows: Sequence[MeasuredAnswer], settings: MeasuresSettings
) -> CombinedSummary:
    scored = [row for row in rows if row.values["combined_score"] is not None]
    n = len(scored)
    if n == 0:
        return CombinedSummary(mean_of_scores=None, score_of_means=None, n=0, n_excluded=len(rows))

    def mean(name: str) -> float:
        return sum(row.values[name] or 0.0 for row in scored) / n

    tokens = sum(row.tokens or 0.0 for row in scored) / n
    score = combined_score(mean("hit_rate"), mean("judge_score"), tokens, settings)
    return CombinedSummary(
        mean_of_scores=mean("combined_score"), score_of_means=score, n=n, n_excluded=len(rows) - n
    )
