"""Shows a run from the store: computes its tables, files and page, or prints its questions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.cli.command import ShowFlags
from graphrag.eval.cli.finish_run import Supervisor
from graphrag.eval.cli.interrupts import run_coroutine
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.print_run import LEFT_ALONE, explain_not_written
from graphrag.eval.cli.show_cached import Lookup, look_up, read_page
from graphrag.eval.cli.suite import show_suite_run
from graphrag.eval.cli.terminal import DONE, working
from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.report.files import is_shown_on_top
from graphrag.eval.report.formatting import in_brackets
from graphrag.eval.report.questions import ShownAnswer, find_wrong, list_wrong, show_question
from graphrag.eval.report.recommendation import answer_run
from graphrag.eval.report.row_table import check_table_file, render_rows, tabulate_rows
from graphrag.eval.results.runs import describe_run, pinned_run_id, read_rows
from graphrag.eval.results.scored_rows import many_records
from graphrag.eval.results.usage import label_embedded
from graphrag.eval.runner.scheduler import RunOutcome
from graphrag.eval.runner.stored_run import RunDescription, read_run
from graphrag.eval.store.atomic_files import (
    SUMMARY_FILE,
    run_folder,
    write_file,
)
from graphrag.eval.store.database import PINNED, EvaluationStore, find_run, open_store
from graphrag.eval.store.records import Run
from graphrag.eval.store.sqlite import hold_folder
from graphrag.eval.types.query_results import KeptCalls, QueryResult
from graphrag.eval.web.run_report import Report, make_report
from graphrag.eval.web.two_runs import render_two_runs
from graphrag.text.cli_hints import again, eval_line_here
from graphrag.text.console import open_console, say
from graphrag.text.message_phrases import counted, fold_line

_Kept = TypeVar("_Kept")
_NOTHING_YET = "There is nothing to show yet."
_MOST = 10  # questions that are shown or named unless all are asked for
_MOST_LISTED = 100  # lines of questions that a method has wrong


def show_run(paths: Paths, run_id: str, flags: ShowFlags, lookup: Lookup | None) -> int:
    """Show a run's tables and write its files, or show its questions; return the exit code.

    No model is asked. ``lookup``: the report that is kept of the run, if it was looked up.
    """
    if flags.export is not None:
        check_table_file(flags.export)
    return run_coroutine(_show(paths, run_id, flags, lookup))


async def _show(paths: Paths, run_id: str, flags: ShowFlags, lookup: Lookup | None) -> int:
    supervisor = Supervisor(flags.quiet, flags.full)
    store_path, notes = paths.store_path(), supervisor.notes
    with ExitStack() as resources:
        # Taken before anything is read, so that no file shows less than is kept by then.
        refusal = None
        if not flags.asks:
            try:
                resources.callback(hold_folder(store_path).release)
            except StoreError as error:
                refusal = str(error)
        if lookup is not None and lookup.name and refusal is None:
            supervisor.begin_keeping(store_path, lookup.run, lookup.states)
        store = resources.enter_context(open_store(store_path))
        runs = store.runs()
        run = find_run(runs, run_id, store_path)
        if run.setup.is_of_suites:
            if flags.export or flags.asks:
                raise UsageError(
                    f"Run {run.run_id} is of suites, whose cases are no rows or questions; show "
                    "lists its cases and writes its report."
                )
            show_suite_run(supervisor.console, store, run)
            return DONE
        if flags.question is not None:
            question = _find_question(store, run.run_id, flags.question)
            flags = replace(flags, question=question)
        with working(notes, f"Reading run {run.run_id}"):
            about = _read(store, paths, run)
        if flags.asks and not about.outcome.results:
            supervisor.note(_NOTHING_YET)
            return DONE
        methods = list(dict.fromkeys(result.method for result in about.outcome.results))
        if flags.method is not None and flags.method not in methods:
            msg = f"The run has no method {flags.method!r}{nearest(flags.method, methods)}"
            raise UsageError(f"{as_sentence(msg)} It has {', '.join(methods)}.")
        if flags.lists:
            _list_wrong(supervisor, about, flags)
            return DONE
        with working(notes, "Reading the indexes"):
            before = _read_baseline(store, paths, flags.changed)
            about = await about.with_views()
        if flags.asks:
            _show_questions(supervisor, about, before, flags, store_path)
            return DONE
        report = _make_report(supervisor, about)
        if report is None:
            return DONE
        shown = supervisor.show(report, answers=not run.details.skip_judge)
        _export(supervisor, report, flags.export)
        if refusal is not None:
            supervisor.note(explain_not_written(refusal))
            return DONE
        supervisor.keep(report, shown, _write(supervisor, report, runs))
    return DONE


def _find_question(store: EvaluationStore, run_id: str, question: str) -> str:
    """Return the id of the question with this id, or of the only one whose text begins so."""
    samples, start = store.samples(run_id), fold_line(question)
    ids = [sample.id for sample in samples]
    matches = [s for s in samples if start and fold_line(s.question).startswith(start)]
    if not ids or question in ids:
        return question
    if len(matches) == 1:
        return matches[0].id
    if matches:
        first = "; ".join(f"{s.id}: {s.question}" for s in matches[:_MOST])
        more = f"; and {len(matches) - _MOST:,} more" if len(matches) > _MOST else ""
        msg = f"{len(matches):,} questions of run {run_id} begin with {question!r}"
        raise UsageError(f"{msg}; give more of the text, or an id: {first}{more}")
    msg = f"Run {run_id} has no question {question!r}, by its id or the beginning of its text"
    listed = eval_line_here("show", run_id, "--export", "rows.csv")
    raise UsageError(f"{as_sentence(msg + nearest(question, ids))} List all with: {listed}")


def _list_wrong(supervisor: Supervisor, about: RunDescription, flags: ShowFlags) -> None:
    with supervisor.working("Looking for the questions"):
        method, wrong, differing = _find_wrong(about, flags.method)
    results = _of_method(about, flags.method)
    run, n = about.run, counted(about.run.setup.n_questions, "question")
    ids, metric = [*wrong, *differing][:_MOST_LISTED], next(iter(about.config.metrics), None)
    lines = list(list_wrong(about.samples, results, ids, metric))
    for line in lines:
        say(line, quiet=flags.quiet)
    if (left := len(wrong) + len(differing) - len(lines)) > 0:
        rows = eval_line_here("show", run.run_id, "--export", "rows.csv")
        more = counted(left, "more question")
        say(f"... and {more}; the answers to all of them with: {rows}", quiet=flags.quiet)
    differ = f"; it has {len(differing):,} right that others have not" if differing else ""
    label = in_brackets(label_embedded(about.outcome.results))
    say(f"{method} has {len(wrong):,} of {n} wrong, failed or unscored{differ}{label}.")
    if lines:
        one = eval_line_here("show", run.run_id, "--question", [*wrong, *differing][0])
        say(f"Look at one with: {one}", quiet=flags.quiet)
    if len(set(run.setup.methods)) > 1 and flags.method is None:
        other = eval_line_here("show", run.run_id, "--failed", "--method", "NAME")
        say(f"Those of another method: {other}", quiet=flags.quiet)


def _find_wrong(about: RunDescription, method: str | None) -> tuple[str, list[str], list[str]]:
    """Return a method, the ids that it has wrong, and the ids where only others are wrong.

    Without ``method`` it is the one that the answer names, else the one with the highest mean. With
    ``method`` the last list is empty.
    """
    metric = next(iter(about.config.metrics), None) if not about.run.details.skip_judge else None
    if method is not None:
        return method, find_wrong(about.outcome.results, method, metric)[0], []
    results = make_report(about).results
    answer = answer_run(results)
    means = {m: v.get(metric or "") or 0.0 for m, v in results.by_method.items()}
    best = answer.method if answer and answer.method else max(means, key=lambda m: means[m])
    return best, *find_wrong(about.outcome.results, best, metric)


def _of_method(about: RunDescription, method: str | None) -> list[QueryResult]:
    return [result for result in about.outcome.results if method in (None, result.method)]


def _read(store: EvaluationStore, paths: Paths, run: Run) -> RunDescription:
    """Read a run; its files are in the folder where eval.db is now."""
    about = read_run(store, run, paths.root if paths.has_config() else None)
    output = about.config.output.model_copy(update={"dir": str(store.path.parent.absolute())})
    config = about.config.model_copy(update={"output": output})
    return replace(about, config=config)


def _read_baseline(store: EvaluationStore, paths: Paths, name: str | None) -> RunOutcome | None:
    """Return the outcome of the run to compare answers with; None if it is not in the store."""
    if name == PINNED:
        name = pinned_run_id(store.path)
    run = next((run for run in store.runs() if run.run_id == name), None)
    return None if run is None else _read(store, paths, run).outcome


def _make_report(supervisor: Supervisor, description: RunDescription) -> Report | None:
    """Print a run's warnings and compute its report; None if there is nothing to show yet."""
    run, outcome = description.run, description.outcome
    for line in [*description.run.details.warnings, *description.unread]:
        supervisor.warn(line)
    if run.status != "finished":
        state = "is not judged" if outcome.is_complete else "is unfinished"
        supervisor.warn(
            f"run {run.run_id} {state}: {len(outcome.results)} of {outcome.n_planned} results "
            "are there"
        )
    if not outcome.results:
        supervisor.note(_NOTHING_YET)
        return None
    return supervisor.report(description)


def _export(supervisor: Supervisor, report: Report, path: Path | None) -> None:
    if path is None:
        return
    with supervisor.working("Writing the rows"):
        rows = tabulate_rows(report.results, report.figures.retrieval)
        write_file(path, render_rows(rows), "--export")
    supervisor.note(f"Wrote {counted(len(rows), 'row')} to {path}.")


def _write(supervisor: Supervisor, report: Report, runs: Sequence[Run]) -> list[str]:
    """Write a run's files unless those there have more in them; return the names written."""
    description = report.description
    output_dir, run_id = description.config.output_folder, description.run.run_id
    own = run_folder(output_dir, run_id)
    on_top = is_shown_on_top(output_dir, description.run, runs)
    folders = [own, *([output_dir] if on_top else [])]
    is_poorer = len(description.views) < len(description.run.setup.searched())
    if is_poorer and any((folder / SUMMARY_FILE).exists() for folder in folders):
        supervisor.name_files(own, output_dir if on_top else None, run_id)
        supervisor.note(LEFT_ALONE)
        return []
    return supervisor.write(report, on_top)


async def _draw(
    paths: Paths, run_id: str, keep: Callable[[Iterable[str]], _Kept]
) -> tuple[_Kept, Sequence[str]]:
    """Give a run's page to ``keep`` in pieces; return its result, and the unreadable parts."""
    store_path, lookup = paths.store_path(), await look_up(paths, run_id)
    if lookup.report is not None and (page := read_page(lookup)) is not None:
        return keep([page]), lookup.report.unread
    with many_records(), open_store(store_path) as store:
        run = find_run(store.runs(), run_id, store_path)
        if run.setup.is_of_suites:
            msg = f"Run {run.run_id} is of suites, whose cases are no questions; show prints it."
            raise UsageError(msg)
        report = make_report(await _read(store, paths, run).with_views())
        if not report.results.results:
            raise UsageError(f"Run {run.run_id} has no results yet; continue it with --resume.")
        return keep(report.page()), report.description.unread


async def draw_page(paths: Paths, run_id: str) -> str:
    """Return the HTML page of a run, as kept or as made now."""
    return (await _draw(paths, run_id, "".join))[0]


async def page_state(paths: Paths, run_id: str) -> str:
    """Return a text that changes whenever the page of a finished run changes."""
    lookup = await look_up(paths, run_id)
    return f"{lookup.key} {lookup.report is not None}"


def write_page(paths: Paths, run_id: str, other: str | None, path: Path) -> int:
    """Write the HTML page of a run, or of two runs, to a file; return the exit code 0."""
    notes = open_console(stderr=True)
    if other is None:
        with working(notes, "Reading the run and its indexes"):
            _, unread = run_coroutine(_draw(paths, run_id, lambda p: write_file(path, p, "--html")))
        for line in unread:
            say(f"Warning: {line}", "yellow", stderr=True)
    else:
        store_path = paths.store_path()
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
    supervisor: Supervisor,
    about: RunDescription,
    before: RunOutcome | None,
    flags: ShowFlags,
    store_path: Path,
) -> None:
    console, outcome = supervisor.console, about.outcome
    with supervisor.working("Looking for the questions"):
        chosen = _choose(about, flags, store_path)
    ids = list(dict.fromkeys(result.sample_id for result in chosen))
    subset = ids if flags.full else ids[:_MOST]
    samples = [sample for sample in about.samples if sample.id in subset]
    of_these = [result for result in outcome.results if result.sample_id in subset]
    if not of_these:
        say("No question of the run is one of these.", quiet=console.quiet)
        return
    part = replace(outcome, results=of_these, judged=())
    report = supervisor.report(replace(about, samples=samples, outcome=part))
    measures = {
        entry["id"]: {name: answer["measures"] for name, answer in entry["methods"].items()}
        for entry in report.figures.retrieval["results"]
    }
    label = in_brackets(report.results.metadata["embedded_models"])
    matches = of_these if flags.changed is None and flags.method is None else chosen
    for sample in sorted(samples, key=lambda sample: subset.index(sample.id)):
        results = [result for result in matches if result.sample_id == sample.id]
        answers = _answers(
            results, measures.get(sample.id, {}), label, (outcome, before), flags.calls
        )
        show_question(console, sample, answers, flags.full)
    if len(subset) < len(ids):
        left = counted(len(ids) - len(subset), "more question")
        say(f"... and {left}; all of them with: {again('--full')}", quiet=console.quiet)


def _choose(about: RunDescription, flags: ShowFlags, store_path: Path) -> list[QueryResult]:
    results = _of_method(about, flags.method)
    if flags.question is not None:
        results = [result for result in results if result.sample_id == flags.question]
    if flags.failed:
        _, wrong, differing = _find_wrong(about, flags.method)
        ranks = {key: rank for rank, key in enumerate([*wrong, *differing])}
        results = [result for result in results if result.sample_id in ranks]
        results.sort(key=lambda result: ranks[result.sample_id])
    if flags.changed is not None:
        rows = read_rows(about.run.run_id, store_path), read_rows(flags.changed, store_path)
        flipped = {(flip.question_id, flip.method) for flip in compare_runs(*rows).flips}
        results = [r for r in results if (r.sample_id, r.method) in flipped]
    return results


def _answers(
    results: Sequence[QueryResult],
    measures: Mapping[str, Mapping[str, float | None]],
    label: str,
    outcomes: tuple[RunOutcome, RunOutcome | None],
    calls: bool,
) -> Iterator[ShownAnswer]:
    """Yield the answer of each method, after its answer in the baseline if there is one."""
    now, before = outcomes

    def fetch(outcome: RunOutcome, result: QueryResult) -> Sequence[KeptCalls] | None:
        return next(iter(outcome.read_calls([result]))) if calls else None

    for result in results:
        if before is not None and not result.trial:
            judged = [judgement.usage for _, judgement in before.judged]
            theirs = in_brackets(label_embedded(before.results, judged))
            key = result.sample_id, result.method, 0
            old = (r for r in before.results if (r.sample_id, r.method, r.trial) == key)
            for full in before.read_whole(list(old)):
                yield f"{result.method}, in the baseline{theirs}", full, {}, fetch(before, full)
        which = f", search {result.trial + 1}" if result.trial else ""
        measured = [] if result.trial else [*measures.get(result.method, {}).items()]
        for full in now.read_whole([result]):
            yield f"{result.method}{which}{label}", full, dict(measured), fetch(now, full)
