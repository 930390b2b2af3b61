"""Shows how a graph search went, call by call, also as a tree for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag.text.message_phrases import counted

if TYPE_CHECKING:
    from rich.tree import Tree


def name_row(table: str, row: str) -> str:
    """Return the name of a context's row as citations write it, e.g. ``Sources (3)``."""
    return f"{table.capitalize()} ({row})"


@dataclass(frozen=True, slots=True)
class Step:
    """Records one model call of a search: its input and its output.

    - ``shown``, ``kept``: numbers of the text units that it read and kept, as citations name them.
    - ``n_rows``: number of rows that it read below the texts; ``followed``: the rows it followed.
    - ``looked_up``: texts that it searched for.
    - ``missing``: facts not known yet; in the last call, facts that the answer lacks. "" if none.
    - ``note``: an error, or "".
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
    """Read the data frame ``exploration``; a search without any model call has no step."""
    return tuple(_read_step(row) for row in rows if row["call"])


def _read_step(row: Mapping[str, Any]) -> Step:
    lists = {
        name: tuple(map(str, row[name])) for name in ("shown", "kept", "followed", "looked_up")
    }
    return Step(
        int(row["call"]), n_rows=len(row["rows"]), missing=row["missing"], note=row["note"], **lists
    )


def describe_step(step: Step) -> tuple[str, list[str]]:
    """Return a title with the rows that a call read, and one line for each part of its reply."""
    texts = f"Sources ({', '.join(step.shown)})" if step.shown else "no text"
    rows = f" and {counted(step.n_rows, 'row')}" if step.n_rows else ""
    lines = [f"missing: {step.missing}"] if step.missing else []
    lines += [f"kept Sources ({', '.join(step.kept)})"] if step.kept else []
    lines += [f"followed {row}" for row in step.followed]
    lines += [f"looked up “{text}”" for text in step.looked_up]
    lines += [f"note: {step.note}"] if step.note else []
    return f"call {step.call} read {texts}{rows}", lines


def first_read(steps: Sequence[Step], cited: Iterable[str]) -> list[tuple[str, int]]:
    """Return the text units that an answer cites, each with the call that read it first."""
    calls = {number: step.call for step in reversed(steps) for number in step.shown}
    return [(number, calls[number]) for number in cited if number in calls]


def way_tree(steps: Sequence[Step], cited: Iterable[str] = ()) -> "Tree":
    """Return a tree of the calls in their order, and of the calls that read cited texts first."""
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text("Way"), guide_style="dim")
    for step in steps:
        title, lines = describe_step(step)
        branch = tree.add(Text(title, style="bold"))
        for line in lines:
            branch.add(Text(line))
    for number, call in first_read(steps, cited):
        tree.add(Text(f"the answer cites {name_row('sources', number)}, first read in call {call}"))
    return tree
