"""Answers search prompts with the sentences of their context that fit the question best.

It knows the prompts of local, basic, global, drift and agentic search, and of Think-on-Graph.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain

from graphrag.embedded import NOT_FOUND
from graphrag.embedded.extraction import is_heading
from graphrag.embedded.names import (
    PLACE_HEADS,
    QUESTION_WORDS,
    find_mentions,
    name_key,
    split_words,
)
from graphrag.embedded.requests import Reply, Request
from graphrag.text.citations import CITATION
from graphrag.text.context_tables import Record, context_region, read_context
from graphrag.text.sentences import first_words, sentences
from graphrag.text.stems import ENGLISH, language_read, read_as, share_covered, terms
from graphrag.text.tokenize import fold

MIN_COVERAGE = 0.25
"""Least share of the question's weight that a sentence must cover to be an answer."""

SUFFICIENT_COVERAGE = 0.6
"""Share of the question's weight from which one sentence is a sufficient answer."""


_TYPE_BONUS = 0.2
_NEIGHBOUR_SHARE = 0.5
# Chunks are cut anywhere; half a sentence reads badly and is often complete in the next.
_FRAGMENT_LOSS = 0.1
_LABEL_SHARE = 0.5
_CLOSE = 0.6
# A word that is nowhere in the context counts less than a rare word that is there.
_ABSENT = 0.5
_MAX_SENTENCES = 3
_MAX_ANSWER_WORDS = 60
_TRUST = {"Sources": 1.0, "Relationships": 0.97, "Paths": 0.95, "Entities": 0.93, "Reports": 0.85}
_WHERE = re.compile(r"\b(?:in|at|near|to|into|from|on|inside|outside)\s+(?:the\s+|an?\s+)?(\w+)")
_WHY = re.compile(r"\b(?:because|since|so that|in order to|to \w+|as he|as she|for fear)\b")
_ANALYST = re.compile(r"^----Analyst \d+----\nImportance Score: \d+\n", re.MULTILINE)
_PRIMER = re.compile(
    r"For the query:\s*\n(?P<query>.*?)\n\s*The top-ranked community summaries:\s*\n"
    r"(?P<reports>.*)\n\s*Provide the intermediate answer",
    re.DOTALL,
)
_RATING = re.compile(
    r"^---Information---\n(?P<text>.*)\n---Question---\n(?P<question>.*?)\n---Target response",
    re.DOTALL | re.MULTILINE,
)
_HYPOTHESIS = re.compile(r"Create a hypothetical answer to the following query: (?P<query>[^\n]*)")

_CITABLE = ("Relationships", "Sources")
_MOST_FOLLOWED = 3


@dataclass(frozen=True, slots=True)
class Match:
    """A sentence of the context that fits the question.

    ``coverage``: the share of the question's weight that it covers, in [0, 1]. ``rank``: the
    coverage with bonuses, times the trust in its table; the order goes by rank.
    """

    sentence: str
    record: Record
    coverage: float
    rank: float

    @property
    def text(self) -> str:
        """The sentence, cut if it is long."""
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
    """The chosen sentences, best first, and the question's terms that are in no record."""

    matches: tuple[Match, ...]
    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences without citations; `NOT_FOUND` if there are none."""
        return " ".join(match.text for match in self.matches) or NOT_FOUND

    @property
    def cited(self) -> str:
        """The sentences, each followed by ``[Data: Table (id)]``; `NOT_FOUND` if there are none."""
        cited = (f"{m.text} [Data: {m.record.table} ({m.record.id})]" for m in self.matches)
        return " ".join(cited) or NOT_FOUND

    @property
    def coverage(self) -> float:
        """Coverage of the best sentence, in [0, 1]; 0.0 if there is none."""
        return self.matches[0].coverage if self.matches else 0.0


@cache
def _halved_terms() -> frozenset[str]:
    with read_as(ENGLISH):
        return frozenset(stemmed for word in QUESTION_WORDS for stemmed in terms(word))


def weigh_question(question: str, bags: Sequence[frozenset[str]]) -> Question:
    """Weigh a question's terms by how rare they are among sentences.

    ``bags`` are the terms of each sentence. The weight is the inverse document frequency of BM25,
    ``ln(1 + (n - df + 0.5) / (df + 0.5))``. Words that only shape questions count half, and so do
    words that no sentence has.
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
    """A sentence of a record, the terms of both the sentence and the record's label.

    ``opens``: whether it is the record's first sentence.
    """

    sentence: str
    record: Record
    bag: frozenset[str]
    label: frozenset[str]
    opens: bool


def answer_question(question: str, records: Sequence[Record]) -> Answer:
    """Choose up to three sentences of the records as the answer.

    A sentence ranks by the share of the question's weight that it covers, half of what its row's
    other columns and its neighboring sentences add, and a bonus if it has what the question asks
    for (who: another person; where: a place; when, how many: a number; why: a reason). If several
    records share a sentence, it counts for the one that ranks it highest, the first if equal.
    """
    labels = [frozenset(terms(record.label)) for record in records]
    candidates = [
        _Candidate(sentence=sentence, record=record, bag=bag, label=label, opens=position == 0)
        for record, label in zip(records, labels, strict=True)
        for position, (sentence, bag) in enumerate(_split(record.text, language_read()))
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
def _split(text: str, language: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return a text's sentences and the terms of each; cached, because rows repeat."""
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
    return Match(
        sentence=sentence,
        record=record,
        coverage=coverage,
        rank=rank * _TRUST.get(record.table, 0.9),
    )


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
    """Say whether a sentence contains the kind of thing that a question asks for.

    True, too, if the question names no kind.
    """
    words = fold(question).split()
    low, opening = fold(sentence), {*words[:4]}
    if {"who", "whom", "whose"} & opening:
        named = set(name_key(question))
        mentions = find_mentions([split_words("so " + sentence)])[0]
        return any(set(name_key(mention.name)) - named for mention in mentions)
    if "where" in opening:
        return any(word in PLACE_HEADS or word[:1].isalpha() for word in _WHERE.findall(low))
    if "when" in opening or ("how" in opening and {"many", "much", "old", "long"} & {*words}):
        return any(term[:1].isdigit() for term in terms(sentence)) or "day" in low
    if "why" in opening:
        return _WHY.search(low) is not None
    return True


def answer_from_tables(request: Request) -> Reply:
    """Answer local or basic search with cited sentences, or abstain."""
    answer = answer_question(request.user, read_context(request.system))
    return Reply(answer.cited, abstains=not answer.matches)


def name_next_search(request: Request) -> dict[str, object]:
    """Reply for agentic search: what the best sentences leave open, and what to search for next.

    The query is the names that the sentences bring in and the words of the question that they lack.
    Both are "" if one sentence covers `SUFFICIENT_COVERAGE` of the question's weight, or if no
    sentence fits, so that nothing leads on.
    """
    answer = answer_question(request.user, read_context(request.system))
    if not answer.matches or answer.coverage >= SUFFICIENT_COVERAGE:
        return {"missing": "", "query": ""}
    texts = [match.sentence for match in answer.matches]
    covered = {term for text in texts for term in terms(text)}
    words = [word.text for word in split_words(request.user)]
    left = [word for word in words if not covered.issuperset(terms(word))]
    folded = {word.casefold() for word in words}
    mentions = chain.from_iterable(find_mentions([split_words(text) for text in texts]))
    names = [mention.name for mention in mentions if not folded.issuperset(name_key(mention.name))]
    query = " ".join(dict.fromkeys([*names, *left]))
    return {"missing": f"Not in the texts: {', '.join(left)}." if left else "", "query": query}


def answer_map(request: Request) -> Reply:
    """Answer the map step of global search with JSON points; one of score 0 if nothing fits."""
    records = read_context(request.system, separators=("|", ","))
    points = [
        {
            "description": f"{match.sentence} [Data: Reports ({match.record.id})]",
            "score": max(1, round(100 * match.coverage)),
        }
        for match in answer_question(request.user, records).matches
    ]
    return Reply(json.dumps({"points": points or [{"description": NOT_FOUND, "score": 0}]}))


def answer_reduce(request: Request) -> Reply:
    """Answer the last step of global or drift search with the best points, cited, or abstain."""
    region = context_region(request.system)
    pieces = _ANALYST.split(region) if _ANALYST.search(region) else region.split("\n")
    points: list[str] = []
    for piece in pieces:
        text = " ".join(piece.split()).strip("[]'\" ")
        if text and NOT_FOUND not in text:
            points.append(f"{text}]" if text.endswith(")") else text)
    records = [
        Record(table="Reports", id=str(at), text=CITATION.sub("", p)) for at, p in enumerate(points)
    ]
    cited = [
        " ".join([match.sentence, *_first_citation(points[int(match.record.id)])])
        for match in answer_question(request.user, records).matches
    ]
    return Reply(" ".join(dict.fromkeys(cited)) or NOT_FOUND, abstains=not cited)


def _first_citation(text: str) -> list[str]:
    match = CITATION.search(text)
    return [] if match is None else [match[0]]


def answer_drift_local(request: Request) -> Reply:
    """Answer the follow-up step of drift search: JSON with response, score and no new queries."""
    answer = answer_question(request.user, read_context(request.system))
    values = {"response": answer.cited, "score": round(100 * answer.coverage)}
    return Reply(json.dumps({**values, "follow_up_queries": []}))


def answer_primer(request: Request) -> dict[str, object] | None:
    """Answer the first step of drift search from the reports, with follow-up queries.

    The follow-up queries repeat the question with each sentence that fits it. None if the prompt is
    another one.
    """
    match = _PRIMER.search(request.user)
    if match is None:
        return None
    question = match["query"].strip()
    answer = answer_question(question, [Record(table="Reports", id="0", text=match["reports"])])
    return {
        "intermediate_answer": f"# {question}\n\n{answer.text}",
        "score": round(100 * answer.coverage),
        "follow_up_queries": [f"{question} {m.sentence}" for m in answer.matches] or [question],
    }


def answer_hypothesis(request: Request) -> str | None:
    """Return the question itself: rules can't make up an answer, and need none to find a match.

    None if the prompt does not ask for a hypothetical answer.
    """
    match = _HYPOTHESIS.match(request.user)
    return match and match["query"].strip()


def answer_rating(request: Request) -> str | None:
    """Rate a report for dynamic community selection: JSON with reason and a rating from 0 to 5.

    None if the prompt does not ask how much a report helps with a question.
    """
    match = _RATING.search(request.system)
    if match is None:
        return None
    bags = [frozenset(terms(sentence)) for sentence in sentences(match["text"])]
    question = weigh_question(match["question"], bags)
    covered = question.share_covered(frozenset[str]().union(*bags))
    rating = round(5 * covered) if covered >= MIN_COVERAGE else 0
    return json.dumps(
        {"reason": f"The text covers {covered:.2f} of the question's weight.", "rating": rating}
    )


def answer_or_go_on(request: Request) -> dict[str, object]:
    """Reply to a Think-on-Graph call: answer if one sentence is enough, else name what to read.

    A sentence is enough if it covers `SUFFICIENT_COVERAGE` of the question's weight. Otherwise the
    reply keeps the texts whose sentences fit, follows the rows with most words of the question, and
    looks up the names in those texts with the words of the question that are still open.
    """
    values = check_and_answer(request)
    if not values["missing"]:
        return {**values, "keep": [], "follow": [], "look_up": []}
    rows = [record for record in read_context(request.system) if record.table == "Rows"]
    bags = [frozenset(terms(f"{row.label} {row.text}")) for row in rows]
    question = weigh_question(request.user, bags)
    shares = {int(row.id): question.share_covered(bag) for row, bag in zip(rows, bags, strict=True)}
    best = sorted(shares, key=lambda number: (-shares[number], number))[:_MOST_FOLLOWED]
    query = str(name_next_search(request)["query"])
    return {
        "missing": values["missing"],
        "answer": "",
        "relationships": [],
        "sources": [],
        "keep": values["sources"],
        "follow": [number for number in best if shares[number] > 0],
        "look_up": [query] if query else [],
    }


def check_and_answer(request: Request) -> dict[str, object]:
    """Answer the last call of a graph search from the context tables, and name what they lack.

    Nothing is lacking if the best sentence covers `SUFFICIENT_COVERAGE` of the question's weight.
    Only Relationships and Sources are used, because an answer must cite one of their ids.
    """
    records = [r for r in read_context(request.system) if r.table in _CITABLE]
    answer = answer_question(request.user, records)
    sufficient = bool(answer.matches) and answer.coverage >= SUFFICIENT_COVERAGE
    missing = "" if sufficient else "No sentence covers enough of the question."
    if answer.missing and not sufficient:
        missing = f"Not in the context: {', '.join(answer.missing)}."
    return {
        "missing": missing,
        "answer": answer.text if answer.matches else "",
        "relationships": _ids(answer.matches, "Relationships"),
        "sources": _ids(answer.matches, "Sources"),
    }


def _ids(matches: Sequence[Match], table: str) -> list[int]:
    return list(dict.fromkeys(int(m.record.id) for m in matches if m.record.table == table))
