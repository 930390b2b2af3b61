"""Answers to the prompts of searches: local, basic, global, drift, agentic, Think-on-Graph."""

import json
import re
from collections.abc import Sequence
from itertools import chain

from graphrag.offline import NOT_FOUND
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

_CITABLE = ("Relationships", "Sources")
_MOST_FOLLOWED = 3


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
    folded = {word.casefold() for word in words}
    mentions = chain.from_iterable(find_mentions([split_words(text) for text in texts]))
    names = [mention.name for mention in mentions if not folded.issuperset(name_key(mention.name))]
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
    question = weigh_question(match["question"], bags)
    covered = question.share_covered(frozenset[str]().union(*bags))
    rating = round(5 * covered) if covered >= MIN_COVERAGE else 0
    return json.dumps(
        {"reason": f"The text covers {covered:.2f} of the question's weight.", "rating": rating}
    )


def answer_or_go_on(request: Request) -> dict[str, object]:
    """Think-on-Graph's calls that may go on: answer if one sentence is enough, or lead on.

    Enough is `SUFFICIENT_COVERAGE` of the question's weight. Otherwise the texts with sentences
    that fit it are kept, the rows followed that share most words with it, and the names in those
    texts looked up with the words that they leave open.
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
    """Answer from the context tables, and say what they lack.

    Nothing where the best sentence covers `SUFFICIENT_COVERAGE` of the question's weight. Only
    Relationships and Sources are answered from: an answer must cite one of their ids.
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
