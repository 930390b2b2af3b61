"""Every row of a run as one table: a question, a method, a trial."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag.eval.errors import UsageError
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.text.controls import harmless_cell

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.usage import Usage

SUFFIXES = (".csv", ".parquet")


def tabulate_rows(results: EvaluationResults, retrieval: Mapping[str, Any]) -> "pd.DataFrame":
    """Return the rows of :meth:`EvaluationResults.to_pandas` with what is known beside them.

    Parameters
    ----------
    results : EvaluationResults
    retrieval : mapping
        The content of retrieval_results.json of the same run.

    Returns
    -------
    pandas.DataFrame
        Besides: ``run_id``; ``embedded_models``, the label of a run that asked offline baseline
        models, else None; ``abstained``; ``failure_kind``; ``cost_usd``, ``embedding_tokens`` and
        ``cached_prompt_tokens`` of the search, and of its verdicts ``judge_llm_calls``,
        ``judge_prompt_tokens``, ``judge_output_tokens``, ``judge_cached_prompt_tokens`` and
        ``judge_cost_usd``, missing where they were not counted or nothing was judged; and every
        measure of the first trial by its name, which is missing
        where it was not measured.
    """
    table = results.to_pandas()
    measured = [
        {
            "imdb_key": question["imdb_key"],
            "sample_id": question["id"],
            "method": method,
            "trial": 0,
            **told["measures"],
        }
        for question in retrieval["results"]
        for method, told in question["methods"].items()
    ]
    table.insert(0, "run_id", results.metadata.get("run_id"))
    table["abstained"] = [r.abstained for r in results.results]
    table["failure_kind"] = [r.failure.kind if r.failure else None for r in results.results]
    searches = [_counted(r.usage) for r in results.results]
    judges = [_counted(r.judge_usage) for r in results.results]
    for name in ("cost_usd", "embedding_tokens", "cached_prompt_tokens"):
        table[name] = [usage.get(name) for usage in searches]
    for name in ("llm_calls", "prompt_tokens", "output_tokens", "cached_prompt_tokens", "cost_usd"):
        table[f"judge_{name}"] = [usage.get(name) for usage in judges]
    table["embedded_models"] = results.metadata.get("embedded_models")
    if not measured:
        return table
    import pandas as pd

    key = ["imdb_key", "sample_id", "method", "trial"]
    return table.merge(pd.DataFrame(measured), how="left", on=key, validate="1:1")


def _counted(usage: "Usage | None") -> dict[str, object]:
    """Return a usage's figures; none where there are none, or they are too low."""
    return usage.to_dict() if usage is not None and usage.is_counted else {}


def check_table_file(path: Path) -> None:
    """Refuse a file whose ending names no format.

    Raises
    ------
    UsageError
        Naming the endings.
    """
    if path.suffix.lower() not in SUFFIXES:
        msg = f"--export {path}: name a file that ends in {' or '.join(SUFFIXES)}."
        raise UsageError(msg)


def render_table(table: "pd.DataFrame", suffix: str) -> str | bytes:
    """Return a table in the format of one of ``SUFFIXES``.

    In CSV a text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    if suffix.lower() == ".csv":
        return table.map(_csv_cell).to_csv(index=False, lineterminator="\n")
    content = BytesIO()
    table.to_parquet(content, index=False)
    return content.getvalue()


def _csv_cell(value: object) -> object:
    return harmless_cell(value) if isinstance(value, str) else value
