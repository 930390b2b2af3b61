"""What a scoring call shows of the edges ahead: rows below their entities, or JSON objects."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownEdge:
    """An edge as the model sees it; every text is on one line.

    Attributes
    ----------
    number : int
        Its name in the reply, >= 1.
    entity, neighbour : str
        Titles: where the edge leads on from, and where to.
    forward : bool
        Whether the relationship is stored from the entity to the neighbour.
    relationship, about_neighbour : str
        Descriptions.
    """

    number: int
    entity: str
    neighbour: str
    forward: bool
    relationship: str
    about_neighbour: str


Render = Callable[[str, Sequence[ShownEdge]], str]
"""Makes a scoring request of a question and its edges."""


def render_rows(question: str, edges: Sequence[ShownEdge]) -> str:
    """Write each edge as one row below the entity that it leads on from.

    An entity is named once for all of its edges that follow each other, and a neighbour is
    described once in a request. The built-in prompt says what the columns mean.
    """
    lines = [f"Question: {' '.join(question.split())}"]
    entity: str | None = None
    described: set[tuple[str, str]] = set()
    for edge in edges:
        if edge.entity != entity:
            entity = edge.entity
            lines += ["", f"Edges of {entity}:"]
        about = (edge.neighbour, edge.about_neighbour)
        lines.append(_row(edge, shows_neighbour=about not in described))
        described.add(about)
    return "\n".join(lines)


def render_objects(question: str, edges: Sequence[ShownEdge]) -> str:
    """Write a JSON object ``{"question": ..., "edges": [...]}``, each edge with all of its fields.

    This is what prompt files of projects were written for, so they go on getting it: ``edge``
    (its number), ``source`` and ``target`` as stored, ``relationship``, ``neighbour`` and
    ``neighbour_description``.
    """
    shown = [
        {
            "edge": edge.number,
            "source": edge.entity if edge.forward else edge.neighbour,
            "target": edge.neighbour if edge.forward else edge.entity,
            "relationship": edge.relationship,
            "neighbour": edge.neighbour,
            "neighbour_description": edge.about_neighbour,
        }
        for edge in edges
    ]
    return json.dumps({"question": question, "edges": shown}, ensure_ascii=False)


def _row(edge: ShownEdge, shows_neighbour: bool) -> str:
    cells = (edge.number, "->" if edge.forward else "<-", edge.neighbour, edge.relationship)
    about = (edge.about_neighbour,) if shows_neighbour else ()
    line = io.StringIO()
    csv.writer(line, delimiter="|", lineterminator="").writerow((*cells, *about))
    return line.getvalue()
