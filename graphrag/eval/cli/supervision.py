"""A run watched from the terminal: progress, Ctrl-C, what its end shows, and its exit code."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from graphrag.command_lines import again, eval_line_here, eval_line_in
from graphrag.eval.cli.kept import KEPT_FILE, keep_tables, name_files, name_more
from graphrag.eval.cli.run_report import RunDescription, RunReport, make_report
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    is_live,
    open_console,
    working,
)
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import RunStoppedError, ServiceDownStop, StoreError
from graphrag.eval.judged.declaration import DEFAULT_METRICS
from graphrag.eval.judged.discovery import METRICS
from graphrag.eval.report.cells import has_two_means
from graphrag.eval.report.files import ShownRun, read_shown_run, remove_others, set_aside, write_run
from graphrag.eval.report.progress import BarProgress, LineProgress
from graphrag.eval.report.run import list_brief, list_figures, list_results, verdict_line
from graphrag.eval.report.run_lines import describe_failures
from graphrag.eval.report.table import Line, say, show
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.rows import FAILED_AS_0
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.judging import asks_judge
from graphrag.eval.runner.plan import ChosenRun
from graphrag.eval.runner.queue import RunOutcome, RunRequest
from graphrag.eval.runner.searching import needs_new_run
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import PAGE_FILE, SUMMARY_FILE, run_folder, write_whole
from graphrag.text.phrases import counted

INTERRUPTED_REASON = "interrupted"


class Supervisor:
    """Runs units under a progress display and turns what comes of it into an exit code.

    Parameters
    ----------
    console : Console
        Takes the results.
    notes : Console
        Takes progress and warnings.
    full : bool
        Whether every table is shown, not only the answer, the scores, the cost and what failed.
    """

    def __init__(self, console: Console, notes: Console, full: bool = False) -> None:
        self._console = console
        self._notes = notes
        self._full = full

    @property
    def notes(self) -> Console:
        """Where progress and warnings go."""
        return self._notes

    def take(self, chosen: ChosenRun) -> Run:
        """Say what is to be said of a run that was chosen, and return it."""
        for line in chosen.warnings:
            self.warn(line)
        for line in chosen.notes:
            self.note(line)
        return chosen.run

    @staticmethod
    def lacks_files(config: EvaluationConfig) -> Callable[[Run], bool]:
        """Return what says whether a run's files have yet to be written; the page comes last."""
        folder = config.output_folder
        return lambda run: not (run_folder(folder, run.run_id) / PAGE_FILE).exists()

    async def run(self, runner: EvaluationRunner, request: RunRequest) -> RunOutcome:
        """Run units; the first Ctrl-C finishes what is in flight, the second stops at once."""
        loop = asyncio.get_running_loop()
        interrupts = 0

        def interrupt() -> None:
            nonlocal interrupts
            interrupts += 1
            if interrupts > 1:
                raise KeyboardInterrupt
            self._notes.print("Finishing what is in flight; Ctrl-C again to stop at once.")
            runner.stop(INTERRUPTED_REASON)

        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C stops at once
                loop.add_signal_handler(number, interrupt)
        display = BarProgress if is_live(self._notes) else LineProgress
        with display(self._notes) as progress:
            return await runner.run(replace(request, watch=progress.advance))

    def finish(self, description: RunDescription, outcome: RunOutcome) -> int:
        """Show the tables, write the files, and return the exit code.

        Whoever interrupts a run does not wait for its figures: they can be made later.

        Raises
        ------
        StoreError
            If the files can't be written; the tables have been shown by then.
        """
        config = description.config
        is_round = description.details.origin == "monitor"
        if description.is_stored and was_interrupted(outcome) and not is_round:
            line = eval_line_here("show", description.run.run_id)
            self.note(f"Show what is there with: {line}")
            return _explain_stop(outcome, "--resume", is_stored=True)
        report = self.report(description, outcome)
        if outcome.results:  # a run that got nowhere leaves the files of an earlier one alone
            self.show(report, answers=not (is_round or description.details.skip_judge))
            self.write(description, report, on_top=description.details.origin == "command")
        failures = [*describe_failures(report.results), *report.notes]
        if description.is_stored and _name_setup(outcome) and not is_round:
            self.note(
                "A setting that a failure above says to change is part of what was evaluated: "
                f"after changing it, begin a new run with: {again()}"
            )
        if is_round:
            return _end_round(config, outcome)
        if not outcome.is_complete:
            flag = "--retry-errors" if failures else "--resume"
            return _explain_stop(outcome, flag, description.is_stored)
        if failures and description.is_stored:
            self.note(f"Ask again what failed with: {again('--retry-errors')}")
        if all(result.failure is not None for result in outcome.results):
            return ERROR
        if description.details.skip_judge and description.is_stored:
            self.note(f"Judge them with: {again('--resume', but='--skip-judge')}")
        if not asks_judge(config) and description.is_stored:
            asked = ("--metrics", ",".join(DEFAULT_METRICS))
            line = eval_line_here("judge", description.run.run_id, *asked)
            self.note(f"Judge these responses with: {line}")
        if _has_unscored(config, outcome):
            return INCOMPLETE
        if description.details.skip_judge:
            return DONE
        return self._check_thresholds(config, report.results)

    def report(self, description: RunDescription, outcome: RunOutcome) -> RunReport:
        """Compute what a run's end shows, and say that this goes on."""
        n = counted(len(outcome.results), "result")
        with working(self._notes, f"Computing the figures of {n}"):
            return make_report(description, outcome)

    def show(self, report: RunReport, answers: bool = True) -> None:
        """Print the answer of a run and what it rests on, or all its tables.

        A quiet run prints its answer alone, if it has one: ``answers`` is False of the rounds of
        a watch and of responses that are judged later.
        """
        if self._console.quiet:
            answer = verdict_line(report.results) if answers else None
            if answer is not None:
                say(open_console(), answer)
            return
        if not self._full:
            show(self._console, list_brief(report.results, report.notes))
            return
        show(self._console, list_results(report.results))
        show(self._console, list_figures(report.figures))
        show(self._console, map(Line, report.notes))

    def write(self, description: RunDescription, report: RunReport, on_top: bool) -> None:
        """Write a run's files and say where they are.

        Parameters
        ----------
        description : RunDescription
        report : RunReport
        on_top : bool
            Whether the files beside eval.db show this run from now on; those of another run
            that they show now are kept.

        Raises
        ------
        StoreError
            If they can't be written; says how to write them again.
        """
        output_dir, run_id = description.config.output_folder, description.run.run_id
        try:
            with working(self._notes, "Writing the files"):
                files = report.files()
                kept_files = self.kept_tables(description, report)
                own = write_run(output_dir, run_id, {**files, **kept_files})
                shown = read_shown_run(output_dir) if on_top else None
                other = None if shown is None or shown.run_id == run_id else shown
                kept = None if other is None else set_aside(output_dir, other)
                if on_top:
                    write_whole(output_dir, {name: own / name for name in files})
                    remove_others(output_dir, run_id)
                if description.file is not None:
                    written = {description.file.name: own / SUMMARY_FILE}
                    write_whole(description.file.parent, written)
        except StoreError as error:
            again_by = eval_line_in(output_dir, "show", run_id)
            go_on = f"The run is kept; write them again with: {again_by}"
            if not description.is_stored:
                go_on = "Nothing else is kept of the run, as output.save_intermediate is off."
            raise StoreError(f"{error} {go_on}") from error
        self.name_files(output_dir if on_top else own, own if on_top else None)
        if description.file is not None:
            self._say(f"Summary also in: {description.file}")
        if description.is_stored:
            self.name_more(run_id)
        if other is not None and kept is not None:
            self.note(_describe_replaced(other, kept))

    def kept_tables(self, description: RunDescription, report: RunReport) -> dict[str, str]:
        """Return the file from which the tables are printed again, where the run is complete."""
        made_of = description.made_of
        if made_of is None or not report.results.metadata["is_complete"]:
            return {}
        gaps = len(description.views) < len(description.run.setup.indexes)
        return {KEPT_FILE: keep_tables(report, made_of, gaps)}

    def name_files(self, folder: Path, kept: Path | None = None) -> None:
        """Say where a run's files are, and where they stay when a later run replaces them."""
        name_files(self._console, folder, kept, self._full)

    def name_more(self, run_id: str) -> None:
        """Say how every table, and any question, of a run is shown."""
        name_more(self._console, run_id, self._full)

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a line beside the results."""
        self._notes.print(text, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning beside the results."""
        self._notes.print(f"Warning: {text}", style="yellow", soft_wrap=True)

    def _check_thresholds(self, config: EvaluationConfig, results: EvaluationResults) -> int:
        unknown: list[str] = []
        missed: list[str] = []
        outcomes = {} if results.analysis is None else results.analysis.outcomes
        for metric, lowest in config.thresholds.items():
            for method, of in outcomes.items():
                found = of[metric].end_to_end
                name = f"{metric}{FAILED_AS_0 if has_two_means(of[metric]) else ''}"
                if found.mean is None:
                    unknown.append(f"{method}: {metric}")
                elif found.mean < lowest:
                    shown = f"{found.mean:.3f} (n {found.n:,})"
                    missed.append(f"{method}: {name} {shown} is below {lowest:g}")
        for line in missed:
            self.warn(f"threshold missed: {line}")
        for line in unknown:
            self.warn(f"nothing was judged that the threshold could be held against: {line}")
        if missed and self._console.quiet:  # or nothing would say why the run ends so
            line = f"Threshold missed: {'; '.join(missed)}"
            open_console(stderr=True).print(line, soft_wrap=True)
        return FAILED if missed else INCOMPLETE if unknown else DONE


def explain_refusal(error: RunStoppedError) -> int:
    """Say how to go on with a run of suites that a service stopped, and return the exit code."""
    line = f"Stopped: {error}. What was done is kept. Continue with: {again('--resume')}"
    open_console(stderr=True).print(line, soft_wrap=True)
    return INCOMPLETE if isinstance(error, ServiceDownStop) else ERROR


def was_interrupted(outcome: RunOutcome) -> bool:
    """Whether a run was ended by Ctrl-C or SIGTERM."""
    return outcome.stopped == INTERRUPTED_REASON


def _has_unscored(config: EvaluationConfig, outcome: RunOutcome) -> bool:
    verdicts = (result.scores.get(m) for result in outcome.results for m in config.metrics)
    return any(v.failure is not None for v in verdicts) or any(j.failed for _, j in outcome.judged)


def _name_setup(outcome: RunOutcome) -> bool:
    verdicts = (result.scores.get(metric) for result in outcome.results for metric in METRICS)
    failures = [*(r.failure for r in outcome.results), *(v.failure for v in verdicts)]
    return any(failure is not None and needs_new_run(failure) for failure in failures)


def _describe_replaced(other: ShownRun, kept: Path) -> str:
    of = "other results" if other.run_id is None else f"run {other.run_id}"
    n = other.n_questions
    asked = "" if n is None else f" ({n:,} question{'' if n == 1 else 's'})"
    return f"Until now these files showed {of}{asked}, whose files are kept in {kept}"


def _explain_stop(outcome: RunOutcome, flag: str, is_stored: bool) -> int:
    interrupted = outcome.stopped == INTERRUPTED_REASON
    more = {} if outcome.allow_usd is None else {"--max-cost": f"{outcome.allow_usd:g}"}
    go_on = f"Continue with: {again('--resume' if interrupted else flag, more)}"
    if not is_stored:
        go_on = "Nothing can be continued, as output.save_intermediate is off."
    open_console(stderr=True).print(
        f"Stopped after {len(outcome.results)} of {outcome.n_planned}: {outcome.stopped}. {go_on}",
        soft_wrap=True,
    )
    if interrupted:
        return INTERRUPTED
    return ERROR if outcome.refused else INCOMPLETE


def _end_round(config: EvaluationConfig, outcome: RunOutcome) -> int:
    """Return the exit code of a round of a watch, whose next one takes what it left."""
    if not outcome.is_complete:
        open_console(stderr=True).print(
            f"Stopped after {len(outcome.results)} of {outcome.n_planned}: {outcome.stopped}. "
            "The next round asks what is left.",
            soft_wrap=True,
        )
        if outcome.stopped == INTERRUPTED_REASON:
            return INTERRUPTED
        return ERROR if outcome.refused else INCOMPLETE
    if all(result.failure is not None for result in outcome.results):
        return ERROR
    return INCOMPLETE if _has_unscored(config, outcome) else DONE
