"""The page's tables: figures as text, the same as the terminal's."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag.eval.records import METRICS
from graphrag.eval.report.cells import mean_and_n, number, p_value, points, span
from graphrag.eval.report.curves import HOW, curve_rows, list_left_out, name_figure
from graphrag.eval.report.tables import Table
from graphrag.eval.results.analysis import Analysis
from graphrag.eval.scorers.loss import STAGES, Stage

if TYPE_CHECKING:
    from graphrag.eval.results.curves import BudgetCurves
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.results.figures import Figures

_MOST_FILMS = 200
_MOST_CAUSE = 300
_STAGES: dict[Stage, str] = {
    "in_source": "not in the source",
    "in_text_unit": "in no text unit",
    "extracted": "not extracted",
    "connected": "not connected",
    "retrieved": "not found",
    "in_context": "not shown",
    "in_answer": "not said",
    "judged_correct": "judged wrong",
}


def pairs_table(analysis: Analysis) -> Table:
    """Return every pair of methods on the primary metric."""
    rows: list[tuple[str, ...]] = []
    for each in analysis.comparisons:
        if not each.in_family or each.family is None:
            continue
        result = each.result
        corrected = each.corrected if each.is_corrected else None
        decided, limits = corrected or result, corrected or each.family
        rows.append(
            (
                f"{each.a} - {each.b}",
                f"{result.n_pairs:,}",
                points(decided.difference),
                span(limits.low_simultaneous, limits.high_simultaneous),
                f"{result.n10} : {result.n01}",
                p_value(decided.p_holm),
                each.verdict,
            )
        )
    return Table(
        f"Paired differences on {analysis.primary} in percentage points",
        (
            "Pair",
            "Pairs",
            "Difference",
            "Interval",
            "Only first : only second right",
            "Holm",
            "Shown",
        ),
        tuple(rows),
        "All intervals hold together at 95 % confidence, and p is corrected by Holm over these "
        "pairs; without labels of people they are of the judge's verdicts, as the counts always "
        "are.",
    )


def curves_table(curves: "BudgetCurves") -> Table:
    """Return methods x budgets: measured prompt tokens, scores, and the area under each curve."""
    return Table(
        "Scores against tokens, budget by budget, in % (95 % interval)",
        ("Method", "Budget", "Prompt tokens", *map(name_figure, curves.figures)),
        tuple(curve_rows(curves)),
        " ".join([HOW, *(f"{line}." for line in list_left_out(curves))]),
    )


def areas_table(curves: "BudgetCurves") -> Table:
    """Return every pair of methods on every figure's area."""
    rows = [
        (
            f"{each.a} - {each.b}",
            name_figure(each.figure),
            points(each.result.difference),
            span(each.result.low, each.result.high),
            p_value(each.result.p if each.p_holm is None else each.p_holm),
            "exploratory" if each.p_holm is None else each.larger or "no difference",
        )
        for each in curves.differences
    ]
    return Table(
        "Paired differences of areas in percentage points",
        ("Pair", "Area under", "Difference", "Interval", "p", "Larger"),
        tuple(rows),
        "p is corrected by Holm over the pairs on the first figure; on the others each is alone "
        "and nothing is claimed. Intervals are of 95 %, each for its own difference.",
    )


def films_table(results: "EvaluationResults", analysis: Analysis) -> Table | None:
    """Return documents x methods on the primary metric; None with one document."""
    by_film = analysis.outcomes_by_document
    if len(by_film) < 2:
        return None
    methods = list(analysis.outcomes)
    rows: list[tuple[str, ...]] = []
    for film, found in list(by_film.items())[:_MOST_FILMS]:
        cells = [
            mean_and_n(of)
            if (of := found.get(method, {}).get(analysis.primary)) is not None
            else "-"
            for method in methods
        ]
        rows.append((film, *cells))
    left = len(by_film) - len(rows)
    return Table(
        f"Documents x methods: {analysis.primary} in % (95 % interval), n questions",
        ("Document", *methods),
        tuple(rows),
        f"{left:,} more documents stand in the summary file." if left else "",
    )


def failures_table(results: "EvaluationResults") -> Table | None:
    """Return searches that failed and verdicts that are missing, by cause; None without any."""
    causes: Counter[tuple[str, str, str]] = Counter()
    for result in results.results:
        if result.failure is not None:
            cause = f"{result.failure.kind}: {result.failure.message}"
            causes[result.method, "search failed, counts 0", cause[:_MOST_CAUSE]] += 1
        for metric in METRICS:
            failure = result.scores.get(metric).failure
            if failure is not None:
                cause = f"{failure.kind}: {failure.message}"
                causes[result.method, f"{metric} unscored, left out", cause[:_MOST_CAUSE]] += 1
    if not causes:
        return None
    rows = [(method, what, str(n), cause) for (method, what, cause), n in causes.most_common()]
    return Table(
        "Failures and missing verdicts, by cause", ("Method", "What", "Times", "Cause"), tuple(rows)
    )


def loss_table(figures: "Figures") -> Table | None:
    """Return where answers were lost; None where no question has evidence."""
    films = {row.imdb_key for row in figures.loss if row.imdb_key is not None}
    told = [row for row in figures.loss if row.imdb_key is not None or len(films) > 1]
    traced = [row for row in told if row.n > row.n_untraced]
    if not traced:
        return None
    stages: list[Stage] = [
        stage for stage in STAGES if any(row.lost.get(stage, 0) for row in traced)
    ]
    rows = [
        (
            row.method,
            row.imdb_key or "all",
            *(str(row.lost.get(stage, 0)) for stage in stages),
            str(row.n_kept),
            str(row.n_unjudged),
        )
        for row in traced
    ]
    return Table(
        "Where answers were lost: questions with evidence, by the first stage",
        ("Method", "Document", *(_STAGES[stage] for stage in stages), "right", "unjudged"),
        tuple(rows),
        "A question counts at the first stage that its evidence does not pass, right answers in "
        "spite of it included.",
    )


def validated_table(validated: Mapping[str, Sequence[str]]) -> Table:
    """Return what a validation of the indexes found before the run."""
    rows = [(key, line) for key, lines in validated.items() for line in lines]
    return Table("Validation of the indexes before the run", ("Document", "Found"), tuple(rows))


def criteria_table(figures: "Figures") -> Table | None:
    """Return what each method reached of the success criteria; None without any."""
    rows = [
        (
            each.method,
            each.metric,
            number(each.value, ".3f"),
            number(each.minimum, "g"),
            number(each.target, "g"),
            each.result,
        )
        for each in figures.criteria
        if each.value is not None
    ]
    if not rows:
        return None
    columns = ("Method", "Measure", "Value", "Minimum", "Target", "Result")
    return Table("Success criteria", columns, tuple(rows))
