"""Writes the files of a run into a folder of its own, and the newest run's next to eval.db.

``<output.dir>/runs/<run_id>/`` has the summary, the detailed file, the retrieval measures and the
page of one run. The files of the same names in ``<output.dir>``, next to eval.db, show the newest
run of ``graphrag eval``; their metadata names it. "On top" means these.
"""

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from graphrag.eval.errors import StoreError
from graphrag.eval.store.atomic_files import (
    DETAILED_FILE,
    PAGE_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    Content,
    run_folder,
    write_whole,
)
from graphrag.eval.store.records import Run
from graphrag.text.message_phrases import counted

_NAMES = (PAGE_FILE, REPORT_FILE, DETAILED_FILE, SUMMARY_FILE)


def read_top(output_dir: Path) -> Mapping[str, Any] | None:
    """Return run_id, total_questions and timestamp of the run that the files on top show.

    None if there are no files. ``run_id`` and ``total_questions`` are None if the files lack them.
    """
    path = output_dir / SUMMARY_FILE
    if not path.exists():
        return None
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
        metadata = cast("dict[str, Any]", values["metadata"])
        run_id, timestamp = metadata.get("run_id"), metadata["timestamp"]
        run_folder(output_dir, run_id or timestamp)  # anybody's file: it may lead elsewhere
    except (OSError, ValueError, TypeError, KeyError, StoreError):  # not gtog's, or cut short
        run_id, metadata = None, dict[str, Any]()
        timestamp = f"of-unknown-origin-{path.stat().st_mtime:.0f}"
    n = metadata.get("total_questions")
    return {"run_id": run_id, "total_questions": n, "timestamp": timestamp}


def is_shown_on_top(output_dir: Path, run: Run, runs: Iterable[Run]) -> bool:
    """Return whether the files on top show a run, or should because it is the newest.

    ``runs``: the runs of the store, the newest first.
    """
    top = read_top(output_dir)
    if top is not None:
        return top["run_id"] == run.run_id
    newest = next((each for each in runs if each.origin == "command"), None)
    return newest is not None and newest.run_id == run.run_id


def show_on_top(output_dir: Path, own: Path, names: Collection[str]) -> str:
    """Have the files on top show a run; return a sentence on where another run's are kept, or "".

    ``own``: the run's folder, which has files of these ``names``. If the earlier run had other
    methods, its evaluation files of other names are removed, because they would seem to be this
    run's. Raises StoreError if a file can't be written or removed.
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
    """Copy the files on top into the folder of the run that they show, and return that folder.

    Files that the run already has there are left as they are.
    """
    folder = run_folder(output_dir, run_id or f"saved-{timestamp.replace(':', '')}")
    if (folder / SUMMARY_FILE).exists():
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [output_dir / name for name in _NAMES if (output_dir / name).exists()]
        for path in (*_evaluations_in(output_dir, run_id), *paths):
            shutil.copy2(path, folder / path.name)  # the summary last: with it, all is there
    except OSError as error:
        raise StoreError(
            f"The earlier results in {output_dir} can't be kept in {folder} "
            f"({error.strerror}), so they are left where they are; free some space."
        ) from error
    return folder


def _evaluations_in(folder: Path, run_id: str | None) -> Iterator[Path]:
    """Yield the evaluation files of a run in a folder, and no file of somebody else."""
    for path in sorted(folder.glob("evaluation*.json")):
        with suppress(OSError, ValueError, TypeError, KeyError):  # a user's own, or cut short
            if json.loads(path.read_text(encoding="utf-8"))["metadata"]["run_id"] == run_id:
                yield path


def write_run(output_dir: Path, run_id: str, texts: Mapping[str, Content]) -> Path:
    """Write a run's own files and return their folder; raises StoreError if that fails."""
    folder = run_folder(output_dir, run_id)
    write_whole(folder, texts)
    return folder
