"""A run as lines and tables: in brief, in full, and its curves as Markdown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphrag.eval.report.answer import answer_run, list_lines
from graphrag.eval.report.index_costs import (
    describe_index_costs,
    describe_payoffs,
    index_cost_table,
)
from graphrag.eval.report.kinds import describe_routers, kinds_table
from graphrag.eval.report.run_lines import (
    describe_abstentions,
    describe_comparisons,
    describe_costs,
    describe_documents,
    describe_failures,
    describe_firsts,
    describe_gold,
    describe_grades,
    describe_lost_areas,
    describe_oddities,
    describe_room,
    describe_uncorrected,
    label_results,
)
from graphrag.eval.report.run_tables import (
    areas_table,
    assertions_table,
    claims_table,
    criteria_table,
    curves_table,
    documents_table,
    efficiency_table,
    loss_table,
    measures_tables,
    metrics_table,
    repeats_table,
    score_table,
    spent_table,
)
from graphrag.eval.report.table import Line, Part, escape, markdown_table

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.curves import BudgetCurves
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.figures import Figures

_MOST_DOCUMENTS = 20  # beyond it a table of them leaves nothing else on the terminal


def list_brief(
    results: "EvaluationResults", figures: "Figures", notes: Sequence[str] = ()
) -> list[Part]:
    """Return the answer, the tables of the methods, what the run took and what failed.

    ``notes`` say what else failed. ValueError if the results hold no analysis.
    """
    parts = [*_list_opening(results), *_list_rulings(figures)]
    spent = spent_table(results)
    if spent.rows:
        (_, calls, tokens, *usd) = spent.texts[-1]
        paid = f"${usd[0]}" if usd else "no dollars"
        if usd and spent.rows[-1][-1] is None:
            paid = "an unknown number of dollars"
        parts.append(Line(f"The run took {calls} calls, {tokens} tokens and {paid}."))
    parts += (Line(line, is_command=True) for line in describe_gold(results))
    for describe in (
        *(describe_costs, describe_room, describe_failures),
        *(describe_abstentions, describe_oddities),
    ):
        parts += map(Line, describe(results))
    return [*parts, *map(Line, notes)]


def list_results(results: "EvaluationResults") -> list[Part]:
    """Return all of a run: by method, by document, comparisons, efficiency, failures.

    ValueError if the results hold no analysis.
    """
    analysis, answer = analysis_of(results), answer_run(results)
    parts = _list_opening(results, full=True)
    parts += map(Line, () if answer is None else answer.how)
    parts += (Line(line, is_command=True) for line in describe_gold(results))
    if results.metrics:
        parts += metrics_table(results.metrics, analysis.outcomes).split()
    parts.append(spent_table(results))
    n, documents = len(analysis.outcomes_by_document), documents_table(analysis)
    if n > _MOST_DOCUMENTS:
        parts.append(Line(f"The summary file has the means on each of the {n:,} indexes."))
    elif results.metrics and documents is not None:
        parts += documents.split()
    kinds = kinds_table(results)
    if kinds is not None:
        parts += (*kinds.split(), *map(Line, describe_routers(results)))
    if analysis.comparisons:
        together = f"Comparisons on {analysis.primary} in percentage points"
        parts.append(Line(together, "italic"))
    parts += map(Line, (*describe_comparisons(analysis), *describe_documents(analysis)))
    parts += (Line(line, is_command=True) for line in describe_uncorrected(analysis))
    if results.repeats is not None:
        parts.append(repeats_table(results.repeats))
    parts.append(efficiency_table(results, analysis))
    for describe in (
        *(describe_room, describe_costs, describe_failures, describe_abstentions),
        *(describe_oddities, describe_firsts),
    ):
        parts += map(Line, describe(results))
    return parts


def list_figures(figures: "Figures") -> Iterator[Part]:
    """Yield the figures beyond the verdicts, where there are any.

    They stand below those of :func:`list_results`, which says what all of them are labelled with.
    """
    yield from measures_tables(figures.measures)
    yield from _list_rulings(figures)
    loss, criteria = loss_table(figures), criteria_table(figures)
    if loss is not None:
        yield loss
    yield from map(Line, describe_grades(figures))
    if criteria is not None:
        yield from criteria.split()
    taken = index_cost_table(figures.index_costs)
    if taken is not None:
        yield taken
    yield from map(Line, list_index_notes(figures))


def list_index_notes(figures: "Figures") -> list[str]:
    """Return what each index took in all, and when a dearer one pays."""
    return [*describe_index_costs(figures.index_costs), *describe_payoffs(figures.payoffs)]


def _list_rulings(figures: "Figures") -> Iterator[Part]:
    claims, assertions = claims_table(figures), assertions_table(figures)
    if claims is not None:
        yield from claims.split(4)
    if assertions is not None:
        yield assertions


def analysis_of(results: "EvaluationResults") -> "Analysis":
    """Return the analysis of results; raises ValueError if they hold none."""
    if results.analysis is None:
        msg = "these results hold no analysis; make them with aggregate_results"
        raise ValueError(msg)
    return results.analysis


def list_answer(results: "EvaluationResults") -> list[str]:
    """Return the answer as lines: what to do, the reasons, what is next."""
    answer = answer_run(results)
    return [] if answer is None else [line.text for line in list_lines(answer)]


def verdict_line(results: "EvaluationResults") -> str | None:
    """Return the answer of a run as one line; None where nothing was to be judged."""
    answer = answer_run(results)
    return None if answer is None else answer.line


def _list_opening(results: "EvaluationResults", full: bool = False) -> list[Part]:
    """Return the answer and the methods; ``full``: every difference of areas."""
    analysis, answer, label = analysis_of(results), answer_run(results), label_results(results)
    parts: list[Part] = []
    if answer is not None:
        parts += list_lines(answer)
    elif label:
        parts.append(Line(f"All that follows: {label}.", "bold"))
    if results.curves is not None:
        parts.append(curves_table(results.curves))
        parts += [areas_table(results.curves)] if full else []
        parts += map(Line, describe_lost_areas(results.curves))
    return [*parts, score_table(results, analysis)]


def render_curves(results: "EvaluationResults", curves: "BudgetCurves") -> str:
    """Return the curves as Markdown, for a pull request or notes: answer, table, differences."""
    answer, table = answer_run(results), curves_table(curves)
    warnings = (f"Warning: {line}" for line in results.metadata.get("warnings", ()))
    lines = [
        f"### Scores against tokens: run {escape(str(results.metadata.get('run_id', '')))}",
        "",
        *((escape(line.text) for line in list_lines(answer)) if answer is not None else ()),
        "",
        *markdown_table(table),
        "",
        table.note,
        "",
        *markdown_table(areas_table(curves)),
        "",
        *(f"- {escape(line)}" for line in (*describe_lost_areas(curves), *warnings)),
    ]
    return "\n".join(lines) + "\n"
