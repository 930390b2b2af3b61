"""Which run is meant by an id, its beginning, or "latest", in a store that is only read."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

from graphrag.command_lines import eval_line_in
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import UsageError
from graphrag.eval.records import JudgeResult
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Judgement, Origin, Run, StoredResponse
from graphrag.query.usage import Usage

_R = TypeVar("_R")


class StoreSnapshot(EvaluationStore):
    """Reads an eval.db beside the process that holds it, and keeps what it read of the last run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, reads_only=True)
        self._run_id = ""
        self._kept: dict[str, Any] = {}

    def samples(self, run_id: str) -> list[Sample]:
        """Return the questions of a run."""
        read = super().samples
        return self._once("samples", run_id, lambda: read(run_id))

    def responses(
        self, run_id: str, units: Sequence[str] | None = None, with_texts: bool = True
    ) -> dict[str, StoredResponse]:
        """Return unit -> response of a run."""
        if with_texts or units is not None:  # too much to keep, or too little
            return super().responses(run_id, units, with_texts)
        read = super().responses
        return self._once("responses", run_id, lambda: read(run_id, with_texts=False))

    def verdicts(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, dict[str, JudgeResult]]:
        """Return unit -> metric -> verdict of a run."""
        read = super().verdicts
        if units is not None:
            return read(run_id, units)
        return self._once("verdicts", run_id, lambda: read(run_id))

    def judge_usage(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, list[Usage]]:
        """Return unit -> what its verdicts cost."""
        read = super().judge_usage
        if units is not None:
            return read(run_id, units)
        return self._once("judge_usage", run_id, lambda: read(run_id))

    def judgements(self, run_id: str) -> list[Judgement]:
        """Return the judgements of a run."""
        read = super().judgements
        return self._once("judgements", run_id, lambda: read(run_id))

    def _once(self, name: str, run_id: str, read: Callable[[], _R]) -> _R:
        if run_id != self._run_id:
            self._run_id, self._kept = run_id, {}
        if name not in self._kept:
            self._kept[name] = read()
        return cast("_R", self._kept[name])


PINNED, LATEST = "pinned", "latest"
BASELINE_FILE = "baseline.json"
ORIGIN_NAMES: dict[Origin | None, str] = {
    "command": "graphrag eval",
    "judge": "graphrag eval judge",
    "suite": "graphrag eval suite",
    "monitor": "graphrag eval monitor",
    "python": "Python",
    None: "not recorded",
}
_LISTED = 3


def find_run(runs: Sequence[Run], name: str, store_path: Path, suites: bool = False) -> Run:
    """Return the run of this id, of the only id that begins so, or the latest.

    Parameters
    ----------
    runs : sequence of Run
        Those of the store, the newest first.
    name : str
    store_path : Path
    suites : bool
        Whether "latest" is of graphrag eval suite, see :func:`latest_run`.

    Raises
    ------
    UsageError
        If there is none, or more than one; names those that there are.
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
    line = eval_line_in(store_path.parent.resolve(), "history")
    msg = f"{store_path} holds no run {name!r}{hint} List its runs with: {line}"
    raise UsageError(msg)


def baseline_path(store_path: Path) -> Path:
    """Return the file of the pinned baseline, beside the store."""
    return store_path.with_name(BASELINE_FILE)


def no_such_file(path: Path, store_path: Path) -> UsageError:
    """Return the error of a file of rows that is not there, the pinned baseline's among them."""
    if path == baseline_path(store_path):
        pin = eval_line_in(path.parent, "baseline", "set", "latest")
        return UsageError(f"No baseline is pinned in {path.parent}; pin the latest run with: {pin}")
    return UsageError(f"{path} does not exist; name a run, or an eval_results_detailed.json.")


def latest_run(runs: Sequence[Run], suites: bool = False) -> Run:
    """Return the newest finished run of ``graphrag eval``, or of ``graphrag eval suite``.

    Without one it is the newest unfinished run of that command, then the newest run that was
    begun otherwise, a finished one first. Runs of older releases, which do not say who began
    them, count as of ``graphrag eval`` unless their setup tells.
    """
    wanted: tuple[Origin | None, ...] = ("suite",) if suites else ("command", None)
    return min(
        runs, key=lambda run: (run.origin not in wanted, run.status != "finished")
    )  # min keeps the first of equal ones, which is the newest


def explain_latest(runs: Sequence[Run], taken: Run) -> str:
    """Say which run "latest" is, and which newer ones it is not."""
    newer = [f"{run.describe()} by {ORIGIN_NAMES[run.origin]}" for run in _before(runs, taken)]
    text = f"latest is run {taken.describe()}"
    if taken.origin not in ("command", None):
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


def open_store(path: Path) -> StoreSnapshot:
    """Open a store that is there already to read it, also beside a run that writes it.

    Raises
    ------
    UsageError
        If there is none.
    StoreError
        If it can't be read.
    """
    check_there(path)
    return StoreSnapshot(path)


def check_there(path: Path) -> None:
    """Raise UsageError where there is no store."""
    if not path.is_file():
        msg = f"There is no run in {path.parent}; name its folder with --output, or run one."
        raise UsageError(msg)
