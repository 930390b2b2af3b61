"""Finds the stage at which the evidence for an answer was lost, without asking a model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.keyword_coverage import states_answer
from graphrag.eval.metrics.measures import Stages, retrieval_stages
from graphrag.eval.metrics.quote_matching import Evidence
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.types.query_results import QueryResult

Stage = Literal[
    "in_source",
    "in_text_unit",
    "extracted",
    "connected",
    "retrieved",
    "in_context",
    "in_answer",
    "judged_correct",
]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages in order, from the documents to the verdict; :func:`trace_loss` says what each
means."""
_Passed: TypeAlias = dict[Stage, bool | None]
End: TypeAlias = Stage | Literal["right", "right_anyway", "unknown", "unjudged"]
# The stages of the graph that a method needs to show a text. Local search and DRIFT find a text
# unit by its entities, global search finds an entity by the report on entities related to it. All
# other methods rank the texts themselves, ToG and PPR too: a walk only moves texts up.
GRAPH_NEEDED: Mapping[str, tuple[Stage, ...]] = {
    "global": ("extracted", "connected"),
    "local": ("extracted",),
    "drift": ("extracted",),
}


@dataclass(frozen=True, slots=True)
class LossRecord:
    """The stage at which the evidence for one answer was lost.

    - ``n_evidence``: the expected sources that are traced; 0 for a question that is not traced.
    - ``n_unmatched``: the quotes that the index's text does not contain, which are left out.
    - ``first_break``: the stage at which the evidence was lost. None if it was not lost or the
      stage is not known, and for an answer without the verdict that was asked for.
    - ``is_right``: the verdict, None without one.
    """

    method: str
    imdb_key: str
    n_evidence: int
    n_unmatched: int = 0
    first_break: Stage | None = None
    is_right: bool | None = None

    @property
    def end(self) -> End:
        """The category in which the answer is counted; each answer is in one."""
        if self.is_right:
            return "right_anyway" if self.first_break else "right"
        return self.first_break or ("unjudged" if self.is_right is None else "unknown")


def trace_loss(
    sample: Sample,
    result: QueryResult,
    index: IndexView,
    needed: tuple[Stage, ...] = (),
    is_judged: bool = True,
    stages: Stages | None = None,
) -> LossRecord:
    """Follow the evidence of one question from the source to the verdict.

    - ``needed``: the stages of the graph that the method depends on.
    - ``is_judged``: whether a verdict was asked for.
    - ``stages``: how far each source that counts came, if ``measures.measure`` has found that
      already.

    A quote that the index's text does not contain is a fault of the dataset: it is left out and
    counted. A source that was shown to the model was not lost, and one that was retrieved but not
    shown was lost at in_context. Any other source was lost at the first of these stages that it
    fails:

    - in_source, in_text_unit: a document, and a text unit, contains the quote
      (:class:`SourceIndex`).
    - extracted: the index has an entity from that text unit whose title occurs in the quote; or, if
      the sample lists expected entities, it has those.
    - connected: such an entity has a relationship.
    - retrieved: the ranked list has a text unit with the quote, or the context contains the quote.
    - in_context: the text of such a text unit was shown, or the context contains the quote.

    The earliest stage of all sources counts. If all sources were shown and the answer is not right,
    it was lost at in_answer unless :func:`states_answer` finds the ground truth in it, and
    otherwise, if judged wrong, at judged_correct. If it is not known whether they were shown, only
    judged_correct can be found.
    """
    evidence = index.evidence_of(sample)
    items = [item for item in evidence if item.counts]
    # A failed search counts as wrong only if a verdict was asked for.
    is_known = is_judged or result.failure is None
    score = result.scores.correctness.score if is_known else None
    is_right = None if score is None else score == 1
    first_break: Stage | None = None
    if items and not (is_judged and is_right is None):
        stages = retrieval_stages(items, result) if stages is None else stages
        breaks = [
            _first_break(_index_stages(sample, item, index, needed), retrieved, in_context)
            for item, (retrieved, in_context) in zip(items, stages, strict=True)
        ]
        first_break = next((stage for stage in STAGES if stage in breaks), None)
        if first_break is None and not is_right:
            language = index.language if len(index.languages.names) < 2 else None
            response = "" if result.failure else result.response
            stated = states_answer(sample.ground_truth, response, language)
            if stated is False:
                first_break = "in_answer" if all(in_context for _, in_context in stages) else None
            elif is_right is False:
                first_break = "judged_correct"
    return LossRecord(
        method=result.method,
        imdb_key=result.imdb_key,
        n_evidence=len(items),
        n_unmatched=len(evidence) - len(items),
        first_break=first_break,
        is_right=is_right,
    )


def _first_break(
    in_index: _Passed, retrieved: bool | None, in_context: bool | None
) -> Stage | None:
    """Return the stage before in_answer at which a source was lost; None if none is known."""
    if in_context:
        return None
    if not retrieved:
        failed: list[Stage] = [stage for stage, passed in in_index.items() if passed is False]
        if failed or retrieved is False:
            return failed[0] if failed else "retrieved"
    return "in_context" if in_context is False else None


def _index_stages(
    sample: Sample, item: Evidence, index: IndexView, needed: tuple[Stage, ...]
) -> _Passed:
    """Return which stages of the index a source passed, as far as the method depends on them."""
    stages: _Passed = {"in_source": item.in_source, "in_text_unit": bool(item.unit_ids)}
    if needed:
        graph = index.graph  # it takes time, and other methods don't need it
        names = [name for name in sample.expected_entities if name.strip()]
        nodes = [graph.named(name) for name in names]
        if not names:
            extracted = graph.taken_from(item.unit_ids)
            nodes = [graph.named_in(item.text, extracted) if item.kind == "quote" else extracted]
        stages |= {
            stage: all(nodes)
            if stage == "extracted"
            else all(group & graph.linked for group in nodes)
            for stage in needed
        }
    return stages


@dataclass(frozen=True, slots=True)
class LossRow:
    """How many answers of one method on one index were lost at each stage.

    ``imdb_key`` is the key of the index; None: all indexes together. Each of the ``n`` answers is
    counted in one of these:

    - ``n_kept``: right, and no evidence known to be lost.
    - ``right_anyway``: stage -> right answers whose evidence was lost there.
    - ``lost``: stage -> other answers that were lost there.
    - ``n_unknown``: wrong, and the stage is not known, for example because there is no evidence.
    - ``n_unjudged``: no verdict came; if the run asked for none, the answers that ``lost`` leaves
      out.

    These count some answers again: ``n_untraced``, to questions without evidence; ``n_unmatched``,
    to questions whose evidence is not in the text at all; ``n_partly_unmatched``, only in part.
    """

    method: str
    imdb_key: str | None
    n: int
    n_untraced: int
    n_unmatched: int
    n_partly_unmatched: int
    lost: Mapping[Stage, int]
    right_anyway: Mapping[Stage, int]
    n_kept: int
    n_unknown: int
    n_unjudged: int


def summarize_loss(records: Iterable[LossRecord]) -> list[LossRow]:
    """Count where answers were lost: a row for each method and index, then one for each method."""
    groups = grouped(((r.method, key), r) for r in records for key in (r.imdb_key, None))
    return [
        _count(*key, losses)
        for key, losses in sorted(groups.items(), key=lambda group: group[0][1] is None)
    ]


def _count(method: str, key: str | None, records: Sequence[LossRecord]) -> LossRow:
    ends = Counter(record.end for record in records)
    anyway = Counter(r.first_break for r in records if r.end == "right_anyway")
    return LossRow(
        method=method,
        imdb_key=key,
        n=len(records),
        n_untraced=sum(not r.n_evidence and not r.n_unmatched for r in records),
        n_unmatched=sum(not r.n_evidence and r.n_unmatched > 0 for r in records),
        n_partly_unmatched=sum(r.n_evidence > 0 and r.n_unmatched > 0 for r in records),
        lost={stage: ends[stage] for stage in STAGES},
        right_anyway={stage: anyway[stage] for stage in STAGES},
        n_kept=ends["right"],
        n_unknown=ends["unknown"],
        n_unjudged=ends["unjudged"],
    )
