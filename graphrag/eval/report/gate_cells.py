"""What the table, JUnit and Markdown forms of a comparison share: its title, label and cells."""

from typing import TYPE_CHECKING

from graphrag.eval.compare.pairing import BASELINE, NEW
from graphrag.eval.report.cells import points, span
from graphrag.eval.report.gate_lines import word_of

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import MethodComparison, RunComparison
    from graphrag.eval.stats.gates import GateOutcome

COLUMNS = ("method", "metric", "pairs", "difference", "95 % interval", "verdict", "gate")


def list_decided(comparison: "RunComparison") -> "list[tuple[str, str, GateOutcome]]":
    """Return method, metric or figure, and answer, in the order of ``list_reasons``."""
    return [
        *((each.method, each.metric, each.decision.outcome) for each in comparison.items),
        *((each.method, each.figure, each.decision.outcome) for each in comparison.figures),
    ]


def title_of(comparison: "RunComparison") -> str:
    """Return which runs are compared, in which unit, and who was asked offline."""
    names = f"{comparison.new.name} - {comparison.baseline.name}"
    return f"{names}, in percentage points{label_of(comparison)}"


def label_of(comparison: "RunComparison") -> str:
    """Return the label of the embedded models in brackets, "" where none had a part."""
    labels = {
        NEW: comparison.new.embedded_models,
        BASELINE: comparison.baseline.embedded_models,
    }
    if len(set(labels.values())) == 1:
        label = labels[NEW]
    else:
        label = "; ".join(f"{side}: {each}" for side, each in labels.items() if each)
    return f" ({label})" if label else ""


def cells_of(item: "MethodComparison") -> list[str]:
    """Return a row of the table, a cell for each of ``COLUMNS``."""
    result = item.corrected_difference or item.difference
    return [
        item.method,
        item.metric,
        str(result.n_pairs),
        points(result.difference),
        span(result.low, result.high),
        item.verdict,
        word_of(item.decision.outcome),
    ]
