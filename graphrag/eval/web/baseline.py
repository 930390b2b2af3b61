"""Another run that a page holds its run against."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphrag.eval.compare.compare import RunComparison
from graphrag.eval.report.cells import points, span
from graphrag.eval.report.gate_cells import label_of
from graphrag.eval.report.gate_lines import list_notes, list_reasons, word_of
from graphrag.eval.results.rows import Row
from graphrag.eval.web.tables import Table


@dataclass(frozen=True, slots=True)
class Baseline:
    """The comparison with another run, and its rows, by which questions that changed are found.

    Attributes
    ----------
    comparison : RunComparison
    rows : sequence of Row
        Of the baseline.
    """

    comparison: RunComparison
    rows: list[Row] = field(repr=False)

    @property
    def name(self) -> str:
        """The baseline's run id, or its file."""
        return self.comparison.baseline.name

    def lines(self) -> list[str]:
        """Return what the gate says, with its reasons and warnings."""
        found = self.comparison
        return [
            f"The gate says {word_of(found.outcome)}, for this run less "
            f"{self.name}{label_of(found)}.",
            *list_reasons(found),
            *list_notes(found),
            *(f"Warning: {line}" for line in found.warnings),
        ]

    def table(self) -> Table:
        """Return a row for each method and metric."""
        rows: list[tuple[str, ...]] = []
        for each in self.comparison.items:
            result = each.corrected_difference or each.difference
            rows.append(
                (
                    each.method,
                    each.metric,
                    str(result.n_pairs),
                    points(result.difference),
                    span(result.low, result.high),
                    each.verdict,
                    word_of(each.decision.outcome),
                )
            )
        return Table(
            f"Differences in percentage points, this run less the other{label_of(self.comparison)}",
            ("Method", "Metric", "Questions", "Difference", "95 % interval", "Shown", "Gate"),
            tuple(rows),
        )

    def states(self) -> Mapping[tuple[str, str, str], Mapping[str, int | str]]:
        """Return (film, question's id, method) -> metric -> 1, 0, or why there is no score."""
        found: dict[tuple[str, str, str], dict[str, int | str]] = {}
        for row in self.rows:
            states: dict[str, int | str] = {}
            for metric, state in row.states.items():
                score = row.scores[metric]
                states[metric] = state.value if score is None else score
            found[row.document, row.question_id, row.method] = states
        return found
