"""Every measure of a response that needs no model, by name; and their means with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from graphrag.eval.dataset import TIME_LIMIT_TAG, Sample
from graphrag.eval.measures.citations import measure_citations
from graphrag.eval.measures.combined import (
    CombinedInput,
    CombinedSettings,
    CombinedSummary,
    combined_score,
    summarize_combined,
)
from graphrag.eval.measures.entities import NameRule, score_entities
from graphrag.eval.measures.evidence import Evidence, SourceIndex
from graphrag.eval.measures.index_records import IndexRecords
from graphrag.eval.measures.paths import measure_paths
from graphrag.eval.measures.ranking import DEFAULT_CUTOFFS, score_retrieval
from graphrag.eval.measures.wording import (
    ASPECT_SHARE,
    aspect_coverage,
    keyword_relevance,
    time_score,
)
from graphrag.eval.records import Retrieved, is_abstention
from graphrag.eval.statistics import Estimate, mean_binary_stratified, t_estimate


@dataclass(frozen=True, slots=True)
class Answered:
    """One response with all that the measures without a model look at.

    Attributes
    ----------
    sample_id, imdb_key, method : str
    response : str
    context_text : str
        What the method showed to its model.
    retrieved : Retrieved or None
        None when it was not recorded, or the search failed.
    correctness : int or None
        The judge's 0 or 1; None when unscored.
    tokens : int or None
        Prompt and output tokens of the search.
    latency_s : float or None
    failed : bool
        Whether the search failed.
    """

    sample_id: str
    imdb_key: str
    method: str
    response: str
    context_text: str = ""
    retrieved: Retrieved | None = None
    correctness: int | None = None
    tokens: int | None = None
    latency_s: float | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How responses are measured.

    Attributes
    ----------
    cutoffs : tuple of int
        The k of recall, precision and hit rate at k, each >= 1.
    aspect_share : float
        See :func:`aspect_coverage`.
    time_limit_s : float or None
        Seconds; a sample's own tag ``time_limit_s`` goes before it. None: no time score.
    combined : CombinedSettings
    aliases : mapping
        Other names of entities -> name.
    """

    cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS
    aspect_share: float = ASPECT_SHARE
    time_limit_s: float | None = None
    combined: CombinedSettings = field(default_factory=CombinedSettings)
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class MeasuredIndex:
    """One index as the measures look at it: its sources, its entities' titles, its records.

    Without records the measures of what is cited and walked are None.
    """

    sources: SourceIndex
    entities: tuple[str, ...] = ()
    records: IndexRecords | None = None


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """The measures of one response.

    Attributes
    ----------
    values : mapping
        Name -> value; None where the question has no label, or the value was not measured.
    n_sources : int
        Expected sources that the text holds.
    n_unmatched : int
        Expected sources that it does not hold; they are left out of the retrieval measures.
    has_list : bool
        Whether the method gave a ranked list.
    combined : CombinedInput
        What the combined score was made of.
    """

    sample_id: str
    imdb_key: str
    method: str
    values: Mapping[str, float | None]
    n_sources: int
    n_unmatched: int
    has_list: bool
    combined: CombinedInput


@dataclass(frozen=True, slots=True)
class MeasureSummary:
    """One measure of one method: ``estimate`` over the responses that have it."""

    estimate: Estimate
    n_excluded: int


@dataclass(frozen=True, slots=True)
class MethodMeasures:
    """One method's measures.

    Attributes
    ----------
    measures : mapping
        Name -> summary.
    combined : CombinedSummary
        Both aggregations of the combined score.
    n_without_list : int
        Responses without a ranked list: 0 in every retrieval measure, or without any where
        the method never gives a list.
    n_with_unmatched_sources : int
        Responses to questions with an expected source that the text does not hold.
    n_without_matched_sources : int
        Those of them without any that it holds: they have no retrieval measures.
    """

    measures: Mapping[str, MeasureSummary]
    combined: CombinedSummary
    n_without_list: int
    n_with_unmatched_sources: int
    n_without_matched_sources: int

    def means(self) -> dict[str, float | None]:
        """Return name -> mean, for success criteria."""
        return {name: summary.estimate.mean for name, summary in self.measures.items()}


def measure_answer(
    sample: Sample,
    answered: Answered,
    index: MeasuredIndex,
    settings: MeasureSettings | None = None,
) -> dict[str, float | None]:
    """Return every measure of one response by its name; see :func:`measure`."""
    return dict(measure(sample, answered, index, settings).values)


def measure(
    sample: Sample,
    answered: Answered,
    index: MeasuredIndex,
    settings: MeasureSettings | None = None,
    items: Sequence[Evidence] | None = None,
) -> MeasuredAnswer:
    """Measure one response.

    Parameters
    ----------
    sample : Sample
    answered : Answered
        A failed search scores 0 wherever the question has a label.
    index : MeasuredIndex
        Of the sample's ``imdb_key``.
    settings : MeasureSettings or None
    items : sequence of Evidence or None
        The sample's evidence, when it was looked up before.

    Returns
    -------
    MeasuredAnswer
        hit_rate, mrr, recall, precision and their forms at k; indexed_entity_recall and
        retrieved_entity_recall (expected entities among the index's titles, and among those
        shown); keyword_relevance, aspect_coverage, time_score; those of
        :func:`measure_paths` and :func:`measure_citations`; combined_score.
    """
    settings = settings or MeasureSettings()
    if items is None:
        items = index.sources.evidence_of(sample)
    n_given = len(items)
    items = [item for item in items if item.is_held]
    retrieved = answered.retrieved
    ranked = None if retrieved is None or answered.failed else retrieved.text_unit_ids
    scores = score_retrieval(items, ranked, settings.cutoffs)
    # The names are there also without labels, so that every response has the same measures.
    named = scores or score_retrieval(_ANY, None, settings.cutoffs)
    assert named is not None
    given = named.to_dict()
    values: dict[str, float | None] = {
        name: None if scores is None else value for name, value in given.items()
    }
    rule = NameRule(aliases=settings.aliases)
    shown = () if retrieved is None or answered.failed else retrieved.entities
    expected = sample.expected_entities
    values["indexed_entity_recall"] = score_entities(index.entities, expected, rule).recall
    values["retrieved_entity_recall"] = score_entities(shown, expected, rule).recall
    said = "" if answered.failed else answered.response
    values["keyword_relevance"] = keyword_relevance(sample.keywords, said)
    values["aspect_coverage"] = aspect_coverage(sample.aspects, said, settings.aspect_share)
    values["time_score"] = _time(sample, answered, settings)
    walked = None if answered.failed else retrieved
    values |= measure_paths(walked, said, index.records)
    # An abstention has nothing to cite.
    citing = "" if is_abstention(said) else said
    values |= measure_citations(walked, citing, index.records, answered.context_text)
    parts = CombinedInput(
        hit_rate=values["hit_rate"], judge=answered.correctness, tokens=answered.tokens
    )
    values["combined_score"] = combined_score(parts, settings.combined)
    return MeasuredAnswer(
        sample_id=answered.sample_id,
        imdb_key=answered.imdb_key,
        method=answered.method,
        values=values,
        n_sources=len(items),
        n_unmatched=n_given - len(items),
        has_list=ranked is not None,
        combined=parts,
    )


def summarize_measures(
    rows: Iterable[MeasuredAnswer], settings: MeasureSettings | None = None
) -> dict[str, MethodMeasures]:
    """Average the measures of each method.

    Returns
    -------
    dict
        Method -> measures. Hit rates have an interval for 0/1 scores, stratified by document;
        the other measures a t interval cut to [0, 1] (the combined score: to [0, infinity)),
        without strata, so at least as wide when documents differ.
    """
    settings = settings or MeasureSettings()
    by_method: dict[str, list[MeasuredAnswer]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    return {
        method: MethodMeasures(
            measures={name: _summary(name, given) for name in given[0].values},
            combined=summarize_combined([row.combined for row in given], settings.combined),
            n_without_list=sum(not row.has_list for row in given),
            n_with_unmatched_sources=sum(row.n_unmatched > 0 for row in given),
            n_without_matched_sources=sum(
                row.n_unmatched > 0 and not row.n_sources for row in given
            ),
        )
        for method, given in by_method.items()
    }


_ANY = (Evidence("", "quote", frozenset(), None),)


def _summary(name: str, rows: Sequence[MeasuredAnswer]) -> MeasureSummary:
    scores = [row.values[name] for row in rows]
    n_excluded = scores.count(None)
    if name.startswith("hit_rate"):
        documents = [row.imdb_key for row in rows]
        return MeasureSummary(mean_binary_stratified(scores, documents), n_excluded)
    present = np.array([score for score in scores if score is not None], dtype=np.float64)
    limits = (0.0, inf if name == "combined_score" else 1.0)
    return MeasureSummary(t_estimate(present, limits), n_excluded)


def _time(sample: Sample, answered: Answered, settings: MeasureSettings) -> float | None:
    own: Any = sample.tags.get(TIME_LIMIT_TAG, settings.time_limit_s)
    if own is None:
        return None
    return 0.0 if answered.failed else time_score(answered.latency_s, float(own))
