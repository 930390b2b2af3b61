"""Where an answer was lost: the stages from the source to the verdict, without asking a model."""

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
_Passed: TypeAlias = dict[Stage, bool | None]
End: TypeAlias = Stage | Literal["right", "right_anyway", "unknown", "unjudged"]
# What of the graph a method can't show a text without. Local search and DRIFT come to a text unit
# by its entities, global search to an entity by the report on those that it is related to. All
# others rank the texts themselves, ToG and PPR among them: a walk only moves texts up.
GRAPH_NEEDED: Mapping[str, tuple[Stage, ...]] = {
    "global": ("extracted", "connected"),
    "local": ("extracted",),
    "drift": ("extracted",),
}


@dataclass(frozen=True, slots=True)
class LossRecord:
    """Where one answer's evidence was lost.

    ``n_evidence``: expected sources that the text holds, 0 for a question that is not traced;
    ``n_unmatched``: those that it does not hold, which are left out. ``first_break``: the stage at
    which the evidence was lost; None where it is not known to be, and for an answer without the
    verdict that was asked for. ``is_right``: the verdict, None without one.
    """

    method: str
    imdb_key: str
    n_evidence: int
    n_unmatched: int = 0
    first_break: Stage | None = None
    is_right: bool | None = None

    @property
    def end(self) -> End:
        """What the answer counts as in the table, where each counts once."""
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
    """Follow one question from the source to the verdict.

    ``needed`` are the stages of the graph that the method depends on; ``is_judged``: a verdict was
    asked for; ``stages``: of the sources that count, where :func:`measures.measure` looked for them
    already. A quote that the text does not hold is a fault of the dataset: left out and counted.

    A source that was shown is not lost before that, and one that was retrieved not before that. Any
    other is lost at the first of these stages that it fails. in_source, in_text_unit: the quote
    stands there (:class:`SourceIndex`). extracted: the index has an entity from that text unit
    whose title stands in the quote (or, if the sample lists expected entities, has those).
    connected: such an entity has a relationship. retrieved: a text unit with the quote is in the
    ranked list, or the quote stands in the context. in_context: the text of such a unit was shown,
    or the quote stands in the context.

    The earliest stage of all sources counts. If all were shown, and the answer is not right, it is
    lost in_answer unless :func:`states_answer`, and else, judged wrong, at judged_correct; if it is
    not known whether they were, only the latter can be said.
    """
    evidence = index.evidence_of(sample)
    items = [item for item in evidence if item.counts]
    # A failed search is wrong only where the judge was to be asked.
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
    """Return where a source was lost before an answer; None where it is not known to be."""
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
    """Return what a source passed of the index, as far as the method depends on it."""
    stages: _Passed = {"in_source": item.in_source, "in_text_unit": bool(item.unit_ids)}
    if needed:
        graph = index.graph  # of other methods nobody pays for it
        names = [name for name in sample.expected_entities if name.strip()]
        nodes = [graph.named(name) for name in names]
        if not names:
            extracted = graph.taken_from(item.unit_ids)
            nodes = [graph.standing_in(item.text, extracted) if item.kind == "quote" else extracted]
        stages |= {
            stage: all(nodes)
            if stage == "extracted"
            else all(group & graph.linked for group in nodes)
            for stage in needed
        }
    return stages


@dataclass(frozen=True, slots=True)
class LossRow:
    """One method's answers in one index by where they were lost; ``imdb_key`` None: in all.

    ``n``, the answers, is ``n_kept + sum(right_anyway.values()) + sum(lost.values()) + n_unknown +
    n_unjudged``. The first two are the right answers by the verdicts: those of which nothing is
    known to be lost, and stage -> those whose evidence was lost there. ``lost``: stage -> those
    that are not right; ``n_unknown``: wrong, and where is not known, as of a question without
    evidence. ``n_unjudged``: no verdict came; in a run that asked for none, those that ``lost``
    does not hold.

    These count some of ``n`` again: answers to questions without evidence (``n_untraced``), to
    those all of whose evidence is not in the text (``n_unmatched``), or some of it
    (``n_partly_unmatched``).
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
    """Count where it breaks: a row for each method and film, then one for each method."""
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
