"""What ``graphrag eval suite`` does: run suites, show them, keep them, compare with a baseline."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from rich.console import Console

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
from graphrag.eval.cli.supervision import explain_refusal
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    explained,
    open_console,
)
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.errors import ResumeError, RunStoppedError, ServiceDownStop, UsageError
from graphrag.eval.monitoring import RoundNote
from graphrag.eval.reports import (
    p_value,
    run_folder,
    say,
    show_suite,
    show_suite_answers,
    write_run,
)
from graphrag.eval.run import run_coroutine
from graphrag.eval.statistics import MARGIN
from graphrag.eval.store import EvaluationStore, Run, StorePlace, find_run, write_whole
from graphrag.eval.suite import (
    EVALUATION_FILE,
    CaseResult,
    EvaluationFile,
    PartRegression,
    Suite,
    SuiteOutcome,
    describe_reports,
    find_suite_files,
    hold_against,
    read_evaluation_file,
    read_suite,
    run_suites,
    worst_status,
)

SUITES_FILE = "suite_results.json"
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
        what = "is not enabled" if not given.enabled else "enables no suite"
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
    outcome = _evaluate(suites, config, store_path, options)
    held_against = pinned if baseline is None else baseline.metadata.run_id
    if held_against is not None:
        with EvaluationStore(store_path) as store:
            outcome = hold_against(outcome, held_against, store) or outcome
    has_cases = given is None or given.reporting.save_detailed_results
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
    return pinned_run_id(store_path) if given.reporting.compare_with_baseline else None


def _write(
    outcome: SuiteOutcome, folder: Path, file: Path | None, options: SuiteOptions, has_cases: bool
) -> None:
    console = open_console(quiet=options.quiet)
    show_suite_answers(open_console(), outcome.reports, outcome.embedded_models)
    for report in outcome.reports:
        show_suite(console, report, outcome.embedded_models, options.verbose)
    for note in outcome.notes:
        say(console, note)
    files = {SUITES_FILE: _render(outcome, has_cases)}
    own = write_run(folder, outcome.run_id or outcome.ended_at, files)
    write_whole(folder, files)
    if file is not None:
        write_whole(file.parent, {file.name: as_json(describe_reports(outcome))})
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


def run_suite_round(
    place: Place, suites: Sequence[Suite], note: RoundNote, options: SuiteOptions
) -> int:
    """Run suites as a round of a watch; 3 when a case has no score, whatever the thresholds say.

    A round that a service stops is no round yet: what was done of it goes into the next one. The
    code is 3 when the service is down, 1 when it refuses every request.
    """
    store_path = place.store_path()
    try:
        outcome = _evaluate_round(suites, place.read_config(), store_path, (note, options))
    except RunStoppedError as error:
        _leave_to_next(store_path, note)
        say(
            open_console(stderr=True),
            f"Stopped: {error}. What was done is kept, and is part of the next round.",
        )
        return INCOMPLETE if isinstance(error, ServiceDownStop) else ERROR
    console = open_console(quiet=options.quiet)
    show_suite_answers(console, outcome.reports, outcome.embedded_models)
    for report in outcome.reports:
        show_suite(console, report, outcome.embedded_models, options.verbose)
    run_id = str(outcome.run_id)
    with EvaluationStore(store_path) as store:
        run = find_run(store.runs(), run_id, store_path)
        if run.details is not None:
            store.keep_details(run_id, replace(run.details, origin="monitor", watch=note.to_dict()))
    folder = write_run(store_path.parent, run_id, {SUITES_FILE: _render(outcome)})
    say(console, f"Kept as run {run_id} in {folder}.")
    worst = worst_status([report.status for report in outcome.reports])
    return INCOMPLETE if worst == "incomplete" else DONE


def _evaluate_round(
    suites: Sequence[Suite],
    config: EvaluationConfig,
    store_path: StorePlace,
    how: tuple[RoundNote, SuiteOptions],
) -> SuiteOutcome:
    """Run suites, going on with the round before if a service stopped it."""
    note, options = how
    with EvaluationStore(store_path) as store:
        left = _unfinished_suites(store)
    mark = None if left is None or left.details is None else left.details.watch
    if mark == _left_over(note):
        try:
            return _evaluate(suites, config, store_path, replace(options, resume=True))
        except ResumeError:  # a suite or a setting has changed since
            pass
    return _evaluate(suites, config, store_path, options)


def _leave_to_next(store_path: StorePlace, note: RoundNote) -> None:
    """Mark the run that was stopped, so that the next round of this watch goes on with it."""
    with EvaluationStore(store_path) as store:
        left = _unfinished_suites(store)
        if left is not None and left.details is not None:
            store.keep_details(left.run_id, replace(left.details, watch=_left_over(note)))


def _unfinished_suites(store: EvaluationStore) -> Run | None:
    """Return the newest unfinished run of suites."""
    unfinished = (run for run in store.runs() if run.status == "unfinished")
    return next((run for run in unfinished if run.origin == "suite"), None)


def _left_over(note: RoundNote) -> dict[str, object]:
    """Return what a round says of itself that a service stopped; it does not count as one."""
    return {"stopped_round_against": note.baseline}


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


def _evaluate(
    suites: Sequence[Suite], config: EvaluationConfig, store_path: StorePlace, options: SuiteOptions
) -> SuiteOutcome:
    notes = open_console(stderr=True, quiet=options.quiet)
    with (
        EvaluationStore(store_path) as store,
        log_to(store_path.with_name("eval.log"), options.verbose),
        notes.status("Running the suites") as status,
    ):

        def show(done: int, total: int, latest: CaseResult) -> None:
            status.update(f"{done} of {total} evaluations, the latest: {latest.title}")

        return run_coroutine(
            run_suites(suites, config, store=store, on_case=show, resume=options.resume)
        )


def show_suite_run(console: Console, store: EvaluationStore, run: Run, to: Path | None) -> None:
    """Show a run of suites again, and write its file.

    Parameters
    ----------
    console : Console
    store : EvaluationStore
    run : Run
    to : Path or None
        Folder to write to; None: the run's own.

    Raises
    ------
    StoreError
        If the file can't be written.
    """
    if run.details is None or run.details.report is None:
        _show_kept(console, store, run)
        return
    outcome = SuiteOutcome.from_dict(run.details.report)
    show_suite_answers(console, outcome.reports, outcome.embedded_models)
    for report in outcome.reports:
        show_suite(console, report, outcome.embedded_models)
    folder = run_folder(store.path.parent, run.run_id) if to is None else to
    (path,) = write_whole(folder, {SUITES_FILE: _render(outcome)})
    say(console, f"Wrote {path}.")


def _show_kept(console: Console, store: EvaluationStore, run: Run) -> None:
    responses, verdicts = store.responses(run.run_id), store.verdicts(run.run_id)
    n = (
        f"{len(responses)} results"
        if run.details is None
        else (f"{len(responses)} of {run.details.n_units} results")
    )
    why = "is unfinished" if run.status != "finished" else "was kept without its report"
    say(console, f"Run {run.run_id} of suites {why}; {n} are there.", "yellow")
    for unit, found in responses.items():
        verdict = verdicts.get(unit, {}).get("correctness")
        said = found.response if verdict is None else verdict.reason
        score = None if verdict is None else verdict.score
        status = "unscored" if score is None else "passed" if score else "failed"
        say(console, f"  {status} {found.sample_id} ({found.method}): {said}")


def _render(outcome: SuiteOutcome, has_cases: bool = True) -> str:
    suites = [report.to_dict() for report in outcome.reports]
    for suite in suites if not has_cases else ():
        del suite["cases"]
    values: dict[str, object] = {
        "timestamp": datetime.fromisoformat(outcome.ended_at).isoformat(timespec="seconds"),
        "run_id": outcome.run_id,
        "embedded_models": outcome.embedded_models,
        "suites": suites,
    }
    if outcome.regressions is not None:
        values["regressions"] = [asdict(each) for each in outcome.regressions]
    return as_json(values)


def as_json(values: Mapping[str, object]) -> str:
    """Return values as the text of a file."""
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
