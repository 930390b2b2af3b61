"""The files of a run: a folder of its own, the newest run's beside eval.db, and a table of rows.

``<output.dir>/runs/<run_id>/`` holds the summary, the detailed file, the retrieval measures and
the page of one run and is never another run's. The files of the same names in ``<output.dir>``
show the newest run of ``graphrag eval``; their metadata names it.
"""

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.metrics.rubric import DIMENSIONS
from graphrag.eval.records.judged import METRICS
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.store.whole_files import (
    DETAILED_FILE,
    PAGE_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    Content,
    run_folder,
    write_whole,
)
from graphrag.text.controls import harmless_cell
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.usage import Usage

_NAMES = (PAGE_FILE, REPORT_FILE, DETAILED_FILE, SUMMARY_FILE)
_COUNTS = ("llm_calls", "prompt_tokens", "output_tokens", "cached_prompt_tokens")


def read_top(output_dir: Path) -> Mapping[str, Any] | None:
    """Return what the files beside eval.db say of the run that they show; None when there are none.

    ``run_id`` and ``total_questions`` are None where they do not say.
    """
    path = output_dir / SUMMARY_FILE
    if not path.exists():
        return None
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
        metadata = cast("dict[str, Any]", values["metadata"])
        run_id, timestamp = metadata.get("run_id"), metadata["timestamp"]
        run_folder(output_dir, run_id or timestamp)  # anybody's file: it may lead elsewhere
    except (OSError, ValueError, TypeError, KeyError, StoreError):  # not ours, or cut short
        run_id, metadata = None, dict[str, Any]()
        timestamp = f"of-unknown-origin-{path.stat().st_mtime:.0f}"
    n = metadata.get("total_questions")
    return {"run_id": run_id, "total_questions": n, "timestamp": timestamp}


def show_on_top(output_dir: Path, own: Path, names: Collection[str]) -> str:
    """Have the files beside eval.db show a run, and say of another's where they are kept.

    ``own`` is the run's folder, which has files of these names. Runs of other methods
    write files of other names, which would seem to be this run's: they are removed.
    StoreError if it can't be done.
    """
    top = read_top(output_dir)
    kept = None
    if top is not None and top["run_id"] != own.name:
        kept = _set_aside(output_dir, top["run_id"], top["timestamp"])
    write_whole(output_dir, {name: own / name for name in names})
    if top is None or kept is None:
        return ""
    try:
        for path in kept.glob("evaluation*.json"):
            if path.name not in names:
                (output_dir / path.name).unlink(missing_ok=True)
    except OSError as error:
        msg = f"{error.filename} is of another run and can't be removed ({error.strerror})."
        raise StoreError(msg) from error
    name = "other results" if top["run_id"] is None else f"run {top['run_id']}"
    n = top["total_questions"]
    size = "" if n is None else f" ({counted(n, 'question')})"
    return f"Until now these files showed {name}{size}, whose files are kept in {kept}"


def _set_aside(output_dir: Path, run_id: str | None, timestamp: str) -> Path:
    """Keep the files beside eval.db in a folder of their own, and return it.

    Where that run has its own files already they are left as they are.
    """
    folder = run_folder(output_dir, run_id or f"saved-{timestamp.replace(':', '')}")
    if (folder / SUMMARY_FILE).exists():
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [output_dir / name for name in _NAMES if (output_dir / name).exists()]
        for path in (*_evaluations_in(output_dir, run_id), *paths):
            shutil.copy2(path, folder / path.name)  # the summary last: it says the rest is there
    except OSError as error:
        raise StoreError(
            f"The earlier results in {output_dir} can't be kept in {folder} "
            f"({error.strerror}), so they are left where they are; free some space."
        ) from error
    return folder


def _evaluations_in(folder: Path, run_id: str | None) -> Iterator[Path]:
    """Yield the evaluation files of a run; no file of anybody else."""
    for path in sorted(folder.glob("evaluation*.json")):
        with suppress(OSError, ValueError, TypeError, KeyError):  # a user's own, or cut short
            if json.loads(path.read_text(encoding="utf-8"))["metadata"]["run_id"] == run_id:
                yield path


def write_run(output_dir: Path, run_id: str, texts: Mapping[str, Content]) -> Path:
    """Write a run's own files and return their folder; raises StoreError if it can't."""
    folder = run_folder(output_dir, run_id)
    write_whole(folder, texts)
    return folder


def tabulate_rows(results: EvaluationResults, retrieval: Mapping[str, Any]) -> "pd.DataFrame":
    """Return the rows of :meth:`EvaluationResults.to_pandas` with what is known beside them.

    ``retrieval``: the content of retrieval_results.json of the same run. Besides there are
    ``run_id``, ``embedded_models`` (a label), ``abstained``, ``failure_kind``, tokens and dollars
    of the search and, after ``judge_``, of its verdicts, missing where they were not counted; and
    every measure of the first trial by its name, missing where it was not measured.
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
    # A column that misses one would hold floating numbers, and a file 1190.0.
    whole = [*METRICS, *_COUNTS, "embedding_tokens", *(f"judge_{name}" for name in _COUNTS)]
    whole += [f"rubric_{name}" for name in DIMENSIONS]
    table = table.astype({name: "Int64" for name in whole if name in table})
    if not measured:
        return table
    key = ["imdb_key", "sample_id", "method", "trial"]
    return table.merge(pd.DataFrame(measured), how="left", on=key, validate="1:1")


def _counted(usage: "Usage | None") -> dict[str, object]:
    """Return a usage's figures; none where there are none, or they are too low."""
    return usage.to_dict() if usage is not None and usage.is_counted else {}


def check_table_file(path: Path) -> None:
    """Refuse a file whose ending names no format; raises UsageError."""
    if path.suffix.lower() == ".parquet":
        raise UsageError(
            f"--export {path}: Parquet is gone since version 2.0.0; name a file that ends in .csv, "
            "which pandas.read_csv reads."
        )
    if path.suffix.lower() != ".csv":
        raise UsageError(f"--export {path}: name a file that ends in .csv.")


def render_rows(table: "pd.DataFrame") -> str:
    """Return a table as CSV.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    harmless = table.map(lambda cell: harmless_cell(cell) if isinstance(cell, str) else cell)
    return harmless.to_csv(index=False, lineterminator="\n")
