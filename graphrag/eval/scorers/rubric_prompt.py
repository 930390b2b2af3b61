"""What a rubric judge is shown of one answer and of what was retrieved for it."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphrag.eval.scorers.evaluable import (
    EvaluableEntity,
    EvaluableQueryResult,
    EvaluableRelationship,
)
from graphrag.eval.scorers.prompts.rubric import RUBRIC_PROMPT

_WORD = re.compile(r"\w+")
_MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class LLMEvaluationPrompt:
    """Writes the prompt about one result; its metadata, such as the method's name, is not in it.

    Parameters
    ----------
    n_entities, n_relationships, n_texts : int
        How many of each are shown, from the top.
    preview_chars : int
        Length of a text's preview in characters (>= 1): the passage that shares most words
        with question and answer, as the part that bears an answer out seldom comes first.
    """

    n_entities: int = 10
    n_relationships: int = 10
    n_texts: int = 5
    preview_chars: int = 600

    def material(self, result: EvaluableQueryResult) -> dict[str, Any]:
        """Return what the judge is shown, field by field."""
        wanted = _words(f"{result.query} {result.answer}")
        return {
            "question": result.query,
            "answer": result.answer,
            "entities": [_entity(e) for e in result.retrieved_entities[: self.n_entities]],
            "relationships": [
                _relationship(edge)
                for edge in result.retrieved_relationships[: self.n_relationships]
            ],
            "texts": [
                preview(text, wanted, self.preview_chars)
                for text in result.context_chunks[: self.n_texts]
            ],
        }

    def generate(self, result: EvaluableQueryResult) -> str:
        """Return the prompt; everything that is judged stands in it as JSON."""
        material = self.material(result)
        quoted = {name: json.dumps(value, ensure_ascii=False) for name, value in material.items()}
        return RUBRIC_PROMPT.format(**quoted)


def _entity(entity: EvaluableEntity) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": entity.name, "type": entity.type or None}
    return shown | _confidence(entity.confidence)


def _relationship(edge: EvaluableRelationship) -> dict[str, Any]:
    shown: dict[str, Any] = {"source": edge.source, "target": edge.target}
    if edge.type:
        shown["type"] = edge.type
    shown["description"] = edge.description
    return shown | _confidence(edge.confidence)


def _confidence(value: float | None) -> dict[str, Any]:
    """Return nothing where none is known, as for all of GraphRAG's own."""
    return {} if value is None else {"confidence": value}


def preview(text: str, wanted: Iterable[str], max_chars: int) -> str:
    """Return the passage of a text that holds most of the wanted words.

    Parameters
    ----------
    text : str
    wanted : iterable of str
        Case-folded words.
    max_chars : int
        Longest passage in characters (>= 1), ellipses aside; the first of equal ones is taken.
    """
    flat = " ".join(text.split())
    if len(flat) <= max_chars:
        return flat
    found = frozenset(wanted)
    starts = [match.start() for match in _WORD.finditer(flat)]
    last = len(flat) - max_chars
    step = max(1, max_chars // 4)
    places = [0]
    for start in starts:
        if places[-1] + step <= start <= last:
            places.append(start)
    places.append(next((start for start in starts if start >= last), last))
    at = max(places, key=lambda place: len(_words(flat[place : place + max_chars]) & found))
    passage = flat[at : at + max_chars]
    end = at + max_chars
    if end < len(flat) and not flat[end].isspace() and " " in passage:
        passage = passage[: passage.rindex(" ")]
    return f"{'… ' if at else ''}{passage.rstrip()}{' …' if end < len(flat) else ''}"


def _words(text: str) -> frozenset[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(word for word in words if len(word) >= _MIN_WORD_CHARS or word.isdigit())
