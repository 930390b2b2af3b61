"""``graphrag eval report``: a run's page, made again from eval.db, alone or against another run."""

import asyncio
import webbrowser
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag.eval.cli.first_look import look_for_runs, starting
from graphrag.eval.cli.options import ConfigOption, OutputOption, RootOption, place_of

if TYPE_CHECKING:
    from graphrag.eval.cli.location import Place
    from graphrag.eval.web.run_page import Baseline


def report(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(help="Run id, its beginning, or latest, the default.")
    ] = "latest",
    compare: Annotated[
        str | None,
        typer.Option("--compare", help="Hold it against this run, file, latest or pinned."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The HTML file; default: report.html in the run's folder."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Write a run's page: the answer, the cost, the failures, every question. One file, offline."""
    from graphrag.eval.cli.terminal import explained

    place = place_of(context, root, config, output)
    look_for_runs(place, run, compare)
    raise typer.Exit(explained(lambda: asyncio.run(_report(place, run, compare, (to, open_)))))


async def _report(
    place: "Place", name: str, compare: str | None, where: tuple[Path | None, bool]
) -> int:
    from graphrag.eval.cli.terminal import DONE, open_console, working

    with starting():
        from graphrag.eval.cli.show import open_report
        from graphrag.eval.errors import UsageError
        from graphrag.eval.store.whole_files import PAGE_FILE, run_folder, write_file

    notes = open_console(stderr=True)
    to, is_opened = where
    store_path, taken = place.store_path(), place.take_run(name)
    other = None if compare is None else place.take_run(compare)
    async with AsyncExitStack() as stack:
        with working(notes, "Reading the run and its indexes"):
            report = await stack.enter_async_context(open_report(place, taken))
        run = report.description.run
        if not report.results.results:
            msg = f"Run {run.run_id} has no results yet; continue it with --resume."
            raise UsageError(msg)
        baseline = None
        if other is not None:
            with working(notes, "Comparing with the other run"):
                baseline = compare_for_page(store_path, run.run_id, other)
        names = PAGE_FILE if baseline is None else f"report-against-{_file_part(baseline)}.html"
        path = to or run_folder(store_path.parent, run.run_id) / names
        with working(notes, "Drawing the page"):
            write_file(path, report.page(baseline), "--to")
    for line in report.description.unread:
        notes.print(f"Warning: {line}", style="yellow", soft_wrap=True)
    open_console().print(f"Report: {path}", soft_wrap=True)
    if is_opened and not webbrowser.open(path.absolute().as_uri()):
        msg = f"No browser could be opened; open {path} yourself."
        raise UsageError(msg)
    return DONE


def compare_for_page(store_path: Path, run_id: str, other: str) -> "Baseline":
    """Return what a run's page says of another run."""
    from graphrag.eval.compare.changes import read_both_labels
    from graphrag.eval.compare.compare import GateTerms, compare_runs
    from graphrag.eval.results.runs import read_rows
    from graphrag.eval.web.run_page import Baseline

    new, old = (read_rows(name, store_path) for name in (run_id, other))
    terms = GateTerms(labels=read_both_labels(new, old, store_path.parent))
    return Baseline(compare_runs(new, old, terms=terms), old.rows)


def _file_part(baseline: "Baseline") -> str:
    return Path(baseline.name).stem
