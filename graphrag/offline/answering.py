"""Answer a question with the sentences of a context that fit it best."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from graphrag.offline.errors import NOT_FOUND
from graphrag.offline.lexicon import PLACE_HEADS, QUESTION_WORDS
from graphrag.offline.names import find_mentions, name_key, split_words
from graphrag.offline.segments import is_heading
from graphrag.text.tables import Record
from graphrag.text.words import normalize, sentences, share_covered, shorten, terms

MIN_COVERAGE = 0.25
"""Least share of the question's weight that a sentence must cover to count as an answer."""

SUFFICIENT_COVERAGE = 0.6
"""Share of the question's weight from which one sentence is enough of an answer."""

_TYPE_BONUS = 0.2
_NEIGHBOUR_SHARE = 0.5
# Chunks are cut anywhere; half a sentence reads badly and often stands whole in the next.
_FRAGMENT_LOSS = 0.1
_LABEL_SHARE = 0.5
_CLOSE = 0.6
# A word that the whole context lacks says less about it than a rare one that it has.
_ABSENT = 0.5
_MAX_SENTENCES = 3
_MAX_ANSWER_WORDS = 60
_TRUST = {"Sources": 1.0, "Relationships": 0.97, "Paths": 0.95, "Entities": 0.93, "Reports": 0.85}
_WHERE = re.compile(r"\b(?:in|at|near|to|into|from|on|inside|outside)\s+(?:the\s+|an?\s+)?(\w+)")
_WHY = re.compile(r"\b(?:because|since|so that|in order to|to \w+|as he|as she|for fear)\b")


@dataclass(frozen=True, slots=True)
class Found:
    """A sentence of the context that fits the question.

    Parameters
    ----------
    sentence : str
        The sentence.
    record : Record
        The row it comes from.
    coverage : float
        Share of the question's inverse-document-frequency weight it covers, in [0, 1].
    rank : float
        Coverage with the bonuses and the table's trust; what the order goes by.
    """

    sentence: str
    record: Record
    coverage: float
    rank: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its distinct terms, and the weight of each in one context.

    Attributes
    ----------
    text : str
    wanted : tuple of str
        In the order of the question.
    weight : mapping
        Term -> its weight (> 0).
    """

    text: str
    wanted: tuple[str, ...]
    weight: Mapping[str, float]
    _weighed: tuple[tuple[str, float], ...] = field(init=False, repr=False)
    _total: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort once what every sentence of a context is held against."""
        weighed = tuple(sorted(self.weight.items()))
        object.__setattr__(self, "_weighed", weighed)
        object.__setattr__(self, "_total", sum(weight for _, weight in weighed))

    def share_covered(self, present: Collection[str]) -> float:
        """Return the share of the weight, in [0, 1], of the terms that are present."""
        hit = sum(weight for term, weight in self._weighed if term in present)
        return hit / self._total if self._total else 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The chosen sentences, best first, and the question's terms no record has."""

    found: tuple[Found, ...]
    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as prose, without citations; `NOT_FOUND` when there are none."""
        if not self.found:
            return NOT_FOUND
        return " ".join(shorten(found.sentence, _MAX_ANSWER_WORDS) for found in self.found)

    @property
    def cited(self) -> str:
        """The sentences, each followed by ``[Data: Table (id)]``."""
        if not self.found:
            return NOT_FOUND
        return " ".join(
            f"{shorten(found.sentence, _MAX_ANSWER_WORDS)} "
            f"[Data: {found.record.table} ({found.record.id})]"
            for found in self.found
        )

    @property
    def coverage(self) -> float:
        """Coverage of the best sentence, in [0, 1]; 0.0 when there is none."""
        return self.found[0].coverage if self.found else 0.0


@cache
def _halved_terms() -> frozenset[str]:
    return frozenset(stemmed for word in QUESTION_WORDS for stemmed in terms(word))


def weigh_question(question: str, bags: Sequence[frozenset[str]]) -> Question:
    """Weigh a question's terms by how rare they are among sentences.

    ``ln(1 + (n - df + 0.5) / (df + 0.5))``, the inverse document frequency of BM25;
    words that only shape questions count half, and so do words that no sentence has.

    Parameters
    ----------
    question : str
        Any text.
    bags : Sequence[frozenset[str]]
        Terms of each candidate sentence.
    """
    half = _halved_terms()
    wanted = tuple(dict.fromkeys(terms(question)))
    count = Counter(term for bag in bags for term in bag)
    weight = {
        term: math.log(1 + (len(bags) - count[term] + 0.5) / (count[term] + 0.5))
        * (0.5 if term in half else 1.0)
        * (1.0 if count[term] else _ABSENT)
        for term in wanted
    }
    return Question(question, wanted, weight)


def answer_question(question: str, records: Sequence[Record]) -> Answer:
    """Choose one to three sentences of the records, or none.

    A sentence ranks by the share of the question's weight it covers, half of what its row's
    other columns and its neighbours add, and a bonus when it holds what the
    question asks for (who: another person; where: a place; when, how many: a number; why: a
    reason).

    Parameters
    ----------
    question : str
        The question.
    records : Sequence[Record]
        The context; a sentence that several records share counts for the first.
    """
    labels = [frozenset(terms(record.label)) for record in records]
    candidates = [
        _Candidate(sentence, record, label, position == 0)
        for record, label in zip(records, labels, strict=True)
        for position, sentence in enumerate(sentences(record.text))
        if not is_heading(sentence)
    ]
    bags = [frozenset(terms(candidate.sentence)) for candidate in candidates]
    asked = weigh_question(question, bags)
    known = frozenset[str]().union(*bags, *labels)
    missing = tuple(term for term in asked.wanted if term not in known)
    found: dict[str, Found] = {}
    for at, candidate in enumerate(candidates):
        before = frozenset[str]() if candidate.opens else bags[at - 1]
        goes_on = at + 1 < len(bags) and not candidates[at + 1].opens
        near = before | bags[at + 1] if goes_on else before
        item = _judge(asked, candidate, bags[at], near)
        if item is None:
            continue
        key = " ".join(terms(candidate.sentence, keep_stop_words=True))
        if key not in found or item.rank > found[key].rank:
            found[key] = item
    ranked = sorted(found.values(), key=lambda f: -f.rank)
    return Answer(tuple(_best(ranked)), missing)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence of a record, the terms of the record's label, and whether it is the first."""

    sentence: str
    record: Record
    label: frozenset[str]
    opens: bool


def _judge(
    asked: Question, candidate: _Candidate, bag: frozenset[str], near: frozenset[str]
) -> Found | None:
    own = asked.share_covered(bag)
    if own == 0.0 or len(bag) < 2:
        return None
    sentence, record = candidate.sentence, candidate.record
    label = asked.share_covered(bag | candidate.label) - own
    coverage = min(1.0, own + _LABEL_SHARE * label)
    around = asked.share_covered(bag | near) - own
    coverage_with_neighbours = min(1.0, coverage + _NEIGHBOUR_SHARE * around)
    if coverage_with_neighbours < MIN_COVERAGE:
        return None
    rank = coverage_with_neighbours + _TYPE_BONUS * fits_type(asked.text, sentence)
    rank -= _FRAGMENT_LOSS * (sentence[0].islower() or sentence[-1].isalnum())
    rank -= 0.002 * max(0, len(sentence.split()) - 40)
    return Found(sentence, record, coverage_with_neighbours, rank * _TRUST.get(record.table, 0.9))


def _best(ranked: Sequence[Found]) -> list[Found]:
    chosen: list[Found] = []
    for found in ranked:
        if chosen and found.rank < _CLOSE * chosen[0].rank:
            break
        bag = set(terms(found.sentence))
        repeated = any(share_covered(bag, set(terms(c.sentence))) > 0.7 for c in chosen)
        if not repeated:
            chosen.append(found)
        if len(chosen) == _MAX_SENTENCES:
            break
    return chosen


def fits_type(question: str, sentence: str) -> bool:
    """Whether a sentence holds the kind of thing a question asks for.

    True too when the question does not say what kind.
    """
    asked = normalize(question).split()
    low = normalize(sentence)
    if not asked:
        return True
    if {"who", "whom", "whose"} & set(asked[:4]):
        named = set(name_key(question))
        found = find_mentions([split_words("so " + sentence)])[0]
        return any(set(name_key(mention.name)) - named for mention in found)
    if "where" in asked[:4]:
        return any(place in PLACE_HEADS or place[:1].isalpha() for place in _WHERE.findall(low))
    if "when" in asked[:4] or ("how" in asked[:4] and {"many", "much", "old", "long"} & set(asked)):
        return any(term[:1].isdigit() for term in terms(sentence)) or "day" in low
    if "why" in asked[:4]:
        return _WHY.search(low) is not None
    return True
