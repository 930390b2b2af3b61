"""The paths of a graph search as a tree for the terminal: entity -[relationship]-> entity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.text import Text
from rich.tree import Tree

_STYLES = {"walked": "bold", "kept": "green", "pruned": "dim"}
_MOST_PRUNED = 3  # under one entity, unless everything is shown
_LABEL_CHARS = 60


@dataclass(frozen=True, slots=True)
class ShownEdge:
    """One edge of a search: depth from 1, entities as it was walked, score in [0, 1].

    ``forward``: it was walked from its stored source to its target. ``rests_on``: the rows of the
    context that speak for it, as citations name them: its relationships, and the text units that
    they were taken from. Empty for an edge that was pruned.
    """

    depth: int
    source: str
    target: str
    relationship: str
    forward: bool
    score: float
    fate: str
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leads:
    """Which edges of a walk lead to what its answer cites.

    ``rows`` are, for each edge in order, the cited rows that it rests on, or that an edge walked
    on from it rests on; ``sentence`` says which cited texts no edge leads to, "" if there is none.
    """

    rows: tuple[tuple[str, ...], ...]
    sentence: str


def name_row(table: str, row: str) -> str:
    """Return the name of a row of the context as citations write it."""
    return f"{table.capitalize()} ({row})"


def find_leads(edges: Sequence[ShownEdge], cited: Iterable[str]) -> Leads:
    """Follow all scored edges of a walk back from what its answer cites, as ``name_row`` has it."""
    wanted = dict.fromkeys(cited)
    walked = {(e.depth, e.target): at for at, e in enumerate(edges) if e.fate == "walked"}
    rows = [dict[str, None]() for _ in edges]
    for at, edge in enumerate(edges):
        found = [row for row in edge.rests_on if row in wanted]
        place: int | None = at if found else None
        while place is not None:
            rows[place].update(dict.fromkeys(found))
            place = walked.get((edges[place].depth - 1, edges[place].source))
    reached = {row for of_edge in rows for row in of_edge}
    texts = name_row("sources", "")[:-1]
    left = [row[len(texts) : -1] for row in wanted if row.startswith(texts) and row not in reached]
    sentence = (
        f"The answer cites {name_row('sources', ', '.join(left))}, which no edge of this walk "
        f"leads to: {'it' if len(left) == 1 else 'they'} came from the ranking of texts."
        if left
        else ""
    )
    return Leads(tuple(map(tuple, rows)), sentence)


def path_tree(
    title: str,
    starts: Sequence[str],
    edges: Sequence[ShownEdge],
    full: bool = False,
    cited: Iterable[str] = (),
) -> Tree:
    """Return the edges as a tree, each below the entity that it was walked from.

    An edge whose entity was not reached a step before begins a branch of its own. Of what was
    pruned under one entity only the best are shown unless ``full``, and how many more is said; so
    is which of the cited rows an edge leads to, and which texts none does.
    """
    tree = Tree(Text(title), guide_style="dim")
    places: dict[tuple[int, str], Tree] = {}
    for name in starts:
        places.setdefault((0, name), tree.add(Text(name, style="bold")))
    pruned: dict[int, int] = {}
    left: dict[int, tuple[Tree, int]] = {}
    leads = find_leads(edges, cited)
    order = sorted(
        zip(edges, leads.rows, strict=True),
        key=lambda each: (each[0].depth, each[0].fate == "pruned", -each[0].score),
    )
    for edge, rows in order:
        before = (edge.depth - 1, edge.source)
        if before not in places:
            places[before] = tree.add(Text(edge.source, style="bold"))
        parent = places[before]
        if edge.fate == "pruned" and not full:
            pruned[id(parent)] = pruned.get(id(parent), 0) + 1
            if pruned[id(parent)] > _MOST_PRUNED:
                left[id(parent)] = (parent, pruned[id(parent)] - _MOST_PRUNED)
                continue
        arrow = f"-[{edge.relationship}]->" if edge.forward else f"<-[{edge.relationship}]-"
        to = f", leads to {', '.join(rows)}" if rows else ""
        line = f"{arrow} {edge.target}  {edge.score:.2f} {edge.fate}{to}"
        branch = parent.add(Text(line, style=_STYLES.get(edge.fate, "")))
        if edge.fate != "pruned":
            places.setdefault((edge.depth, edge.target), branch)
    for parent, n in left.values():
        parent.add(Text(f"... and {n} more pruned", style="dim"))
    if leads.sentence:
        tree.add(Text(leads.sentence))
    return tree


def name_edges(
    edges: Iterable[ShownEdge], descriptions: Mapping[tuple[str, str], str]
) -> list[ShownEdge]:
    """Return the edges with the descriptions of their (source, target) as stored.

    One without a description, as those of pruned edges are, is named by its row.
    """

    def named(edge: ShownEdge) -> ShownEdge:
        ends = (edge.source, edge.target) if edge.forward else (edge.target, edge.source)
        if ends not in descriptions:
            return replace(edge, relationship=name_row("relationships", edge.relationship))
        line = " ".join(descriptions[ends].split())
        short = line if len(line) <= _LABEL_CHARS else f"{line[: _LABEL_CHARS - 3]}..."
        return replace(edge, relationship=short)

    return [named(edge) for edge in edges]
