"""Answer a question with the sentences of a context that fit it best."""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from graphrag.offline import NOT_FOUND
from graphrag.offline.extraction import is_heading
from graphrag.offline.names import PLACE_HEADS, QUESTION_WORDS, find_mentions, name_key, split_words
from graphrag.text.tables import Record
from graphrag.text.words import first_words, normalize, sentences, share_covered, terms

MIN_COVERAGE = 0.25
"""Least share of the question's weight that a sentence must cover to count as an answer."""

SUFFICIENT_COVERAGE = 0.6
"""Share of the question's weight from which one sentence is enough of an answer."""

CITATION = re.compile(r"\[Data:[^\]]*\]")

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
class Match:
    """A sentence of the context that fits the question.

    ``coverage`` is the share of the question's weight that it covers, in [0, 1]; ``rank``, which
    the order goes by, has the bonuses and the table's trust in it.
    """

    sentence: str
    record: Record
    coverage: float
    rank: float

    @property
    def text(self) -> str:
        """The sentence, cut where it is long."""
        return first_words(self.sentence, _MAX_ANSWER_WORDS)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the weight (> 0) of each of its terms in one context, sorted by term."""

    text: str
    weights: tuple[tuple[str, float], ...]

    def share_covered(self, present: Collection[str]) -> float:
        """Return the share of the weight, in [0, 1], of the terms that are present."""
        total = sum(weight for _, weight in self.weights)
        hit = sum(weight for term, weight in self.weights if term in present)
        return hit / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The chosen sentences, best first, and the question's terms no record has."""

    matches: tuple[Match, ...]
    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as prose, without citations; `NOT_FOUND` when there are none."""
        return " ".join(match.text for match in self.matches) or NOT_FOUND

    @property
    def cited(self) -> str:
        """The sentences, each followed by ``[Data: Table (id)]``."""
        cited = (f"{m.text} [Data: {m.record.table} ({m.record.id})]" for m in self.matches)
        return " ".join(cited) or NOT_FOUND

    @property
    def coverage(self) -> float:
        """Coverage of the best sentence, in [0, 1]; 0.0 when there is none."""
        return self.matches[0].coverage if self.matches else 0.0


@cache
def _halved_terms() -> frozenset[str]:
    return frozenset(stemmed for word in QUESTION_WORDS for stemmed in terms(word))


def weigh_question(question: str, bags: Sequence[frozenset[str]]) -> Question:
    """Weigh a question's terms by how rare they are among sentences, given the terms of each.

    ``ln(1 + (n - df + 0.5) / (df + 0.5))``, the inverse document frequency of BM25;
    words that only shape questions count half, and so do words that no sentence has.
    """
    half = _halved_terms()
    count = Counter(term for bag in bags for term in bag)
    weights = tuple(
        (
            term,
            math.log(1 + (len(bags) - count[term] + 0.5) / (count[term] + 0.5))
            * (0.5 if term in half else 1.0)
            * (1.0 if count[term] else _ABSENT),
        )
        for term in sorted(set(terms(question)))
    )
    return Question(question, weights)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence of a record, its terms, the record's label's, and whether it is the first."""

    sentence: str
    record: Record
    bag: frozenset[str]
    label: frozenset[str]
    opens: bool


def answer_question(question: str, records: Sequence[Record]) -> Answer:
    """Choose one to three sentences of the records, or none.

    A sentence ranks by the share of the question's weight it covers, half of what its row's
    other columns and its neighbors add, and a bonus when it holds what the
    question asks for (who: another person; where: a place; when, how many: a number; why: a
    reason). A sentence that several records share counts for the first.
    """
    labels = [frozenset(terms(record.label)) for record in records]
    candidates = [
        _Candidate(sentence, record, bag, label, position == 0)
        for record, label in zip(records, labels, strict=True)
        for position, (sentence, bag) in enumerate(_split(record.text))
        if not is_heading(sentence)
    ]
    weighed = weigh_question(question, [candidate.bag for candidate in candidates])
    best: dict[str, Match] = {}
    for at, candidate in enumerate(candidates):
        near = frozenset[str]() if candidate.opens else candidates[at - 1].bag
        if at + 1 < len(candidates) and not candidates[at + 1].opens:
            near |= candidates[at + 1].bag
        match = _match(weighed, candidate, near)
        if match is not None:
            key = " ".join(terms(candidate.sentence, keep_stop_words=True))
            best[key] = max(best.get(key, match), match, key=lambda m: m.rank)
    ranked = sorted(best.values(), key=lambda m: -m.rank)
    present = frozenset[str]().union(*(candidate.bag for candidate in candidates), *labels)
    missing = dict.fromkeys(term for term in terms(question) if term not in present)
    return Answer(tuple(_choose(ranked)), tuple(missing))


@lru_cache(maxsize=8192)
def _split(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return a text's sentences and the terms of each; an index's rows come again and again."""
    return tuple((sentence, frozenset(terms(sentence))) for sentence in sentences(text))


def _match(question: Question, candidate: _Candidate, near: frozenset[str]) -> Match | None:
    bag, sentence, record = candidate.bag, candidate.sentence, candidate.record
    own = question.share_covered(bag)
    if own == 0.0 or len(bag) < 2:
        return None
    label = question.share_covered(bag | candidate.label) - own
    around = question.share_covered(bag | near) - own
    coverage = min(1.0, min(1.0, own + _LABEL_SHARE * label) + _NEIGHBOUR_SHARE * around)
    if coverage < MIN_COVERAGE:
        return None
    rank = coverage + _TYPE_BONUS * fits_type(question.text, sentence)
    rank -= _FRAGMENT_LOSS * (sentence[0].islower() or sentence[-1].isalnum())
    rank -= 0.002 * max(0, len(sentence.split()) - 40)
    return Match(sentence, record, coverage, rank * _TRUST.get(record.table, 0.9))


def _choose(ranked: Sequence[Match]) -> list[Match]:
    chosen: list[Match] = []
    for match in ranked:
        if len(chosen) == _MAX_SENTENCES or (chosen and match.rank < _CLOSE * chosen[0].rank):
            break
        bag = set(terms(match.sentence))
        if not any(share_covered(bag, set(terms(c.sentence))) > 0.7 for c in chosen):
            chosen.append(match)
    return chosen


def fits_type(question: str, sentence: str) -> bool:
    """Whether a sentence holds the kind of thing a question asks for.

    True too when the question does not say what kind.
    """
    words = normalize(question).split()
    low, opening = normalize(sentence), {*words[:4]}
    if {"who", "whom", "whose"} & opening:
        named = set(name_key(question))
        mentions = find_mentions([split_words("so " + sentence)])[0]
        return any(set(name_key(mention.name)) - named for mention in mentions)
    if "where" in opening:
        return any(place in PLACE_HEADS or place[:1].isalpha() for place in _WHERE.findall(low))
    if "when" in opening or ("how" in opening and {"many", "much", "old", "long"} & {*words}):
        return any(term[:1].isdigit() for term in terms(sentence)) or "day" in low
    if "why" in opening:
        return _WHY.search(low) is not None
    return True
