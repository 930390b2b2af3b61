"""What ``graphrag eval show`` printed of a finished run, read in place of being computed again.

It stands in the run's folder with a digest of all that it was made of: the run's rows and settings
in the store, the labels imported for it, the place that its commands name, and this project's own
code. Where one of these is another now, or a file of the run is missing, nothing here is used.
"""

import json
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


def digest_run(store: EvaluationStore, run_id: str, folder: Path) -> str:
    """Return a digest of what the tables of a run are made of; its files are in ``folder``."""
    run = next(each for each in store.runs() if each.run_id == run_id)
    details = run.details.to_dict()
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([store.fingerprint(run_id), run.setup.root, details]).encode())
    for path in sorted(run_folder(folder, run_id).glob("audit_*.json")):
        digest.update(path.read_bytes())
    digest.update(eval_line_here().encode())
    digest.update(_sources())
    return digest.hexdigest()


def keep_tables(
    made_of: str, warnings: list[str], answer: str | None, tables: dict[str, list[Part]]
) -> str:
    """Return the content of ``KEPT_FILE``; ``tables`` are the brief ones and the full ones."""
    parts = {name: keep_parts(listed) for name, listed in tables.items()}
    kept = {"made_of": made_of, "warnings": warnings, "answer": answer, **parts}
    return _KEPT.dump_json(_KEPT.validate_python(kept)).decode()


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
    name_files(open_console(), folder if is_on_top else own, own if is_on_top else None, full)
    name_more(open_console(), run_id, full)
    return True


def read_page(store_path: Path, run_id: str) -> str | None:
    """Return the page of a finished run as it was written; None where it would be another now."""
    page = run_folder(store_path.parent, run_id) / PAGE_FILE
    try:
        is_kept = _read_kept(store_path, run_id) is not None
        return page.read_text(encoding="utf-8") if is_kept else None
    except (OSError, ValueError):
        return None


def name_files(console: Console, folder: Path, kept: Path | None, full: bool) -> None:
    """Say where a run's files are, and where they stay when a later run replaces them."""
    lines = [f"Report:   {folder / PAGE_FILE}"] if (folder / PAGE_FILE).exists() else []
    if full:
        names = {"Summary: ": SUMMARY_FILE, "Detailed:": DETAILED_FILE, "Retrieval:": REPORT_FILE}
        lines += [f"{what} {folder / name}" for what, name in names.items()]
    else:
        lines.append(f"Files in: {folder}")
    for line in (*lines, *([] if kept is None else [f"Kept in:  {kept}"])):
        console.print(line, soft_wrap=True)


def name_more(console: Console, run_id: str, full: bool) -> None:
    """Say how every table of a run is shown."""
    if not full:
        line = eval_line_here("show", run_id, "--full")
        console.print(f"All tables: {line}", soft_wrap=True)


def _read_kept(store_path: Path, run_id: str) -> _Kept | None:
    folder, own = store_path.parent, run_folder(store_path.parent, run_id)
    try:
        with open_store(store_path) as store:
            run = find_run(store.runs(), run_id, store_path)
            if run.status != "finished" or not all((own / name).exists() for name in _FILES):
                return None
            kept = _KEPT.validate_json((own / KEPT_FILE).read_text(encoding="utf-8"))
            return kept if kept["made_of"] == digest_run(store, run_id, folder) else None
    except (EvalError, OSError, ValueError, KeyError, TypeError):  # cut short, or somebody else's
        return None


def _is_on_top(folder: Path, run_id: str) -> bool | None:
    """Whether the files beside eval.db show a run; None where some are to be written again."""
    try:
        shown = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
        is_on_top = shown["metadata"].get("run_id") == run_id
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    evaluations = run_folder(folder, run_id).glob("evaluation*.json")
    copied = [PAGE_FILE, *(path.name for path in evaluations)]
    is_whole = all((folder / name).exists() for name in copied)
    return None if is_on_top and not is_whole else is_on_top


def _sources() -> bytes:
    with as_file(files("graphrag.eval")) as folder:
        return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
