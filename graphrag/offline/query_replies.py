"""Answers to the search prompts of local, basic, global and drift, and of agentic search."""

import json
import re
from itertools import chain

from graphrag.offline.answering import (
    MIN_COVERAGE,
    SUFFICIENT_COVERAGE,
    answer_question,
    weigh_question,
)
from graphrag.offline.errors import NOT_FOUND
from graphrag.offline.names import find_mentions, name_key, split_words
from graphrag.offline.requests import Reply, Request
from graphrag.text.tables import Record, context_region, read_context
from graphrag.text.words import sentences, terms

_ANALYST = re.compile(r"^----Analyst \d+----\nImportance Score: \d+\n", re.MULTILINE)
_CITATION = re.compile(r"\[Data:[^\]]*\]")
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
_FOLLOW_UPS = 3


def answer_from_tables(request: Request) -> Reply:
    """Local and basic search: cited sentences, or the abstention."""
    answer = answer_question(request.user, read_context(request.system))
    return Reply(answer.cited, abstains=not answer.found)


def name_next_search(request: Request) -> dict[str, object]:
    """Agentic search: what the best sentences leave open, and the names that they bring in.

    Nothing is missing once one sentence covers `SUFFICIENT_COVERAGE` of the question's weight, or
    where no sentence fits and so nothing leads on.
    """
    answer = answer_question(request.user, read_context(request.system))
    if not answer.found or answer.coverage >= SUFFICIENT_COVERAGE:
        return {"missing": "", "query": ""}
    texts = [found.sentence for found in answer.found]
    covered = {term for text in texts for term in terms(text)}
    words = [word.text for word in split_words(request.user)]
    left = [word for word in words if not covered.issuperset(terms(word))]
    asked = {word.casefold() for word in words}
    mentions = chain.from_iterable(find_mentions([split_words(text) for text in texts]))
    names = [mention.name for mention in mentions if not asked.issuperset(name_key(mention.name))]
    query = " ".join(dict.fromkeys([*names, *left]))
    return {"missing": f"Not in the texts: {', '.join(left)}." if left else "", "query": query}


def answer_map(request: Request) -> str:
    """Global search's map step: the JSON points; one of score 0 when nothing fits."""
    records = read_context(request.system, separators=("|", ","))
    answer = answer_question(request.user, records)
    points = [
        {
            "description": f"{found.sentence} [Data: Reports ({found.record.id})]",
            "score": max(1, round(100 * found.coverage)),
        }
        for found in answer.found
    ]
    return json.dumps({"points": points or [{"description": NOT_FOUND, "score": 0}]})


def answer_reduce(request: Request) -> Reply:
    """Global and drift search's last step: the best points, cited as they are, or abstention."""
    region = context_region(request.system)
    pieces = _ANALYST.split(region) if _ANALYST.search(region) else region.split("\n")
    points: list[str] = []
    for piece in pieces:
        text = " ".join(piece.split()).strip("[]'\" ")
        if text and NOT_FOUND not in text:
            points.append(text if not text.endswith(")") else text + "]")
    records = [Record("Reports", str(at), _CITATION.sub("", p)) for at, p in enumerate(points)]
    answer = answer_question(request.user, records)
    cited = [_with_citation(found.sentence, points[int(found.record.id)]) for found in answer.found]
    return Reply(" ".join(dict.fromkeys(cited)) or NOT_FOUND, abstains=not cited)


def _with_citation(sentence: str, point: str) -> str:
    citations = _CITATION.findall(point)
    return f"{sentence} {citations[0]}" if citations else sentence


def answer_drift_local(request: Request) -> str:
    """Drift search's follow-up step: JSON with response, score and follow-up queries."""
    answer = answer_question(request.user, read_context(request.system))
    return json.dumps(
        {
            "response": answer.cited,
            "score": round(100 * answer.coverage),
            "follow_up_queries": [],
        }
    )


def answer_primer(request: Request) -> dict[str, object]:
    """Drift search's first step: an answer from the reports, and what to look for next.

    The follow-up queries put the question again beside each sentence that fits it.
    """
    match = _PRIMER.search(request.user)
    question, reports = (match["query"].strip(), match["reports"]) if match else ("", "")
    answer = answer_question(question, [Record("Reports", "0", reports)])
    return {
        "intermediate_answer": f"# {question}\n\n{answer.text}",
        "score": round(100 * answer.coverage),
        "follow_up_queries": [
            f"{question} {found.sentence}" for found in answer.found[:_FOLLOW_UPS]
        ]
        or [question],
    }


def is_primer(request: Request) -> bool:
    """Whether the prompt is drift search's primer."""
    return _PRIMER.search(request.user) is not None


def is_hypothesis(request: Request) -> bool:
    """Whether the prompt asks to make an answer up for the sake of its embedding."""
    return _HYPOTHESIS.match(request.user) is not None


def answer_hypothesis(request: Request) -> str:
    """Give the question itself: rules can't make up an answer, and need none to find a match."""
    match = _HYPOTHESIS.match(request.user)
    return match["query"].strip() if match else ""


def is_rating(request: Request) -> bool:
    """Whether the prompt asks how much a report helps with a question."""
    return _RATING.search(request.system) is not None


def answer_rating(request: Request) -> str:
    """Dynamic community selection: JSON with reason and a rating from 0 to 5."""
    match = _RATING.search(request.system)
    text, question = (match["text"], match["question"]) if match else ("", "")
    bags = [frozenset(terms(sentence)) for sentence in sentences(text)]
    asked = weigh_question(question, bags)
    covered = asked.share_covered(frozenset[str]().union(*bags))
    rating = round(5 * covered) if covered >= MIN_COVERAGE else 0
    return json.dumps(
        {"reason": f"The text covers {covered:.2f} of the question's weight.", "rating": rating}
    )
