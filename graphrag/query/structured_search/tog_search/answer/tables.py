"""Rendering what was found: the context a model reads, and the data frames a caller gets."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from graphrag.query.structured_search.tog_search.graph.store import (
    EntityRow,
    GraphStore,
    RelationshipRow,
)
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnit
from graphrag.query.structured_search.tog_search.state import Path, Round, ScoredEdge, Walk
from graphrag.text.path_tree import name_row
from graphrag.text.terms import shorten

_MAX_LABEL_CHARS = 160
_COLUMNS = {
    "paths": (
        "path_id",
        "hop",
        "source",
        "target",
        "relationship_id",
        "traversed_forward",
        "score",
        "text_unit_ids",
    ),
    "entities": ("id", "entity", "description"),
    "relationships": ("id", "source", "target", "description", "weight"),
    "sources": ("id", "text"),
    "exploration": ("depth", "strategy_used", "n_edges", "n_kept", "note"),
    "starts": ("id", "entity"),
    "edges": (
        "depth",
        "source",
        "target",
        "relationship_id",
        "traversed_forward",
        "score",
        "path_score",
        "fate",
        "rests_on",
    ),
}


@dataclass(frozen=True, slots=True)
class Context:
    """What a check-and-answer call is shown.

    Attributes
    ----------
    text : str
        The rendered tables, exactly as they are sent.
    n_tokens : int
        Their length in the model's tokens.
    paths : tuple of Path
    entities : tuple of EntityRow
    relationships : tuple of RelationshipRow
    sources : tuple of TextUnit
    """

    text: str
    n_tokens: int
    paths: tuple[Path, ...] = ()
    entities: tuple[EntityRow, ...] = ()
    relationships: tuple[RelationshipRow, ...] = ()
    sources: tuple[TextUnit, ...] = ()


def render_context(
    path_lines: Iterable[str],
    entities: Iterable[str],
    relationships: Iterable[str],
    sources: Iterable[str],
) -> str:
    """Join rendered rows to the context; a section without rows keeps its heading."""
    sections: tuple[tuple[str, list[str], Iterable[str]], ...] = (
        ("Sources", ["id|text"], sources),
        ("Entities", ["id|entity|description"], entities),
        ("Relationships", ["id|source|target|description"], relationships),
        ("Paths", [], path_lines),
    )
    return "\n\n".join(
        "\n".join([f"-----{name}-----", *header, *rows]) for name, header, rows in sections
    )


def entity_line(row: EntityRow) -> str:
    """Render one row of the entities table."""
    return _csv_line((row.human_readable_id, row.title, row.description))


def relationship_line(row: RelationshipRow) -> str:
    """Render one row of the relationships table."""
    return _csv_line((row.human_readable_id, row.source, row.target, row.description))


def source_line(row: TextUnit) -> str:
    """Render one row of the sources table."""
    return _csv_line((row.human_readable_id, row.text))


def path_line(path: Path, store: GraphStore) -> str:
    """Render a path, each arrow in the direction in which its relationship is stored.

    Of parallel relationships those in the direction of the heaviest are shown.
    """
    parts = [shorten(store.title(path.start), _MAX_LABEL_CHARS)]
    for step in path.steps:
        links = step.edge.links
        label = "; ".join(
            store.relationship_row(link.relationship).description
            for link in links
            if link.forward == links[0].forward
        )
        label = shorten(label, _MAX_LABEL_CHARS)
        parts.append(f"-[{label}]->" if links[0].forward else f"<-[{label}]-")
        parts.append(shorten(store.title(step.edge.target), _MAX_LABEL_CHARS))
    return " ".join(parts)


def context_frames(
    context: Context, rounds: Sequence[Round], store: GraphStore, walk: Walk | None = None
) -> dict[str, pd.DataFrame]:
    """Return the context and the course of the search as data frames.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``paths`` (a row for each relationship of each hop; source and target as stored, hop
        from 1, score the product up to that hop in [0, 1]), ``entities``, ``relationships``,
        ``sources``, ``exploration``, ``starts`` and ``edges`` (a row for each edge that was
        scored, by its heaviest relationship; source and target as it was walked, score its own,
        path_score the product up to it, fate "walked", "kept" or "pruned", rests_on the rows of
        ``relationships`` and ``sources`` that speak for it, as citations name them; none in
        connect mode, which scores no edge). Ids are human_readable_id, ``text_unit_ids`` the ids of
        the text units table. Every column is there even without rows.
    """
    walk = walk or Walk()
    rows: dict[str, list[tuple[Any, ...]]] = {
        "paths": _path_rows(context.paths, store),
        "entities": [(r.human_readable_id, r.title, r.description) for r in context.entities],
        "relationships": [
            (r.human_readable_id, r.source, r.target, r.description, r.weight)
            for r in context.relationships
        ],
        "sources": [(r.human_readable_id, r.text) for r in context.sources],
        "exploration": [(r.depth, r.strategy_used, r.n_edges, r.n_kept, r.note) for r in rounds],
        "starts": [(store.entity_row(n).human_readable_id, store.title(n)) for n in walk.starts],
        "edges": _edge_rows(walk, context, store),
    }
    return {
        name: pd.DataFrame(rows[name], columns=list(columns)) for name, columns in _COLUMNS.items()
    }


def _path_rows(paths: Sequence[Path], store: GraphStore) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for path_id, path in enumerate(paths):
        for hop, step in enumerate(path.steps, start=1):
            score = Path(path.start, path.steps[:hop]).score
            for link in step.edge.links:
                row = store.relationship_row(link.relationship)
                rows.append(
                    (
                        path_id,
                        hop,
                        row.source,
                        row.target,
                        row.human_readable_id,
                        link.forward,
                        score,
                        list(row.text_unit_ids),
                    )
                )
    return rows


def _edge_rows(walk: Walk, context: Context, store: GraphStore) -> list[tuple[Any, ...]]:
    relationships = {row.human_readable_id for row in context.relationships}
    texts = {unit.id: unit.human_readable_id for unit in context.sources}

    def rests_on(scored: ScoredEdge) -> list[str]:
        if scored.fate == "pruned":
            return []
        rows = [store.relationship_row(link.relationship) for link in scored.edge.links]
        units = dict.fromkeys(unit for row in rows for unit in row.text_unit_ids)
        return [
            *(
                name_row("relationships", str(row.human_readable_id))
                for row in rows
                if row.human_readable_id in relationships
            ),
            *(name_row("sources", str(texts[unit])) for unit in units if unit in texts),
        ]

    return [
        (
            scored.depth,
            store.title(scored.edge.source),
            store.title(scored.edge.target),
            store.relationship_row(scored.edge.links[0].relationship).human_readable_id,
            scored.edge.links[0].forward,
            scored.score,
            scored.path_score,
            scored.fate,
            rests_on(scored),
        )
        for scored in walk.scored
    ]


def _csv_line(values: tuple[object, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter="|", lineterminator="").writerow(values)
    return line.getvalue()
