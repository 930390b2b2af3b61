"""Makes the rows that lead a model on to texts or relationships that it was not shown yet."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from graphrag.query.graph.store import GraphStore, RelationshipRow, TextUnits
from graphrag.text.languages import Languages
from graphrag.text.message_phrases import shorten
from graphrag.text.sentences import sentences
from graphrag.text.tokenize import split_terms

_short = partial(shorten, n_chars=60, mark="…", at_space=True)
_short_sentence = partial(_short, n_chars=160)
# How many names of a text are searched for a relationship, how many entities for their
# relationships, and how many edges of a name.
_N_JOINING = 8
_N_HEAVIEST = 100
_N_EDGES = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One step that a model may follow: to a passage, or to a relationship.

    - ``names``: the link to the texts shown: "A -> B" for a relationship as stored, "A" for a
      name in both, "" if only the ranking leads there.
    - ``document``, ``sentence``: the title and the nearest sentence of the text it leads to.
    - ``passage``: place of the passage, None for a relationship.
    - ``relationship``: row of the relationship in its table, None if there is none.
    - ``forward``: whether the relationship is walked from its stored source.
    """

    names: str
    document: str
    sentence: str
    passage: int | None = None
    relationship: int | None = None
    forward: bool = True

    @property
    def label(self) -> str:
        """The row in one line, as reports of a search show it."""
        return " | ".join(filter(None, (self.names, self.document, self.sentence)))


def rows_to_texts(
    ranked: Sequence[int], context: Sequence[int], query: str, store: GraphStore, texts: TextUnits
) -> list[Row]:
    """Make the rows that lead to the ``ranked`` passages, in their order.

    ``ranked`` and ``context`` (the passages shown) are given by place. ``query`` is the question
    and the texts looked up. A row shows the sentence with most words of the query and of the
    joining names, rare words first. The joining names occur in the passages shown or in the query.
    No sentence appears twice, and no titles appear if all passages are of one document.
    """
    named = store.with_forms(store.nodes_named_in(query))
    here = {*named, *(n for place in context for n in _entities(texts.row(place), store))}
    passages = [texts.passage(place) for place in ranked]
    units = [passage.joined([passage.number]) for passage in passages]
    bare = (unit.text.strip().removeprefix(unit.document) for unit in units)
    split = [[s for s in sentences(text) if any(map(str.isalnum, s))] for text in bare]
    nearest = _Nearest([s for own in split for s in own], query, store.languages)
    documents = {unit.document for unit in units}
    documents |= {texts.passage(place).unit.document for place in context}
    rows: dict[str, Row] = {}
    for place, unit, own in zip(ranked, units, split, strict=True):
        row = texts.row(place)
        there = _entities(row, store)
        common = sorted((n for n in there if n in here), key=store.frequency)[:_N_JOINING]
        names, relationship, forward = "", None, True
        if joined := _find_relationship(common, there, unit.id, store):
            relationship, forward = joined
            names = _ends(store.relationship_row(relationship))
        elif common and common[0] != int(store.arrays.unit_topics[row]):
            names = _short(store.title(common[0]))
        sentence = nearest.find(own, names)
        document = _short(unit.document) if len(documents) > 1 else ""
        rows.setdefault(
            sentence,
            Row(
                names=names,
                document=document,
                sentence=sentence,
                passage=place,
                relationship=relationship,
                forward=forward,
            ),
        )
    return list(rows.values())


def rows_to_relationships(
    masses: Mapping[int, float], excluded: AbstractSet[int], store: GraphStore, cap: int
) -> list[Row]:
    """Make the rows that lead to relationships between entities with much mass, most first.

    ``masses`` maps node to mass; the relationships of the 100 nodes with the greatest mass are
    considered, at most ``cap`` of each. ``excluded`` are rows of relationships to leave out.
    """
    nodes = sorted(masses, key=lambda n: (-round(masses[n], 12), store.title(n)))[:_N_HEAVIEST]
    worth: dict[int, tuple[float, bool]] = {}
    for node in nodes:
        for other, signed in store.neighbours(node, cap):
            mass = round(masses[node] * masses.get(other, 0.0), 15)
            worth.setdefault(abs(signed) - 1, (mass, signed > 0))
    rows: list[Row] = []
    for relationship in sorted(worth, key=lambda row: (-worth[row][0], row)):
        if relationship not in excluded:
            edge, forward = store.relationship_row(relationship), worth[relationship][1]
            sentence = _short_sentence(edge.description)
            rows.append(
                Row(
                    names=_ends(edge),
                    document="",
                    sentence=sentence,
                    passage=None,
                    relationship=relationship,
                    forward=forward,
                )
            )
    return rows


def _ends(edge: RelationshipRow) -> str:
    return f"{_short(edge.source)} -> {_short(edge.target)}"


def _entities(unit: int, store: GraphStore) -> list[int]:
    arrays = store.arrays
    names = arrays.unit_names[arrays.unit_ptr[unit] : arrays.unit_ptr[unit + 1]]
    return names[names < store.n_entities].tolist()


def _find_relationship(
    common: Sequence[int], there: Sequence[int], unit: str, store: GraphStore
) -> tuple[int, bool] | None:
    """Return the heaviest relationship of the rarest name that was extracted from a text unit.

    None if no relationship of the common names was extracted from it.
    """
    ends = set(there)
    for name in common:
        for other, signed in store.neighbours(name, _N_EDGES):
            if other in ends:
                relationship = abs(signed) - 1
                if unit in store.relationship_row(relationship).text_unit_ids:
                    return relationship, signed > 0
    return None


class _Nearest:
    """Finds the sentence nearest to a query by shared words; words rare in the texts weigh more."""

    def __init__(self, texts: Sequence[str], query: str, languages: Languages) -> None:
        self._languages = languages
        self._terms = dict(zip(texts, map(self._stems, split_terms(texts)), strict=True))
        counts = Counter(term for terms in self._terms.values() for term in terms)
        n = len(self._terms)
        self._weight = {term: math.log(1 + n / count) for term, count in counts.items()}
        self._wanted = self._stems(split_terms([query])[0])

    def find(self, texts: Sequence[str], names: str) -> str:
        """Return the sentence with most of the words of the query and of the names."""
        words = self._wanted | self._stems(split_terms([names])[0])

        def worth(sentence: str) -> float:
            terms = self._terms[sentence]
            return sum(self._weight[term] for term in terms & words) / (8 + len(terms)) ** 0.5

        return _short_sentence(max(texts, key=worth, default=""))

    def _stems(self, terms: Sequence[str]) -> frozenset[str]:
        telling_stems = self._languages.telling_stems
        return frozenset(stem for term in terms for stem in telling_stems(term))
