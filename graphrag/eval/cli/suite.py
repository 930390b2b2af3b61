"""What ``graphrag eval suite`` does: run suites, show them, keep them, compare with a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphrag.command_lines import move_to
from graphrag.eval.cli.compare import CompareOptions, run_compare
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.log import log_to
from graphrag.eval.cli.suite_files import SUITES_FILE, render_reports, render_suites
from graphrag.eval.cli.supervision import explain_refusal
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    explained,
    open_console,
    working,
)
from graphrag.eval.compare.compare import pin_baseline
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ResumeError, RunStoppedError, ServiceDownStop, UsageError
from graphrag.eval.monitoring.watch import RoundNote
from graphrag.eval.report.cells import p_value
from graphrag.eval.report.files import write_run
from graphrag.eval.report.suite import list_suite_answers, list_suites
from graphrag.eval.report.table import say, show
from graphrag.eval.results.rows import Row, paired_score
from graphrag.eval.results.runs import RunRows, pinned_run_id, read_rows
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.stats.gates import MARGIN
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import find_run
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import write_whole
from graphrag.eval.suite.cases import (
    EVALUATION_FILE,
    Suite,
    find_suite_files,
    read_evaluation_file,
    read_suite,
)
from graphrag.eval.suite.running import SuiteOutcome, hold_against, run_suites
from graphrag.eval.suite.summary import CaseResult, worst_status

EXIT_CODES = {"passed": DONE, "incomplete": INCOMPLETE, "failed": FAILED}


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The flags of ``graphrag eval suite``.

    ``baseline`` is a run, a file, latest or pinned, ``margin`` the loss that the gate accepts;
    ``verbose`` shows every case; ``resume`` continues an unfinished run, ``set_baseline`` pins
    this one.
    """

    baseline: str | None = None
    margin: float = MARGIN
    verbose: bool = False
    quiet: bool = False
    resume: bool = False
    set_baseline: bool = False


def run_suite_command(
    place: Place, target: str = "all", options: SuiteOptions | None = None
) -> int:
    """Run a suite file, or all suites, and return the exit code.

    0: every method's score reaches its suite's passing threshold, and the gate passes if a
    baseline is given; 100: one is below, a part of the scores regressed, or the gate fails; 3: a
    case has no score, the gate is inconclusive, or a service is down, with what is done kept; 2:
    wrong usage; 1: error; 130: interrupted, with what is done kept.
    """
    chosen = options or SuiteOptions()

    def run() -> int:
        try:
            return _run(place, target, chosen)
        except RunStoppedError as error:
            return explain_refusal(error)
        except KeyboardInterrupt:
            note = (
                "Interrupted; the cases that were done are kept, as an unfinished run, which "
                "--resume continues."
            )
            say(open_console(stderr=True), note)
            return INTERRUPTED

    return explained(run, chosen.verbose)


def _run(place: Place, target: str, options: SuiteOptions) -> int:
    config, file, console = place.read_config(), place.file, open_console(quiet=options.quiet)
    path = place.root / EVALUATION_FILE
    given = read_evaluation_file(path) if path.is_file() else None
    if given is None or (target != "all" and target not in given.files):
        given, suites = None, read_suites(target, place.root)
    elif given.files:
        named = given.suites(list(config.indexes))
        suites = [each for each in named if target in ("all", each.name)]
        if place.folder is None:
            place = Place(place.root, place.config, given.results_directory.absolute())
            move_to(place.flags())
            config = place.read_config()
    else:
        what = "enables no suite" if given.settings.enabled else "is not enabled"
        say(open_console(stderr=True), f"{path} {what}; nothing ran.", "yellow")
        return DONE
    store_path = place.store_path()
    baseline: RunRows | None = None
    held_against: str | None = None
    if options.baseline is not None:
        # Read before the run, as it may be the latest one.
        source = place.take_run(options.baseline, suites=True, quiet=options.quiet)
        baseline = read_rows(source, store_path)
        check_baseline(baseline, suites)
        options, held_against = replace(options, baseline=source), baseline.metadata.run_id
    elif given is not None and given.settings.reporting.compare_with_baseline:
        held_against = pinned_run_id(store_path)
    outcome = _evaluate(suites, config, store_path, options)
    if held_against is not None:
        with EvaluationStore(store_path) as store:
            outcome = hold_against(outcome, held_against, store) or outcome
    show(open_console(), list_suite_answers(outcome.reports, outcome.embedded_models))
    has_cases = given is None or given.settings.reporting.save_detailed_results
    _show_and_write(outcome, store_path.parent, options, has_cases)
    if file is not None:
        write_whole(file.parent, {file.name: render_reports(outcome)})
        say(console, f"Report: {file}")
    regressed = [each for each in outcome.regressions or () if each.regressed]
    for each in regressed:
        line = (
            f"Regressed: {each.metric} of {each.suite} ({each.method}) by {each.difference:+.3f} "
            f"over {each.n_pairs} cases, {p_value(each.p_holm)} after Holm over the metrics"
        )
        say(console, line, "bold red")
    if held_against is not None and outcome.regressions is None:
        say(console, "Parts of the scores are not compared: the baseline's are not kept here.")
    code = EXIT_CODES[worst_status([report.outcome for report in outcome.reports])]
    if baseline is not None:
        code = _compare(place, options, str(outcome.run_id), baseline, code)
    if options.set_baseline and outcome.run_id is not None:
        # After the comparison, which may be with what is pinned until now.
        path = pin_baseline(read_rows(outcome.run_id, store_path), store_path)
        say(console, f"Pinned as the baseline in {path}.")
    return FAILED if regressed else code


def _show_and_write(
    outcome: SuiteOutcome, folder: Path, options: SuiteOptions, has_cases: bool = True
) -> None:
    console = open_console(quiet=options.quiet)
    show(console, list_suites(outcome.reports, outcome.embedded_models, options.verbose))
    for note in outcome.notes:
        say(console, note)
    files = {SUITES_FILE: render_suites(outcome, has_cases)}
    own = write_run(folder, str(outcome.run_id), files)
    write_whole(folder, files)
    say(console, f"Kept as run {outcome.run_id} in {own}.")


def _compare(place: Place, options: SuiteOptions, run_id: str, baseline: RunRows, code: int) -> int:
    """Let the gate decide against a baseline and return the command's exit code."""
    console, store_path = open_console(quiet=options.quiet), place.store_path()
    if code == INCOMPLETE:
        say(console, "Not compared with the baseline, as cases have no score.", "yellow")
        return code
    gate = run_compare(
        Place(place.root, place.config, store_path.parent.absolute()),
        CompareOptions(run_id, str(options.baseline), margin=options.margin, quiet=options.quiet),
    )
    for line in _list_changes(read_rows(run_id, store_path).rows, baseline.rows):
        say(console, line)
    return code or gate


def _list_changes(new: Sequence[Row], baseline: Sequence[Row]) -> list[str]:
    """Name the cases that no longer pass, and those that pass now, one line each."""
    before = {(row.method, *row.key): paired_score(row, "correctness") for row in baseline}
    changed: dict[tuple[int, int], list[str]] = {}
    for row in new:
        now, old = paired_score(row, "correctness"), before.get((row.method, *row.key))
        if now is not None and old is not None:
            changed.setdefault((old, now), []).append(f"{row.question_id} ({row.method})")
    names = {(1, 0): "No longer passing", (0, 1): "Passing now"}
    return [f"{names[key]}: {', '.join(changed[key])}" for key in names if key in changed]


def read_suites(target: str, root: Path) -> list[Suite]:
    """Return the suites that a target names, see :func:`find_suite_files`."""
    return [read_suite(path) for path in find_suite_files(target, root)]


def check_baseline(baseline: RunRows, suites: Sequence[Suite]) -> None:
    """Raise UsageError if a baseline holds none of the suites."""
    names = [suite.name for suite in suites]
    if not any(row.method.partition("/")[0] in names for row in baseline.rows):
        msg = (
            f"The baseline {baseline.metadata.name} holds none of the suites {', '.join(names)}; "
            "name a run of them."
        )
        raise UsageError(msg)


def _evaluate(
    suites: Sequence[Suite], config: EvaluationConfig, store_path: Path, options: SuiteOptions
) -> SuiteOutcome:
    """Run suites, say how far that is, and keep them as a run."""
    notes = open_console(stderr=True, quiet=options.quiet)
    with (
        EvaluationStore(store_path) as store,
        log_to(store_path.with_name("eval.log"), options.verbose),
        working(notes, "Running the suites") as tell,
    ):

        def show(done: int, total: int, latest: CaseResult) -> None:
            tell(f"{done} of {total} evaluations, the latest: {latest.title}")

        return run_coroutine(
            run_suites(suites, config, store=store, on_case=show, resume=options.resume)
        )


def run_suite_round(
    place: Place, suites: Sequence[Suite], note: RoundNote, options: SuiteOptions
) -> int:
    """Run suites as a round of a watch; 3 when a case has no score, whatever the thresholds say.

    A round that a service stops is no round yet: what was done of it goes into the next one. The
    code is 3 when the service is down, 1 when it refuses every request.
    """
    store_path, config = place.store_path(), place.read_config()
    # What the run of a stopped round is marked with; it does not count as a round.
    stopped: dict[str, object] = {"stopped_round_against": note.baseline}
    left = _unfinished_suites(store_path)
    try:
        try:
            goes_on = left is not None and left.details.watch == stopped
            outcome = _evaluate(suites, config, store_path, replace(options, resume=goes_on))
        except ResumeError:  # a suite or a setting has changed since
            outcome = _evaluate(suites, config, store_path, options)
    except RunStoppedError as error:
        left = _unfinished_suites(store_path)
        if left is not None:
            with EvaluationStore(store_path) as store:
                store.keep_details(left.run_id, replace(left.details, watch=stopped))
        what = "What was done is kept, and is part of the next round."
        say(open_console(stderr=True), f"Stopped: {error}. {what}")
        return INCOMPLETE if isinstance(error, ServiceDownStop) else ERROR
    with EvaluationStore(store_path) as store:
        run = find_run(store.runs(), str(outcome.run_id), store_path)
        watched = replace(run.details, origin="monitor", watch=note.to_dict())
        store.keep_details(run.run_id, watched)
    answers = open_console(quiet=options.quiet)
    show(answers, list_suite_answers(outcome.reports, outcome.embedded_models))
    _show_and_write(outcome, store_path.parent, options)
    worst = worst_status([report.status for report in outcome.reports])
    return INCOMPLETE if worst == "incomplete" else DONE


def _unfinished_suites(store_path: Path) -> Run | None:
    """Return the newest unfinished run of suites."""
    with EvaluationStore(store_path) as store:
        unfinished = (run for run in store.runs() if run.status == "unfinished")
        return next((run for run in unfinished if run.origin == "suite"), None)
