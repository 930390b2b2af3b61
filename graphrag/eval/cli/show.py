"""What ``graphrag eval show`` does: a run's tables and files, made again from eval.db."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphrag.eval.cli.kept import digest_run
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.run_report import RunDescription, RunReport, make_report
from graphrag.eval.cli.show_questions import Wanted, show_questions
from graphrag.eval.cli.suite_files import show_suite_run
from graphrag.eval.cli.supervision import Supervisor
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.report.files import (
    check_table_file,
    read_shown_run,
    render_rows,
    tabulate_rows,
    write_run,
)
from graphrag.eval.report.inspect_log import check_inspect_path, inspect_pieces, place_log
from graphrag.eval.results.runs import pinned_run_id
from graphrag.eval.runner.headers import describe_unmeasured, read_searched_views
from graphrag.eval.runner.stored_outcome import ReadRun, read_run
from graphrag.eval.store.connection import hold_folder
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import LATEST, PINNED, find_run, open_store
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import SUMMARY_FILE, run_folder, write_file, write_whole
from graphrag.text.phrases import counted


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """The flags of ``graphrag eval show``.

    With ``to`` the files go there instead; with ``export`` every row goes into that table
    besides, with ``inspect`` the run into a log of Inspect.
    """

    run: str = LATEST
    to: Path | None = None
    export: Path | None = None
    inspect: Path | None = None
    quiet: bool = False
    full: bool = False
    wanted: Wanted = field(default_factory=Wanted)


def run_show(place: Place, options: ShowOptions | None = None) -> int:
    """Show a run's tables and write its files, from what the store holds; asks no model."""
    chosen = options or ShowOptions()
    return explained(lambda: asyncio.run(_show(place, chosen)))


async def _show(place: Place, options: ShowOptions) -> int:
    if options.wanted.is_any and (options.export or options.inspect or options.to):
        msg = (
            "--question, --failed and --changed print questions and write no file; give --export, "
            "--inspect or --to in a command without them."
        )
        raise UsageError(msg)
    if options.export is not None:
        check_table_file(options.export)
    if options.inspect is not None:
        check_inspect_path(options.inspect)
    console = open_console(quiet=options.quiet)
    notes = open_console(stderr=True, quiet=options.quiet)
    supervisor = Supervisor(console, notes, options.full)
    store_path = place.store_path()
    name = place.take_run(options.run, quiet=options.quiet)
    writes = options.to is None and not options.wanted.is_any
    with ExitStack() as held:
        # Taken before anything is read, so that no file shows less than is kept by then.
        refusal = _hold(held, store_path) if writes else None
        store = held.enter_context(open_store(store_path))
        runs = store.runs()
        run = find_run(runs, name, store_path)
        if run.setup.is_of_suites and (options.export or options.inspect):
            msg = f"Run {run.run_id} is of suites, whose cases are no rows; --to writes its report."
            raise UsageError(msg)
        if run.setup.is_of_suites and options.wanted.is_any:
            msg = f"Run {run.run_id} is of suites; show without a question lists its cases."
            raise UsageError(msg)
        if run.setup.is_of_suites:
            show_suite_run(console, store, run, options.to)
            return DONE
        root = place.root if place.has_config() else None
        with working(notes, f"Reading run {run.run_id}"):
            found = read_run(store, run, root)
            before = _read_baseline(store, place, options.wanted, root)
        located = _located(found, store_path.parent)
        if options.wanted.is_any:
            with working(notes, "Reading the indexes"):
                views = await read_searched_views(located.config.project_folders(), run.setup)
            description = RunDescription(run, located.config, located.samples, views)
            show_questions(console, description, located, options.wanted, store_path, before)
            return DONE
        newest = next((each for each in runs if each.origin == "command"), None)
        await _present(supervisor, store, located, place, options, newest, refusal)
    return DONE


def _hold(held: ExitStack, store_path: Path) -> str | None:
    """Keep others from writing the files of a folder's runs; return why that can't be, if so."""
    try:
        held.callback(hold_folder(store_path).release)
    except StoreError as error:
        return str(error)
    return None


@asynccontextmanager
async def open_report(place: Place, name: str) -> AsyncGenerator[RunReport]:
    """Give what a run's files show, while the store that they are made from is open.

    Raises
    ------
    UsageError
        If there is no such run, or it is of suites.
    """
    store_path = place.store_path()
    taken = place.take_run(name)
    with open_store(store_path) as store:
        run = find_run(store.runs(), taken, store_path)
        if run.setup.is_of_suites:
            msg = f"Run {run.run_id} is of suites, whose cases are no questions; show prints it."
            raise UsageError(msg)
        root = place.root if place.has_config() else None
        found = _located(read_run(store, run, root), store_path.parent)
        yield make_report(await _describe(found, None), found.outcome)


def _read_baseline(
    store: EvaluationStore, place: Place, wanted: Wanted, root: Path | None
) -> ReadRun | None:
    """Return the run that questions are held against; None where the store does not hold it."""
    name = wanted.baseline
    if name is None or name.endswith(".json"):
        return None
    runs = store.runs()
    if name == PINNED:
        pinned = pinned_run_id(place.store_path())
        held = [run for run in runs if run.run_id == pinned]
        return read_run(store, held[0], root) if held else None
    run = find_run(runs, name, place.store_path())
    return read_run(store, run, root)


async def _describe(found: ReadRun, file: Path | None) -> RunDescription:
    views = await read_searched_views(found.config.project_folders(), found.run.setup)
    unmeasured = [key for key in found.run.setup.indexes if key not in views]
    return RunDescription(
        run=found.run,
        config=found.config,
        samples=found.samples,
        views=views,
        recorded_at=found.recorded_at,
        file=file,
        forgotten=found.forgotten,
        unread=tuple(describe_unmeasured(unmeasured)),
    )


async def _present(
    supervisor: Supervisor,
    store: EvaluationStore,
    found: ReadRun,
    place: Place,
    options: ShowOptions,
    newest: Run | None,
    refusal: str | None,
) -> None:
    run, outcome = found.run, found.outcome
    with working(supervisor.notes, "Reading the indexes"):
        description = await _describe(found, place.file)
        made_of = digest_run(store, run.run_id, found.config.output_folder)
        description = replace(description, made_of=made_of)
    for line in [*description.details.warnings, *description.unread]:
        supervisor.warn(line)
    if run.status != "finished":
        what = "is not judged" if outcome.is_complete else "is unfinished"
        supervisor.warn(
            f"run {run.run_id} {what}: {len(outcome.results)} of {outcome.n_planned} results "
            "are there"
        )
    if not outcome.results:
        supervisor.note("There is nothing to show yet.")
        return
    report = supervisor.report(description, outcome)
    supervisor.show(report, answers=not description.details.skip_judge)
    if options.export is not None:
        table = tabulate_rows(report.results, report.figures.retrieval)
        write_file(options.export, render_rows(table, options.export.suffix), "--export")
        supervisor.note(f"Wrote {counted(len(table), 'row')} to {options.export}.")
    if options.inspect is not None:
        path = place_log(options.inspect, report.results)
        write_file(path, inspect_pieces(report.results, report.figures.retrieval), "--inspect")
        supervisor.note(f"Wrote a log that Inspect reads to {path}.")
    if options.to is not None:
        write_whole(options.to, report.files())
        supervisor.name_files(options.to)
        return
    if refusal is not None:
        supervisor.note(f"No file is written: {refusal} Or write them with --to FOLDER.")
        return
    _write(supervisor, description, report, newest)


def _write(
    supervisor: Supervisor, description: RunDescription, report: RunReport, newest: Run | None
) -> None:
    is_poorer = len(description.views) < len(description.run.setup.indexes)
    output_dir, run_id = description.config.output_folder, description.run.run_id
    own = run_folder(output_dir, run_id)
    shown = read_shown_run(output_dir)
    is_newest = newest is not None and newest.run_id == run_id
    on_top = is_newest if shown is None else shown.run_id == run_id
    if is_poorer and any((folder / SUMMARY_FILE).exists() for folder in _places(own, on_top)):
        write_run(output_dir, run_id, supervisor.kept_tables(description, report))
        supervisor.name_files(output_dir if on_top else own, own if on_top else None)
        supervisor.name_more(run_id)
        supervisor.note(
            "These files are left as they are: they hold what was measured on the indexes. "
            "--to FOLDER writes those that can be made now."
        )
        return
    supervisor.write(description, report, on_top)


def _places(own: Path, on_top: bool) -> list[Path]:
    return [own, *([own.parent.parent] if on_top else [])]


def _located(found: ReadRun, output_dir: Path) -> ReadRun:
    """Return the run with its files where its eval.db is now, wherever that was once."""
    output = found.config.output.model_copy(update={"dir": str(output_dir.absolute())})
    if found.config.output_folder.absolute() == output_dir.absolute():
        return found
    return replace(found, config=found.config.model_copy(update={"output": output}))
