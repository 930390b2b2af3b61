"""Which run is meant by an id, its beginning, or "latest", in a store that is only read."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from graphrag.command_lines import eval_line_in
from graphrag.eval.errors import UsageError
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Origin, Run

PINNED, LATEST = "pinned", "latest"
BASELINE_FILE = "baseline.json"
ORIGIN_NAMES: dict[Origin, str] = {
    "command": "graphrag eval",
    "judge": "graphrag eval judge",
    "suite": "graphrag eval suite",
    "monitor": "graphrag eval monitor",
    "python": "Python",
}
_LISTED = 3


def find_run(runs: Sequence[Run], name: str, store_path: Path, suites: bool = False) -> Run:
    """Return the run of this id, of the only id that begins so, or the latest.

    ``runs``: those of the store, the newest first. ``suites``: whether "latest" is of graphrag eval
    suite, see :func:`latest_run`.
    """
    if not runs:
        msg = f"{store_path} holds no run yet."
        raise UsageError(msg)
    if name == LATEST:
        return latest_run(runs, suites)
    found = [run for run in runs if run.run_id == name]
    found = found or [run for run in runs if name and run.run_id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        msg = f"{len(found)} runs begin with {name!r}: {_listed(found)}; give more of the id."
        raise UsageError(msg)
    near = get_close_matches(name, [run.run_id for run in runs], n=1, cutoff=0.7)
    hint = f"; did you mean {near[0]}?" if near else f": {_listed(runs)}."
    line = eval_line_in(store_path.parent.resolve(), "show")
    msg = f"{store_path} holds no run {name!r}{hint} List its runs with: {line}"
    raise UsageError(msg)


def baseline_path(store_path: Path) -> Path:
    """Return the file of the pinned baseline, beside the store."""
    return store_path.with_name(BASELINE_FILE)


def no_such_file(path: Path, store_path: Path) -> UsageError:
    """Return the error of a file of rows that is not there, the pinned baseline's among them."""
    if path == baseline_path(store_path):
        pin = eval_line_in(path.parent, "compare", "latest", "--pin")
        return UsageError(f"No baseline is pinned in {path.parent}; pin the latest run with: {pin}")
    return UsageError(f"{path} does not exist; name a run, or a baseline.json.")


def latest_run(runs: Sequence[Run], suites: bool = False) -> Run:
    """Return the newest finished run of ``graphrag eval``, or of ``graphrag eval suite``.

    Without one it is the newest unfinished run of that command, then the newest run that was
    begun otherwise, a finished one first.
    """
    wanted = "suite" if suites else "command"
    # min keeps the first of equal ones, which is the newest.
    return min(runs, key=lambda run: (run.origin != wanted, run.status != "finished"))


def explain_latest(runs: Sequence[Run], taken: Run) -> str:
    """Say which run "latest" is, and which newer ones it is not."""
    newer = [f"{run.describe()} by {ORIGIN_NAMES[run.origin]}" for run in _before(runs, taken)]
    text = f"latest is run {taken.describe()}"
    if taken.origin != "command":
        text += f" by {ORIGIN_NAMES[taken.origin]}"
    if newer:
        more = f" and {len(newer) - _LISTED} more" if len(newer) > _LISTED else ""
        text += f"; newer, but not taken: {', '.join(newer[:_LISTED])}{more}"
    return f"{text}."


def _before(runs: Sequence[Run], taken: Run) -> Sequence[Run]:
    ids = [run.run_id for run in runs]
    return runs[: ids.index(taken.run_id)]


def _listed(runs: Sequence[Run]) -> str:
    more = f" and {len(runs) - _LISTED} more" if len(runs) > _LISTED else ""
    return ", ".join(run.describe() for run in runs[:_LISTED]) + more


def open_store(path: Path) -> EvaluationStore:
    """Open a store that is there already to read it, also beside a run that writes it.

    Raises UsageError if there is none; StoreError if it can't be read.
    """
    check_there(path)
    return EvaluationStore(path, reads_only=True)


def check_there(path: Path) -> None:
    """Raise UsageError where there is no store."""
    if not path.is_file():
        msg = f"There is no run in {path.parent}; name its folder with --output, or run one."
        raise UsageError(msg)
