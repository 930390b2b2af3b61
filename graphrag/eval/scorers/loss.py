"""Where an answer was lost: the stages from the source to the verdict, without asking a model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers.evidence import Evidence
from graphrag.eval.scorers.index_view import IndexGraph, IndexView
from graphrag.eval.scorers.measures import Answered, retrieval_stages
from graphrag.eval.scorers.wording import states_answer
from graphrag.eval.stats.intervals import grouped

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
# What a method can do without. Basic search, however it ranks, reads text units only, and no other
# method is assumed to use the graph; local search and DRIFT go from entities to text units.
GRAPH_STAGES: tuple[Stage, ...] = ("extracted", "connected")
NOT_NEEDED: Mapping[str, tuple[Stage, ...]] = {
    "tog": (),
    "global": (),
    "local": ("connected",),
    "drift": ("connected",),
}


@dataclass(frozen=True, slots=True)
class LossRecord:
    """The stages of one question asked of one method.

    ``stages`` are in the order of :data:`STAGES`, None where it can't be said, or does not apply;
    those of ``not_needed`` are reported, but are no loss for this method. ``n_evidence``: expected
    sources that the text holds, 0 for a question that is not traced; ``n_unmatched``: those that it
    does not hold, which are left out of the stages.
    """

    method: str
    imdb_key: str
    n_evidence: int
    stages: tuple[bool | None, ...]
    not_needed: tuple[Stage, ...] = ()
    n_unmatched: int = 0

    def stage(self, name: Stage) -> bool | None:
        """Return one stage by its name."""
        return self.stages[STAGES.index(name)]

    @property
    def first_break(self) -> Stage | None:
        """The first stage that fails and that the method needs; None when none does."""
        for name, passed in zip(STAGES, self.stages, strict=True):
            if passed is False and name not in self.not_needed:
                return name
        return None


def trace_loss(
    sample: Sample,
    answered: Answered,
    index: IndexView,
    not_needed: tuple[Stage, ...] = GRAPH_STAGES,
) -> LossRecord:
    """Follow one question from the source to the verdict.

    ``not_needed`` are the stages that the method can do without. Stages are None where the
    retrieval is missing; all are, and ``n_evidence`` is 0, when the sample names no evidence, or
    only quotes that the text does not hold.

    A quote that the text does not hold is a fault of the dataset, and is left out and counted.
    in_source, in_text_unit: the quote stands there (:class:`SourceIndex`). extracted: the index
    has an entity from that text unit whose title stands in the quote (or, if the sample lists
    expected entities, has those). connected: such an entity has a relationship taken from that
    text unit, and all are in one component. retrieved: a text unit with the quote is in the
    ranked list, or the quote stands in the context. in_context: the text of such a unit was
    shown, or the quote stands in the context. in_answer: :func:`states_answer`, or the verdict
    is 1. judged_correct: the verdict.
    """
    evidence = index.evidence_of(sample)
    items = [item for item in evidence if item.counts]
    stages: tuple[bool | None, ...] = (None,) * len(STAGES)
    if items:
        correct = None if answered.correctness is None else answered.correctness == 1
        response = "" if answered.failed else answered.response
        retrieved, shown = zip(*retrieval_stages(items, answered), strict=True)
        stages = (
            *_index_stages(sample, items, index.graph),
            _all(retrieved),
            _all(shown),
            True if correct else states_answer(sample.ground_truth, response),
            correct,
        )
    n_unmatched = len(evidence) - len(items)
    return LossRecord(
        answered.method, answered.imdb_key, len(items), stages, not_needed, n_unmatched
    )


def _all(passed: Iterable[bool | None]) -> bool | None:
    """Return whether every source passes; None when what is not known could decide it."""
    values = set(passed)
    return False if False in values else None if None in values else True


def _index_stages(
    sample: Sample, items: Sequence[Evidence], graph: IndexGraph
) -> tuple[bool | None, ...]:
    """Return the first four stages, which no method changes."""
    if sample.expected_entities:
        nodes = [graph.named(name) for name in sample.expected_entities if name.strip()]
        linked = [each & graph.linked for each in nodes]
    else:
        nodes = [_nodes_of(item, graph) for item in items]
        linked = [
            each & graph.linked_in(item.unit_ids) for each, item in zip(nodes, items, strict=True)
        ]
    components = [graph.components(each) for each in linked]
    return (
        _all(item.in_source for item in items),
        all(item.unit_ids for item in items),
        all(nodes) if nodes else None,
        bool(set[int].intersection(*components)) if components else None,
    )


def _nodes_of(item: Evidence, graph: IndexGraph) -> set[int]:
    nodes = graph.taken_from(item.unit_ids)
    return graph.standing_in(item.text, nodes) if item.kind == "quote" else nodes


@dataclass(frozen=True, slots=True)
class LossRow:
    """One method's losses in one index; ``imdb_key`` is None for all of them together.

    ``n``, the responses, is ``n_untraced + n_unmatched + sum(lost.values()) + n_kept +
    n_unjudged``: those of questions without evidence; of questions all of whose evidence is not in
    the text; stage -> those whose first break it is (``right_anyway``: those of them that were
    judged correct all the same); right answers without a break; and answers without a verdict and
    without a break before it. The rest cuts across these: ``n_partly_unmatched``, of questions
    some of whose evidence is not in the text; judged correct although the evidence was not before
    the model; judged wrong although it was.
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
    n_unjudged: int
    n_right_without_evidence: int
    n_retrieved_but_wrong: int


def summarize_loss(records: Iterable[LossRecord]) -> list[LossRow]:
    """Count where it breaks: a row for each method and film, then one for each method."""
    groups = grouped(((r.method, key), r) for r in records for key in (r.imdb_key, None))
    return [
        _count(*key, of_group)
        for key, of_group in sorted(groups.items(), key=lambda group: group[0][1] is None)
    ]


def _count(method: str, key: str | None, records: Sequence[LossRecord]) -> LossRow:
    traced = [record for record in records if record.n_evidence]
    lost = Counter(r.first_break for r in traced)
    right = Counter(r.first_break for r in traced if r.stage("judged_correct"))
    outcomes = Counter((r.stage("in_context"), r.stage("judged_correct")) for r in traced)
    return LossRow(
        method=method,
        imdb_key=key,
        n=len(records),
        n_untraced=sum(not r.n_evidence and not r.n_unmatched for r in records),
        n_unmatched=sum(not r.n_evidence and r.n_unmatched > 0 for r in records),
        n_partly_unmatched=sum(r.n_unmatched > 0 for r in traced),
        lost={stage: lost[stage] for stage in STAGES},
        right_anyway={stage: right[stage] for stage in STAGES},
        n_kept=right[None],
        n_unjudged=lost[None] - right[None],
        n_right_without_evidence=outcomes[False, True],
        n_retrieved_but_wrong=outcomes[True, False],
    )
