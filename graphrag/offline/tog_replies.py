"""Answers to Think-on-Graph's two prompts: score the edges; check and answer."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag.offline.answering import (
    MIN_COVERAGE,
    SUFFICIENT_COVERAGE,
    Found,
    answer_question,
    weigh_question,
)
from graphrag.offline.errors import OfflineModelError
from graphrag.offline.requests import Request
from graphrag.text.tables import read_context
from graphrag.text.words import terms

_FINAL = re.compile(r"^Final attempt: (\w+)\s*$", re.MULTILINE)
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
    they say where the edge leads.

    Raises
    ------
    OfflineModelError
        When the message holds no object with a question and edges.
    """
    try:
        given = _Edges.model_validate(find_json_object(request.user))
    except ValidationError as error:
        raise OfflineModelError(
            "Scoring edges needs one JSON object with `question` and `edges`."
        ) from error
    near = [frozenset(terms(f"{e.source} {e.target} {e.relationship}")) for e in given.edges]
    far = [frozenset(terms(f"{e.neighbour} {e.neighbour_description}")) for e in given.edges]
    asked = weigh_question(given.question, [a | b for a, b in zip(near, far, strict=True)])
    scores: list[dict[str, object]] = []
    for edge, own, ahead in zip(given.edges, near, far, strict=True):
        direct = asked.share_covered(own)
        more = asked.share_covered(own | ahead) - direct
        score = _FLOOR + (1 - _FLOOR) * (direct + more / 2)
        scores.append({"edge": edge.edge, "score": round(min(1.0, score), 4)})
    return {"scores": scores}


def check_and_answer(request: Request) -> dict[str, object]:
    """Answer from the context tables, and say whether they are enough.

    Sufficient when the best sentence covers `SUFFICIENT_COVERAGE` of the question's weight;
    at the final attempt (a line ``Final attempt: yes`` in the system message) when there is
    any answer at all. Without enough, and with more attempts to come, the answer is empty.
    Only Relationships and Sources are answered from: an answer must cite one of their ids.
    """
    records = [r for r in read_context(request.system) if r.table in _CITABLE]
    answer = answer_question(request.user, records)
    attempt = _FINAL.search(request.system)
    final = attempt is not None and attempt.group(1) == "yes"
    enough = MIN_COVERAGE if final else SUFFICIENT_COVERAGE
    lacking = ", ".join(answer.missing)
    sufficient = bool(answer.found) and answer.coverage >= enough
    missing = f"Not in the context: {lacking}." if lacking else ""
    if not sufficient and not lacking:
        missing = "No sentence covers enough of the question."
    used = answer.found if sufficient or final else ()
    return {
        "sufficient": sufficient,
        "answer": answer.text if used else "",
        "relationships": _ids(used, "Relationships"),
        "sources": _ids(used, "Sources"),
        "missing": missing,
    }


def _ids(found: Sequence[Found], table: str) -> list[int]:
    return list(dict.fromkeys(int(f.record.id) for f in found if f.record.table == table))
