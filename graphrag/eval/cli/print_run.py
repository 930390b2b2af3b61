"""Prints a run's report and where its files are, at the end of a run and in ``show``."""

from pathlib import Path

from rich.console import Console

from graphrag.eval.report.report_cache import KeptReport
from graphrag.eval.report.table import show
from graphrag.eval.store.atomic_files import DETAILED_FILE, PAGE_FILE, REPORT_FILE, SUMMARY_FILE
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.console import say

LEFT_ALONE = (
    "These files are left as they are: they have the figures measured on the indexes. "
    "Copy eval.db alone to an empty folder, and name that with --output, to write those "
    "that can be made now."
)
"""Note on an index that has changed or can't be read, so that new files would have less in them."""
_NAMED = {"Summary: ": SUMMARY_FILE, "Detailed:": DETAILED_FILE, "Retrieval:": REPORT_FILE}


def explain_not_written(refusal: str) -> str:
    """Return a sentence on why no file can be written."""
    return (
        f"No file is written: {refusal} Or copy the folder of the results, and name the copy with "
        "--output."
    )


def print_report(console: Console, report: KeptReport, full: bool, answers: bool = True) -> None:
    """Print a run's answer and main tables, or all tables with ``full``.

    A quiet console prints only the answer, if there is one. ``answers``: False if the responses are
    judged later.
    """
    if not console.quiet:
        show(console, report.parts(full))
    elif answers and report.answer:
        say(report.answer)


def name_files(
    console: Console, own: Path, top: Path | None, run_id: str | None, full: bool
) -> None:
    """Print where a run's files are and, if the run is stored, the command that shows every table.

    ``own``: the run's own folder, whose files later runs leave alone. ``top``: the folder of the
    results if its files show this run, else None. ``run_id``: None if the run is not stored.
    """
    folder = top or own
    lines = [f"Report:   {folder / PAGE_FILE}"] if (folder / PAGE_FILE).exists() else []
    if full:
        lines += [f"{label} {folder / name}" for label, name in _NAMED.items()]
    else:
        lines.append(f"Files in: {folder}")
    lines += [] if top is None else [f"Kept in:  {own}"]
    if run_id is not None and not full:
        lines.append(f"All tables: {eval_line_here('show', run_id, '--full')}")
    for line in lines:
        console.print(line, soft_wrap=True)
