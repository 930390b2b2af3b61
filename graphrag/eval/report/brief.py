"""What the terminal shows of a run unless everything is asked for: what to do, and why."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from graphrag.eval.report.answer import describe_answer
from graphrag.eval.report.lines import tell
from graphrag.eval.report.run import show_opening
from graphrag.eval.report.run_lines import (
    describe_abstentions,
    describe_costs,
    describe_failures,
    describe_oddities,
    describe_room,
    label_results,
)

if TYPE_CHECKING:
    from graphrag.eval.results.evaluation_results import EvaluationResults


def show_brief(console: Console, results: "EvaluationResults", notes: Sequence[str] = ()) -> None:
    """Print the answer, the scores, what the run took and what failed.

    Parameters
    ----------
    console : Console
    results : EvaluationResults
    notes : sequence of str
        What else failed.

    Raises
    ------
    ValueError
        If the results hold no analysis, see :class:`EvaluationResults`.
    """
    show_opening(console, results, full=False)
    lines = (
        *describe_costs(results),
        *describe_room(results),
        *describe_failures(results),
        *notes,
        *describe_abstentions(results),
        *describe_oddities(results),
    )
    for line in lines:
        tell(console, line)


def verdict_line(results: "EvaluationResults") -> str | None:
    """Return the answer of a run as one line; None where nothing was to be judged."""
    label = label_results(results)
    return next(iter(describe_answer(results, f" ({label})" if label else "")), None)
