"""Where an answer was lost: the stages from the source to the verdict, without asking a model."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphrag.eval.dataset import Sample
from graphrag.eval.measures.entities import NameRule, component_labels
from graphrag.eval.measures.evidence import Evidence, SourceIndex
from graphrag.eval.measures.index_columns import id_lists_of, texts_of
from graphrag.eval.measures.quotes import QuotableTexts, phrase_key, read_quote
from graphrag.eval.measures.response import Answered
from graphrag.eval.measures.wording import STATEMENT_SHARE, states_answer

if TYPE_CHECKING:
    import pandas as pd

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
STAGES: tuple[Stage, ...] = (
    "in_source",
    "in_text_unit",
    "extracted",
    "connected",
    "retrieved",
    "in_context",
    "in_answer",
    "judged_correct",
)
# What a method can do without. Basic search reads text units only; local search and DRIFT go from
# entities to text units; an unknown method is not assumed to use the graph.
GRAPH_STAGES: tuple[Stage, ...] = ("extracted", "connected")
NOT_NEEDED: Mapping[str, tuple[Stage, ...]] = {
    "tog": (),
    "global": (),
    "local": ("connected",),
    "drift": ("connected",),
    "basic": GRAPH_STAGES,
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

    def to_dict(self) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class TracedEvidence:
    """A sample's evidence in an index.

    Attributes
    ----------
    items : tuple of Evidence
        What the text holds.
    n_unmatched : int
        Entries that it does not hold.
    stages : tuple of (bool or None)
        The first four stages of the items, which no method changes.
    """

    items: tuple[Evidence, ...]
    n_unmatched: int
    stages: tuple[bool | None, ...]


class TracedIndex:
    """What one index made of each piece of evidence; tables are read once.

    Parameters
    ----------
    sources : SourceIndex
        Made with the documents, or "in the source" can't be said of what no text unit holds.
    entities : pandas.DataFrame or None
        ``title``, ``text_unit_ids``.
    relationships : pandas.DataFrame or None
        ``source``, ``target``, ``text_unit_ids``.
    """

    def __init__(
        self,
        sources: SourceIndex,
        entities: "pd.DataFrame | None",
        relationships: "pd.DataFrame | None",
    ) -> None:
        self.sources = sources
        titles = texts_of(entities, "title")
        node_of = {title: node for node, title in enumerate(titles)}
        rule = NameRule()
        self._rule = rule
        self._keys = [phrase_key(title) for title in titles]
        self._nodes_named: dict[str, set[int]] = {}
        for node, title in enumerate(titles):
            self._nodes_named.setdefault(rule.key(title), set()).add(node)
        self._in_unit: dict[str, set[int]] = {}
        for node, units in enumerate(id_lists_of(entities, "text_unit_ids")):
            for unit in units:
                self._in_unit.setdefault(unit, set()).add(node)
        self._linked_in_unit: dict[str, set[int]] = {}
        pairs: list[tuple[int, int]] = []
        for source, target, units in zip(
            texts_of(relationships, "source"),
            texts_of(relationships, "target"),
            id_lists_of(relationships, "text_unit_ids"),
            strict=True,
        ):
            pair = (node_of.get(source, -1), node_of.get(target, -1))
            if min(pair) < 0:
                continue
            pairs.append(pair)
            for unit in units:
                self._linked_in_unit.setdefault(unit, set()).update(pair)
        joined = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self._linked = {int(node) for node in np.unique(joined)}
        self._component = component_labels(len(titles), joined) if titles else np.zeros(0, np.int32)
        self._traced: dict[Hashable, TracedEvidence] = {}

    def trace(self, sample: Sample, needs: Literal["all", "any"] = "all") -> "TracedEvidence":
        """Return what of a sample's evidence the text holds, and the stages of the index."""
        key = (needs, sample.evidence, sample.expected_sources, sample.expected_entities)
        if key not in self._traced:
            given = self.sources.evidence_of(sample)
            items = tuple(item for item in given if item.is_held)
            stages = self._index_stages(sample, items, needs)
            self._traced[key] = TracedEvidence(items, len(given) - len(items), stages)
        return self._traced[key]

    def _index_stages(
        self, sample: Sample, items: Sequence[Evidence], needs: Literal["all", "any"]
    ) -> tuple[bool | None, ...]:
        if sample.expected_entities:
            named = [self._nodes_named.get(self._rule.key(e), set()) for e in _named(sample)]
            linked = [nodes & self._linked for nodes in named]
        else:
            named = [self._nodes_of(item) for item in items]
            linked = [
                nodes & _union(self._linked_in_unit, item.unit_ids)
                for nodes, item in zip(named, items, strict=True)
            ]
        return (
            combine((item.in_source for item in items), needs),
            combine((bool(item.unit_ids) for item in items), needs),
            combine((bool(nodes) for nodes in named), needs),
            self._connected(linked, needs),
        )

    def _nodes_of(self, item: Evidence) -> set[int]:
        nodes = _union(self._in_unit, item.unit_ids)
        if item.kind != "quote":
            return nodes
        said = phrase_key(item.text)
        return {node for node in nodes if self._keys[node] and self._keys[node] in said}

    def _connected(self, linked: Sequence[set[int]], needs: Literal["all", "any"]) -> bool | None:
        if needs == "any":
            return combine((bool(nodes) for nodes in linked), needs)
        components = [{int(self._component[node]) for node in nodes} for nodes in linked]
        return bool(set[int].intersection(*components)) if components else None


def trace_loss(
    sample: Sample, answered: Answered, index: TracedIndex, settings: LossSettings | None = None
) -> LossRecord:
    """Follow one question from the source to the verdict.

    Parameters
    ----------
    sample : Sample
    answered : Answered
        The response to it; its retrieval may be missing, and then stages are None.
    index : TracedIndex
        Of the sample's ``imdb_key``.
    settings : LossSettings or None

    Returns
    -------
    LossRecord
        With ``n_evidence`` 0 and every stage None when the sample names no evidence, or none
        that the text holds.

    Notes
    -----
    Evidence that the text does not hold is a fault of the dataset, and is left out and counted.
    in_source, in_text_unit: the quote stands there (:class:`SourceIndex`). extracted: the index
    has an entity from that text unit whose title stands in the quote (or, if the sample lists
    expected entities, has those). connected: such an entity has a relationship taken from that
    text unit, and all are in one component. retrieved: a text unit with the quote is in the
    ranked list, or the quote stands in the context. in_context: the text of such a unit was
    shown, or the quote stands in the context. in_answer: :func:`states_answer`, or the verdict
    is 1. judged_correct: the verdict.
    """
    settings = settings or LossSettings()
    traced = index.trace(sample, settings.needs)
    items = traced.items
    skipped = settings.skipped(answered.method)
    if not items:
        return LossRecord(
            answered.sample_id,
            answered.imdb_key,
            answered.method,
            0,
            (None,) * len(STAGES),
            skipped,
            traced.n_unmatched,
        )
    found = [_retrieval_stages(item, answered) for item in items]
    shown = QuotableTexts([answered.context_text])
    for position, item in enumerate(items):
        if found[position][1] or item.kind != "quote":
            continue
        if shown.rows_with(read_quote(item.text)):
            found[position] = (True, True)
        else:  # the whole context is known, even of a method that does not say what it retrieved
            found[position] = (found[position][0], False)
    judged = None if answered.correctness is None else answered.correctness == 1
    said = "" if answered.failed else answered.response
    stated = states_answer(sample.ground_truth, said, settings.statement_share)
    return LossRecord(
        sample_id=answered.sample_id,
        imdb_key=answered.imdb_key,
        method=answered.method,
        n_evidence=len(items),
        stages=(
            *traced.stages,
            combine((retrieved for retrieved, _ in found), settings.needs),
            combine((in_context for _, in_context in found), settings.needs),
            True if judged else stated,
            judged,
        ),
        not_needed=skipped,
        n_unmatched=traced.n_unmatched,
    )


def combine(passed: Iterable[bool | None], needs: Literal["all", "any"]) -> bool | None:
    """Return whether all (or any) pass; None when what is not known could decide it."""
    values = list(passed)
    decided = needs == "any"
    if decided in values:
        return decided
    return None if None in values or not values else not decided


def _retrieval_stages(item: Evidence, answered: Answered) -> tuple[bool | None, bool | None]:
    """Return (retrieved, in context) as far as the record of the retrieval tells."""
    if answered.failed:
        return False, False
    retrieved = answered.retrieved
    if retrieved is None or retrieved.text_unit_ids is None:
        return None, False if answered.context_text else None
    shown = not item.unit_ids.isdisjoint(retrieved.shown_text_unit_ids)
    return not item.unit_ids.isdisjoint(retrieved.text_unit_ids), shown


def _union(of_unit: Mapping[str, set[int]], units: Iterable[str]) -> set[int]:
    return set[int]().union(*(of_unit.get(unit, ()) for unit in units))


def _named(sample: Sample) -> list[str]:
    return [name for name in sample.expected_entities if name.strip()]
