"""What a search went through, read from the frames of its result: a walk as a tree, or searches."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from graphrag.text.path_tree import ShownEdge, name_edges, name_row, path_tree

if TYPE_CHECKING:
    import pandas as pd
    from rich.tree import Tree


def tree_of(context_data: object, response: str) -> "Tree | None":
    """Return every edge that was scored, or the paths of a search that scores none.

    None of a search that found nothing to start from. Of the edges that were scored it is said
    which lead to what the response cites.
    """
    frames = cast("Mapping[str, pd.DataFrame]", context_data)
    starts = [str(row["entity"]) for row in _rows(frames, "starts")]
    edges = [_scored(row) for row in _rows(frames, "edges")]
    cited: list[str] = []
    if edges:
        from graphrag.eval.scorers.traced import read_citations

        cited = [name_row(citation.table, citation.id) for citation in read_citations(response)]
    else:
        edges = _of_paths(_rows(frames, "paths"))
    if not starts and not edges:
        return None
    descriptions = {
        (str(row["source"]), str(row["target"])): str(row["description"])
        for row in _rows(frames, "relationships")
    }
    return path_tree("Paths", starts, name_edges(edges, descriptions), cited=cited)


def searches_of(context_data: object) -> list[str]:
    """Return a line for each search of an agentic one; none of any other."""
    frames = cast("Mapping[str, pd.DataFrame]", context_data)
    return [
        "; ".join(
            [
                f"search {row['round']}: {row['query']}",
                *(f"{name}: {row[name]}" for name in ("missing", "note") if row[name]),
            ]
        )
        for row in _rows(frames, "searches")
    ]


def _rows(frames: "Mapping[str, pd.DataFrame]", name: str) -> Sequence[Mapping[str, Any]]:
    if name not in frames:
        return []
    return cast("Sequence[Mapping[str, Any]]", frames[name].to_dict("records"))


def _scored(row: Mapping[str, Any]) -> ShownEdge:
    return ShownEdge(
        depth=int(row["depth"]),
        source=str(row["source"]),
        target=str(row["target"]),
        relationship=str(row["relationship_id"]),
        forward=bool(row["traversed_forward"]),
        score=float(row["score"]),
        fate=str(row["fate"]),
        rests_on=tuple(row["rests_on"]),
    )


def _of_paths(rows: Sequence[Mapping[str, Any]]) -> list[ShownEdge]:
    """Return each edge of the paths once; parallel relationships are one edge."""
    found: dict[tuple[int, str, str], ShownEdge] = {}
    for row in rows:
        forward = bool(row["traversed_forward"])
        ends = (str(row["source"]), str(row["target"]))
        source, target = ends if forward else ends[::-1]
        found.setdefault(
            (int(row["hop"]), source, target),
            ShownEdge(
                depth=int(row["hop"]),
                source=source,
                target=target,
                relationship=str(row["relationship_id"]),
                forward=forward,
                score=float(row["score"]),
                fate="kept",
            ),
        )
    return list(found.values())
