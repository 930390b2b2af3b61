"""Turns a run into a pandas table, a row per question, method and trial, and that into CSV."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag.eval.errors import UsageError
from graphrag.eval.metrics.rubric import DIMENSIONS
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.text.terminal_escape import harmless_cell

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.client.usage import Usage

_COUNTS = ("llm_calls", "prompt_tokens", "output_tokens", "cached_prompt_tokens")


def tabulate_rows(results: EvaluationResults, retrieval: Mapping[str, Any]) -> "pd.DataFrame":
    """Return the rows of :meth:`EvaluationResults.to_pandas`, with more columns.

    These are ``run_id``, ``embedded_models`` (a label), ``abstained``, ``failure_kind``, tokens and
    dollars of the search and, after ``judge_``, of its verdicts, and every measure of the first
    trial by its name. A cell is missing if nothing was counted or measured. ``retrieval``: the
    content of the run's retrieval_results.json.
    """
    import pandas as pd

    table = results.to_pandas()
    measured = [
        {
            "imdb_key": question["imdb_key"],
            "sample_id": question["id"],
            "method": method,
            "trial": 0,
            **entry["measures"],
        }
        for question in retrieval["results"]
        for method, entry in question["methods"].items()
    ]
    table.insert(0, "run_id", results.metadata.get("run_id"))
    table["abstained"] = [r.abstained for r in results.results]
    table["failure_kind"] = [r.failure.kind if r.failure else None for r in results.results]
    searches = [_counted(r.usage) for r in results.results]
    judges = [_counted(r.judge_usage) for r in results.results]
    for name in ("cost_usd", "embedding_tokens", "cached_prompt_tokens"):
        table[name] = [usage.get(name) for usage in searches]
    for name in (*_COUNTS, "cost_usd"):
        table[f"judge_{name}"] = [usage.get(name) for usage in judges]
    table["embedded_models"] = results.metadata.get("embedded_models")
    # A column with a missing value would get floating numbers, and a file 1190.0.
    integers = [*METRICS, *_COUNTS, "embedding_tokens", *(f"judge_{name}" for name in _COUNTS)]
    integers += [f"rubric_{name}" for name in DIMENSIONS]
    table = table.astype({name: "Int64" for name in integers if name in table})
    if not measured:
        return table
    key = ["imdb_key", "sample_id", "method", "trial"]
    return table.merge(pd.DataFrame(measured), how="left", on=key, validate="1:1")


def _counted(usage: "Usage | None") -> dict[str, object]:
    """Return a usage's figures; empty if there is none, or some calls were not counted."""
    return usage.to_dict() if usage is not None and usage.is_counted else {}


def check_table_file(path: Path) -> None:
    """Raise UsageError if the file's ending names no format that can be written."""
    if path.suffix.lower() == ".parquet":
        raise UsageError(
            f"--export {path}: Parquet is gone since version 2.0.0; name a file that ends in .csv, "
            "which pandas.read_csv reads."
        )
    if path.suffix.lower() != ".csv":
        raise UsageError(f"--export {path}: name a file that ends in .csv.")


def render_rows(table: "pd.DataFrame") -> str:
    """Return a table as CSV.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    harmless = table.map(lambda cell: harmless_cell(cell) if isinstance(cell, str) else cell)
    return harmless.to_csv(index=False, lineterminator="\n")
