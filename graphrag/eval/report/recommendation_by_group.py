"""Lists the kinds of questions for which a run would recommend another method."""

from typing import TYPE_CHECKING

from graphrag.eval.report.formatting import span
from graphrag.text.message_phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.question_groups import Group

_MOST_GROUPS = 3


def answer_kinds(results: "EvaluationResults", taken: str | None) -> str:
    """Return a sentence on kinds of questions that call for another method; "" if none does.

    ``taken``: the recommended method; None if the answer is undecided.
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
        for group, method, lead in better[:_MOST_GROUPS]
    ]
    more = f" and {len(better) - _MOST_GROUPS} more groups" if len(better) > _MOST_GROUPS else ""
    than = "every other method" if taken is None else taken
    by = "by the judge alone " if results.analysis and results.analysis.scored_by_labels else ""
    return f"Shown {by}to be better than {than}: {', '.join(cells)}{more}."


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
    best = max(leads, key=lambda m: group.means[m].mean or 0.0, default=None)
    return None if best is None else (best, leads[best])
