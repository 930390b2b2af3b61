"""What ``graphrag eval suite`` does: run suites, show them, keep them, compare with a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag.command_lines import move_to
from graphrag.eval.analysis import (
    Row,
    RunRows,
    paired_score,
    pin_baseline,
    pinned_run_id,
    read_rows,
)
from graphrag.eval.cli.compare import CompareOptions, run_compare
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.log import log_to
from graphrag.eval.cli.suite_files import SUITES_FILE, render_reports, render_suites
from graphrag.eval.cli.supervision import explain_refusal
from graphrag.eval.cli.terminal import (
    DONE,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    explained,
    open_console,
    working,
)
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.errors import RunStoppedError, UsageError
from graphrag.eval.reports import p_value, say, show_suite, show_suite_answers, write_run
from graphrag.eval.run import run_coroutine
from graphrag.eval.statistics import MARGIN
from graphrag.eval.store import EvaluationStore, StorePlace, write_whole
from graphrag.eval.suite import (
    EVALUATION_FILE,
    CaseResult,
    EvaluationFile,
    PartRegression,
    Suite,
    SuiteOutcome,
    find_suite_files,
    hold_against,
    read_evaluation_file,
    read_suite,
    run_suites,
    worst_status,
)

EXIT_CODES = {
    "passed": DONE,
    "incomplete": INCOMPLETE,
    "failed": FAILED,
}


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
    config, file = place.read_config(), place.file
    given = _evaluation_of(place, target)
    if given is None:
        suites = read_suites(target, place.root)
    elif given.files:
        named = given.suites(list(config.indexes))
        suites = [each for each in named if target in ("all", each.name)]
        if place.folder is None:
            place = Place(place.root, place.config, given.results_directory.absolute(), place.store)
            move_to(place.flags())
            config = place.read_config()
    else:
        what = "enables no suite" if given.settings.enabled else "is not enabled"
        say(open_console(stderr=True), f"{given.path} {what}; nothing ran.", "yellow")
        return DONE
    store_path = place.store_path()
    # Read before the run, as it may be the latest one.
    source = options.baseline
    if source is not None:
        source = place.take_run(source, suites=True, quiet=options.quiet)
    baseline = None if source is None else read_rows(source, store_path)
    if baseline is not None:
        check_baseline(baseline, suites)
    pinned = None if source is not None or given is None else _pinned(given, store_path)
    outcome = evaluate_suites(suites, config, store_path, options)
    held_against = pinned if baseline is None else baseline.metadata.run_id
    if held_against is not None:
        with EvaluationStore(store_path) as store:
            outcome = hold_against(outcome, held_against, store) or outcome
    has_cases = given is None or given.settings.reporting.save_detailed_results
    _write(outcome, store_path.parent, file, options, has_cases)
    code = EXIT_CODES[worst_status([report.outcome for report in outcome.reports])]
    regressed = _show_regressions(outcome, held_against, options)
    if baseline is not None and source is not None:
        code = _compare(place, options, outcome, baseline, source)
    if options.set_baseline and outcome.run_id is not None:
        # After the comparison, which may be with what is pinned until now.
        path = pin_baseline(read_rows(outcome.run_id, store_path), store_path)
        say(open_console(quiet=options.quiet), f"Pinned as the baseline in {path}.")
    return FAILED if regressed else code


def _evaluation_of(place: Place, target: str) -> EvaluationFile | None:
    """Return what the root's evaluation.yml says, if the target is all or one of its suites."""
    path = place.root / EVALUATION_FILE
    if not path.is_file():
        return None
    given = read_evaluation_file(path)
    return given if target == "all" or target in given.files else None


def _pinned(given: EvaluationFile, store_path: StorePlace) -> str | None:
    return pinned_run_id(store_path) if given.settings.reporting.compare_with_baseline else None


def _write(
    outcome: SuiteOutcome, folder: Path, file: Path | None, options: SuiteOptions, has_cases: bool
) -> None:
    console = open_console(quiet=options.quiet)
    show_suite_answers(open_console(), outcome.reports, outcome.embedded_models)
    for report in outcome.reports:
        show_suite(console, report, outcome.embedded_models, options.verbose)
    for note in outcome.notes:
        say(console, note)
    files = {SUITES_FILE: render_suites(outcome, has_cases)}
    own = write_run(folder, outcome.run_id or outcome.ended_at, files)
    write_whole(folder, files)
    if file is not None:
        write_whole(file.parent, {file.name: render_reports(outcome)})
        say(console, f"Report: {file}")
    say(console, f"Kept as run {outcome.run_id} in {own}.")


def _show_regressions(
    outcome: SuiteOutcome, baseline: str | None, options: SuiteOptions
) -> list[PartRegression]:
    """Name what regressed against a baseline and return it."""
    console = open_console(quiet=options.quiet)
    regressed = [each for each in outcome.regressions or () if each.regressed]
    for each in regressed:
        say(console, _regression_line(each), "bold red")
    if baseline is not None and outcome.regressions is None:
        say(console, "Parts of the scores are not compared: the baseline's are not kept here.")
    return regressed


def _compare(
    place: Place, options: SuiteOptions, outcome: SuiteOutcome, baseline: RunRows, source: str
) -> int:
    """Let the gate decide against a baseline and return the command's exit code."""
    console, store_path = open_console(quiet=options.quiet), place.store_path()
    code, run_id = (
        EXIT_CODES[worst_status([report.outcome for report in outcome.reports])],
        outcome.run_id or "",
    )
    if code == INCOMPLETE:
        say(console, "Not compared with the baseline, as cases have no score.", "yellow")
        return code
    gate = run_compare(
        Place(place.root, place.config, store_path.parent.absolute(), place.store),
        CompareOptions(run_id, source, margin=options.margin, quiet=options.quiet),
    )
    for line in list_changes(read_rows(run_id, store_path).rows, baseline.rows):
        say(console, line)
    return code or gate


def _regression_line(found: PartRegression) -> str:
    return (
        f"Regressed: {found.metric} of {found.suite} ({found.method}) by {found.difference:+.3f} "
        f"over {found.n_pairs} cases, {p_value(found.p_holm)} after Holm over the metrics"
    )


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


def list_changes(new: Sequence[Row], baseline: Sequence[Row]) -> list[str]:
    """Name the cases that no longer pass, and those that pass now, one line each."""
    before = {(row.method, *row.key): paired_score(row, "correctness") for row in baseline}
    changed: dict[tuple[int, int], list[str]] = {}
    for row in new:
        now, old = paired_score(row, "correctness"), before.get((row.method, *row.key))
        if now is not None and old is not None:
            changed.setdefault((old, now), []).append(f"{row.question_id} ({row.method})")
    names = {(1, 0): "No longer passing", (0, 1): "Passing now"}
    return [f"{names[key]}: {', '.join(changed[key])}" for key in names if key in changed]


def evaluate_suites(
    suites: Sequence[Suite], config: EvaluationConfig, store_path: StorePlace, options: SuiteOptions
) -> SuiteOutcome:
    """Run suites, say how far that is, and keep them as a run.

    Raises
    ------
    RunStoppedError
        If a service is down or refuses every request.
    ResumeError
        If ``options.resume`` finds nothing that can be continued.
    """
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
