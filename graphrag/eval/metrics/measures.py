"""Defines the measures of a response, which need no model, and computes them for each response.

Their means by method are computed in measure_means.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from operator import attrgetter
from typing import Literal, TypeAlias, cast, get_args

from graphrag.eval.config.sections import MeasuresSettings
from graphrag.eval.dataset.dataset_reader import TIME_LIMIT_TAG, Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.citations import Shares, check_citations
from graphrag.eval.metrics.entities import FoldedNames, recall_entities
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.keyword_coverage import aspect_coverage, keyword_relevance, time_score
from graphrag.eval.metrics.quote_matching import Evidence, QuotableTexts, read_quote
from graphrag.eval.types.own_code import OwnPart, find_part
from graphrag.eval.types.query_results import QueryResult, Retrieved

Group: TypeAlias = Literal["ranking", "entities", "words", "traced", "combined"]
Kind: TypeAlias = Literal["binary", "share", "unbounded"]
DEFAULT_MEASURES = MeasuresSettings()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores a ranked list of text units against the expected sources; all scores are in [0, 1].

    ``hits`` says for each distinct text unit of the list whether it contains a source. ``ranks``
    has, for each source that is found, the rank (from 1) of its first text unit. ``n_items`` is the
    number of sources. Scores are of the first ``k`` ranks, or of the whole list. Manning, Raghavan
    and Schuetze 2008, chapter 8; reciprocal rank: Voorhees 1999, TREC-8.
    """

    hits: tuple[bool, ...]
    ranks: tuple[int, ...]
    n_items: int

    def hit_rate(self, k: int | None = None) -> float:
        """Return 1 if any source is found, else 0."""
        return float(any(self.hits[:k]))

    def recall(self, k: int | None = None) -> float:
        """Return the share of the sources that are found."""
        return sum(k is None or rank <= k for rank in self.ranks) / self.n_items

    def precision(self, k: int | None = None) -> float:
        """Return relevant text units divided by ``k`` or the list's length; 0 for an empty list."""
        return sum(self.hits[:k]) / (k or len(self.hits) or 1)

    def mrr(self) -> float:
        """Return 1 / rank of the first relevant text unit; 0 if there is none."""
        return 1 / min(self.ranks) if self.ranks else 0.0


def rank_sources(items: Sequence[Evidence], ranked: Sequence[str] | None) -> Ranking | None:
    """Find the expected sources in a list of text unit ids, best first.

    The position is the rank, and repeated ids are left out. A missing list (None) scores 0 in
    everything. Returns None for a question without a labeled source, which is excluded.
    """
    if not items:
        return None
    rank_of = {unit: rank for rank, unit in enumerate(dict.fromkeys(ranked or ()), 1)}
    relevant = frozenset[str]().union(*(item.unit_ids for item in items))
    item_ranks = [[rank_of[unit] for unit in item.unit_ids if unit in rank_of] for item in items]
    return Ranking(
        tuple(unit in relevant for unit in rank_of),
        tuple(min(ranks) for ranks in item_ranks if ranks),
        len(items),
    )


def retrieval_stages(
    items: Sequence[Evidence], result: QueryResult
) -> list[tuple[bool | None, bool | None]]:
    """Return for each source whether it was retrieved, and whether it was shown to the model.

    A source is shown if the text of a text unit that contains it is shown, or, for a quote, if its
    words are in the context. If a text unit is shown only in passages and the context is known,
    only the words of the quote count. None if it is not known.
    """
    stages: list[tuple[bool | None, bool | None]] = []
    retrieval, context = result.retrieved, QuotableTexts([result.context_text or ""])
    for item in items:
        retrieved: bool | None = False
        in_context: bool | None = False
        if result.failure is None and retrieval is not None and retrieval.text_unit_ids is not None:
            retrieved = not item.unit_ids.isdisjoint(retrieval.text_unit_ids)
            shown = {*retrieval.shown_text_unit_ids}
            if item.kind == "quote" and result.context_text is not None:
                shown -= {*retrieval.in_part}  # the context shows which parts
            in_context = not item.unit_ids.isdisjoint(shown)
        elif result.failure is None:
            retrieved, in_context = None, False if result.context_text else None
        if not in_context and item.kind == "quote" and result.context_text is not None:
            # The full context is known, even if the method does not report what it retrieved.
            quote = read_quote(item.text)
            # If text units cut a quote, showing half of it is enough.
            in_part = retrieval is not None and not item.unit_ids.isdisjoint(retrieval.in_part)
            half = in_part and item.is_cut and context.contains_half(quote)
            in_context = half or bool(context.rows_with(quote))
            retrieved = in_context or retrieved
        stages.append((retrieved, in_context))
    return stages


def combined_score(
    hit_rate: float | None,
    judge: float | None,
    tokens: float | None,
    settings: MeasuresSettings = DEFAULT_MEASURES,
) -> float | None:
    """Return ``hit_rate^alpha * judge^gamma / (tokens / 1000)^beta``.

    ``hit_rate`` and ``judge`` are in [0, 1]. The score is >= 0, without an upper limit. None if a
    part is missing or tokens <= 0. Defined by this project; it has no unit, and no interval worth
    printing: publish it with its parts, and never gate on it.
    """
    if hit_rate is None or judge is None or tokens is None or tokens <= 0:
        return None
    return hit_rate**settings.alpha * judge**settings.gamma / (tokens / 1000) ** settings.beta


Stages: TypeAlias = Sequence[tuple[bool | None, bool | None]]
"""(retrieved, shown) of each expected source, see :func:`retrieval_stages`."""


@dataclass(frozen=True)
class MeasureInput:
    """The input of all measures; values that several measures share are computed once.

    - ``result``: the response, with what was retrieved and shown.
    - ``judge_score``: the score of the judge that counts, in [0, 1]; None without one.
    - ``items``: the sample's expected sources, except quotes that the index's text does not
      contain.
    - ``reports_retrieved``: whether the method reports what it retrieves, here or in another
      response.
    """

    sample: Sample
    result: QueryResult
    index: IndexView
    settings: MeasuresSettings
    judge_score: float | None = None
    items: tuple[Evidence, ...] = ()
    reports_retrieved: bool = True

    @property
    def response(self) -> str:
        """The response; "" for a search that failed."""
        return "" if self.result.failure else self.result.response

    @property
    def retrieved(self) -> Retrieved | None:
        """What was retrieved; None for a search that failed."""
        return None if self.result.failure else self.result.retrieved

    @cached_property
    def ranking(self) -> Ranking | None:
        """The method's ranked list, scored against the expected sources."""
        ranked = None if self.retrieved is None else self.retrieved.text_unit_ids
        return rank_sources(self.items, ranked)

    @cached_property
    def stages(self) -> Stages:
        """Whether each expected source was retrieved, and whether it was shown."""
        return retrieval_stages(self.items, self.result)

    @property
    def shown(self) -> list[bool | None]:
        """Whether each expected source was shown to the model; None where it is not known."""
        return [in_context for _, in_context in self.stages]

    @cached_property
    def citations(self) -> Shares:
        """The shares of :func:`check_citations`; an abstention has nothing to cite."""
        citing = "" if self.result.abstained else self.response
        return check_citations(self.retrieved, citing, self.index, self.result.context_text or "")


@dataclass(frozen=True, slots=True)
class Measure:
    """Declares one measure of a response, which needs no model.

    - ``kind``: "binary", 0 or 1, with the interval of a share; "share", in [0, 1], or "unbounded",
      >= 0, with a t interval within these limits.
    - ``group``: the measures that it is shown with; "combined" is in no table.
    - ``source``: where its formula comes from.
    - ``compute``: takes a :class:`MeasureInput` and returns the value, None if there is nothing to
      measure. With ``at_k`` it is also computed from the first k ranks (``recall_at_5``) and takes
      k; with ``shows_cutoff`` the middle k has a column.
    - ``needs``: fields or tags of a sample, or settings of ``measures:``; one must be given.
    - ``needs_retrieved``: undefined, not 0, if the method never reports what it retrieved.
    - ``heading``: the heading of its column; "" for its name with blanks. ``column``: its place in
      the table; None for no column.

    Examples
    --------
    >>> Measure(name="shortness", kind="share", group="words", source="this page",
    ...         compute=lambda given: 1 / max(1, len(given.response.split()))).name
    'shortness'
    """

    name: str
    kind: Kind
    group: Group
    source: str
    compute: Callable[..., float | None]
    needs: tuple[str, ...] = ()
    needs_retrieved: bool = False
    heading: str = ""
    column: int | None = 0
    at_k: bool = False
    shows_cutoff: bool = False


@dataclass(frozen=True, slots=True)
class MeasureForm:
    """A measure over the whole list, or over the first ``k`` ranks."""

    measure: Measure
    k: int | None = None

    @property
    def name(self) -> str:
        """Its name in files and criteria."""
        return self.measure.name if self.k is None else f"{self.measure.name}_at_{self.k}"

    @property
    def heading(self) -> str:
        """The heading of its column."""
        heading = self.measure.heading or self.measure.name.replace("_", " ")
        return heading if self.k is None else f"{heading} at {self.k}"

    def compute(self, inputs: MeasureInput) -> float | None:
        """Return the value for one response; None if there is nothing to measure."""
        if self.measure.needs_retrieved and not inputs.reports_retrieved:
            return None
        return self.measure.compute(inputs, *(() if self.k is None else (self.k,)))


def _shown_hit(inputs: MeasureInput) -> float | None:
    flags = inputs.shown
    return 1.0 if True in flags else None if None in flags or not flags else 0.0


def _shown_recall(inputs: MeasureInput) -> float | None:
    flags = [flag for flag in inputs.shown if flag is not None]
    return None if len(flags) < len(inputs.shown) or not flags else sum(flags) / len(flags)


def _shown_unit_recall(inputs: MeasureInput) -> float | None:
    retrieved = inputs.retrieved
    if not inputs.items or retrieved is None or retrieved.text_unit_ids is None:
        return 0.0 if inputs.items and inputs.result.failure else None
    ids = retrieved.shown_text_unit_ids
    return sum(not item.unit_ids.isdisjoint(ids) for item in inputs.items) / len(inputs.items)


def _indexed(inputs: MeasureInput) -> float | None:
    return _recall(inputs, lambda: inputs.index.entity_names)


def _retrieved(inputs: MeasureInput) -> float | None:
    names = () if inputs.retrieved is None else inputs.retrieved.entities
    return _recall(inputs, lambda: FoldedNames(names, inputs.index.languages))


def _recall(inputs: MeasureInput, read_names: Callable[[], FoldedNames]) -> float | None:
    """Return the recall of the expected entities; None, and nothing is read, without any."""
    expected = inputs.sample.expected_entities
    if not expected:
        return None
    rule = inputs.index.name_rule(inputs.settings.aliases)
    return recall_entities(read_names(), expected, rule)


def _keywords(inputs: MeasureInput) -> float | None:
    return keyword_relevance(inputs.sample.keywords, inputs.response)


def _aspects(inputs: MeasureInput) -> float | None:
    return aspect_coverage(inputs.sample.aspects, inputs.response)


def _in_time(inputs: MeasureInput) -> float | None:
    limit = inputs.sample.tags.get(TIME_LIMIT_TAG, inputs.settings.time_limit_s)
    if limit is None:
        return None
    seconds = inputs.result.efficiency.latency
    return 0.0 if inputs.result.failure else time_score(seconds, float(cast("str", limit)))


def _combined(inputs: MeasureInput) -> float | None:
    hit_rate = None if inputs.ranking is None else inputs.ranking.hit_rate()
    tokens = inputs.result.efficiency.tokens
    return combined_score(hit_rate, inputs.judge_score, tokens, inputs.settings)


_MANNING = "Manning, Raghavan and Schuetze 2008, chapter 8"
_OURS = "this project"
_STAGE = "this project: the stage in_context of a loss"
_SOURCES = ("expected_sources", "evidence")
_ENTITIES = ("expected_entities",)


def _ranking_measure(name: str, kind: Kind, source: str, score: Callable[..., float]) -> Measure:
    def compute(inputs: MeasureInput, *k: int) -> float | None:
        return None if inputs.ranking is None else score(inputs.ranking, *k)

    at_k, shows = name != "mrr", name in ("recall", "precision")
    return Measure(
        name=name,
        kind=kind,
        group="ranking",
        source=source,
        compute=compute,
        needs=_SOURCES,
        needs_retrieved=True,
        at_k=at_k,
        shows_cutoff=shows,
    )


def _citation_measure(name: str, heading: str = "", column: int | None = 0) -> Measure:
    def compute(inputs: MeasureInput) -> float | None:
        return inputs.citations[name]

    return Measure(
        name=name,
        kind="share",
        group="traced",
        source=_OURS,
        compute=compute,
        needs=(),
        needs_retrieved=True,
        heading=heading,
        column=column,
    )


MEASURES = (
    _ranking_measure("hit_rate", "binary", _MANNING, Ranking.hit_rate),
    _ranking_measure("mrr", "share", "Voorhees 1999, TREC-8", Ranking.mrr),
    _ranking_measure("recall", "share", _MANNING, Ranking.recall),
    _ranking_measure("precision", "share", _MANNING, Ranking.precision),
    Measure(
        name="shown_hit_rate",
        kind="binary",
        group="ranking",
        source=_STAGE,
        compute=_shown_hit,
        needs=_SOURCES,
        column=None,
    ),
    Measure(
        name="shown_recall",
        kind="share",
        group="ranking",
        source=_STAGE,
        compute=_shown_recall,
        needs=_SOURCES,
        column=None,
    ),
    Measure(
        name="shown_unit_recall",
        kind="share",
        group="ranking",
        source=_OURS,
        compute=_shown_unit_recall,
        needs=_SOURCES,
        column=None,
    ),
    # It depends on the index alone, so it is the same for every method: no column.
    Measure(
        name="indexed_entity_recall",
        kind="share",
        group="entities",
        source=_OURS,
        compute=_indexed,
        needs=_ENTITIES,
        column=None,
    ),
    Measure(
        name="retrieved_entity_recall",
        kind="share",
        group="entities",
        source=_OURS,
        compute=_retrieved,
        needs=_ENTITIES,
        needs_retrieved=True,
    ),
    Measure(
        name="keyword_relevance",
        kind="share",
        group="words",
        source=_OURS,
        compute=_keywords,
        needs=("keywords",),
    ),
    Measure(
        name="aspect_coverage",
        kind="share",
        group="words",
        source=_OURS,
        compute=_aspects,
        needs=("aspects",),
    ),
    Measure(
        name="time_score",
        kind="share",
        group="words",
        source=_OURS,
        compute=_in_time,
        needs=(TIME_LIMIT_TAG,),
    ),
    _citation_measure("citations_in_index", "citations in index", column=1),
    _citation_measure("citation_validity", "citations shown"),
    _citation_measure("context_cited", column=1),
    _citation_measure("sources_cited", column=None),
    Measure(
        name="judge_score",
        kind="share",
        group="combined",
        source=_OURS,
        compute=attrgetter("judge_score"),
    ),
    Measure(
        name="combined_score",
        kind="unbounded",
        group="combined",
        source=_OURS,
        compute=_combined,
        needs=_SOURCES,
        needs_retrieved=True,
    ),
)
"""The built-in measures in the order of the files' keys; docs/design.md says how to add one."""


def list_forms(cutoffs: tuple[int, ...], further: tuple[str, ...] = ()) -> tuple[MeasureForm, ...]:
    """Return every measure, group by group; in each, those over everything come before those at k.

    ``further`` names measures of the user's own. Raises ConfigError if one does not exist or is
    broken.
    """
    return _list_forms(cutoffs, further, tuple(find_part("measures", name) for name in further))


@cache
def _list_forms(
    cutoffs: tuple[int, ...], further: tuple[str, ...], _: tuple[OwnPart | None, ...]
) -> tuple[MeasureForm, ...]:
    """List the measures, again if a name has come to mean another part."""
    forms: list[MeasureForm] = []
    every = [*MEASURES, *map(_find_own, further)]
    for group in get_args(Group):
        own = [m for m in every if m.group == group]
        forms += map(MeasureForm, own)
        forms += [MeasureForm(m, k) for k in dict.fromkeys(cutoffs) for m in own if m.at_k]
    return tuple(forms)


def _find_own(name: str) -> Measure:
    own = find_part("measures", name)
    if any(m.name == name for m in MEASURES):
        part = name if own is None else f"{own.spec} ({name})"
        raise ConfigError(f"measures.further: {part} is built in, and measured anyway.")
    if own is None:
        built_in = ", ".join(m.name for m in MEASURES)
        raise ConfigError(
            f"measures.further: {name!r} is no measure of your own; write it as module:object. "
            f"Measured anyway: {built_in}."
        )
    loaded = own.of_type(Measure)
    if loaded.kind == "unbounded":
        raise own.refuse("a measure of one's own is binary or a share")
    if loaded.group not in get_args(Group):
        groups = ", ".join(get_args(Group))
        raise own.refuse(f"there is no group {loaded.group!r}, but {groups}")

    def compute(inputs: MeasureInput, *k: int) -> float | None:
        with own.guarded():
            value = loaded.compute(inputs, *k)
        if value is None or 0 <= value <= 1:
            return value
        raise own.refuse(f"{value!r} is not in [0, 1]")

    return replace(loaded, compute=compute)


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """The measures of one response.

    - ``values``: name -> value; None if the question has no label or the value was not measured.
    - ``n_sources``, ``n_unmatched``: number of expected sources that the index's text contains, and
      does not contain. An unmatched source counts as not found; an unmatched quote is left out of
      the retrieval measures.
    - ``has_list``: whether the method gave a ranked list.
    - ``failures``: name of a user's own measure that failed -> why.
    - ``stages``: the stages of each expected source that counts, for ``failure_stage.trace_loss``.
    """

    sample_id: str
    imdb_key: str
    method: str
    forms: tuple[MeasureForm, ...]
    values: Mapping[str, float | None]
    n_sources: int
    n_unmatched: int
    has_list: bool
    tokens: int | None
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    stages: Stages = field(default=(), repr=False, compare=False)


def measure(
    sample: Sample,
    result: QueryResult,
    index: IndexView,
    settings: MeasuresSettings = DEFAULT_MEASURES,
    judge_score: float | None = None,
    reports_retrieved: bool = True,
) -> MeasuredAnswer:
    """Compute every measure of one response.

    A failed search scores 0 wherever the question has a label. ``index`` is the view of the
    sample's index. ``judge_score``: see :class:`MeasureInput`. ``reports_retrieved``: whether the
    method reports what it retrieves, here or in another response; if not, the measures that need
    it are None.
    """
    items = index.evidence_of(sample)
    n_matched = sum(item.is_matched for item in items)
    counting = tuple(item for item in items if item.counts)
    inputs = MeasureInput(
        sample=sample,
        result=result,
        index=index,
        settings=settings,
        judge_score=judge_score,
        items=counting,
        reports_retrieved=reports_retrieved,
    )
    forms = list_forms(settings.cutoffs, settings.further)
    values, failures = dict[str, float | None](), dict[str, str]()
    for form in forms:
        try:
            values[form.name] = form.compute(inputs)
        except ConfigError as error:  # a user's own measure failed: the others still count
            values[form.name], failures[form.name] = None, str(error)
    return MeasuredAnswer(
        sample_id=result.sample_id,
        imdb_key=result.imdb_key,
        method=result.method,
        forms=forms,
        values=values,
        n_sources=n_matched,
        n_unmatched=len(items) - n_matched,
        has_list=inputs.retrieved is not None and inputs.retrieved.text_unit_ids is not None,
        tokens=result.efficiency.tokens,
        failures=failures,
        stages=inputs.stages,
    )
