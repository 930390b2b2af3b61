"""What ``graphrag eval show`` printed of a finished run, read in place of being computed again.

It stands in the run's folder with a digest of all that it was made of: the run's rows and settings
in the store, the labels imported for it, the place that its commands name, and this project's own
code. Where one of these is another now, or a file of the run is missing, nothing here is used.
"""

import json
from collections.abc import Iterable
from filecmp import cmpfiles
from functools import cache
from hashlib import blake2b
from importlib.resources import as_file, files
from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console
from typing_extensions import TypedDict

from graphrag.command_lines import eval_line_here
from graphrag.eval.cli.terminal import open_console, say
from graphrag.eval.errors import EvalError
from graphrag.eval.report.table import Part, keep_parts, show
from graphrag.eval.store.database import EvaluationStore, find_run, open_store
from graphrag.eval.store.whole_files import (
    DETAILED_FILE,
    PAGE_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    run_folder,
)

KEPT_FILE = "tables.json"


class _Kept(TypedDict):
    made_of: str
    warnings: list[str]
    answer: str | None
    brief: list[Part]
    full: list[Part]


_KEPT = TypeAdapter(_Kept)
_FILES = (SUMMARY_FILE, DETAILED_FILE, PAGE_FILE, KEPT_FILE)


def digest_run(store: EvaluationStore, run_id: str) -> str:
    """Return a digest of what the tables of a run are made of."""
    run = next(each for each in store.runs() if each.run_id == run_id)
    details = run.details.to_dict()
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([store.fingerprint(run_id), run.setup.root, details]).encode())
    for path in sorted(run_folder(store.path.parent, run_id).glob("audit_*.json")):
        digest.update(path.read_bytes())
    digest.update(eval_line_here().encode())
    digest.update(_sources())
    return digest.hexdigest()


def keep_tables(
    made_of: str, warnings: list[str], answer: str | None, brief: Iterable[Part], full: list[Part]
) -> str:
    """Return the content of ``KEPT_FILE``."""
    kept = _Kept(
        made_of=made_of,
        warnings=warnings,
        answer=answer,
        brief=keep_parts(brief),
        full=keep_parts(full),
    )
    return _KEPT.dump_json(kept).decode()


def show_kept(store_path: Path, run_id: str, full: bool, quiet: bool) -> bool:
    """Show a run as it was shown when its files were written; False where that is not known."""
    folder, own = store_path.parent, run_folder(store_path.parent, run_id)
    kept, is_on_top = _read_kept(store_path, run_id), _is_on_top(folder, run_id)
    if kept is None or is_on_top is None:
        return False
    for line in kept["warnings"]:
        say(f"Warning: {line}", "yellow", stderr=True, quiet=quiet)
    if quiet:
        if kept["answer"] is not None:
            say(kept["answer"])
        return True
    show(open_console(), kept["full" if full else "brief"])
    name_files(open_console(), own, folder if is_on_top else None, full, run_id)
    return True


def is_current(store_path: Path, run_id: str) -> bool:
    """Whether a run's files are there, and say what they would if they were written today."""
    return _read_kept(store_path, run_id) is not None


def read_page(store_path: Path, run_id: str) -> str | None:
    """Return the page of a finished run as it was written; None where it would be another now."""
    page = run_folder(store_path.parent, run_id) / PAGE_FILE
    try:
        return page.read_text(encoding="utf-8") if is_current(store_path, run_id) else None
    except (OSError, ValueError):
        return None


def name_files(
    console: Console, own: Path, top: Path | None, full: bool, run_id: str | None
) -> None:
    """Say where a run's files are, and how every table of it is shown, if it is kept.

    ``own`` is where they stay when a later run replaces them in ``top``, which is None where they
    are not there.
    """
    folder = top or own
    lines = [f"Report:   {folder / PAGE_FILE}"] if (folder / PAGE_FILE).exists() else []
    if full:
        names = {"Summary: ": SUMMARY_FILE, "Detailed:": DETAILED_FILE, "Retrieval:": REPORT_FILE}
        lines += [f"{what} {folder / name}" for what, name in names.items()]
    else:
        lines.append(f"Files in: {folder}")
    lines += [] if top is None else [f"Kept in:  {own}"]
    if run_id is not None and not full:
        lines.append(f"All tables: {eval_line_here('show', run_id, '--full')}")
    for line in lines:
        console.print(line, soft_wrap=True)


def _read_kept(store_path: Path, run_id: str) -> _Kept | None:
    own = run_folder(store_path.parent, run_id)
    try:
        with open_store(store_path) as store:
            run = find_run(store.runs(), run_id, store_path)
            if run.status != "finished" or not all((own / name).exists() for name in _FILES):
                return None
            kept = _KEPT.validate_json((own / KEPT_FILE).read_text(encoding="utf-8"))
            return kept if kept["made_of"] == digest_run(store, run_id) else None
    except (EvalError, OSError, ValueError, KeyError, TypeError):  # cut short, or somebody else's
        return None


def _is_on_top(folder: Path, run_id: str) -> bool | None:
    """Whether the files beside eval.db show a run; None where some are to be written again."""
    own = run_folder(folder, run_id)
    names = [SUMMARY_FILE, PAGE_FILE, *(path.name for path in own.glob("evaluation*.json"))]
    _, others, lacking = cmpfiles(own, folder, names)
    return None if lacking and SUMMARY_FILE not in others else SUMMARY_FILE not in others


@cache
def _sources() -> bytes:
    with as_file(files("graphrag.eval")) as folder:
        return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
