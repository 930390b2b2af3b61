"""Extracted entities and relationships against expected ones."""

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
    """How a found set and an expected set agree, distinct names under the comparison.

    ``precision``: ``n_matched / n_found``, ``recall``: ``n_matched / n_expected``, ``f1``:
    ``2 n_matched / (n_found + n_expected)``; in [0, 1], None where nothing was found or expected.
    ``missed``, ``unexpected``: what was expected and not found, and the reverse, sorted; a
    relationship as ``source -> target``.
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
    """What was found in a text, or is expected of it: names, and pairs (source, target).

    ``types`` has one for each name, or is empty where nobody says; ``languages`` are those of the
    text, None: English. Neither is compared.
    """

    entities: tuple[str, ...] = ()
    relationships: tuple[Pair, ...] = ()
    types: tuple[str, ...] = field(default=(), compare=False)
    languages: Languages | None = field(default=None, compare=False)


class FoldedNames:
    """Names in which others are looked up, each folded once as :class:`NameRule` compares it.

    ``languages``: in those but English a name is found also with another ending, or with a particle
    of Korean, as names of the graph are in a question; and so is one that has the ending itself.
    """

    def __init__(self, names: Iterable[str], languages: Languages | None = None) -> None:
        self._folded = frozenset(map(fold_name, names))
        self._inflection = None if languages is None else Inflection(languages, by_stems=True)

    def __contains__(self, key: str) -> bool:
        """Say whether a folded name is one of them, as it is."""
        return key in self._folded

    def find(self, key: str) -> Sequence[str]:
        """Return the names that a folded one stands for: itself, else those that differ least."""
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

        whole, trunks = self._by_words
        for bare in (words, *without_particles(words)):
            equal: list[int] = whole.look_up(hash_keys([" ".join(bare)])[0])[1].tolist()
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
        """The names by their words, and by what those begin with: arrays, as there may be many."""
        from graphrag.query.graph.names import Names

        names = Names()
        names.add([phrase_key(name).strip() for name in self._listed])
        return names.index(), names.trunks(names.n)


@dataclass(frozen=True, slots=True)
class NameRule:
    """When two names are the same.

    Compared are the names in NFKC, case folded, blanks, hyphens and underscores all one blank,
    quotes as :func:`fold_text` folds them; in ``languages`` but English, None: English, also with
    other endings, see :class:`FoldedNames`. ``aliases``: other name -> name, followed to its end;
    names in a circle are one name.
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
        """Return what is compared; "" for a name that is blank."""
        folded = fold_name(name)
        return self._follow(next(iter(self._known.find(folded)), folded))

    def find(self, names: FoldedNames, key: str) -> str | None:
        """Return the key of the one of the names that has this key, or a form of it; else None."""
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
    """Compare entity names; blank ones are left out.

    The expected list must be complete for the precision and F1 to mean anything: against the
    titles of a whole index and the entities of one question, read the recall only.
    """
    rule = rule or NameRule()
    extracted_keys = {key for key in map(rule.key, extracted) if key}
    names = FoldedNames(extracted_keys, rule.languages)
    return _compare(extracted_keys, set(_expected_keys(names, expected, rule)))


def score_relationships(
    extracted: Iterable[Pair], expected: Iterable[Pair], rule: NameRule | None = None
) -> MatchScores:
    """Compare pairs (source, target) without direction: (a, b) is (b, a)."""
    rule = rule or NameRule()
    found = [(rule.key(source), rule.key(target)) for source, target in extracted]
    names = FoldedNames((end for pair in found for end in pair), rule.languages)
    keys = [tuple(map(rule.key, pair)) for pair in expected]
    known = [tuple(rule.find(names, end) or end for end in pair) for pair in keys]
    return _compare(_join_pairs(found), _join_pairs(known))


def recall_entities(
    names: FoldedNames, expected: Iterable[str], rule: NameRule | None = None
) -> float | None:
    """Return the share of the expected entities that have one of the names; None without any.

    The recall is that of :func:`score_entities`; the names of an index are folded once.
    """
    found = _expected_keys(names, expected, rule or NameRule())
    return sum(found.values()) / len(found) if found else None


def _expected_keys(names: FoldedNames, expected: Iterable[str], rule: NameRule) -> dict[str, bool]:
    """Return the keys of expected names, and whether they are among the names.

    A form of one of the names has its key, so that two forms of it count once.
    """
    keys = {key for key in map(rule.key, expected) if key}
    found = {key: rule.find(names, key) for key in keys}
    return {name or key: name is not None for key, name in found.items()}


@lru_cache(maxsize=2**12)  # the methods of a run are asked for the same entities
def fold_name(name: str) -> str:
    """Return a name as :class:`NameRule` compares it, without aliases; "" for a blank one."""
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
