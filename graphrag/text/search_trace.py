"""The way of a graph search, from call to call, and as a tree for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from rich.tree import Tree


def name_row(table: str, row: str) -> str:
    """Return the name of a row of a context as citations write it."""
    return f"{table.capitalize()} ({row})"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a search: what it read and what it said.

    - ``shown``, ``kept``: numbers of text units, as citations name them.
    - ``n_rows``: rows that it was shown below the texts; ``followed``: those that it followed.
    - ``looked_up``: what it searched for, because ``missing`` was not known; of the last call that
      is what the answer lacks. "" if nothing.
    - ``note``: what went otherwise than it should, or "".
    """

    call: int
    shown: tuple[str, ...] = ()
    n_rows: int = 0
    kept: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()
    looked_up: tuple[str, ...] = ()
    missing: str = ""
    note: str = ""


def read_steps(rows: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Read the data frame ``exploration``, without the row of a search that asked nobody."""
    return tuple(_read_step(row) for row in rows if row["call"])


def _read_step(row: Mapping[str, Any]) -> Step:
    lists = {
        name: tuple(map(str, row[name])) for name in ("shown", "kept", "followed", "looked_up")
    }
    return Step(
        int(row["call"]), n_rows=len(row["rows"]), missing=row["missing"], note=row["note"], **lists
    )


def tell_step(step: Step) -> tuple[str, list[str]]:
    """Return what a call read, and what it said, a line each."""
    texts = f"Sources ({', '.join(step.shown)})" if step.shown else "no text"
    rows = f" and {counted(step.n_rows, 'row')}" if step.n_rows else ""
    lines = [f"missing: {step.missing}"] if step.missing else []
    lines += [f"kept Sources ({', '.join(step.kept)})"] if step.kept else []
    lines += [f"followed {row}" for row in step.followed]
    lines += [f"looked up “{text}”" for text in step.looked_up]
    lines += [f"note: {step.note}"] if step.note else []
    return f"call {step.call} read {texts}{rows}", lines


def first_read(steps: Sequence[Step], cited: Iterable[str]) -> list[tuple[str, int]]:
    """Return of each text unit that an answer cites which call read it first."""
    calls = {number: step.call for step in reversed(steps) for number in step.shown}
    return [(number, calls[number]) for number in cited if number in calls]


def way_tree(steps: Sequence[Step], cited: Iterable[str] = ()) -> "Tree":
    """Return the calls in their order, and where what the answer cites was read."""
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text("Way"), guide_style="dim")
    for step in steps:
        title, lines = tell_step(step)
        branch = tree.add(Text(title, style="bold"))
        for line in lines:
            branch.add(Text(line))
    for number, call in first_read(steps, cited):
        tree.add(Text(f"the answer cites {name_row('sources', number)}, first read in call {call}"))
    return tree
