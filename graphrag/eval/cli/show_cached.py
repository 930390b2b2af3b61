"""Shows a finished run from the report that eval.db keeps, without computing or reading rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.print_run import LEFT_ALONE, explain_not_written, name_files, print_report
from graphrag.eval.errors import StoreError
from graphrag.eval.report.files import is_shown_on_top, show_on_top
from graphrag.eval.report.report_cache import (
    KeptReport,
    explain_change,
    key_report,
    list_apart,
    list_changed,
    name_report,
    read_report,
)
from graphrag.eval.runner.stored_config import find_searched, read_stored_config
from graphrag.eval.store.atomic_files import PAGE_FILE, SUMMARY_FILE, run_folder
from graphrag.eval.store.database import find_run, open_store
from graphrag.eval.store.figure_cache import uses_own_code
from graphrag.eval.store.records import Run
from graphrag.eval.store.sqlite import hold_folder
from graphrag.text.console import open_console
from graphrag.text.message_phrases import join_names


@dataclass(frozen=True, slots=True)
class Lookup:
    """The report that is kept of a run, and whether it is still valid.

    - ``report``: None if it must be computed; ``reason`` is why, "" if none is kept.
    - ``name``, ``key``: under which a computed report is kept, see :mod:`report_cache`. If ``name``
      is "", it can't be kept. If ``key`` is "" too, the run is unfinished or of suites.
    - ``states``: index name -> its fingerprint, or why it can't be read; see ``find_searched``.
    """

    runs: Sequence[Run]
    run: Run
    output_dir: Path
    name: str = ""
    key: str = ""
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    report: KeptReport | None = None
    reason: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the run's own files."""
        return run_folder(self.output_dir, self.run.run_id)

    def missing(self) -> list[str]:
        """Return the names of the files to write: missing or changed ones."""
        if self.report is None:
            return []
        if self.report.files:
            return list(list_changed(self.folder, self.report.files))
        folders = [self.folder, *([self.output_dir] if self.is_on_top() else [])]
        has_files = any((folder / SUMMARY_FILE).exists() for folder in folders)
        return [] if has_files else [SUMMARY_FILE]

    def is_on_top(self) -> bool:
        """Return whether the files next to eval.db are to show the run."""
        return is_shown_on_top(self.output_dir, self.run, self.runs)


async def look_up(paths: Paths, run_id: str) -> Lookup:
    """Return the kept report of a run, checked against its labels, its indexes and gtog's code."""
    store_path = paths.store_path()
    output_dir = store_path.parent.absolute()
    with open_store(store_path) as store:
        runs = store.runs()
        run = find_run(runs, run_id, store_path)
        if run.status != "finished" or run.setup.is_of_suites:
            return Lookup(runs=runs, run=run, output_dir=output_dir)
        config = read_stored_config(run, paths.root if paths.has_config() else None)
        _, states = await find_searched(config.projects(), run.setup)
        name, key = name_report(run, states), key_report(run, output_dir, states)
        if uses_own_code(run):
            return Lookup(runs=runs, run=run, output_dir=output_dir, key=key)
        kept = store.kept_figures(name, run.run_id).get(run.run_id)
    report = read_report(kept, key, output_dir)
    return Lookup(
        runs=runs,
        run=run,
        output_dir=output_dir,
        name=name,
        key=key,
        states=states,
        report=report,
        reason=explain_change(kept, key),
    )


def show_cached(lookup: Lookup, quiet: bool, full: bool) -> bool:
    """Print the kept report of a run; return False if something must be computed or written."""
    report, run, notes = lookup.report, lookup.run, open_console(stderr=True, quiet=quiet)
    start = f"Computing the figures of run {run.run_id} again"
    missing = lookup.missing()
    if report is None or missing:
        if lookup.reason:
            notes.print(f"{start}: {lookup.reason}.", soft_wrap=True)
        elif report is not None:
            which = join_names(missing, most=3)
            verb = "is" if len(missing) == 1 else "are"
            line = f"{start}: {which} {verb} missing, or not as written."
            notes.print(line, soft_wrap=True)
        return False
    for line in (*run.details.warnings, *report.unread):
        notes.print(f"Warning: {line}", style="yellow", soft_wrap=True)
    console, top = open_console(quiet=quiet), lookup.output_dir if lookup.is_on_top() else None
    print_report(console, report, full, answers=not run.details.skip_judge)
    note = "" if report.files else LEFT_ALONE
    if top is not None and report.files:
        try:
            note = _put_on_top(lookup, report.files)
        except StoreError as error:
            notes.print(explain_not_written(str(error)), soft_wrap=True)
            return True
    name_files(console, lookup.folder, top, run.run_id, full)
    if note:
        notes.print(note, soft_wrap=True)
    return True


def _put_on_top(lookup: Lookup, files: Mapping[str, str]) -> str:
    """Have the files next to eval.db show the run, if they don't; return a line to print, or "".

    Raises StoreError if they can't be written.
    """
    if not list(list_apart(lookup.output_dir, lookup.folder, files)):
        return ""
    lock = hold_folder(lookup.output_dir / "eval.db")
    try:
        return show_on_top(lookup.output_dir, lookup.folder, [*files])
    finally:
        lock.release()


def read_page(lookup: Lookup) -> str | None:
    """Return the kept HTML page of a run, or None if it must be made.

    Its command lines get the program and paths of the running command.
    """
    report, path = lookup.report, lookup.folder / PAGE_FILE
    if report is None or list(list_changed(lookup.folder, _only_page(report.files))):
        return None
    return report.as_given_here(path.read_text(encoding="utf-8"))


def _only_page(files: Mapping[str, str]) -> dict[str, str]:
    return {PAGE_FILE: files.get(PAGE_FILE, "")}
