"""What the terminal shows of a run unless everything is asked for: what to do, and why."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from graphrag.eval.reports.answer import describe_answer
from graphrag.eval.reports.cells import money, number, seconds, unfinished
from graphrag.eval.reports.lines import plain_table, show_table, tell
from graphrag.eval.reports.run import analysis_of, show_opening, total_of
from graphrag.eval.reports.run_lines import (
    describe_abstentions,
    describe_asked,
    describe_costs,
    describe_failures,
    describe_oddities,
    describe_room,
    is_paid,
    label_results,
)

if TYPE_CHECKING:
    from graphrag.eval.results import EvaluationResults


def show_brief(console: Console, results: "EvaluationResults", notes: Sequence[str] = ()) -> None:
    """Print the answer, the scores, what they cost and what failed.

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
    show_opening(console, results, "Scores in % (95 % interval each)", full=False)
    show_table(console, _cost_table(results))
    lines = (
        *describe_costs(results),
        *describe_room(results),
        *describe_asked(results),
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


def _cost_table(results: "EvaluationResults") -> Table:
    analysis, paid = analysis_of(results), is_paid(results)
    # Without scores nothing above says whose figures these are.
    label = None if results.metrics else label_results(results)
    table = plain_table("method", f"Cost of a search{f' ({label})' if label else ''}")
    for name in ("median s", "LLM calls", "tokens", *(("all $",) if paid else ())):
        table.add_column(name, justify="right")
    for method, found in results.efficiency.items():
        latency = analysis.efficiency[method].latency_median
        tokens = total_of(found["avg_prompt_tokens"], found["avg_output_tokens"])
        table.add_row(
            method,
            seconds(latency) + unfinished(latency),
            number(found["avg_llm_calls"]),
            number(tokens, ",.0f"),
            *((money(found["cost_usd"]),) if paid else ()),
        )
    return table
