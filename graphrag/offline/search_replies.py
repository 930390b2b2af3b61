"""Answers to the prompts of searches: local, basic, global, drift, agentic, Think-on-Graph."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from graphrag.offline import NOT_FOUND, OfflineModelError
from graphrag.offline.answering import (
    CITATION,
    MIN_COVERAGE,
    SUFFICIENT_COVERAGE,
    Match,
    answer_question,
    weigh_question,
)
from graphrag.offline.names import find_mentions, name_key, split_words
from graphrag.offline.requests import Reply, Request
from graphrag.text.tables import Record, context_region, read_context
from graphrag.text.words import sentences, terms

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

_QUESTION = re.compile(r"\AQuestion: (.*)$", re.MULTILINE)
_ENTITY = re.compile(r"Edges of (.*):")
_MOST = re.compile(r"\bat most (\d+)")
_CITABLE = ("Relationships", "Sources")
# What an edge is worth when it shares no word with the question: it may lead on.
_FLOOR = 0.05
_WIDTHS = (4, 5)
"""Cells of a row: number, direction, neighbor, relationship, and once about the neighbor."""


def answer_from_tables(request: Request) -> Reply:
    """Local and basic search: cited sentences, or the abstention."""
    answer = answer_question(request.user, read_context(request.system))
    return Reply(answer.cited, abstains=not answer.matches)


def name_next_search(request: Request) -> dict[str, object]:
    """Agentic search: what the best sentences leave open, and the names that they bring in.

    Nothing is missing once one sentence covers `SUFFICIENT_COVERAGE` of the question's weight, or
    where no sentence fits and so nothing leads on.
    """
    answer = answer_question(request.user, read_context(request.system))
    if not answer.matches or answer.coverage >= SUFFICIENT_COVERAGE:
        return {"missing": "", "query": ""}
    texts = [match.sentence for match in answer.matches]
    covered = {term for text in texts for term in terms(text)}
    words = [word.text for word in split_words(request.user)]
    left = [word for word in words if not covered.issuperset(terms(word))]
    asked = {word.casefold() for word in words}
    mentions = chain.from_iterable(find_mentions([split_words(text) for text in texts]))
    names = [mention.name for mention in mentions if not asked.issuperset(name_key(mention.name))]
    query = " ".join(dict.fromkeys([*names, *left]))
    return {"missing": f"Not in the texts: {', '.join(left)}." if left else "", "query": query}


def answer_map(request: Request) -> Reply:
    """Global search's map step: the JSON points; one of score 0 when nothing fits."""
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
    """Global and drift search's last step: the best points, cited as they are, or abstention."""
    region = context_region(request.system)
    pieces = _ANALYST.split(region) if _ANALYST.search(region) else region.split("\n")
    points: list[str] = []
    for piece in pieces:
        text = " ".join(piece.split()).strip("[]'\" ")
        if text and NOT_FOUND not in text:
            points.append(f"{text}]" if text.endswith(")") else text)
    records = [Record("Reports", str(at), CITATION.sub("", p)) for at, p in enumerate(points)]
    cited = [
        " ".join([match.sentence, *CITATION.findall(points[int(match.record.id)])[:1]])
        for match in answer_question(request.user, records).matches
    ]
    return Reply(" ".join(dict.fromkeys(cited)) or NOT_FOUND, abstains=not cited)


def answer_drift_local(request: Request) -> Reply:
    """Drift search's follow-up step: JSON with response, score and follow-up queries."""
    answer = answer_question(request.user, read_context(request.system))
    values = {"response": answer.cited, "score": round(100 * answer.coverage)}
    return Reply(json.dumps({**values, "follow_up_queries": []}))


def answer_primer(request: Request) -> dict[str, object] | None:
    """Drift search's first step: an answer from the reports, and what to look for next.

    The follow-up queries put the question again beside each sentence that fits it. None where the
    prompt is another one.
    """
    match = _PRIMER.search(request.user)
    if match is None:
        return None
    question = match["query"].strip()
    answer = answer_question(question, [Record("Reports", "0", match["reports"])])
    return {
        "intermediate_answer": f"# {question}\n\n{answer.text}",
        "score": round(100 * answer.coverage),
        "follow_up_queries": [f"{question} {m.sentence}" for m in answer.matches] or [question],
    }


def answer_hypothesis(request: Request) -> str | None:
    """Give the question itself: rules can't make up an answer, and need none to find a match.

    None where the prompt does not ask to make one up for the sake of its embedding.
    """
    match = _HYPOTHESIS.match(request.user)
    return match and match["query"].strip()


def answer_rating(request: Request) -> str | None:
    """Dynamic community selection: JSON with reason and a rating from 0 to 5.

    None where the prompt does not ask how much a report helps with a question.
    """
    match = _RATING.search(request.system)
    if match is None:
        return None
    bags = [frozenset(terms(sentence)) for sentence in sentences(match["text"])]
    asked = weigh_question(match["question"], bags)
    covered = asked.share_covered(frozenset[str]().union(*bags))
    rating = round(5 * covered) if covered >= MIN_COVERAGE else 0
    return json.dumps(
        {"reason": f"The text covers {covered:.2f} of the question's weight.", "rating": rating}
    )


def score_edges(request: Request) -> dict[str, object]:
    """Score each edge in [0.05, 1] by the question's weight that its texts cover.

    The edge's own description counts in full, the neighbor's name and description by half:
    they say where the edge leads. Of instructions that ask for the best, "at most" so many, these
    are listed, best first.
    """
    question = _QUESTION.search(request.user)
    rows = list(_read_rows(request.user[question.end() :])) if question else []
    if question is None or not rows:
        raise OfflineModelError("Scoring edges needs a question and rows of edges.")
    asked = weigh_question(question[1], [own | ahead for _, own, ahead in rows])
    scores: list[tuple[float, int]] = []
    for number, own, ahead in rows:
        direct = asked.share_covered(own)
        more = asked.share_covered(own | ahead) - direct
        score = _FLOOR + (1 - _FLOOR) * (direct + more / 2)
        scores.append((round(min(1.0, score), 4), number))
    most = _MOST.search(request.system)
    if most:
        scores = sorted(scores, key=lambda each: (-each[0], each[1]))[: int(most[1])]
    return {"scores": [{"edge": number, "score": score} for score, number in scores]}


def _read_rows(text: str) -> Iterator[tuple[int, frozenset[str], frozenset[str]]]:
    """Yield each edge's number, its own terms, and those about its neighbor."""
    about: dict[str, str] = {}
    entity = ""
    for line in text.splitlines():
        heading = _ENTITY.fullmatch(line)
        if heading:
            entity = heading[1]
            continue
        cells = next(csv.reader([line], delimiter="|"), list[str]())
        if len(cells) not in _WIDTHS or not cells[0].isdigit():
            continue
        number, _, neighbour, relationship, *description = cells
        if description:
            about[neighbour] = description[0]
        own = frozenset(terms(f"{entity} {neighbour} {relationship}"))
        yield int(number), own, frozenset(terms(f"{neighbour} {about.get(neighbour, '')}"))


def check_and_answer(request: Request) -> dict[str, object]:
    """Answer from the context tables, and say whether they are enough.

    Sufficient when the best sentence covers `SUFFICIENT_COVERAGE` of the question's weight. Only
    Relationships and Sources are answered from: an answer must cite one of their ids.
    """
    records = [r for r in read_context(request.system) if r.table in _CITABLE]
    answer = answer_question(request.user, records)
    sufficient = bool(answer.matches) and answer.coverage >= SUFFICIENT_COVERAGE
    missing = "" if sufficient else "No sentence covers enough of the question."
    if answer.missing:
        missing = f"Not in the context: {', '.join(answer.missing)}."
    return {
        "sufficient": sufficient,
        "answer": answer.text if answer.matches else "",
        "relationships": _ids(answer.matches, "Relationships"),
        "sources": _ids(answer.matches, "Sources"),
        "missing": missing,
    }


def _ids(matches: Sequence[Match], table: str) -> list[int]:
    return list(dict.fromkeys(int(m.record.id) for m in matches if m.record.table == table))
