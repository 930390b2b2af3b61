"""A run watched from the terminal: progress, Ctrl-C, what its end shows, and its exit code."""

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console

from graphrag.eval.config import EvaluationConfig
from graphrag.eval.dataset import Sample
from graphrag.eval.display import (
    BarProgress,
    LineProgress,
    describe_failures,
    label_results,
    show_results,
)
from graphrag.eval.exit_codes import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    command_line,
)
from graphrag.eval.figures import FigureSources, compute_figures
from graphrag.eval.figures_display import show_figures
from graphrag.eval.index_view import IndexView
from graphrag.eval.labels import label_embedded
from graphrag.eval.progress import Progress, Tally, Watch
from graphrag.eval.records import QueryResult
from graphrag.eval.results import EvaluationResults, aggregate_results
from graphrag.eval.retrieval_report import write_retrieval_report
from graphrag.eval.runner import EvaluationRunner
from graphrag.eval.stored import Run
from graphrag.eval.terminal import open_console
from graphrag.eval.work import RunOutcome, RunRequest

INTERRUPTED_REASON = "interrupted"


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What a run's files and its end say about it.

    Attributes
    ----------
    config : EvaluationConfig
    setup : dict
        See ``plan.describe_setup``.
    models : list of str
        The models that may be asked.
    warnings : tuple of str
        What makes the figures weaker than they look; kept in the files.
    skip_judge : bool
    samples : sequence of Sample
    views : mapping
        Index key -> view, for the measures that need no model.
    search_methods : mapping
        Method name -> the search method behind it.
    """

    config: EvaluationConfig
    setup: Mapping[str, Any]
    models: list[str]
    warnings: tuple[str, ...] = ()
    skip_judge: bool = False
    samples: Sequence[Sample] = ()
    views: Mapping[str, IndexView] = field(default_factory=dict[str, IndexView])
    search_methods: Mapping[str, str] = field(default_factory=dict[str, str])


class Supervisor:
    """Runs units under a progress display and turns what comes of it into an exit code.

    Parameters
    ----------
    console : Console
        Takes the results.
    notes : Console
        Takes progress and warnings.
    """

    def __init__(self, console: Console, notes: Console) -> None:
        self._console = console
        self._notes = notes

    async def run(
        self, runner: EvaluationRunner, request: RunRequest, watch: Watch | None = None
    ) -> RunOutcome:
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
        display = BarProgress if self._notes.is_terminal else LineProgress
        with display(self._notes) as shown:
            progress = shown if watch is None else _Watching(shown, watch, runner.stop)
            return await runner.run(replace(request, progress=progress))

    def finish(self, description: RunDescription, outcome: RunOutcome, run: Run | None) -> int:
        """Write the files, show the tables, and return the exit code."""
        config = description.config
        results = _describe_run(description, outcome, run)
        if outcome.results:  # a run that got nowhere leaves the files of an earlier one alone
            self._write_and_show(description, outcome, results)
        failures = [*describe_failures(results), *_describe_unjudged(outcome)]
        if not outcome.is_complete:
            return _explain_stop(outcome, "--retry-errors" if failures else "--resume", run)
        if failures:
            self.note(f"Ask again what failed with: {command_line('--retry-errors')}")
        if all(result.failure is not None for result in outcome.results):
            return ERROR
        if _has_unscored(config, outcome):
            return INCOMPLETE
        if description.skip_judge:
            return DONE
        return self._check_thresholds(config, results)

    def _write_and_show(
        self, description: RunDescription, outcome: RunOutcome, results: EvaluationResults
    ) -> None:
        config = description.config
        figures = compute_figures(
            config,
            outcome.results,
            FigureSources(
                description.samples,
                description.views,
                description.search_methods,
                outcome.judged,
            ),
            results.metadata,
        )
        results = replace(results, figures=figures.to_dict())
        summary, detailed = results.save(config.output_dir)
        retrieval = write_retrieval_report(figures.retrieval, config.output_dir)
        show_results(self._console, results)
        show_figures(self._console, figures, label_results(results))
        for line in _describe_unjudged(outcome):
            self._console.print(line, highlight=False, soft_wrap=True)
        self._console.print(
            f"Summary:  {summary}\nDetailed: {detailed}\nRetrieval: {retrieval}", soft_wrap=True
        )

    def note(self, text: str) -> None:
        """Print a line beside the results."""
        self._notes.print(text, highlight=False, markup=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning beside the results."""
        self._notes.print(
            f"Warning: {text}", style="yellow", highlight=False, markup=False, soft_wrap=True
        )

    def _check_thresholds(self, config: EvaluationConfig, results: EvaluationResults) -> int:
        missed = [
            f"{method}: {metric} {mean:.3f} is below {lowest:g}"
            for metric, lowest in config.thresholds.items()
            for method, means in results.by_method.items()
            if (mean := means[metric]) is not None and mean < lowest
        ]
        for line in missed:
            self.warn(f"threshold missed: {line}")
        return FAILED if missed else DONE


class _Watching:
    """Passes progress on, and stops the run when the watch asks for it."""

    def __init__(self, shown: Progress, watch: Watch, stop: Callable[[str], None]) -> None:
        self._shown = shown
        self._watch = watch
        self._stop = stop

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        self._shown.advance(tally, latest)
        reason = None if latest is None else self._watch(latest)
        if reason is not None:
            self._stop(reason)


def _has_unscored(config: EvaluationConfig, outcome: RunOutcome) -> bool:
    verdicts = (result.scores.get(m) for result in outcome.results for m in config.metrics)
    return any(v.failure is not None for v in verdicts) or any(j.failed for _, j in outcome.judged)


def _describe_unjudged(outcome: RunOutcome) -> list[str]:
    failed = [found for _, found in outcome.judged if found.failed]
    kinds = Counter(found.kind for found in failed)
    return [f"{kind}: {n} judgements are unscored, in full or in part" for kind, n in kinds.items()]


def _explain_stop(outcome: RunOutcome, flag: str, run: Run | None) -> int:
    interrupted = outcome.stopped == INTERRUPTED_REASON
    again = f"Continue with: {command_line('--resume' if interrupted else flag)}"
    if run is None:
        again = "Nothing was kept, as output.save_intermediate is off."
    open_console(stderr=True).print(
        f"Stopped after {len(outcome.results)} of {outcome.n_planned}: {outcome.stopped}. {again}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if interrupted:
        return INTERRUPTED
    return ERROR if outcome.refused else INCOMPLETE


def _describe_run(
    description: RunDescription, outcome: RunOutcome, run: Run | None
) -> EvaluationResults:
    config = description.config
    results = aggregate_results(outcome.results, config.metrics)
    models = sorted({*results.metadata["models"], *description.models})
    order: list[str] = description.setup["methods"]["order"]
    return replace(
        results,
        metadata={
            **results.metadata,
            "methods": results.metadata["methods"] if outcome.results else order,
            "models": models,
            "embedded_models": label_embedded(
                outcome.results, [judgement.usage for _, judgement in outcome.judged]
            ),
            "setup": description.setup,
            "judge": description.setup["judge"],
            "metrics": list(config.metrics),
            "equal_terms": description.setup.get("equal_terms"),
            "warnings": list(description.warnings),
            "run_id": None if run is None else run.run_id,
            "is_complete": outcome.is_complete,
            "n_planned": outcome.n_planned,
            "n_done": len(outcome.results),
            "concurrency": config.concurrency,
        },
    )
