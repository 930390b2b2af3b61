"""What labels, or their want, do to the comparison of two runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from graphrag.eval.compare.pairing import Joined, MetricPairs
from graphrag.eval.results.judge_errors import NO_SPREAD, correct_change, refuse_change
from graphrag.eval.results.judge_labels import RunLabels, read_labels
from graphrag.eval.results.runs import RunRows
from graphrag.eval.stats.correction import Corrected
from graphrag.eval.stats.gate_records import GateCase

SideLabels: TypeAlias = tuple[RunLabels | None, RunLabels | None]
"""Labels of the new run and of the baseline on one metric."""


def read_both_labels(new: RunRows, baseline: RunRows, output_dir: Path) -> dict[str, SideLabels]:
    """Read the labels of two runs; metric -> both sides, of what either has labels for."""
    ours, theirs = (
        read_labels(output_dir, side.metadata.run_id, side.rows) for side in (new, baseline)
    )
    return {metric: (ours.get(metric), theirs.get(metric)) for metric in {**ours, **theirs}}


def correct_pairs(
    joined: Joined,
    pairs: MetricPairs,
    key: tuple[str, str],
    labels: Mapping[str, SideLabels],
    case: GateCase,
) -> Corrected | None:
    """Correct the difference of one method and metric; None where neither run has labels."""
    method, metric = key
    found = correct_change(
        joined.pairs,
        pairs.scores[: len(joined.pairs)],  # after them what the baseline alone holds
        method,
        *labels.get(metric, (None, None)),
    )
    if found is not None and found.refused is None and found.se is None:
        return refuse_change(NO_SPREAD)
    return found


def usable(found: Corrected | None) -> Corrected | None:
    """Return a correction that has a standard error; None for others."""
    return None if found is None or found.se is None else found
