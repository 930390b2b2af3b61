"""Every measure of a response that needs no model, by name; and their means with intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from math import inf
from pkgutil import iter_modules

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers import declared
from graphrag.eval.scorers.combined import CombinedInput, CombinedSummary, summarize_combined
from graphrag.eval.scorers.declared.combined import combined_input
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.scorers.measure_declaration import GROUPS, Measure, MeasureForm
from graphrag.eval.scorers.response import Answered, MeasureInput, MeasureSettings
from graphrag.eval.stats.intervals import Estimate, mean_binary, mean_real


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """The measures of one response.

    Attributes
    ----------
    values : mapping
        Name -> value; None where the question has no label, or the value was not measured.
    n_sources, n_unmatched : int
        Expected sources that the text holds, and that it does not hold. One that it does not hold
        counts as not found; a quote is left out of the retrieval measures.
    has_list : bool
        Whether the method gave a ranked list.
    combined : CombinedInput
        What the combined score was made of.
    """

    sample_id: str
    imdb_key: str
    method: str
    forms: tuple[MeasureForm, ...]
    values: Mapping[str, float | None]
    n_sources: int
    n_unmatched: int
    has_list: bool
    combined: CombinedInput


@dataclass(frozen=True, slots=True)
class MeasureSummary:
    """One measure of one method: ``estimate`` over the responses that have it."""

    form: MeasureForm
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
        Those of them without any that it holds.
    """

    measures: Mapping[str, MeasureSummary]
    combined: CombinedSummary
    n_without_list: int
    n_with_unmatched_sources: int
    n_without_matched_sources: int

    def to_dict(self) -> dict[str, object]:
        """Return the figures by name, JSON-ready."""
        return {
            "measures": {
                name: {"estimate": asdict(found.estimate), "n_excluded": found.n_excluded}
                for name, found in self.measures.items()
            },
            "combined": asdict(self.combined),
            "n_without_list": self.n_without_list,
            "n_with_unmatched_sources": self.n_with_unmatched_sources,
            "n_without_matched_sources": self.n_without_matched_sources,
        }

    def means(self) -> dict[str, float | None]:
        """Return name -> mean, for success criteria."""
        return {name: summary.estimate.mean for name, summary in self.measures.items()}


def measure_answer(
    sample: Sample,
    answered: Answered,
    index: IndexView,
    settings: MeasureSettings | None = None,
) -> dict[str, float | None]:
    """Return every measure of one response by its name; see :func:`measure`."""
    return dict(measure(sample, answered, index, settings).values)


def measure(
    sample: Sample,
    answered: Answered,
    index: IndexView,
    settings: MeasureSettings | None = None,
    is_told: bool = True,
) -> MeasuredAnswer:
    """Measure one response.

    Parameters
    ----------
    sample : Sample
    answered : Answered
        A failed search scores 0 wherever the question has a label.
    index : IndexView
        Of the sample's ``imdb_key``.
    settings : MeasureSettings or None
    is_told : bool
        Whether the method says what it retrieves, here or in another response; if not, the
        measures that need it are None.

    Returns
    -------
    MeasuredAnswer
        With every measure that a file of the folder ``declared`` declares.
    """
    settings = settings or MeasureSettings()
    items = index.evidence_of(sample)
    n_held = sum(item.is_held for item in items)
    counting = tuple(item for item in items if item.counts)
    given = MeasureInput(sample, answered, index, settings, counting, is_told)
    forms = list_forms(tuple(settings.cutoffs))
    return MeasuredAnswer(
        sample_id=answered.sample_id,
        imdb_key=answered.imdb_key,
        method=answered.method,
        forms=forms,
        values={form.name: form.compute(given) for form in forms},
        n_sources=n_held,
        n_unmatched=len(items) - n_held,
        has_list=given.retrieved is not None and given.retrieved.text_unit_ids is not None,
        combined=combined_input(given),
    )


def summarize_measures(
    rows: Iterable[MeasuredAnswer], settings: MeasureSettings | None = None
) -> dict[str, MethodMeasures]:
    """Average the measures of each method.

    Returns
    -------
    dict
        Method -> measures. Binary ones have an interval for 0/1 scores, stratified by document;
        the others a t interval cut to [0, 1] (unbounded ones: to [0, infinity)), without strata,
        so at least as wide when documents differ.
    """
    settings = settings or MeasureSettings()
    by_method: dict[str, list[MeasuredAnswer]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    return {
        method: MethodMeasures(
            measures={form.name: _summary(form, given) for form in given[0].forms},
            combined=summarize_combined([row.combined for row in given], settings.combined),
            n_without_list=sum(not row.has_list for row in given),
            n_with_unmatched_sources=sum(row.n_unmatched > 0 for row in given),
            n_without_matched_sources=sum(
                row.n_unmatched > 0 and not row.n_sources for row in given
            ),
        )
        for method, given in by_method.items()
    }


def _summary(form: MeasureForm, rows: Sequence[MeasuredAnswer]) -> MeasureSummary:
    scores = [row.values[form.name] for row in rows]
    n_excluded = scores.count(None)
    kind = form.measure.kind
    documents = [row.imdb_key for row in rows]
    if kind == "binary":
        return MeasureSummary(form, mean_binary(scores, documents), n_excluded)
    limits = (0.0, inf if kind == "unbounded" else 1.0)
    return MeasureSummary(form, mean_real(scores, documents, limits), n_excluded)


@cache
def list_forms(cutoffs: tuple[int, ...]) -> tuple[MeasureForm, ...]:
    """Return every measure: group by group, each over everything before those at k.

    Raises
    ------
    ValueError
        If two files declare the same measure.
    """
    found = list(_declared())
    names = [measure.name for measure in found]
    if twice := {name for name in names if names.count(name) > 1}:
        msg = f"measures declared twice: {', '.join(sorted(twice))}; each needs a name of its own"
        raise ValueError(msg)
    return tuple(
        form
        for group in GROUPS
        for form in _forms([each for each in found if each.group == group], cutoffs)
    )


def _forms(measures: list[Measure], cutoffs: tuple[int, ...]) -> Iterator[MeasureForm]:
    yield from map(MeasureForm, measures)
    for k in dict.fromkeys(cutoffs):
        yield from (MeasureForm(each, k) for each in measures if each.compute_at is not None)


def _declared() -> Iterator[Measure]:
    for module in iter_modules(declared.__path__):
        yield from import_module(f"{declared.__name__}.{module.name}").MEASURES
