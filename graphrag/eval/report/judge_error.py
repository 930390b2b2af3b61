"""What labels did to comparisons, a line each."""

from typing import TYPE_CHECKING

from graphrag.eval.report.cells import UNKNOWN, p_value, points, span

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import RunComparison
    from graphrag.eval.results.analysis import Analysis, Comparison


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


def describe_uncorrected(analysis: "Analysis") -> list[str]:
    """Return why labels corrected nothing, a line each reason."""
    refused: dict[str, list[str]] = {}
    for each in analysis.comparisons:
        if each.in_family and each.corrected is not None and each.corrected.refused is not None:
            refused.setdefault(each.corrected.refused, []).append(f"{each.a} - {each.b}")
    return [
        f"Not corrected by labels ({', '.join(pairs)}): {why}." for why, pairs in refused.items()
    ]


def list_corrections(comparison: "RunComparison") -> list[str]:
    """Return what labels did to the comparison of two runs."""
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
    return lines
