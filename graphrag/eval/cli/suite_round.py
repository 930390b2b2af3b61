"""Suites as a round of a watch, which goes on where a service stopped the round before."""

from collections.abc import Sequence
from dataclasses import replace

from graphrag.eval.cli.location import Place
from graphrag.eval.cli.suite import SuiteOptions, evaluate_suites
from graphrag.eval.cli.suite_files import SUITES_FILE, render_suites
from graphrag.eval.cli.terminal import DONE, ERROR, INCOMPLETE, open_console
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.errors import ResumeError, RunStoppedError, ServiceDownStop
from graphrag.eval.monitoring import RoundNote
from graphrag.eval.reports import say, show_suite, show_suite_answers, write_run
from graphrag.eval.store import EvaluationStore, Run, StorePlace, find_run
from graphrag.eval.suite import Suite, SuiteOutcome, worst_status


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
    folder = write_run(store_path.parent, run_id, {SUITES_FILE: render_suites(outcome)})
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
            return evaluate_suites(suites, config, store_path, replace(options, resume=True))
        except ResumeError:  # a suite or a setting has changed since
            pass
    return evaluate_suites(suites, config, store_path, options)


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
