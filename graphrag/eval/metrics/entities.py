"""Compares extracted entities and relationships with the expected ones."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from graphrag.eval.metrics.quote_matching import fold_text, phrase_key
from graphrag.text.inflection import Inflection, without_particles
from graphrag.text.languages import Languages

if TYPE_CHECKING:
    from graphrag.query.graph.names import NameIndex, TrunkIndex

Pair: TypeAlias = tuple[str, str]
_JOINERS = re.compile(r"[\s_\-]+")


@dataclass(frozen=True, slots=True)
class MatchScores:
    """Precision, recall and F1 of the distinct names found against the expected ones.

    ``precision`` is ``n_matched / n_found``, ``recall`` is ``n_matched / n_expected`` and ``f1`` is
    ``2 n_matched / (n_found + n_expected)``: in [0, 1], or None if the divisor is 0. ``missed``
    lists the names that were expected and not found, ``unexpected`` the reverse, both sorted; a
    relationship is written as ``source -> target``.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    n_found: int
    n_expected: int
    n_matched: int
    missed: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """Entities and relationships that were found in a text, or are expected of it.

    ``relationships`` are pairs (source, target). ``types`` has one type per entity, or is empty if
    unknown. ``languages`` are those of the text; None means English. Types and languages are not
    compared.
    """

    entities: tuple[str, ...] = ()
    relationships: tuple[Pair, ...] = ()
    types: tuple[str, ...] = field(default=(), compare=False)
    languages: Languages | None = field(default=None, compare=False)


class FoldedNames:
    """A set of names, each folded once as :class:`NameRule` compares it, to look up others in.

    In ``languages`` other than English, a name is also found if one of the two names has another
    ending or a Korean particle, as names of the graph have in questions.
    """

    def __init__(self, names: Iterable[str], languages: Languages | None = None) -> None:
        self._folded = frozenset(map(fold_name, names))
        self._inflection = None if languages is None else Inflection(languages, by_stems=True)

    def __contains__(self, key: str) -> bool:
        """Return whether exactly this folded name is in the set."""
        return key in self._folded

    def find(self, key: str) -> Sequence[str]:
        """Return the names that match a folded one: the same name, else the most similar ones."""
        if key in self._folded:
            return (key,)
        if self._inflection is None or not self._folded:
            return ()
        words = phrase_key(key).split()
        if all(map(self._inflection.is_english, words)):
            return ()
        return self._find_form(words, self._inflection)

    def _find_form(self, words: Sequence[str], inflection: Inflection) -> Sequence[str]:
        from graphrag.query.graph.names import hash_keys

        index, trunks = self._by_words
        for bare in (words, *without_particles(words)):
            equal: list[int] = index.look_up(hash_keys([" ".join(bare)])[0])[1].tolist()
            if equal:
                return [self._listed[row] for row in equal]
        rows: list[int] = []
        for _, size, near in trunks.near(words, inflection.trunks):
            rows += near.tolist() if size == len(words) else []
        names = {row: phrase_key(self._listed[row]).split() for row in rows}
        nearest = inflection.nearest(names, words, either_way=True)
        return [self._listed[row] for row in nearest]

    @cached_property
    def _listed(self) -> list[str]:
        return sorted(self._folded)

    @cached_property
    def _by_words(self) -> "tuple[NameIndex, TrunkIndex]":
        """The names by their words, and by the beginnings of words, in arrays that save memory."""
        from graphrag.query.graph.names import Names

        names = Names()
        names.add([phrase_key(name).strip() for name in self._listed])
        return names.index(), names.trunks(names.n)


@dataclass(frozen=True, slots=True)
class NameRule:
    """Decides when two names are the same.

    Names are compared in NFKC and case-folded; blanks, hyphens and underscores all count as one
    blank; quotes are folded by :func:`fold_text`. In ``languages`` other than English (None:
    English) other endings match too, see :class:`FoldedNames`. ``aliases``: other name -> name; a
    chain of aliases is followed to its end, and aliases that form a circle are one name.
    """

    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    languages: Languages | None = None
    _folded: dict[str, str] = field(init=False, repr=False, default_factory=dict[str, str])
    _others: dict[str, list[str]] = field(
        init=False, repr=False, default_factory=dict[str, list[str]]
    )
    _known: FoldedNames = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._folded.update((fold_name(a), fold_name(b)) for a, b in self.aliases.items())
        for other in self._folded:
            self._others.setdefault(self._follow(other), []).append(other)
        object.__setattr__(self, "_known", FoldedNames(self._folded, self.languages))

    def key(self, name: str) -> str:
        """Return the form of a name that is compared; "" for a blank name."""
        folded = fold_name(name)
        return self._follow(next(iter(self._known.find(folded)), folded))

    def find(self, names: FoldedNames, key: str) -> str | None:
        """Return the key of the name that has this key or a form of it; None without one."""
        forms = [key, *self._others.get(key, ())]
        if any(form in names for form in forms):
            return key
        return next((self._follow(name) for form in forms for name in names.find(form)), None)

    def _follow(self, key: str) -> str:
        seen = set[str]()
        while key in self._folded and key not in seen:
            seen.add(key)
            key = self._folded[key]
        return min(seen) if key in seen else key


def score_entities(
    extracted: Iterable[str], expected: Iterable[str], rule: NameRule | None = None
) -> MatchScores:
    """Compare extracted entity names with the expected ones; blank names are left out.

    Precision and F1 mean something only if the expected list is complete. If you compare the titles
    of a whole index with the entities of one question, read only the recall.
    """
    rule = rule or NameRule()
    extracted_keys = {key for key in map(rule.key, extracted) if key}
    names = FoldedNames(extracted_keys, rule.languages)
    return _compare(extracted_keys, set(_expected_keys(names, expected, rule)))


def score_relationships(
    extracted: Iterable[Pair], expected: Iterable[Pair], rule: NameRule | None = None
) -> MatchScores:
    """Compare pairs (source, target) without direction: (a, b) equals (b, a)."""
    rule = rule or NameRule()
    found = [(rule.key(source), rule.key(target)) for source, target in extracted]
    names = FoldedNames((end for pair in found for end in pair), rule.languages)
    keys = [tuple(map(rule.key, pair)) for pair in expected]
    known = [tuple(rule.find(names, end) or end for end in pair) for pair in keys]
    return _compare(_join_pairs(found), _join_pairs(known))


def recall_entities(
    names: FoldedNames, expected: Iterable[str], rule: NameRule | None = None
) -> float | None:
    """Return the share of the expected entities that are among the names; None without any.

    It is the recall of :func:`score_entities`, for the names of an index, which are folded once.
    """
    found = _expected_keys(names, expected, rule or NameRule())
    return sum(found.values()) / len(found) if found else None


def _expected_keys(names: FoldedNames, expected: Iterable[str], rule: NameRule) -> dict[str, bool]:
    """Return key -> whether it is among the names, for each expected name.

    A form of one of the names gets that name's key, so that two forms count once.
    """
    keys = {key for key in map(rule.key, expected) if key}
    found = {key: rule.find(names, key) for key in keys}
    return {name or key: name is not None for key, name in found.items()}


@lru_cache(maxsize=2**12)  # the methods of a run are asked for the same entities
def fold_name(name: str) -> str:
    """Return a name folded for :class:`NameRule`, before its aliases; "" for a blank name."""
    return _JOINERS.sub(" ", fold_text(name)).strip()


def _join_pairs(pairs: Iterable[Sequence[str]]) -> set[str]:
    return {" -> ".join(sorted(pair)) for pair in pairs if all(pair)}


def _compare(extracted: set[str], expected: set[str]) -> MatchScores:
    n_matched = len(extracted & expected)
    total = len(extracted) + len(expected)
    return MatchScores(
        precision=n_matched / len(extracted) if extracted else None,
        recall=n_matched / len(expected) if expected else None,
        f1=2 * n_matched / total if total else None,
        n_found=len(extracted),
        n_expected=len(expected),
        n_matched=n_matched,
        missed=tuple(sorted(expected - extracted)),
        unexpected=tuple(sorted(extracted - expected)),
    )
