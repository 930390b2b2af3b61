"""The paths of a graph search as a tree for the terminal: entity -[relationship]-> entity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from rich.tree import Tree

_STYLES = {"walked": "bold", "kept": "green", "pruned": "dim"}
_MOST_PRUNED = 3  # under one entity, unless everything is shown
_LABEL_CHARS = 60


@dataclass(frozen=True, slots=True)
class ShownEdge:
    """One edge of a search.

    Attributes
    ----------
    depth : int
        From 1.
    source, target : str
        Titles of the entities, as it was walked.
    relationship : str
        What it is called.
    forward : bool
        Whether it was walked from its stored source to its target.
    score : float
        In [0, 1].
    fate : {"walked", "kept", "pruned"}
    """

    depth: int
    source: str
    target: str
    relationship: str
    forward: bool
    score: float
    fate: str


def path_tree(
    title: str, starts: Sequence[str], edges: Iterable[ShownEdge], full: bool = False
) -> Tree:
    """Return the edges as a tree, each below the entity that it was walked from.

    An edge whose entity was not reached a step before begins a branch of its own. Of what was
    pruned under one entity only the best are shown unless ``full``; how many more is said.
    """
    tree = Tree(Text(title), guide_style="dim")
    places: dict[tuple[int, str], Tree] = {}
    for name in starts:
        places.setdefault((0, name), tree.add(Text(name, style="bold")))
    pruned: dict[int, int] = {}
    left: dict[int, tuple[Tree, int]] = {}
    for edge in sorted(edges, key=lambda each: (each.depth, each.fate == "pruned", -each.score)):
        before = (edge.depth - 1, edge.source)
        if before not in places:
            places[before] = tree.add(Text(edge.source, style="bold"))
        parent = places[before]
        if edge.fate == "pruned" and not full:
            pruned[id(parent)] = pruned.get(id(parent), 0) + 1
            if pruned[id(parent)] > _MOST_PRUNED:
                left[id(parent)] = (parent, pruned[id(parent)] - _MOST_PRUNED)
                continue
        branch = parent.add(_described(edge))
        if edge.fate != "pruned":
            places.setdefault((edge.depth, edge.target), branch)
    for parent, n in left.values():
        parent.add(Text(f"... and {n} more pruned", style="dim"))
    return tree


def label_of(text: str) -> str:
    """Return a relationship's description as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= _LABEL_CHARS else f"{line[: _LABEL_CHARS - 3]}..."


def name_edges(
    edges: Iterable[ShownEdge], descriptions: Mapping[tuple[str, str], str]
) -> list[ShownEdge]:
    """Return the edges with the descriptions of their (source, target) as stored, where known."""
    named: list[ShownEdge] = []
    for edge in edges:
        ends = (edge.source, edge.target) if edge.forward else (edge.target, edge.source)
        label = descriptions.get(ends)
        named.append(
            edge
            if label is None
            else ShownEdge(
                edge.depth,
                edge.source,
                edge.target,
                label_of(label),
                edge.forward,
                edge.score,
                edge.fate,
            )
        )
    return named


def _described(edge: ShownEdge) -> Text:
    arrow = f"-[{edge.relationship}]->" if edge.forward else f"<-[{edge.relationship}]-"
    line = f"{arrow} {edge.target}  {edge.score:.2f} {edge.fate}"
    return Text(line, style=_STYLES.get(edge.fate, ""))
