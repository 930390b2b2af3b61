"""A run by kind of question: the table, and what it changes in the answer."""

from typing import TYPE_CHECKING

from graphrag.eval.report.cells import EACH_ALONE, mean_with_n, span
from graphrag.eval.report.table import Kind, Table, Value
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.kinds import Group

_MOST = 3  # groups that the answer names


def kinds_table(results: "EvaluationResults") -> Table:
    """Return groups of questions x methods on the primary metric; nothing without groups."""
    groups = [group for grouping in results.kinds for group in grouping.groups]
    if not groups:
        return Table()
    methods, primary = list(groups[0].means), results.metrics[0]
    columns: list[tuple[str, Kind]] = [("questions", "text"), *((m, "percent") for m in methods)]
    rows: list[list[Value]] = [
        [group.name, *map(mean_with_n, group.means.values()), group.winner] for group in groups
    ]
    return Table(
        f"By kind of question: {primary} in % (95 % interval each), n questions",
        [*columns, ("shown best", "text")],
        rows,
        "Groups of 20 questions or more. Shown best: better than every other method, with p "
        "corrected by Holm over all pairs in the groups of one column; by the judge alone. "
        f"{EACH_ALONE}",
        most=3,
    )


def answer_kinds(results: "EvaluationResults", taken: str | None) -> str:
    """Return what the kinds of questions change in an answer; "" where they change nothing.

    ``taken``: the method that the answer is to use; None where it is undecided.
    """
    better = [
        (group, *choice)
        for grouping in results.kinds
        for group in grouping.groups
        if (choice := _better(group, taken)) is not None
    ]
    if not better:
        return ""
    cells = [
        f"{method} on {group.name} ({lead}{counted(group.n, 'question')})"
        for group, method, lead in better[:_MOST]
    ]
    more = f" and {len(better) - _MOST} more groups" if len(better) > _MOST else ""
    than = "every other method" if taken is None else taken
    return f"Shown to be better than {than}: {', '.join(cells)}{more}."


def _better(group: "Group", taken: str | None) -> tuple[str, str] | None:
    """Return the method to use instead in a group, and its lead; None without one."""
    if taken is None:
        return None if group.winner is None else (group.winner, "")
    leads: dict[str, str] = {}
    for lead in group.leads:
        low, high = lead.low, lead.high
        if lead.b == taken and lead.shown > 0:
            leads[lead.a] = f"{span(low, high)} points, "
        elif lead.a == taken and lead.shown < 0 and low is not None and high is not None:
            leads[lead.b] = f"{span(-high, -low)} points, "
    means = {m: group.means[m].mean or 0.0 for m in leads}
    best = max(means, key=means.__getitem__, default=None)
    return None if best is None else (best, leads[best])
