"""Caches the gate's answers on finished runs, so that the list of runs shows them at once.

An answer is kept until the run, the baseline or the code changes.
"""

import hashlib
from contextlib import suppress
from pathlib import Path

from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.errors import EvalError, StoreError
from graphrag.eval.report.comparison import answer_comparison
from graphrag.eval.results.runs import (
    RunRows,
    pinned_run_id,
    read_rows,
    stored_metadata,
    stored_rows,
)
from graphrag.eval.store.database import PINNED, EvaluationStore, baseline_path, open_store
from graphrag.eval.store.figure_cache import (
    KeptFigures,
    begin_keeping,
    can_keep,
    keep_figures,
    uses_own_code,
)
from graphrag.eval.store.records import Run
from graphrag.eval.types.code_digest import digest_code
from graphrag.text.cli_hints import anywhere, as_given_here

GATED = 20
"""Number of runs, the newest, on which the gate is asked."""
_GATE = "gate"


def digest_baseline(path: Path) -> str:
    """Return a digest of the pinned baseline; "" if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return ""


def read_gate(store: EvaluationStore, run: Run, baseline: str) -> str:
    """Return the gate's answer on a finished run against the pinned baseline.

    ``baseline`` is the baseline's digest.
    """
    kept = store.kept_figures(_GATE, run.run_id).get(run.run_id)
    is_kept = kept is not None and kept.key == _key(baseline) and not uses_own_code(run)
    with anywhere():
        answer = kept.value if kept is not None and is_kept else _ask(store, run)
    return as_given_here(answer)


def keep_gates(store_path: Path) -> None:
    """Keep the gate's answers on the newest finished runs that have none kept yet.

    If nothing can be written, nothing is kept and the gate is asked again.
    """
    path = baseline_path(store_path)
    if not path.is_file() or not can_keep(store_path):
        return
    pinned, key = pinned_run_id(store_path), _key(digest_baseline(path))
    with open_store(store_path) as store:
        kept = store.kept_figures(_GATE)
        newest = [run for run in store.runs() if not run.setup.is_of_suites][:GATED]
    lacking = {
        run.run_id: run
        for run in newest
        if run.status == "finished" and run.run_id != pinned and not uses_own_code(run)
        if run.run_id not in kept or kept[run.run_id].key != key
    }
    if not lacking:
        return
    with suppress(StoreError), anywhere():
        token = begin_keeping(store_path, _GATE, lacking)
        with open_store(store_path) as store:
            answers = {name: KeptFigures(key, _ask(store, run)) for name, run in lacking.items()}
        keep_figures(store_path, _GATE, token, answers)


def _key(baseline: str) -> str:
    return f"{digest_code()} {baseline}"


def _ask(store: EvaluationStore, run: Run) -> str:
    new = RunRows(stored_rows(store, run), stored_metadata(store, run))
    try:
        baseline = read_rows(PINNED, store.path)
        return answer_comparison(compare_runs(new, baseline)).chip
    except EvalError as error:  # other questions, or no method in common
        return f"can't be compared: {error}"
