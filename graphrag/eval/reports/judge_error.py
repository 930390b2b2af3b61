"""How far the judge's errors could move a comparison, in one sentence."""

from typing import TYPE_CHECKING

from graphrag.command_lines import eval_line_here
from graphrag.eval.reports.cells import UNKNOWN, p_value, points, span

if TYPE_CHECKING:
    from graphrag.eval.analysis import Analysis, Comparison, JudgeErrorNote, RunComparison


def describe_correction(compared: "Comparison") -> str:
    """Return a comparison that labels corrected as a line, the judge's beside it; "" for others."""
    found = compared.corrected
    if found is None or found.refused is not None:
        return ""
    return (
        f"{compared.a} - {compared.b}: {points(found.difference)} "
        f"({span(found.low_simultaneous, found.high_simultaneous, missing=UNKNOWN)}), "
        f"{p_value(found.p_holm)}: {compared.verdict}; by the judge alone "
        f"{points(compared.result.difference)}"
    )


def describe_judge_error(analysis: "Analysis", run: str | None = None) -> list[str]:
    """Return why labels corrected nothing, and how far the judge's errors could reach then.

    ``run`` is what an audit is told to draw from. The sentence is on the largest difference.
    """
    refused: dict[str, list[str]] = {}
    for each in analysis.comparisons:
        if each.in_family and each.corrected is not None and each.corrected.refused is not None:
            refused.setdefault(each.corrected.refused, []).append(f"{each.a} - {each.b}")
    lines = [
        f"Not corrected by labels ({', '.join(pairs)}): {why}." for why, pairs in refused.items()
    ]
    note = analysis.judge_error
    if note is None:
        return lines
    step = f" To measure it: {eval_line_here('audit', 'export', run or 'RUN')}"
    return [*lines, describe_reach(note) + ("" if refused else step)]


def describe_reach(note: "JudgeErrorNote") -> str:
    """Return how far errors could move the largest difference, as a sentence."""
    moved = note.widest
    alike = f"truly {points(moved.unshrunk)}" if moved.difference else "as small"
    return (
        f"The judge's errors are not in these intervals: if it agrees with people in "
        f"{note.assumed_agreement:.0%} (assumed, not measured), {moved.a} - {moved.b} on "
        f"{moved.metric}, seen as {points(moved.difference)}, is {alike} where it errs alike on "
        f"both, and anything from {points(moved.low)} to {points(moved.high)} where it favours one."
    )


def list_judge_errors(comparison: "RunComparison") -> list[str]:
    """Return what labels did to the comparison of two runs, and how far errors could reach."""
    lines: list[str] = []
    for item in comparison.items:
        found = item.corrected
        if found is None:
            continue
        name = f"{item.method}, {item.metric}"
        if item.corrected_difference is None:
            lines.append(f"{name}: not corrected by labels: {found.refused}")
            continue
        lines.append(
            f"{name}: corrected by {found.n_labels} labels; by the judge alone "
            f"{points(item.difference.difference)} "
            f"({span(item.difference.low, item.difference.high)})"
        )
    note = comparison.judge_error
    if note is None:
        return lines
    export = [
        eval_line_here("audit", "export", side.run_id or side.name)
        for side in (comparison.new, comparison.baseline)
    ]
    step = f" To measure it: {export[0]}, and: {export[1]}"
    return [*lines, describe_reach(note) + ("" if lines else step)]
