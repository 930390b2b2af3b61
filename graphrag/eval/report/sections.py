"""What the terminal shows of the figures beyond the verdicts."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from graphrag.eval.report.cells import (
    EACH_ALONE,
    UNKNOWN,
    UNSCORED,
    number,
    p_value,
    percent,
    plain,
    share,
)
from graphrag.eval.report.lines import plain_table, show_table, tell
from graphrag.eval.results.figures import CriterionResult, Figures
from graphrag.eval.scorers.loss import STAGES, LossRow, Stage
from graphrag.eval.scorers.measure_declaration import Group, MeasureForm
from graphrag.eval.scorers.measuring import MethodMeasures
from graphrag.eval.scorers.pairwise import PreferenceSummary
from graphrag.eval.stats.intervals import Estimate

_TABLES: Mapping[str, tuple[Group, ...]] = {
    "Measured without a model": ("ranking", "entities", "words"),
    "Traced to the index": ("traced",),
}
_STAGE_HEADINGS: dict[Stage, str] = {
    "in_source": "source",
    "in_text_unit": "unit",
    "extracted": "entity",
    "connected": "graph",
    "retrieved": "found",
    "in_context": "shown",
    "in_answer": "said",
    "judged_correct": "verdict",
}


def show_figures(console: Console, figures: Figures) -> None:
    """Print the tables for which there is something to show.

    They stand below those of :func:`show_results`, which says what all of them are labelled with.
    """
    rubric = {
        method: {name: summary.scale.estimate for name, summary in found.items()}
        for method, found in figures.rubric.items()
    }
    for table in (
        *(_measures_table(title, figures.measures) for title in _TABLES),
        _loss_table(figures.loss),
    ):
        if table is not None:
            show_table(console, table)
    if figures.pairwise:
        console.print("Responses held against each other, in both orders", style="italic")
    for line in (
        *_judged_lines("Rubric, 1 to 5", rubric),
        *_judged_lines("Quality, 0 to 1", figures.quality),
    ):
        tell(console, line)
    for line in (
        *_pairwise_lines(figures.pairwise),
        *_combined_lines(figures.measures),
        *_criteria_lines(figures),
    ):
        tell(console, line)


def _measures_table(title: str, measures: Mapping[str, MethodMeasures]) -> Table | None:
    given = {
        name: summary.form
        for found in measures.values()
        for name, summary in found.measures.items()
        if summary.form.measure.group in _TABLES[title]
    }
    forms = [
        form
        for form in _columns(list(given.values()))
        if any(found.measures[form.name].estimate.mean is not None for found in measures.values())
    ]
    if not forms:
        return None
    full = [
        form
        for form in forms
        if len(measures) > 1
        and all(found.measures[form.name].estimate.mean == 1 for found in measures.values())
    ]
    shown = [form for form in forms if form not in full]
    table = plain_table("method", f"{title}, in % (95 % interval)", padding=0)
    sizes = {found.measures[form.name].estimate.n for found in measures.values() for form in forms}
    table.caption = f"Over {_counts(sizes)} questions, as labels allow. {EACH_ALONE}"
    if full:
        names = ", ".join(form.heading for form in full)
        table.caption = f"100 % in every row: {names}. {table.caption}"
    for form in shown:
        table.add_column(form.heading, justify="right")
    for method, found in measures.items():
        cells = [percent(found.measures[form.name].estimate) for form in shown]
        table.add_row(method, *cells)
    return table


def _counts(sizes: Collection[int]) -> str:
    least, most = min(sizes), max(sizes)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _columns(forms: Sequence[MeasureForm]) -> list[MeasureForm]:
    """Return the measures over everything and at the middle cutoff, in the order of columns."""
    cutoffs = sorted({form.k for form in forms if form.k is not None})
    middle = cutoffs[len(cutoffs) // 2] if cutoffs else None
    shown = [
        (form.measure.column, form)
        for form in forms
        if form.measure.column is not None
        and (form.k is None or (form.k == middle and form.measure.shows_cutoff))
    ]
    return [form for _, form in sorted(shown, key=lambda each: each[0])]


def _loss_table(rows: list[LossRow]) -> Table | None:
    indexes = {row.imdb_key for row in rows if row.imdb_key is not None}
    # With one index the rows over all of them say the same once more.
    told = [row for row in rows if row.imdb_key is not None or len(indexes) > 1]
    traced = [row for row in told if row.n > row.n_untraced]
    left_out = _unmatched_note(rows)
    if not traced:
        return None
    stages: list[Stage] = [s for s in STAGES if any(row.lost.get(s, 0) for row in traced)]
    table = plain_table(
        "index  method",
        "Where answers were lost: questions with evidence, by the first stage",
        padding=0,
    )
    table.caption = (
        "Not in the source, in no text unit, entity not extracted, graph not connected, not "
        "found by the method, not shown to its model, not said (as far as words tell), or "
        "judged wrong, right answers in spite of it included; right: none of these. right*: "
        "right without the evidence shown; wrong*: shown, but wrong; these two cut across the "
        f"others.{left_out}"
    )
    unjudged = any(row.n_unjudged for row in traced)
    for stage in stages:
        table.add_column(_STAGE_HEADINGS[stage], justify="right")
    for name in ("right", *(["unjudged"] if unjudged else []), "right*", "wrong*"):
        table.add_column(name, justify="right")
    for row in traced:
        table.add_row(
            f"{row.imdb_key or 'all'}  {row.method}",
            *(str(row.lost.get(stage, 0)) for stage in stages),
            str(row.n_kept),
            *([str(row.n_unjudged)] if unjudged else []),
            str(row.n_right_without_evidence),
            str(row.n_retrieved_but_wrong),
        )
    return table


def _unmatched_note(rows: Iterable[LossRow]) -> str:
    """Return a sentence on evidence that the text does not hold; a blank one without any."""
    of_all = [row for row in rows if row.imdb_key is None]
    # Every method is asked the same questions, but for an oracle: the largest count is theirs.
    whole = max((row.n_unmatched for row in of_all), default=0)
    partly = max((row.n_partly_unmatched for row in of_all), default=0)
    if not whole and not partly:
        return ""
    said = [
        f"{part} evidence of {n} question{'s' if n > 1 else ''}"
        for part, n in (("all", whole), ("a part of the", partly))
        if n
    ]
    return (
        f" Left out here and in the retrieval measures: {' and '.join(said)}, as the text does not "
        "hold it."
    )


def _judged_lines(title: str, estimates: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    """Return a line: each method's overall grade, else its lowest and its highest dimension."""
    if not estimates:
        return []
    cells = [f"{method} {_judged_cell(found)}" for method, found in estimates.items()]
    return [
        f"{title} (95 % interval, not corrected): {'; '.join(cells)}. The summary file has "
        "every dimension."
    ]


def _judged_cell(found: Mapping[str, Estimate]) -> str:
    if "overall_score" in found:
        return plain(found["overall_score"], missing=UNSCORED)
    means = {name: each.mean for name, each in found.items() if each.mean is not None}
    if not means:
        return UNSCORED
    ends = (min(means, key=means.__getitem__), max(means, key=means.__getitem__))
    return " to ".join(f"{plain(found[name])} {name}" for name in dict.fromkeys(ends))


def _pairwise_lines(pairs: Mapping[tuple[str, str], PreferenceSummary]) -> list[str]:
    lines: list[str] = []
    for (a, b), found in pairs.items():
        flipped = share(found.flip_rate.mean, "%", UNKNOWN)
        lines.append(
            f"{a} against {b}: {found.n_a} better, {found.n_b} worse, {found.n_ties} ties, "
            f"{found.n_missing} missing; sign test {p_value(found.p)} (not corrected); the "
            f"order decided {flipped}"
        )
    return lines


def _combined_lines(measures: Mapping[str, MethodMeasures]) -> list[str]:
    lines: list[str] = []
    for method, found in measures.items():
        means, scores = found.combined.score_of_means, found.combined.mean_of_scores
        if means is not None and scores is not None:
            lines.append(
                f"{method}: combined score of evidence, judge and tokens {means:.4f} from "
                f"the means, {scores:.4f} as the mean of the questions' own"
            )
    return lines


def _criteria_lines(figures: Figures) -> list[str]:
    lines: dict[tuple[str, float | None, float | None], list[CriterionResult]] = {}
    for each in figures.criteria:
        lines.setdefault((each.metric, each.minimum, each.target), []).append(each)
    return [
        f"{metric} {_bounds(minimum, target, found[0].lower_is_better)}: "
        + ", ".join(
            f"{each.method} {number(each.value, '.3f', UNKNOWN)} {each.result}" for each in found
        )
        for (metric, minimum, target), found in lines.items()
        if any(each.value is not None for each in found)
    ]


def _bounds(minimum: float | None, target: float | None, lower_is_better: bool) -> str:
    beyond = "below" if lower_is_better else "above"
    if target is None:
        return f"{beyond} {minimum:g}"
    return f"{beyond} {target:g}" if minimum is None else f"{beyond} {minimum:g}, target {target:g}"
