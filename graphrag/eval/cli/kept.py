"""What ``graphrag eval show`` printed of a finished run, read in place of being computed again.

It stands in the run's folder with a digest of all that it was made of: the run's rows and settings
in the store, the labels imported for it, and this project's own code. Where one of these is another
now, or a file of the run is missing, nothing here is used.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from rich.console import Console

from graphrag.command_lines import eval_line_here, put_place, without_place
from graphrag.eval.cli.terminal import DONE, open_console
from graphrag.eval.errors import EvalError
from graphrag.eval.report.table import Line, Part, keep_parts, show
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import find_run, open_store
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import (
    DETAILED_FILE,
    PAGE_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    run_folder,
)

if TYPE_CHECKING:
    from graphrag.eval.cli.location import Place
    from graphrag.eval.cli.run_report import RunReport

KEPT_FILE = "tables.json"
_PARTS = TypeAdapter(list[Part])


def digest_run(store: EvaluationStore, run_id: str, folder: Path) -> str:
    """Return a digest of what a run's tables are made of.

    Parameters
    ----------
    store : EvaluationStore
    run_id : str
    folder : Path
        That of the results.
    """
    run = next(each for each in store.runs() if each.run_id == run_id)
    details = run.details.to_dict()
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([store.fingerprint(run_id), run.setup.root, details]).encode())
    labels = sorted(run_folder(folder, run_id).glob("audit_*.json"))
    for path in labels:
        digest.update(path.read_bytes())
    if labels:  # what is said of them names where they are
        digest.update(eval_line_here().encode())
    for source in _sources(files("graphrag.eval")):
        digest.update(source)
    return digest.hexdigest()


def keep_tables(report: "RunReport", made_of: str, gaps: bool) -> str:
    """Return the content of ``KEPT_FILE``; ``gaps``: indexes that were searched are not there."""
    from graphrag.eval.report.run import list_brief, list_figures, list_results, verdict_line

    results, notes = report.results, report.notes
    description, place = report.description, eval_line_here()
    with without_place():
        kept = {
            "made_of": made_of,
            "gaps": _look_at_indexes(description.config.project_folders().values()) if gaps else [],
            "place": place if gaps else "",
            "warnings": [*description.details.warnings, *description.unread],
            "answer": None if description.details.skip_judge else verdict_line(results),
            "brief": _keep(list_brief(results, notes)),
            "full": _keep(
                [*list_results(results), *list_figures(report.figures), *map(Line, notes)]
            ),
        }
    return json.dumps(kept, ensure_ascii=False, allow_nan=False)


def show_kept(place: "Place", name: str, full: bool, quiet: bool) -> int | None:
    """Show a run as it was shown when its files were written; None where that is not known.

    Parameters
    ----------
    place : Place
    name : str
        A run's id, its beginning, or "latest".
    full, quiet : bool
        What is asked for.
    """
    store_path = place.store_path()
    folder = store_path.parent
    try:
        with open_store(store_path) as store:
            run = find_run(store.runs(), name, store_path)
            kept = _read_kept(store, run, folder)
    except (EvalError, OSError):  # told by what is done instead
        return None
    own = run_folder(folder, run.run_id)
    is_on_top = _is_on_top(folder, run.run_id)
    if kept is None or is_on_top is None or place.file is not None:
        return None
    place.take_run(name, quiet=quiet)
    console, notes = open_console(quiet=quiet), open_console(stderr=True, quiet=quiet)
    for line in kept["warnings"]:
        notes.print(f"Warning: {put_place(line)}", style="yellow", soft_wrap=True)
    if quiet:
        if kept["answer"] is not None:
            open_console().print(put_place(kept["answer"]), soft_wrap=True)
        return DONE
    for part in _PARTS.validate_python(kept["full" if full else "brief"]):
        show(
            console, [replace(part, text=put_place(part.text)) if isinstance(part, Line) else part]
        )
    name_files(console, folder if is_on_top else own, own if is_on_top else None, full)
    name_more(console, run.run_id, full)
    return DONE


def read_page(place: "Place", run_id: str) -> str | None:
    """Return the page of a finished run as it was written; None where it would be another now."""
    store_path = place.store_path()
    folder = store_path.parent
    with open_store(store_path) as store:
        run = find_run(store.runs(), run_id, store_path)
        if _read_kept(store, run, folder) is None:
            return None
    try:
        return (run_folder(folder, run_id) / PAGE_FILE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def name_files(console: Console, folder: Path, kept: Path | None, full: bool) -> None:
    """Say where a run's files are, and where they stay when a later run replaces them."""
    page = folder / PAGE_FILE
    lines = [f"Report:   {page}"] if page.exists() else []
    if full:
        lines += [
            f"Summary:  {folder / SUMMARY_FILE}",
            f"Detailed: {folder / DETAILED_FILE}",
            f"Retrieval: {folder / REPORT_FILE}",
        ]
    else:
        lines.append(f"Files in: {folder}")
    if kept is not None:
        lines.append(f"Kept in:  {kept}")
    for line in lines:
        console.print(line, soft_wrap=True)


def name_more(console: Console, run_id: str, full: bool) -> None:
    """Say how every table of a run is shown."""
    if not full:
        line = eval_line_here("show", run_id, "--full")
        console.print(f"All tables: {line}", soft_wrap=True)


def _keep(parts: Iterable[Part]) -> object:
    return _PARTS.dump_python(keep_parts(parts), mode="json")


def _read_kept(store: EvaluationStore, run: Run, folder: Path) -> dict[str, Any] | None:
    own = run_folder(folder, run.run_id)
    if run.status != "finished" or not all((own / name).exists() for name in _FILES):
        return None
    try:
        kept = json.loads((own / KEPT_FILE).read_text(encoding="utf-8"))
        if kept["made_of"] != digest_run(store, run.run_id, folder):
            return None
        if kept["gaps"]:  # an index that is there again could be measured on
            looked = _look_at_indexes(Path(root) for root, *_ in kept["gaps"])
            if kept["place"] != eval_line_here() or kept["gaps"] != looked:
                return None
    except (OSError, ValueError, KeyError, TypeError):  # cut short, or somebody else's
        return None
    return kept


_FILES = (SUMMARY_FILE, DETAILED_FILE, PAGE_FILE, KEPT_FILE)


def _is_on_top(folder: Path, run_id: str) -> bool | None:
    """Whether the files beside eval.db show a run; None where some are to be written again."""
    try:
        shown = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
        is_on_top = shown["metadata"].get("run_id") == run_id
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    own = run_folder(folder, run_id)
    copied = [PAGE_FILE, *(path.name for path in own.glob("evaluation*.json"))]
    is_whole = all((folder / name).exists() for name in copied)
    return None if is_on_top and not is_whole else is_on_top


def _look_at_indexes(roots: Iterable[Path]) -> list[list[Any]]:
    """Return each project folder with what changes when its index is built, or put there."""
    return [
        [
            str(root.absolute()),
            *(
                [path.name, path.stat().st_mtime_ns]
                for path in (root, root / "settings.yaml", root / "output")
                if path.exists()
            ),
        ]
        for root in roots
    ]


def _sources(folder: Traversable) -> Iterator[bytes]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith(".py"):
            yield each.read_bytes()
