"""Conducts a run on the terminal: progress, Ctrl-C, tables, files and the exit code."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from graphrag.eval.cli.interrupts import INTERRUPTED, stop_by
from graphrag.eval.cli.print_run import name_files, print_report
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    is_live,
    working,
)
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import InterruptStop, StoreError
from graphrag.eval.report.files import show_on_top, write_run
from graphrag.eval.report.formatting import has_two_means
from graphrag.eval.report.progress import BarProgress, LineProgress
from graphrag.eval.report.report_cache import Keeping, KeptReport, digest_files
from graphrag.eval.report.run import describe_failures, find_hopeless
from graphrag.eval.results.scored_rows import FAILED_AS_0
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.judging import asks_judge
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.runner.stored_run import RunDescription
from graphrag.eval.store.atomic_files import run_folder
from graphrag.eval.store.records import Run
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS, METRICS
from graphrag.eval.web.run_report import Report, make_report
from graphrag.text.cli_hints import again, eval_line_here, eval_line_in
from graphrag.text.console import open_console, say
from graphrag.text.float_compare import is_below, number_beside
from graphrag.text.message_phrases import counted


class Supervisor:
    """Runs units under a progress display, then shows and writes the results.

    ``full``: whether every table is shown, or only the answer, the scores, the cost and the
    failures. ``exit_code``: the exit code of the finished run, ERROR until then.
    """

    exit_code = ERROR

    def __init__(self, quiet: bool = False, full: bool = False) -> None:
        self.console = open_console(quiet=quiet)
        self.notes = open_console(stderr=True, quiet=quiet)
        self._full = full
        self._keeping: Keeping | None = None

    async def run(self, runner: EvaluationRunner, work: Work) -> RunOutcome:
        """Run units; the first Ctrl-C finishes begun units, the second stops at once."""
        display = BarProgress if is_live(self.notes) else LineProgress
        loop = asyncio.get_running_loop()

        def stop() -> None:
            self.notes.print("Finishing what is in flight; Ctrl-C again to stop at once.")
            runner.stop(InterruptStop())

        with display(self.notes) as progress, stop_by(lambda: loop.call_soon_threadsafe(stop)):
            work.watch = progress.advance
            return await runner.run(work)

    def finish(self, description: RunDescription) -> bool:
        """Show the tables, write the files and set the exit code; return whether that is 0.

        Raises StoreError if the files can't be written; the tables have been shown by then.
        """
        self.exit_code = self._finish(description)
        return self.exit_code == DONE

    def _finish(self, description: RunDescription) -> int:
        """Show the tables and write the files; return the exit code.

        After an interrupt no figures are computed, so that nobody waits: ``show`` can compute them.
        """
        config, outcome = description.config, description.outcome
        details, run_id = description.run.details, description.run.run_id
        is_stored = description.is_stored
        if is_stored and outcome.was_interrupted:
            self.note(f"Show what is there with: {eval_line_here('show', run_id)}")
            return _explain_stop(outcome, "--resume", is_stored=True)
        if is_stored and outcome.is_complete:
            self.begin_keeping(config.store_path, description.run, description.states)
        report = self.report(description)
        if outcome.results:  # a run that got nowhere leaves the files of an earlier one alone
            shown = self.show(report, answers=not details.skip_judge)
            self.keep(report, shown, self.write(report, on_top=details.origin == "command"))
        failures = [*describe_failures(report.results), *report.notes]
        if is_stored and _name_setup(outcome):
            self.note(
                "A setting that a failure above says to change is part of what was evaluated: "
                f"after changing it, begin a new run with: {again()}"
            )
        if not outcome.is_complete:
            flag = "--retry-errors" if failures else "--resume"
            return _explain_stop(outcome, flag, is_stored)
        if failures and is_stored:
            self.note(f"Ask again what failed with: {again('--retry-errors')}")
        if all(result.failure is not None for result in outcome.results):
            return ERROR
        hopeless = find_hopeless(report.results)
        if self.console.quiet:  # or nothing would explain the exit code
            for method, cause in hopeless.items():
                say(f"Every search of {method} failed, e.g. {cause}", stderr=True)
        if details.skip_judge and is_stored:
            self.note(f"Judge them with: {again('--resume', but='--skip-judge')}")
        if not asks_judge(config, description.samples) and is_stored:
            metrics = ("--metrics", ",".join(DEFAULT_METRICS))
            line = eval_line_here("judge", run_id, *metrics)
            self.note(f"Judge these responses with: {line}")
        verdicts = (result.scores.get(m) for result in outcome.results for m in config.metrics)
        unscored = any(v.failure is not None for v in verdicts)
        if unscored or any(judgement.failed for _, judgement in outcome.judged):
            return INCOMPLETE
        missed = DONE if details.skip_judge else self._check_thresholds(config, report)
        return missed or (INCOMPLETE if hopeless else DONE)

    def begin_keeping(self, store_path: Path, run: Run, states: Mapping[str, str]) -> None:
        """Begin to keep the report of a finished run for ``show``; see :class:`Keeping`."""
        self._keeping = Keeping.begin(store_path, run, states)

    def report(self, description: RunDescription) -> Report:
        """Compute the report of a run, under a status line."""
        n = counted(len(description.outcome.results), "result")
        with working(self.notes, f"Computing the figures of {n}"):
            return make_report(description)

    def show(self, report: Report, answers: bool = True) -> KeptReport:
        """Print a run's answer and main tables, or with ``full`` all tables; return both forms.

        ``answers``: False if the responses are judged later, so that there is no answer yet.
        """
        shown = report.shown()
        print_report(self.console, shown, self._full, answers)
        return shown

    def write(self, report: Report, on_top: bool) -> list[str]:
        """Write a run's files, print where they are, and return their names.

        ``on_top``: whether the files next to eval.db show this run from now on. If they show
        another run until then, its files are kept. Raises StoreError, with the command that writes
        the files again, if they can't be written.
        """
        description = report.description
        output_dir, run_id = description.config.output_folder, description.run.run_id
        try:
            with working(self.notes, "Writing the files"):
                files = report.files()
                own = write_run(output_dir, run_id, files)
                replaced = show_on_top(output_dir, own, files) if on_top else ""
        except StoreError as error:
            again_by = eval_line_in(output_dir, "show", run_id)
            go_on = f"The run is kept; write them again with: {again_by}"
            if not description.is_stored:
                go_on = "Nothing else is kept of the run, as output.save_intermediate is off."
            raise StoreError(f"{error} {go_on}") from error
        self.name_files(
            own, output_dir if on_top else None, run_id if description.is_stored else None
        )
        if replaced:
            self.note(replaced)
        return [*files]

    def keep(self, report: Report, shown: KeptReport, names: Collection[str]) -> None:
        """Keep the shown report, so that ``show`` need not compute it while nothing changes.

        ``names``: the names of the run's files that show it.
        """
        about, keeping = report.description, self._keeping
        if keeping is None:
            return
        folder = run_folder(about.config.output_folder, about.run.run_id)
        with working(self.notes, "Keeping the figures", at_once=False):
            try:
                keeping.keep(about.states, replace(shown, files=digest_files(folder, names)))
            except StoreError as error:
                self.note(f"The figures are not kept, and made anew when they are shown: {error}")

    def name_files(self, own: Path, top: Path | None = None, run_id: str | None = None) -> None:
        """Print where a run's files are; see :func:`print_run.name_files`."""
        name_files(self.console, own, top, run_id, self._full)

    def working(self, text: str) -> AbstractContextManager[object]:
        """Show a status line while the block runs."""
        return working(self.notes, text)

    def note(self, text: str) -> None:
        """Print a line to stderr, apart from the results."""
        self.notes.print(text, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning to stderr, apart from the results."""
        self.notes.print(f"Warning: {text}", style="yellow", soft_wrap=True)

    def _check_thresholds(self, config: EvaluationConfig, report: Report) -> int:
        unknown: list[str] = []
        missed: list[str] = []
        analysis = report.results.analysis
        outcomes = {} if analysis is None else analysis.outcomes
        for metric, lowest in config.thresholds.items():
            means = [
                (f"{m}: {metric}", FAILED_AS_0 * has_two_means(v[metric]), v[metric].end_to_end)
                for m, v in outcomes.items()
                if metric in v
            ]
            for method, scores in report.figures.scores.get(metric, {}).items():
                parts = scores.parts.items()
                means += [(f"{method}: {metric}.{name}", "", part.estimate) for name, part in parts]
            unknown += [] if means else [metric]
            for name, failed_as, estimate in means:
                if estimate.mean is None:
                    unknown.append(name)
                elif is_below(estimate.mean, lowest):
                    text = f"{number_beside(estimate.mean, lowest)} (n {estimate.n:,})"
                    missed.append(f"{name}{failed_as} {text} is below {lowest:.10g}")
        for line in missed:
            self.warn(f"threshold missed: {line}")
        for line in unknown:
            self.warn(f"nothing was judged that the threshold could be compared with: {line}")
        if missed and self.console.quiet:  # or nothing would explain the exit code
            say(f"Threshold missed: {'; '.join(missed)}", stderr=True)
        return FAILED if missed else INCOMPLETE if unknown else DONE


def _name_setup(outcome: RunOutcome) -> bool:
    verdicts = (result.scores.get(metric) for result in outcome.results for metric in METRICS)
    failures = [*(r.failure for r in outcome.results), *(v.failure for v in verdicts)]
    return any(failure is not None and failure.of_setup for failure in failures)


def _explain_stop(outcome: RunOutcome, flag: str, is_stored: bool) -> int:
    interrupted = outcome.was_interrupted
    more = {} if outcome.allow_usd is None else {"--max-cost": f"{outcome.allow_usd:g}"}
    go_on = f"Continue with: {again('--resume' if interrupted else flag, more)}"
    if not is_stored:
        go_on = "Nothing can be continued, as output.save_intermediate is off."
    n = f"{len(outcome.results)} of {outcome.n_planned}"
    say(f"Stopped after {n}: {outcome.stopped}. {go_on}", stderr=True)
    if interrupted:
        return INTERRUPTED
    return ERROR if outcome.refused else INCOMPLETE
