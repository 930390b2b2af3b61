"""The tables of a run, as text: the same on the terminal, on the page and in a notebook."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag.eval.report.cells import (
    EACH_ALONE,
    MISSING,
    has_two_means,
    mean_and_n,
    mean_cell,
    money,
    number,
    seconds,
    unfinished,
)
from graphrag.eval.results.rows import FAILED_AS_0

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.stats.outcomes import Outcomes

_HOW_COUNTED = (
    "Judged: answers with a verdict, of those planned. Declined: the method says that it has no "
    "answer. Tokens are the mean of a search, seconds the median."
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as text; the first cell of each row is its heading.

    ``note`` says how it is to be read.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def score_table(results: "EvaluationResults", analysis: "Analysis") -> Table:
    """Return the main table: score, what is behind it, tokens and seconds of each method.

    Without a metric that was to be judged the scores are left out.
    """
    judged = bool(results.metrics)
    rows: list[tuple[str, ...]] = []
    for method, outcomes in analysis.outcomes.items():
        of, found = outcomes[analysis.primary], results.efficiency[method]
        declined = sum(
            r.abstained and r.failure is None for r in results.results if r.method == method
        )
        tokens = total_of(found["avg_prompt_tokens"], found["avg_output_tokens"])
        scores = (mean_cell(of), f"{of.n_scored:,} of {of.n_planned:,}") if judged else ()
        rows.append(
            (
                method,
                *scores,
                f"{results.counts[method]['n_search_failed']:,}",
                f"{declined:,}",
                number(tokens, ",.0f"),
                seconds(analysis.efficiency[method].latency_median),
            )
        )
    title = f"Score: {analysis.primary} in % (95 % interval each)" if judged else "Searches"
    columns = (analysis.primary, "judged") if judged else ()
    return Table(
        title,
        ("method", *columns, "failed", "declined", "tokens", "seconds"),
        tuple(rows),
        f"{_HOW_COUNTED}{_note_of_repeats(results)}",
    )


def _note_of_repeats(results: "EvaluationResults") -> str:
    if results.repeats is None or results.repeats.n_trials == 1:
        return ""
    return (
        f" Each question was searched {results.repeats.n_trials} times: searches are counted, and "
        "a score is the mean of the questions' means."
    )


def metrics_table(
    title: str,
    metrics: Sequence[str],
    rows: Sequence[tuple[str, Mapping[str, "Outcomes"]]],
    skipped: str = "",
) -> Table:
    """Return the means on metrics, each with its interval and n.

    Where a failed search has nothing to judge, and searches failed, the mean in which they count 0
    has a column of its own. ``skipped`` names a metric whose column another table has.
    """
    columns: list[tuple[str, bool]] = []
    for metric in metrics:
        differs = any(has_two_means(of[metric]) for _, of in rows)
        columns += [(metric, False)] * (metric != skipped) + [(metric, True)] * differs
    return Table(
        title,
        ("method", *(f"{metric}{FAILED_AS_0 if both else ''}" for metric, both in columns)),
        tuple(
            (name, *(mean_and_n(of[metric], failed_as_0=both) for metric, both in columns))
            for name, of in rows
        ),
        EACH_ALONE,
    )


def split_columns(table: Table, most: int = 3) -> Iterator[Table]:
    """Yield a table as several that 80 columns hold, the title on the first."""
    for start in range(1, max(2, len(table.columns)), most):
        part = slice(start, start + most)
        last = start + most >= len(table.columns)
        yield Table(
            table.title if start == 1 else "",
            (table.columns[0], *table.columns[part]),
            tuple((row[0], *row[part]) for row in table.rows),
            table.note if last else "",
        )


def spent_table(results: "EvaluationResults") -> Table:
    """Return what the run took in all: calls, tokens, and dollars where any were paid."""
    found = results.efficiency
    further = results.figures.get("further_judges")
    if not found:
        return Table("", (), ())
    names = ("calls", "tokens", "cost_usd")
    judging = (total_of(*(of[f"judge_{name}"] for of in found.values())) for name in names)
    spent: list[tuple[str, tuple[Any, ...]]] = [
        *((method, tuple(of[name] for name in names)) for method, of in found.items()),
        ("judging", tuple(judging)),
        *([("further judges", tuple(further[name] for name in names))] if further else []),
    ]
    every = zip(*(amounts for _, amounts in spent), strict=True)
    spent.append(("total", tuple(total_of(*each) for each in every)))
    is_paid = any(dollars != 0 for _, (_, _, dollars) in spent)
    rows = [
        (name, number(calls, ","), number(tokens, ","), *((money(usd),) if is_paid else ()))
        for name, (calls, tokens, usd) in spent
    ]
    return Table(
        "What the run took",
        ("searches by", "calls", "tokens", *(("$",) if is_paid else ())),
        tuple(rows),
        "" if is_paid else "Neither the searches nor the judge cost a dollar.",
    )


def efficiency_table(results: "EvaluationResults", analysis: "Analysis") -> Table:
    """Return how quick and how dear each method's searches are."""
    paid = any(found["cost_usd"] != 0 for found in results.efficiency.values())
    rows: list[tuple[str, ...]] = []
    for method, figures in results.efficiency.items():
        further = analysis.efficiency[method]
        pareto = further.is_pareto
        rows.append(
            (
                method,
                seconds(further.latency_median) + unfinished(further.latency_median),
                seconds(further.latency_p95) + unfinished(further.latency_p95),
                number(figures["avg_llm_calls"]),
                number(figures["avg_exploring_calls"]),
                *((money(further.cost_per_correct.value),) if paid else ()),
                MISSING if pareto is None else "yes" if pareto else "no",
            )
        )
    cut = any(found.latency_median.censored_share for found in analysis.efficiency.values())
    return Table(
        "Efficiency of the searches",
        (
            *("method", "median s", "p95 s", "LLM calls", "exploring"),
            *(("$ a correct",) if paid else ()),
            "Pareto",
        ),
        tuple(rows),
        "LLM calls are the mean of a search; exploring: those of them that choose what to read, "
        "before the answer. Pareto: no other method is as good in the point "
        "estimates of score, tokens and median, and better in one; chance is not weighed."
        + (
            " Unfinished: searches that failed; they count as slower than all others."
            if cut
            else ""
        ),
    )


def total_of(*parts: Any) -> Any:
    """Return a sum; None where a part of it is not known."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
