"""Extracted entities and relationships against expected ones."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from graphrag.eval.metrics.quote_matching import fold_text

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

    ``types`` has one for each name, or is empty where nobody says; it is not compared.
    """

    entities: tuple[str, ...] = ()
    relationships: tuple[Pair, ...] = ()
    types: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class NameRule:
    """When two names are the same.

    Compared are the names in NFKC, case folded, blanks, hyphens and underscores all one blank,
    quotes as :func:`fold_text` folds them. ``aliases``: other name -> name, followed to its end;
    names in a circle are one name.
    """

    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    _folded: dict[str, str] = field(init=False, repr=False, default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self._folded.update((fold_name(a), fold_name(b)) for a, b in self.aliases.items())

    def key(self, name: str) -> str:
        """Return what is compared; "" for a name that is blank."""
        return self._follow(fold_name(name))

    def holds(self, names: Container[str], key: str) -> bool:
        """Say whether one of the names, each folded by :func:`fold_name`, has this key."""
        forms = (form for form in (key, *self._folded) if form in names)
        return any(self._follow(form) == key for form in forms)

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
    expected_keys = {key for key in map(rule.key, expected) if key}
    return _compare(extracted_keys, expected_keys)


def score_relationships(
    extracted: Iterable[Pair], expected: Iterable[Pair], rule: NameRule | None = None
) -> MatchScores:
    """Compare pairs (source, target) without direction: (a, b) is (b, a)."""
    rule = rule or NameRule()
    return _compare(_pair_keys(extracted, rule), _pair_keys(expected, rule))


def recall_entities(
    names: Container[str], expected: Iterable[str], rule: NameRule | None = None
) -> float | None:
    """Return the share of the expected entities that have one of the names; None without any.

    ``names``: each folded by :func:`fold_name`, so that those of an index are folded once. The
    recall is that of :func:`score_entities`.
    """
    rule = rule or NameRule()
    keys = {key for key in map(rule.key, expected) if key}
    return sum(rule.holds(names, key) for key in keys) / len(keys) if keys else None


@lru_cache(maxsize=2**12)  # the methods of a run are asked for the same entities
def fold_name(name: str) -> str:
    """Return a name as :class:`NameRule` compares it, without aliases; "" for a blank one."""
    return _JOINERS.sub(" ", fold_text(name)).strip()


def _pair_keys(pairs: Iterable[Pair], rule: NameRule) -> set[str]:
    keys = ((rule.key(source), rule.key(target)) for source, target in pairs)
    return {" -> ".join(sorted(pair)) for pair in keys if all(pair)}


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
