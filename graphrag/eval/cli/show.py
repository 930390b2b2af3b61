"""Defines ``graphrag eval show``, which lists the runs of a store or shows one of them.

``show_cached`` prints a report that eval.db keeps, ``show_run`` computes one, and ``print_run``
prints the lines that both have in common.
"""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from graphrag.eval.cli.command import Quiet, ShowFlags, option
from graphrag.eval.cli.interrupts import run_coroutine
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, starting, working
from graphrag.eval.errors import UsageError
from graphrag.eval.report.table import show as show_parts
from graphrag.text.console import open_console
from graphrag.text.json_records import whole_json
from graphrag.text.terminal_escape import escape_controls


def show(
    paths: Paths,
    flags: ShowFlags,
    run: Annotated[
        str | None, typer.Argument(help="Run id, its beginning, or latest. Without one: the list.")
    ] = None,
    json: Annotated[bool, option("Without a run: print the list as JSON.", "--json")] = False,
) -> int:
    """List the runs, or show one: its tables, questions or HTML page.

    Showing a run asks no model. Its figures are computed again and its files written if labels, an
    index or the run have changed, or a file is missing. An option that needs a run takes the latest
    unless you name one.
    """
    if flags.method is not None and not flags.asks:
        raise UsageError("--method goes with --failed, --question or --changed; add one of them.")
    is_plain = not (flags.asks or flags.export or flags.html)
    if flags.calls and flags.question is None:
        raise UsageError("--calls goes with --question; add the question's id.")
    if run is None and is_plain and not flags.full:
        return history(paths, json, flags.quiet)
    run_id = paths.find_run(run or "latest", quiet=flags.quiet)
    if flags.changed is not None:
        flags = replace(flags, changed=paths.find_run(flags.changed, quiet=flags.quiet))
    if flags.asks and flags.export:
        raise UsageError(
            "--question, --failed and --changed print questions and write no file; give --export "
            "in a command without them."
        )
    if flags.html and (flags.export or flags.question is not None or flags.failed):
        msg = "--html writes a page alone; give the other options in a command of their own."
        raise UsageError(msg)
    with starting(flags.quiet):
        from graphrag.eval.cli.show_cached import look_up, show_cached

        lookup = None if flags.asks or flags.html else run_coroutine(look_up(paths, run_id))
    is_shown = lookup is not None and not flags.export
    if lookup is not None and is_shown and show_cached(lookup, flags.quiet, flags.full):
        return DONE
    with working(open_console(stderr=True, quiet=flags.quiet), "Starting", at_once=False):
        from graphrag.eval.cli.show_run import show_run, write_page

    if flags.html is not None:
        return write_page(paths, run_id, flags.changed, flags.html)
    return show_run(paths, run_id, flags, lookup)


def history(
    paths: Paths,
    json: Annotated[bool, option("Print JSON: every mean of every run.", "--json")] = False,
    quiet: Quiet = False,
) -> int:
    """List the runs in the output folder."""
    store_path = paths.store_path()
    with starting(quiet or json):
        from graphrag.eval.report.comparison import runs_table
        from graphrag.eval.results.runs import list_runs

    with working(open_console(stderr=True, quiet=quiet or json), "Reading the runs"):
        runs = list_runs(store_path)
    if json:
        listed = [run.to_dict() for run in runs]
        sys.stdout.write(escape_controls(whole_json(listed)))
    else:
        show_parts(open_console(), [runs_table(runs)])
    return DONE
