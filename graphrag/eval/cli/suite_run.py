"""Suites as a run: asked, shown, written, held against a baseline; and shown again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from graphrag.command_lines import again, eval_line_here, move_to
from graphrag.eval.cli.compare import compare_rows, show_outcome
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    explained,
    log_to,
    open_console,
    say,
    working,
)
from graphrag.eval.compare.compare import pin_baseline
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ResumeError, RunStoppedError, ServiceDownStop, UsageError
from graphrag.eval.monitoring.watch import RoundNote
from graphrag.eval.report.cells import p_value
from graphrag.eval.report.files import write_run
from graphrag.eval.report.suite import list_suite_answers, list_suites
from graphrag.eval.report.table import show
from graphrag.eval.results.rows import Row, paired_score
from graphrag.eval.results.runs import RunRows, pinned_run_id, read_rows
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import find_run
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import run_folder, write_whole
from graphrag.eval.suite.cases import (
    EVALUATION_FILE,
    Suite,
    find_suite_files,
    read_evaluation_file,
    read_suite,
)
from graphrag.eval.suite.running import SuiteOutcome, hold_against, run_suites
from graphrag.eval.suite.summary import CaseResult, worst_status

if TYPE_CHECKING:
    from graphrag.eval.cli.suite import SuiteFlags

EXIT_CODES = {"passed": DONE, "incomplete": INCOMPLETE, "failed": FAILED}
SUITES_FILE = "suite_results.json"


def run_suite_command(place: Place, target: str, flags: "SuiteFlags") -> int:
    """Run a suite file, or all suites, and return the exit code.

    0: every method's score reaches its suite's passing threshold, and the gate passes if a
    baseline is given; 100: one is below, a part of the scores regressed, or the gate fails; 3: a
    case has no score, the gate is inconclusive, or a service is down, with what is done kept; 1: a
    service refuses every request; 130: interrupted, with what is done kept.
    """
    try:
        return _run(place, target, flags)
    except RunStoppedError as error:
        return _explain_stop(error, f"What was done is kept. Continue with: {again('--resume')}")
    except KeyboardInterrupt:
        note = (
            "Interrupted; the cases that were done are kept, as an unfinished run, which "
            "--resume continues."
        )
        say(note, stderr=True)
        return INTERRUPTED


def _run(place: Place, target: str, flags: "SuiteFlags") -> int:
    config, file, quiet = place.read_config(), place.file, flags.quiet
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
        say(f"{path} {what}; nothing ran.", "yellow", stderr=True)
        return DONE
    store_path = place.store_path()
    baseline: RunRows | None = None
    held_against: str | None = None
    if flags.baseline is not None:
        # Read before the run, as it may be the latest one.
        source = place.find_run(flags.baseline, suites=True, quiet=quiet)
        baseline = read_rows(source, store_path)
        check_baseline(baseline, suites)
        held_against = baseline.metadata.run_id
    elif given is not None and given.settings.reporting.compare_with_baseline:
        held_against = pinned_run_id(store_path)
    outcome = _evaluate(suites, config, store_path, flags)
    run_id = str(outcome.run_id)
    if held_against is not None:
        with EvaluationStore(store_path) as store:
            outcome = hold_against(outcome, held_against, store) or outcome
    show(open_console(), list_suite_answers(outcome.reports, outcome.embedded_models))
    has_cases = given is None or given.settings.reporting.save_detailed_results
    _show_and_write(outcome, store_path.parent, flags, has_cases)
    if file is not None:
        write_whole(file.parent, {file.name: render_reports(outcome)})
        say(f"Report: {file}", quiet=quiet)
    regressed = [each for each in outcome.regressions or () if each.regressed]
    for each in regressed:
        line = (
            f"Regressed: {each.metric} of {each.suite} ({each.method}) by {each.difference:+.3f} "
            f"over {each.n_pairs} cases, {p_value(each.p_holm)} after Holm over the metrics"
        )
        say(line, "bold red", quiet=quiet)
    if held_against is not None and outcome.regressions is None:
        say("Parts of the scores are not compared: the baseline's are not kept here.", quiet=quiet)
    code = EXIT_CODES[worst_status([report.outcome for report in outcome.reports])]
    if baseline is not None and code == INCOMPLETE:
        say("Not compared with the baseline, as cases have no score.", "yellow", quiet=quiet)
    elif baseline is not None:
        rows = read_rows(run_id, store_path), baseline
        gate = explained(lambda: _gate(rows, store_path, flags))
        code = code or gate
        for line in _list_changes(rows[0].rows, baseline.rows):
            say(line, quiet=quiet)
    if flags.set_baseline and outcome.run_id is not None:
        # After the comparison, which may be with what is pinned until now.
        path = pin_baseline(read_rows(run_id, store_path), store_path)
        say(f"Pinned as the baseline in {path}.", quiet=quiet)
    return FAILED if regressed else code


def _gate(rows: tuple[RunRows, RunRows], store_path: Path, flags: "SuiteFlags") -> int:
    comparison = compare_rows(rows, store_path, margin=flags.margin)
    return show_outcome(comparison, store_path, quiet=flags.quiet)


def _explain_stop(error: RunStoppedError, go_on: str) -> int:
    say(f"Stopped: {error}. {go_on}", stderr=True)
    return INCOMPLETE if isinstance(error, ServiceDownStop) else ERROR


def _show_and_write(
    outcome: SuiteOutcome, folder: Path, flags: "SuiteFlags", has_cases: bool = True
) -> None:
    console = open_console(quiet=flags.quiet)
    show(console, list_suites(outcome.reports, outcome.embedded_models, flags.verbose))
    for note in outcome.notes:
        say(note, quiet=flags.quiet)
    files = {SUITES_FILE: render_suites(outcome, has_cases)}
    own = write_run(folder, str(outcome.run_id), files)
    write_whole(folder, files)
    say(f"Kept as run {outcome.run_id} in {own}.", quiet=flags.quiet)


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
    suites: Sequence[Suite], config: EvaluationConfig, store_path: Path, flags: "SuiteFlags"
) -> SuiteOutcome:
    """Run suites, say how far that is, and keep them as a run."""
    notes = open_console(stderr=True, quiet=flags.quiet)
    with (
        EvaluationStore(store_path) as store,
        log_to(store_path.with_name("eval.log"), flags.verbose),
        working(notes, "Running the suites") as tell,
    ):

        def show(done: int, total: int, latest: CaseResult) -> None:
            tell(f"{done} of {total} evaluations, the latest: {latest.title}")

        return run_coroutine(
            run_suites(suites, config, store=store, on_case=show, resume=flags.resume)
        )


def run_suite_round(
    place: Place, suites: Sequence[Suite], note: RoundNote, flags: "SuiteFlags"
) -> int:
    """Run suites as a round of a watch; 3 when a case has no score, whatever the thresholds say.

    A round that a service stops is no round yet: what was done of it goes into the next one. The
    code is 3 when the service is down, 1 when it refuses every request.
    """
    store_path, config = place.store_path(), place.read_config()
    # What the run of a stopped round is marked with; it does not count as a round.
    stopped: dict[str, object] = {"stopped_round_against": note.baseline}
    left = _unfinished_suites(store_path)
    goes_on = left is not None and left.details.watch == stopped
    try:
        try:
            outcome = _evaluate(suites, config, store_path, replace(flags, resume=goes_on))
        except ResumeError:  # a suite or a setting has changed since
            outcome = _evaluate(suites, config, store_path, flags)
    except RunStoppedError as error:
        left = _unfinished_suites(store_path)
        if left is not None:
            with EvaluationStore(store_path) as store:
                store.keep_details(left.run_id, replace(left.details, watch=stopped))
        return _explain_stop(error, "What was done is kept, and is part of the next round.")
    with EvaluationStore(store_path) as store:
        run = find_run(store.runs(), str(outcome.run_id), store_path)
        watched = replace(run.details, origin="monitor", watch=note.to_dict())
        store.keep_details(run.run_id, watched)
    answers = open_console(quiet=flags.quiet)
    show(answers, list_suite_answers(outcome.reports, outcome.embedded_models))
    _show_and_write(outcome, store_path.parent, flags)
    worst = worst_status([report.status for report in outcome.reports])
    return INCOMPLETE if worst == "incomplete" else DONE


def _unfinished_suites(store_path: Path) -> Run | None:
    """Return the newest unfinished run of suites."""
    with EvaluationStore(store_path) as store:
        unfinished = (run for run in store.runs() if run.status == "unfinished")
        return next((run for run in unfinished if run.origin == "suite"), None)


def show_suite_run(console: Console, store: EvaluationStore, run: Run, to: Path | None) -> None:
    """Show a run of suites again, and write its file to a folder, by default the run's own.

    Raises
    ------
    StoreError
        If the file can't be written.
    """
    if run.details.report is None:
        n = f"{len(store.responses(run.run_id))} of {run.details.n_units}"
        what = f"Run {run.run_id} of suites is unfinished; {n} results are there."
        go_on = eval_line_here("suite", "--resume")
        say(f"{what} Go on with: {go_on}", "yellow", quiet=console.quiet)
        return
    outcome = SuiteOutcome.from_dict(run.details.report)
    show(console, list_suite_answers(outcome.reports, outcome.embedded_models))
    show(console, list_suites(outcome.reports, outcome.embedded_models))
    folder = run_folder(store.path.parent, run.run_id) if to is None else to
    (path,) = write_whole(folder, {SUITES_FILE: render_suites(outcome)})
    say(f"Wrote {path}.", quiet=console.quiet)


def render_suites(outcome: SuiteOutcome, has_cases: bool = True) -> str:
    """Return the content of the file of suites, with every case or without."""
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
    return _as_json(values)


def render_reports(outcome: SuiteOutcome) -> str:
    """Return the content of the file of reports as a framework gives them.

    One suite gives its report, several ``{"suites": [...]}``.
    """
    ended_at = datetime.fromisoformat(outcome.ended_at)
    about = {"run_id": outcome.run_id, "embedded_models": outcome.embedded_models}
    reports = [
        {**report.evaluation_report(ended_at).to_dict(), **about, "status": report.status}
        for report in outcome.reports
    ]
    return _as_json(reports[0] if len(reports) == 1 else {"suites": reports})


def _as_json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
