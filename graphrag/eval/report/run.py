"""A run as lines and tables: in brief, in full, and its curves as Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag.eval.report.answer import Answer, answer_run
from graphrag.eval.report.run_lines import (
    answer_areas,
    describe_abstentions,
    describe_areas,
    describe_combined,
    describe_comparisons,
    describe_costs,
    describe_documents,
    describe_failures,
    describe_firsts,
    describe_grades,
    describe_oddities,
    describe_room,
    describe_uncorrected,
    label_results,
)
from graphrag.eval.report.run_tables import (
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
from graphrag.eval.stats.family import describe_tests

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.curves import BudgetCurves
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.figures import Figures

CURVES_HEADING = "### Scores against tokens: run "
_MOST_DOCUMENTS = 20  # beyond it a table of them leaves nothing else on the terminal


def list_brief(results: "EvaluationResults", notes: Sequence[str] = ()) -> list[Part]:
    """Return the answer, the scores, what the run took and what failed.

    ``notes`` say what else failed.

    Raises
    ------
    ValueError
        If the results hold no analysis, see :class:`EvaluationResults`.
    """
    return [
        *_list_opening(results, full=False),
        *map(Line, describe_costs(results)),
        *map(Line, describe_room(results)),
        *map(Line, describe_failures(results)),
        *map(Line, notes),
        *map(Line, describe_abstentions(results)),
        *map(Line, describe_oddities(results)),
    ]


def list_results(results: "EvaluationResults") -> list[Part]:
    """Return all of a run: by method, by document, comparisons, efficiency, failures.

    The label of what embedded models produced stands at the answer, at the scores, and once for
    all that follows.

    Raises
    ------
    ValueError
        If the results hold no analysis, see :class:`EvaluationResults`.
    """
    analysis, label = analysis_of(results), label_results(results)
    parts = _list_opening(results, full=True)
    if label:
        parts.append(Line(f"All that follows: {label}.", "bold"))
    n, documents = len(analysis.outcomes_by_document), documents_table(analysis)
    if n > _MOST_DOCUMENTS:
        parts.append(Line(f"The summary file has the means on each of the {n:,} indexes."))
    elif results.metrics and documents is not None:
        parts += documents.split()
    parts += map(Line, describe_room(results))
    if analysis.comparisons:
        together = (
            f"Comparisons on {analysis.primary} in percentage points. All intervals hold together "
            "at 95 % confidence, and p is corrected by Holm over these pairs."
        )
        parts.append(Line(together, "italic"))
    in_family = [compared.result for compared in analysis.comparisons if compared.in_family]
    parts += map(Line, describe_comparisons(analysis))
    parts += map(Line, describe_tests(in_family))
    parts += map(Line, describe_documents(analysis))
    parts += (Line(line, is_command=True) for line in describe_uncorrected(analysis))
    if results.repeats is not None:
        parts.append(repeats_table(results.repeats))
    parts.append(efficiency_table(results, analysis))
    for describe in (
        *(describe_costs, describe_failures, describe_abstentions),
        *(describe_oddities, describe_firsts),
    ):
        parts += map(Line, describe(results))
    return parts


def list_figures(figures: "Figures") -> Iterator[Part]:
    """Yield the figures beyond the verdicts, where there are any.

    They stand below those of :func:`list_results`, which says what all of them are labelled with.
    """
    yield from measures_tables(figures.measures)
    loss, criteria = loss_table(figures), criteria_table(figures)
    if loss is not None:
        yield loss
    yield from map(Line, describe_grades(figures))
    yield from map(Line, describe_combined(figures))
    if criteria is not None:
        yield from criteria.split()


def analysis_of(results: "EvaluationResults") -> "Analysis":
    """Return the analysis of results; raises ValueError if they hold none."""
    if results.analysis is None:
        msg = "these results hold no analysis; make them with aggregate_results"
        raise ValueError(msg)
    return results.analysis


def list_answer(results: "EvaluationResults") -> list[str]:
    """Return the answer as lines: what to do, the reasons, what is next."""
    answer = answer_run(results)
    if answer is None:
        return []
    return [answer.line, *answer.reasons, *filter(None, [answer.next_line])]


def verdict_line(results: "EvaluationResults") -> str | None:
    """Return the answer of a run as one line; None where nothing was to be judged."""
    answer = answer_run(results)
    return None if answer is None else answer.line


def list_answer_parts(answer: Answer | None, full: bool = False) -> Iterator[Part]:
    """Yield an answer's lines; ``full``: and how it was computed."""
    if answer is None:
        return
    yield Line(answer.line, "bold")
    yield from map(Line, answer.reasons)
    if answer.next:
        yield Line(answer.next_line, "bold", is_command=bool(answer.command))
    if full:
        yield from map(Line, answer.how)


def _list_opening(results: "EvaluationResults", *, full: bool) -> list[Part]:
    """Return the answer, the scores and what the run took; ``full``: every difference of areas."""
    analysis, label = analysis_of(results), label_results(results)
    note = f" ({label})" if label else ""
    parts: list[Part] = [*list_answer_parts(answer_run(results), full)]
    if results.curves is not None:
        table = curves_table(results.curves)
        parts.append(replace(table, title=f"{table.title}{note}"))
        parts += map(Line, describe_areas(results.curves, full))
    main = score_table(results, analysis)
    parts.append(replace(main, title=f"{main.title}{note}"))
    others = metrics_table(
        "Other metrics in % (95 % interval each), n questions",
        results.metrics,
        analysis.outcomes,
        skipped=analysis.primary,
    )
    return [*parts, *others.split(), spent_table(results)]


def render_curves(results: "EvaluationResults", curves: "BudgetCurves") -> str:
    """Return the curves as Markdown, for a pull request or notes: answer, table, differences."""
    label, table = label_results(results), curves_table(curves)
    warnings = (f"Warning: {line}" for line in results.metadata.get("warnings", ()))
    lines = [
        f"{CURVES_HEADING}{escape(str(results.metadata.get('run_id', '')))}",
        "",
        f"Answer{f' ({escape(label)})' if label else ''}: {escape(answer_areas(curves))}",
        "",
        *markdown_table(table),
        "",
        table.note,
        "",
        *(f"- {escape(line)}" for line in (*describe_areas(curves), *warnings)),
    ]
    return "\n".join(lines) + "\n"
