"""Two methods side by side, a line each pair: difference, how sure, what it shows."""

from typing import TYPE_CHECKING

from graphrag.eval.report.cells import UNKNOWN, p_value, points, span
from graphrag.eval.report.judge_error import describe_correction
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.stats.family import FamilyFigures
    from graphrag.eval.stats.intervals import Estimate
    from graphrag.eval.stats.paired import PairedDifference


def describe_comparisons(analysis: "Analysis") -> list[str]:
    """Return difference, simultaneous interval, corrected test and verdict, a line each pair."""
    return [
        describe_correction(compared)
        or f"{compared.a} - {compared.b}: {points(compared.result.difference, UNKNOWN)} "
        f"({_together(compared.family)}), "
        f"{p_value(compared.result.p_holm)}: {compared.verdict}{_dropped(compared.result)}"
        for compared in analysis.comparisons
        if compared.family is not None
    ]


def describe_documents(analysis: "Analysis") -> list[str]:
    """Return what may be said of other documents, a line each comparison on the main metric."""
    lines: list[str] = []
    for compared in analysis.comparisons:
        view = compared.result.by_document
        if not compared.in_family or view is None or len(view.documents) < 2:
            continue
        agree = "no direction" if view.n_agreeing is None else f"{view.n_agreeing} agree"
        lines.append(
            f"{compared.a} - {compared.b}: of {len(view.documents)} documents {agree}; mean over "
            f"documents {points(view.estimate.mean, UNKNOWN)} {_limits(view.estimate)} "
            f"({view.label})"
        )
    return lines


def _together(family: "FamilyFigures") -> str:
    return span(family.low_simultaneous, family.high_simultaneous, missing=UNKNOWN)


def _dropped(result: "PairedDifference") -> str:
    n = result.n_dropped_pairs
    return f" ({counted(n, 'question')} without both verdicts left out)" if n else ""


def _limits(estimate: "Estimate") -> str:
    if estimate.low is None or estimate.high is None:
        return "without an interval"
    return f"({span(estimate.low, estimate.high)})"
