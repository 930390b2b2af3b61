"""What a search of the graph knows at each moment: frozen records, no behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Strategy = Literal["start", "llm", "bm25", "pagerank", "connect"]
Fate = Literal["walked", "kept", "pruned"]
"""What became of a scored edge: walked on from, kept as evidence alone, or neither."""


@dataclass(frozen=True, slots=True)
class Link:
    """A row of the relationships table, and whether it is walked as it is stored."""

    relationship: int
    forward: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """All that joins one entity to one neighbour, seen from that entity.

    Attributes
    ----------
    source, target : int
        Nodes: where the step starts and where it leads.
    links : tuple of Link
        The parallel relationships merged here, heaviest first; never empty.
    weight : float
        Weight of the heaviest of them.
    """

    source: int
    target: int
    links: tuple[Link, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Step:
    """An edge that was walked, and its score in [0, 1]."""

    edge: Edge
    score: float


@dataclass(frozen=True, slots=True)
class Path:
    """A walk from a starting node over connected steps, no entity twice."""

    start: int
    steps: tuple[Step, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """The entities on the path, in walking order."""
        return (self.start, *(step.edge.target for step in self.steps))

    @property
    def end(self) -> int:
        """The entity that the path has reached."""
        return self.steps[-1].edge.target if self.steps else self.start

    @property
    def score(self) -> float:
        """Product of the steps' scores in [0, 1]; 1 without steps."""
        product = 1.0
        for step in self.steps:
            product *= step.score
        return product


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path of the beam, and an edge from its end to a new entity that may lengthen it."""

    path: Path
    edge: Edge


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a list of candidates.

    Attributes
    ----------
    values : tuple of float
        In [0, 1], one for each candidate, in their order.
    strategy : Strategy
        Who gave them in the end.
    note : str
        What went wrong on the way; empty when nothing did.
    """

    values: tuple[float, ...]
    strategy: Strategy
    note: str = ""


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge, the round that scored it (from 1), its own score and that of the path it ends."""

    depth: int
    edge: Edge
    score: float
    path_score: float
    fate: Fate


@dataclass(frozen=True, slots=True)
class Round:
    """One depth of the exploration, as it is reported.

    Attributes
    ----------
    depth : int
        0 for finding the starting entities, then 1, 2, ...; in connect mode the hops allowed,
        one round for each pair of entities.
    strategy_used : Strategy
    n_edges, n_kept : int
        Edges scored, and edges retained as evidence (depth 0: none and the starts); in connect
        mode edges looked at, and paths.
    note : str
    """

    depth: int
    strategy_used: Strategy
    n_edges: int
    n_kept: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Exploration:
    """How far a search has walked.

    Attributes
    ----------
    starts : tuple of int
        Nodes that the walk started from.
    beam : tuple of Path
        The paths walked on from: at most ``width``, no two with the same end.
    strong : tuple of Path
        Every path that has been in a beam, or scored as well but ended where the walk had
        been before (it joins two known entities); best first.
    weaker : tuple of Path
        The other paths retained as evidence, best first.
    expanded : frozenset of int
        Nodes whose edges have been looked at.
    judged : frozenset of int
        Relationship rows that were scored; each is scored once a search.
    rounds : tuple of Round
    scored : tuple of ScoredEdge
        Every edge that was scored, in the order of the candidates.
    """

    starts: tuple[int, ...]
    beam: tuple[Path, ...] = ()
    strong: tuple[Path, ...] = ()
    weaker: tuple[Path, ...] = ()
    expanded: frozenset[int] = frozenset()
    judged: frozenset[int] = frozenset()
    rounds: tuple[Round, ...] = ()
    scored: tuple[ScoredEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class Passages:
    """The mass > 0 of a question that reached each row of the text units table, and each node."""

    units: Mapping[int, float]
    entities: Mapping[int, float]
