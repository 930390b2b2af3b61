"""Watches a run against a baseline and says when it has got worse, at a level of 2.5 %."""

from graphrag.eval.analysis.rows import Row, gate_score, rows_of
from graphrag.eval.analysis.runs import RunRows
from graphrag.eval.records import QueryResult
from graphrag.eval.statistics import EARLY_ALPHA, early_stop_evidence, should_stop_early


class EarlyStop:
    """Counts newly wrong and newly right answers while a run goes on.

    Parameters
    ----------
    baseline : RunRows
    metric : str
        The primary metric.

    Attributes
    ----------
    stopped : dict
        (method, metric) -> the evidence on which the run may stop, see ``gate.decide_gates``.

    Notes
    -----
    Holds its level only when the questions are asked in shuffled order. Questions are joined on
    document and id, on the id alone where the baseline does not know its documents.
    """

    def __init__(self, baseline: RunRows, metric: str) -> None:
        self.stopped: dict[tuple[str, str], float] = {}
        self._metric = metric
        self._scores = {
            (row.method, row.document, row.question_id): gate_score(row, metric)
            for row in baseline.rows
        }
        self._counts = {method: [0, 0] for method, _, _ in self._scores}

    def watch(self, result: QueryResult) -> str | None:
        """Count a result; return why the run may stop, None while it may not."""
        if result.trial:
            return None
        row = rows_of([result])[0]
        new, old = gate_score(row, self._metric), self._baseline_score(row)
        if new is None or old is None or new == old:
            return None
        counts = self._counts[row.method]
        counts[new > old] += 1
        wrong, right = counts
        if not should_stop_early(wrong, right, len(self._counts)):
            return None
        evidence = early_stop_evidence(wrong, right)
        self.stopped.setdefault((row.method, self._metric), evidence)
        return (
            f"{row.method} has got worse than the baseline beyond doubt (level "
            f"{100 * EARLY_ALPHA:g} % over all looks and methods): {wrong} newly wrong and "
            f"{right} newly right answers so far"
        )

    def _baseline_score(self, row: Row) -> int | None:
        exact = (row.method, row.document, row.question_id)
        key = exact if exact in self._scores else (row.method, "", row.question_id)
        return self._scores.get(key)
