"""Where an answer was lost: the stages from the source to the verdict, without asking a model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers.evidence import Evidence
from graphrag.eval.scorers.index_view import IndexGraph, IndexView
from graphrag.eval.scorers.quotes import QuotableTexts, read_quote
from graphrag.eval.scorers.response import Answered
from graphrag.eval.scorers.wording import STATEMENT_SHARE, states_answer

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
# What a method can do without. Basic search, however it ranks, reads text units only; local search
# and DRIFT go from entities to text units; an unknown method is not assumed to use the graph.
GRAPH_STAGES: tuple[Stage, ...] = ("extracted", "connected")
NOT_NEEDED: Mapping[str, tuple[Stage, ...]] = {
    "tog": (),
    "ppr": GRAPH_STAGES,
    "global": (),
    "local": ("connected",),
    "drift": ("connected",),
    "basic": GRAPH_STAGES,
    "bm25": GRAPH_STAGES,
    "hybrid": GRAPH_STAGES,
    "agentic": GRAPH_STAGES,
}


@dataclass(frozen=True, slots=True)
class LossSettings:
    """How the stages are decided.

    Attributes
    ----------
    needs : {"all", "any"}
        Whether every expected source must pass a stage, or one is enough.
    statement_share : float
        Share in (0, 1] of the ground truth's content words that "in the answer" takes.
    not_needed : mapping
        Method -> the stages that it can do without; a method that is not named needs no graph.
    """

    needs: Literal["all", "any"] = "all"
    statement_share: float = STATEMENT_SHARE
    not_needed: Mapping[str, tuple[Stage, ...]] = field(default_factory=lambda: NOT_NEEDED)

    def skipped(self, method: str) -> tuple[Stage, ...]:
        """Return the stages that a method can do without."""
        return self.not_needed.get(method, GRAPH_STAGES)


@dataclass(frozen=True, slots=True)
class LossRecord:
    """The stages of one question asked of one method.

    Attributes
    ----------
    sample_id, imdb_key, method : str
    n_evidence : int
        Expected sources that the text holds; 0 for a question that is not traced.
    stages : tuple of (bool or None)
        In the order of :data:`STAGES`; None where it can't be said, or does not apply.
    not_needed : tuple of str
        Stages that are reported, but are no loss for this method.
    n_unmatched : int
        Expected sources that the text does not hold; they are left out of the stages.
    """

    sample_id: str
    imdb_key: str
    method: str
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

    @property
    def is_right_without_evidence(self) -> bool:
        """Judged correct, although the evidence was not before the model."""
        return self.stage("judged_correct") is True and self.stage("in_context") is False

    @property
    def is_retrieved_but_wrong(self) -> bool:
        """Judged wrong, although the evidence was before the model."""
        return self.stage("judged_correct") is False and self.stage("in_context") is True

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values."""
        return {
            "sample_id": self.sample_id,
            "imdb_key": self.imdb_key,
            "method": self.method,
            "n_evidence": self.n_evidence,
            "n_unmatched": self.n_unmatched,
            "stages": dict(zip(STAGES, self.stages, strict=True)),
            "not_needed": list(self.not_needed),
            "first_break": self.first_break,
        }


def trace_loss(
    sample: Sample, answered: Answered, index: IndexView, settings: LossSettings | None = None
) -> LossRecord:
    """Follow one question from the source to the verdict.

    Stages are None where the retrieval is missing; all are, and ``n_evidence`` is 0, when
    the sample names no evidence, or only quotes that the text does not hold.

    Notes
    -----
    A quote that the text does not hold is a fault of the dataset, and is left out and counted.
    in_source, in_text_unit: the quote stands there (:class:`SourceIndex`). extracted: the index
    has an entity from that text unit whose title stands in the quote (or, if the sample lists
    expected entities, has those). connected: such an entity has a relationship taken from that
    text unit, and all are in one component. retrieved: a text unit with the quote is in the
    ranked list, or the quote stands in the context. in_context: the text of such a unit was
    shown, or the quote stands in the context. in_answer: :func:`states_answer`, or the verdict
    is 1. judged_correct: the verdict.
    """
    settings = settings or LossSettings()
    evidence = index.evidence_of(sample)
    items = [item for item in evidence if item.counts]
    n_unmatched = len(evidence) - len(items)
    skipped = settings.skipped(answered.method)
    if not items:
        return LossRecord(
            answered.sample_id,
            answered.imdb_key,
            answered.method,
            0,
            (None,) * len(STAGES),
            skipped,
            n_unmatched,
        )
    found = retrieval_stages(items, answered)
    judged = None if answered.correctness is None else answered.correctness == 1
    said = "" if answered.failed else answered.response
    stated = states_answer(sample.ground_truth, said, settings.statement_share)
    return LossRecord(
        sample_id=answered.sample_id,
        imdb_key=answered.imdb_key,
        method=answered.method,
        n_evidence=len(items),
        stages=(
            *_index_stages(sample, items, index.graph, settings.needs),
            combine((retrieved for retrieved, _ in found), settings.needs),
            combine((in_context for _, in_context in found), settings.needs),
            True if judged else stated,
            judged,
        ),
        not_needed=skipped,
        n_unmatched=n_unmatched,
    )


def combine(passed: Iterable[bool | None], needs: Literal["all", "any"]) -> bool | None:
    """Return whether all (or any) pass; None when what is not known could decide it."""
    values = list(passed)
    decided = needs == "any"
    if decided in values:
        return decided
    return None if None in values or not values else not decided


def retrieval_stages(
    items: Sequence[Evidence], answered: Answered
) -> list[tuple[bool | None, bool | None]]:
    """Return whether each item was retrieved, and whether it was shown to the model.

    Shown is the text of a text unit that holds it, or, of a quote, its words in the context; None
    where that is not known.
    """
    found = [_recorded_stages(item, answered) for item in items]
    if all(
        in_context or item.kind != "quote"
        for item, (_, in_context) in zip(items, found, strict=True)
    ):
        return found
    shown = QuotableTexts([answered.context_text])
    for position, item in enumerate(items):
        if found[position][1] or item.kind != "quote":
            continue
        if shown.rows_with(read_quote(item.text)):
            found[position] = (True, True)
        else:  # the whole context is known, even of a method that does not say what it retrieved
            found[position] = (found[position][0], False)
    return found


def _recorded_stages(item: Evidence, answered: Answered) -> tuple[bool | None, bool | None]:
    """Return (retrieved, in context) as far as the record of the retrieval tells."""
    if answered.failed:
        return False, False
    retrieved = answered.retrieved
    if retrieved is None or retrieved.text_unit_ids is None:
        return None, False if answered.context_text else None
    shown = not item.unit_ids.isdisjoint(retrieved.shown_text_unit_ids)
    return not item.unit_ids.isdisjoint(retrieved.text_unit_ids), shown


def _index_stages(
    sample: Sample, items: Sequence[Evidence], graph: IndexGraph, needs: Literal["all", "any"]
) -> tuple[bool | None, ...]:
    """Return the first four stages, which no method changes."""
    if sample.expected_entities:
        found = [graph.named(name) for name in sample.expected_entities if name.strip()]
        linked = [nodes & graph.linked for nodes in found]
    else:
        found = [_nodes_of(item, graph) for item in items]
        linked = [
            nodes & graph.linked_in(item.unit_ids) for nodes, item in zip(found, items, strict=True)
        ]
    return (
        combine((item.in_source for item in items), needs),
        combine((bool(item.unit_ids) for item in items), needs),
        combine((bool(nodes) for nodes in found), needs),
        _connected(linked, graph, needs),
    )


def _nodes_of(item: Evidence, graph: IndexGraph) -> set[int]:
    nodes = graph.taken_from(item.unit_ids)
    return graph.standing_in(item.text, nodes) if item.kind == "quote" else nodes


def _connected(
    linked: Sequence[set[int]], graph: IndexGraph, needs: Literal["all", "any"]
) -> bool | None:
    if needs == "any":
        return combine((bool(nodes) for nodes in linked), needs)
    components = [graph.components(nodes) for nodes in linked]
    return bool(set[int].intersection(*components)) if components else None


@dataclass(frozen=True, slots=True)
class LossRow:
    """One method's losses in one film; ``imdb_key`` is None for all films together.

    Attributes
    ----------
    n : int
        Responses: ``n_untraced + n_unmatched + sum(lost.values()) + n_kept + n_unjudged``.
    n_untraced : int
        Of questions without evidence.
    n_unmatched : int
        Of questions all of whose evidence is not in the text; they say nothing of a method.
    n_partly_unmatched : int
        Of questions some of whose evidence is not; traced by the rest. Cuts across the counts.
    lost : mapping
        Stage -> responses whose first break it is.
    right_anyway : mapping
        Stage -> those of them that were judged correct all the same.
    n_kept : int
        Right answers without a break.
    n_unjudged : int
        Answers without a verdict and without a break before it.
    n_right_without_evidence, n_retrieved_but_wrong : int
        These cut across the counts above.
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

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values."""
        return asdict(self)


def summarize_loss(records: Iterable[LossRecord]) -> list[LossRow]:
    """Count where it breaks: a row for each method and film, then one for each method."""
    groups: dict[tuple[str, str | None], list[LossRecord]] = {}
    for record in records:
        groups.setdefault((record.method, record.imdb_key), []).append(record)
        groups.setdefault((record.method, None), []).append(record)
    return [
        _count(*key, records)
        for key, records in sorted(groups.items(), key=lambda group: group[0][1] is None)
    ]


def _count(method: str, key: str | None, records: Sequence[LossRecord]) -> LossRow:
    traced = [record for record in records if record.n_evidence]
    lost = Counter(r.first_break for r in traced)
    right = Counter(r.first_break for r in traced if r.stage("judged_correct"))
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
        n_right_without_evidence=sum(r.is_right_without_evidence for r in traced),
        n_retrieved_but_wrong=sum(r.is_retrieved_but_wrong for r in traced),
    )
