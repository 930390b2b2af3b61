"""A run shown from the store: its tables and files made again, its page, its questions."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.cli.flags import ShowFlags
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.run_end import Supervisor
from graphrag.eval.cli.suite import show_suite_run
from graphrag.eval.cli.terminal import DONE, working
from graphrag.eval.compare.compare import compare_rows
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.records.answers import KeptCalls, QueryResult
from graphrag.eval.report.answer import answer_run
from graphrag.eval.report.cells import in_brackets
from graphrag.eval.report.files import check_table_file, read_top, render_rows, tabulate_rows
from graphrag.eval.report.questions import (
    ShownAnswer,
    WrongAnswers,
    find_wrong,
    list_wrong,
    show_question,
)
from graphrag.eval.results.rows import many_records
from graphrag.eval.results.runs import describe_run, pinned_run_id, read_rows
from graphrag.eval.results.usage import label_embedded
from graphrag.eval.runner.plan import RunDescription, read_run
from graphrag.eval.runner.queue import RunOutcome
from graphrag.eval.store.connection import hold_folder
from graphrag.eval.store.database import PINNED, EvaluationStore, find_run, open_store
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import (
    PAGE_FILE,
    SUMMARY_FILE,
    run_folder,
    write_file,
    write_whole,
)
from graphrag.eval.web.run_report import RunReport, make_report
from graphrag.eval.web.two_runs import render_two_runs
from graphrag.text.command_lines import again, eval_line_here
from graphrag.text.console import open_console, say
from graphrag.text.phrases import counted

_NOTHING_YET = "There is nothing to show yet."
_MOST = 10  # questions that are shown unless all are asked for


def show_run(place: Place, run_id: str, flags: ShowFlags) -> int:
    """Show a run's tables and write its files, or show its questions; asks no model."""
    if flags.export is not None:
        check_table_file(flags.export)
    return asyncio.run(_show(place, run_id, flags))


async def _show(place: Place, run_id: str, flags: ShowFlags) -> int:
    supervisor = Supervisor(flags.quiet, flags.full)
    store_path, notes = place.store_path(), supervisor.notes
    with ExitStack() as held:
        # Taken before anything is read, so that no file shows less than is kept by then.
        refusal = None
        if flags.to is None and not flags.asks:
            try:
                held.callback(hold_folder(store_path).release)
            except StoreError as error:
                refusal = str(error)
        store = held.enter_context(open_store(store_path))
        runs = store.runs()
        run = find_run(runs, run_id, store_path)
        if run.setup.is_of_suites:
            if flags.export or flags.mlflow or flags.asks:
                raise UsageError(
                    f"Run {run.run_id} is of suites, whose cases are no rows or questions; show "
                    "lists its cases, and --to writes its report."
                )
            show_suite_run(supervisor.console, store, run, flags.to)
            return DONE
        with working(notes, f"Reading run {run.run_id}"):
            about, outcome = _read(store, place, run)
        if flags.asks and not outcome.results:
            supervisor.note(_NOTHING_YET)
            return DONE
        if flags.asks and flags.lists:
            _list_wrong(about, outcome, flags)
            return DONE
        if flags.asks:
            with working(notes, "Reading the indexes"):
                before = _read_baseline(store, place, flags.changed)
                about = await about.with_views()
            _show_questions(supervisor.console, (about, outcome), before, flags, store_path)
            return DONE
        newest = next((r for r in runs if r.origin == "command"), None)
        with working(notes, "Reading the indexes"):
            about = await about.with_views()
        report = _show_tables(supervisor, about, outcome, flags)
        if report is None or flags.to is not None:
            return DONE
        if refusal is not None:
            supervisor.note(f"No file is written: {refusal} Or write them with --to FOLDER.")
            return DONE
        _write(supervisor, report, newest)
    return DONE


def _list_wrong(about: RunDescription, outcome: RunOutcome, flags: ShowFlags) -> None:
    wrong = _find_wrong(about, outcome, flags.method)
    _, results = _select_method(outcome.results, flags.method)
    run, n = about.run, counted(about.run.setup.n_questions, "question")
    lines = list(list_wrong(about.samples, results, wrong.ids))
    for line in lines:
        say(line, quiet=flags.quiet)
    differ = (
        f"; it has {len(wrong.differing):,} right that others have not" if wrong.differing else ""
    )
    label = in_brackets(label_embedded(outcome.results))
    say(f"{wrong.method} has {len(wrong.wrong):,} of {n} wrong, failed or unscored{differ}{label}.")
    if lines:
        one = eval_line_here("show", run.run_id, "--question", wrong.ids[0])
        say(f"Look at one with: {one}", quiet=flags.quiet)
    if len(set(run.setup.methods)) > 1 and flags.method is None:
        other = eval_line_here("show", run.run_id, "--failed", "--method", "NAME")
        say(f"Those of another method: {other}", quiet=flags.quiet)


def _find_wrong(about: RunDescription, outcome: RunOutcome, method: str | None) -> WrongAnswers:
    """Find what a method has wrong; without one what the best has, and where others differ."""
    metric = next(iter(about.config.metrics), None) if not about.details.skip_judge else None
    if method is None:
        results = make_report(about, outcome).results
        answer = answer_run(results)
        means = {m: v.get(metric or "") or 0.0 for m, v in results.by_method.items()}
        best = answer.method if answer and answer.method else max(means, key=lambda m: means[m])
        return find_wrong(outcome.results, best, metric)
    name, _ = _select_method(outcome.results, method)
    wrong = find_wrong(outcome.results, name, metric)
    return replace(wrong, differing=())


def _select_method(
    results: Sequence[QueryResult], method: str | None
) -> tuple[str, Sequence[QueryResult]]:
    """Return a method's name and results; all results without one."""
    if method is None:
        return "", results
    methods = list(dict.fromkeys(result.method for result in results))
    if method not in methods:
        msg = f"The run has no method {method!r}{nearest(method, methods)}"
        raise UsageError(f"{as_sentence(msg)} It has {', '.join(methods)}.")
    return method, [result for result in results if result.method == method]


def _read(store: EvaluationStore, place: Place, run: Run) -> tuple[RunDescription, RunOutcome]:
    """Read a run; its files are where its eval.db is now, wherever that was once."""
    about, outcome = read_run(store, run, place.root if place.has_config() else None)
    output = about.config.output.model_copy(update={"dir": str(store.path.parent.absolute())})
    config = about.config.model_copy(update={"output": output})
    return replace(about, config=config), outcome


def _read_baseline(store: EvaluationStore, place: Place, name: str | None) -> RunOutcome | None:
    """Return the run that questions are held against; None where the store does not hold it."""
    if name == PINNED:
        name = pinned_run_id(store.path)
    run = next((run for run in store.runs() if run.run_id == name), None)
    return None if run is None else _read(store, place, run)[1]


def _show_tables(
    supervisor: Supervisor, description: RunDescription, outcome: RunOutcome, flags: ShowFlags
) -> RunReport | None:
    """Show a run and write what is wanted besides; None where there is nothing yet."""
    run = description.run
    for line in [*description.details.warnings, *description.unread]:
        supervisor.warn(line)
    if run.status != "finished":
        what = "is not judged" if outcome.is_complete else "is unfinished"
        supervisor.warn(
            f"run {run.run_id} {what}: {len(outcome.results)} of {outcome.n_planned} results "
            "are there"
        )
    if not outcome.results:
        supervisor.note(_NOTHING_YET)
        return None
    report = supervisor.report(description, outcome)
    supervisor.show(report, answers=not description.details.skip_judge)
    if flags.export is not None:
        table = tabulate_rows(report.results, report.figures.retrieval)
        write_file(flags.export, render_rows(table, flags.export.suffix), "--export")
        supervisor.note(f"Wrote {counted(len(table), 'row')} to {flags.export}.")
    if flags.mlflow:
        from graphrag.eval.report.mlflow_run import log_run

        rows = tabulate_rows(report.results, report.figures.retrieval)
        files = {"rows.csv": render_rows(rows, ".csv"), PAGE_FILE: report.page()}
        with working(supervisor.notes, "Logging the run to MLflow"):
            said = log_run(report.results, report.figures, files)
        supervisor.note(said)
    if flags.to is not None:
        write_whole(flags.to, report.files())
        supervisor.name_files(flags.to)
    return report


def _write(supervisor: Supervisor, report: RunReport, newest: Run | None) -> None:
    description = report.description
    output_dir, run_id = description.config.output_folder, description.run.run_id
    own = run_folder(output_dir, run_id)
    top = read_top(output_dir)
    is_newest = newest is not None and newest.run_id == run_id
    on_top = is_newest if top is None else top["run_id"] == run_id
    folders = [own, *([output_dir] if on_top else [])]
    is_poorer = len(description.views) < len(description.run.setup.searched())
    if is_poorer and any((folder / SUMMARY_FILE).exists() for folder in folders):
        supervisor.name_files(own, output_dir if on_top else None, run_id)
        supervisor.note(
            "These files are left as they are: they hold what was measured on the indexes. "
            "--to FOLDER writes those that can be made now."
        )
        return
    supervisor.write(report, on_top)


@asynccontextmanager
async def _open_report(place: Place, run_id: str) -> AsyncGenerator[RunReport]:
    """Give what a run's files show, while the store that they are made from is open."""
    store_path = place.store_path()
    with many_records(), open_store(store_path) as store:
        run = find_run(store.runs(), run_id, store_path)
        if run.setup.is_of_suites:
            msg = f"Run {run.run_id} is of suites, whose cases are no questions; show prints it."
            raise UsageError(msg)
        about, outcome = _read(store, place, run)
        report = make_report(await about.with_views(), outcome)
        if not report.results.results:
            raise UsageError(f"Run {run.run_id} has no results yet; continue it with --resume.")
        yield report


async def draw_page(place: Place, run_id: str) -> str:
    """Return a run's page."""
    async with _open_report(place, run_id) as report:
        return "".join(report.page())


def write_page(place: Place, run_id: str, other: str | None, path: Path) -> int:
    """Write a run's page, or that of two runs, to a file."""

    async def write() -> tuple[str, ...]:
        with working(notes, "Reading the run and its indexes"):
            async with _open_report(place, run_id) as report:
                write_file(path, report.page(), "--html")
                return tuple(report.description.unread)

    notes = open_console(stderr=True)
    if other is None:
        for line in asyncio.run(write()):
            say(f"Warning: {line}", "yellow", stderr=True)
    else:
        store_path = place.store_path()
        with working(notes, "Comparing the runs"):
            sides = read_rows(run_id, store_path), read_rows(other, store_path)
            ids = [side.metadata.run_id for side in sides]
            with open_store(store_path) as store:
                by_id = {run.run_id: run for run in store.runs()}
                runs = [describe_run(store, by_id[i], False) for i in ids if i in by_id]
            write_file(path, render_two_runs(store_path, sides, runs), "--html")
    say(f"Report: {path}")
    return DONE


def _show_questions(
    console: Console,
    read: tuple[RunDescription, RunOutcome],
    before: RunOutcome | None,
    flags: ShowFlags,
    store_path: Path,
) -> None:
    description, whole = read
    notes = open_console(stderr=True, quiet=console.quiet)
    with working(notes, "Looking for the questions"):
        chosen = _choose(description, whole, flags, store_path)
    ids = list(dict.fromkeys(result.sample_id for result in chosen))
    subset = ids if flags.full else ids[:_MOST]
    samples = [sample for sample in description.samples if sample.id in subset]
    of_these = [result for result in whole.results if result.sample_id in subset]
    if not of_these:
        say("No question of the run is one of these.", quiet=console.quiet)
        return
    outcome = replace(whole, results=of_these, judged=())
    with working(notes, f"Computing the figures of {counted(len(of_these), 'result')}"):
        report = make_report(replace(description, samples=samples), outcome)
    measures = {
        entry["id"]: {name: answer["measures"] for name, answer in entry["methods"].items()}
        for entry in report.figures.retrieval["results"]
    }
    label = in_brackets(report.results.metadata["embedded_models"])
    matches = of_these if flags.changed is None and flags.method is None else chosen
    for sample in sorted(samples, key=lambda sample: subset.index(sample.id)):
        results = [result for result in matches if result.sample_id == sample.id]
        outcomes = whole, before
        answers = _answers(results, measures.get(sample.id, {}), label, outcomes, flags.calls)
        show_question(console, sample, answers, flags.full)
    if len(subset) < len(ids):
        left = counted(len(ids) - len(subset), "more question")
        say(f"... and {left}; all of them with: {again('--full')}", quiet=console.quiet)


def _choose(
    about: RunDescription, whole: RunOutcome, flags: ShowFlags, store_path: Path
) -> list[QueryResult]:
    run_id = about.run.run_id
    _, results = _select_method(whole.results, flags.method)
    if flags.question is not None:
        results = [result for result in results if result.sample_id == flags.question]
    if flags.failed:
        order = {key: rank for rank, key in enumerate(_find_wrong(about, whole, flags.method).ids)}
        results = sorted(
            (result for result in results if result.sample_id in order),
            key=lambda result: order[result.sample_id],
        )
    if flags.changed is not None:
        rows = read_rows(run_id, store_path), read_rows(flags.changed, store_path)
        flips = compare_rows(rows, store_path).flips
        flipped = {(flip.question_id, flip.method) for flip in flips}
        results = [r for r in results if (r.sample_id, r.method) in flipped]
    return list(results)


def _answers(
    results: Sequence[QueryResult],
    measures: Mapping[str, Mapping[str, float | None]],
    label: str,
    read: tuple[RunOutcome, RunOutcome | None],
    calls: bool,
) -> Iterator[ShownAnswer]:
    """Yield what the methods answered, each after what it answered in the run before, if any."""
    now, before = read

    def fetch(outcome: RunOutcome, result: QueryResult) -> Sequence[KeptCalls] | None:
        return next(iter(outcome.read_calls([result]))) if calls else None

    for result in results:
        if before is not None and not result.trial:
            judged = [judgement.usage for _, judgement in before.judged]
            theirs = in_brackets(label_embedded(before.results, judged))
            key = result.sample_id, result.method, 0
            old = (r for r in before.results if (r.sample_id, r.method, r.trial) == key)
            for whole in before.read_whole(list(old)):
                yield f"{result.method}, in the baseline{theirs}", whole, {}, fetch(before, whole)
        which = f", search {result.trial + 1}" if result.trial else ""
        measured = [] if result.trial else [*measures.get(result.method, {}).items()]
        for whole in now.read_whole([result]):
            yield f"{result.method}{which}{label}", whole, dict(measured), fetch(now, whole)
