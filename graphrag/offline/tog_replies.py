"""Answers to Think-on-Graph's two prompts: score the edges; check and answer."""

import csv
import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag.offline.answering import (
    SUFFICIENT_COVERAGE,
    Found,
    answer_question,
    weigh_question,
)
from graphrag.offline.errors import OfflineModelError
from graphrag.offline.requests import Request
from graphrag.text.tables import read_context
from graphrag.text.words import terms

_QUESTION = re.compile(r"\AQuestion: (.*)$", re.MULTILINE)
_ENTITY = re.compile(r"Edges of (.*):")
_MOST = re.compile(r"\bat most (\d+)")
_CITABLE = ("Relationships", "Sources")
# What an edge is worth when it shares no word with the question: it may lead on.
_FLOOR = 0.05


class _Edge(BaseModel):
    edge: int
    source: str = ""
    target: str = ""
    relationship: str = ""
    neighbour: str = ""
    neighbour_description: str = ""


_WIDTHS = (4, 5)
"""Cells of a row: number, direction, neighbour, relationship, and once about the neighbour."""


class _Edges(BaseModel):
    question: str
    edges: list[_Edge]


def find_json_object(text: str) -> dict[str, Any] | None:
    """Read the JSON object that a text ends with; None when it ends with none."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if isinstance(value, dict) and not text[end:].strip(" \n\t`"):
            return value  # pyright: ignore[reportUnknownVariableType]
    return None


def score_edges(request: Request) -> dict[str, object]:
    """Score each edge in [0.05, 1] by the question's weight that its texts cover.

    The edge's own description counts in full, the neighbour's name and description by half:
    they say where the edge leads. Of instructions that ask for the best, "at most" so many, these
    are listed, best first.

    Raises
    ------
    OfflineModelError
        When the message holds no object with a question and edges.
    """
    given = _read_rows(request.user) or _read_objects(request.user)
    near = [frozenset(terms(f"{e.source} {e.target} {e.relationship}")) for e in given.edges]
    far = [frozenset(terms(f"{e.neighbour} {e.neighbour_description}")) for e in given.edges]
    asked = weigh_question(given.question, [a | b for a, b in zip(near, far, strict=True)])
    scores: list[tuple[float, int]] = []
    for edge, own, ahead in zip(given.edges, near, far, strict=True):
        direct = asked.share_covered(own)
        more = asked.share_covered(own | ahead) - direct
        score = _FLOOR + (1 - _FLOOR) * (direct + more / 2)
        scores.append((round(min(1.0, score), 4), edge.edge))
    most = _MOST.search(request.system)
    if most:
        scores = sorted(scores, key=lambda each: (-each[0], each[1]))[: int(most[1])]
    return {"scores": [{"edge": number, "score": score} for score, number in scores]}


def check_and_answer(request: Request) -> dict[str, object]:
    """Answer from the context tables, and say whether they are enough.

    Sufficient when the best sentence covers `SUFFICIENT_COVERAGE` of the question's weight. Only
    Relationships and Sources are answered from: an answer must cite one of their ids.
    """
    records = [r for r in read_context(request.system) if r.table in _CITABLE]
    answer = answer_question(request.user, records)
    lacking = ", ".join(answer.missing)
    sufficient = bool(answer.found) and answer.coverage >= SUFFICIENT_COVERAGE
    missing = f"Not in the context: {lacking}." if lacking else ""
    if not sufficient and not lacking:
        missing = "No sentence covers enough of the question."
    return {
        "sufficient": sufficient,
        "answer": answer.text if answer.found else "",
        "relationships": _ids(answer.found, "Relationships"),
        "sources": _ids(answer.found, "Sources"),
        "missing": missing,
    }


def _read_objects(text: str) -> _Edges:
    try:
        return _Edges.model_validate(find_json_object(text[: text.rfind("}") + 1]))
    except ValidationError as error:
        raise OfflineModelError(
            "Scoring edges needs a question and rows of edges, or one JSON object with "
            "`question` and `edges`."
        ) from error


def _read_rows(text: str) -> _Edges | None:
    """Read a question and rows of edges below their entities; None when there are no such."""
    question = _QUESTION.search(text)
    if question is None:
        return None
    edges: list[_Edge] = []
    about: dict[str, str] = {}
    entity = ""
    for line in text[question.end() :].splitlines():
        heading = _ENTITY.fullmatch(line)
        if heading:
            entity = heading.group(1)
            continue
        cells = next(csv.reader([line], delimiter="|"), list[str]())
        if len(cells) not in _WIDTHS or not cells[0].isdigit():
            continue
        number, direction, neighbour, relationship, *told = cells
        about |= {neighbour: told[0]} if told else {}
        ends = (entity, neighbour) if direction == "->" else (neighbour, entity)
        edges.append(
            _Edge(
                edge=int(number),
                source=ends[0],
                target=ends[1],
                relationship=relationship,
                neighbour=neighbour,
                neighbour_description=about.get(neighbour, ""),
            )
        )
    return _Edges(question=question[1], edges=edges) if edges else None


def _ids(found: Sequence[Found], table: str) -> list[int]:
    return list(dict.fromkeys(int(f.record.id) for f in found if f.record.table == table))
