"""What ``graphrag eval`` does: from flags to an exit code."""

import asyncio
import contextlib
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from graphrag.eval.config import EvaluationConfig, parse_config
from graphrag.eval.dataset import Sample, read_samples
from graphrag.eval.display import (
    BarProgress,
    LineProgress,
    describe_failures,
    describe_price,
    log_to,
    show_results,
)
from graphrag.eval.errors import ConfigError, EvalError, ResumeError, UsageError
from graphrag.eval.indexing import build_index, is_built
from graphrag.eval.plan import Unit, describe_setup, list_differences, plan_run
from graphrag.eval.preflight import (
    check_keys,
    check_output,
    check_prices,
    estimate,
    list_setting_warnings,
    list_swapped,
)
from graphrag.eval.preparation import (
    describe_indexes,
    describe_judge,
    judge_model,
    open_judge,
    read_headers,
)
from graphrag.eval.records import label_embedded
from graphrag.eval.results import EvaluationResults, aggregate_results
from graphrag.eval.runner import EvaluationRunner
from graphrag.eval.session import MemorySession, Session, StoredSession
from graphrag.eval.store import EvaluationStore, Run
from graphrag.eval.work import RunOutcome, RunRequest
from graphrag.offline import OFFLINE_LABEL
from graphrag.query.calls import describe_error
from graphrag.query.index_header import IndexHeader, model_name
from graphrag.query.usage import is_offline

DONE, ERROR, USAGE, INCOMPLETE, BELOW_THRESHOLD, INTERRUPTED = 0, 1, 2, 3, 100, 130
_INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The flags of ``graphrag eval``."""

    root: Path = Path()
    config: Path | None = None
    methods: str | None = None
    imdb_key: str | None = None
    resume: bool = False
    retry_errors: bool = False
    limit: int | None = None
    concurrency: int | None = None
    index: bool = False
    skip_judge: bool = False
    max_cost_usd: float | None = None
    dry_run: bool = False
    output: Path | None = None
    verbose: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a run needs, checked."""

    config: EvaluationConfig
    samples: list[Sample]
    headers: dict[str, IndexHeader]
    units: list[Unit]
    setup: dict[str, Any]
    models: list[str]


def run_command(options: CommandOptions) -> int:
    """Run an evaluation and return its exit code; errors are one sentence on stderr."""
    console = Console(quiet=options.quiet)
    errors = Console(stderr=True)
    notes = Console(stderr=True, quiet=options.quiet)
    try:
        return asyncio.run(_Command(options, console, notes).run())
    except EvalError as error:
        errors.print(f"Error: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        if options.verbose:
            errors.print_exception()
        return USAGE if isinstance(error, UsageError) else ERROR
    except KeyboardInterrupt:
        errors.print(
            "Interrupted; what was finished is kept, if the run had begun. "
            f"Continue with: {_command_line('--resume')}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        return INTERRUPTED
    except Exception as error:
        if options.verbose:
            raise
        text = f"Unexpected error: {describe_error(error)}. Run with --verbose to see where."
        errors.print(text, style="red", highlight=False, markup=False, soft_wrap=True)
        return ERROR


class _Command:
    def __init__(self, options: CommandOptions, console: Console, notes: Console) -> None:
        self._options = options
        self._console = console
        self._notes = notes

    async def run(self) -> int:
        options = self._options
        if options.quiet and options.verbose:
            msg = "--quiet and --verbose exclude each other; leave one out."
            raise ConfigError(msg)
        config = _read_config(options)
        samples = _select(config, options)
        used = {sample.imdb_key for sample in samples}
        roots = {key: root for key, root in config.index_roots().items() if key in used}
        check_keys(samples, config.index_roots())
        if not options.dry_run:
            check_output(config.output_dir, len(samples) * len(config.methods))
        if options.index and not options.dry_run:
            await self._build(roots)
        prepared = await self._prepare(config, samples, roots)
        if options.dry_run:
            self._show_estimate(prepared)
            return DONE
        with log_to(config.output_dir / "eval.log", options.verbose):
            return await self._run_prepared(prepared)

    async def _run_prepared(self, prepared: Prepared) -> int:
        config, options = prepared.config, self._options
        if not config.output.save_intermediate:
            outcome = await self._evaluate(prepared, MemorySession())
            return self._finish(prepared, outcome, None)
        with EvaluationStore(config.output_dir / "eval.db") as store:
            run = self._choose_run(store, prepared)
            session = StoredSession(store, run.run_id, options.retry_errors)
            outcome = await self._evaluate(prepared, session)
            if outcome.is_complete and not options.skip_judge:
                store.finish_run(run.run_id)
        return self._finish(prepared, outcome, run)

    async def _build(self, roots: Mapping[str, Path]) -> None:
        for key, root in roots.items():
            if is_built(root):
                continue
            with self._notes.status(f"Building index {key}") as status:
                seconds = await build_index(
                    root, lambda step, key=key: status.update(f"Building index {key}: {step}")
                )
            self._notes.print(f"Built index {key} in {seconds:.1f} s.", highlight=False)

    async def _prepare(
        self, config: EvaluationConfig, samples: list[Sample], roots: dict[str, Path]
    ) -> Prepared:
        headers = await read_headers(roots)
        descriptions = describe_indexes(headers, config.methods, headers)
        judge = describe_judge(config, headers)
        models = {m for h in headers.values() for name in config.methods for m in h.models(name)}
        if not self._options.skip_judge:
            models.add(model_name(judge_model(config, headers)))
        if self._options.max_cost_usd is not None:
            check_prices(sorted(models))
        for warning in list_setting_warnings(roots) + await list_swapped(samples, headers):
            self._warn(warning)
        if any(is_offline(model) for model in models):
            self._notes.print(f"Using the {OFFLINE_LABEL}.", highlight=False)
        return Prepared(
            config=config,
            samples=samples,
            headers=headers,
            units=plan_run(samples, config.methods, descriptions),
            setup=describe_setup(config, samples, descriptions, judge),
            models=sorted(models),
        )

    def _choose_run(self, store: EvaluationStore, prepared: Prepared) -> Run:
        runs = store.runs()
        if not self._options.resume:
            if any(r.status == "unfinished" and r.setup == prepared.setup for r in runs):
                self._warn("an unfinished run of this configuration exists; --resume continues it")
            return store.add_run(prepared.setup)
        wanted = (
            runs if self._options.retry_errors else [r for r in runs if r.status == "unfinished"]
        )
        same = next((r for r in wanted if r.setup == prepared.setup), None)
        if same is None:
            raise ResumeError(_why_not(wanted, prepared.setup, store.path))
        in_flight = store.calls_in_flight(same.run_id)
        done = len(store.responses(same.run_id))
        self._notes.print(
            f"Resuming run {same.run_id}: {done} of {len(prepared.units)} responses are there; "
            f"{in_flight} calls were in flight when it stopped and may be asked again.",
            highlight=False,
        )
        store.reopen_run(same.run_id)
        return same

    async def _evaluate(self, prepared: Prepared, session: Session) -> RunOutcome:
        judge = None if self._options.skip_judge else open_judge(prepared.config, prepared.headers)
        runner = EvaluationRunner(prepared.config, judge)
        loop = asyncio.get_running_loop()
        interrupts = 0

        def interrupt() -> None:
            nonlocal interrupts
            interrupts += 1
            if interrupts > 1:
                raise KeyboardInterrupt
            self._notes.print("Finishing what is in flight; Ctrl-C again to stop at once.")
            runner.stop(_INTERRUPTED)

        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C stops at once
                loop.add_signal_handler(number, interrupt)
        display = BarProgress if self._notes.is_terminal else LineProgress
        with display(self._notes) as progress:
            return await runner.run(
                RunRequest(
                    units=prepared.units,
                    session=session,
                    skip_judge=self._options.skip_judge,
                    max_cost_usd=self._options.max_cost_usd,
                    progress=progress,
                )
            )

    def _finish(self, prepared: Prepared, outcome: RunOutcome, run: Run | None) -> int:
        results = _describe_run(prepared, outcome, run)
        if outcome.results:  # a run that got nowhere leaves the files of an earlier one alone
            summary, detailed = results.save(prepared.config.output_dir)
            show_results(self._console, results)
            self._console.print(f"Summary:  {summary}\nDetailed: {detailed}", soft_wrap=True)
        failures = describe_failures(results)
        if not outcome.is_complete:
            return self._explain_stop(outcome, "--retry-errors" if failures else "--resume", run)
        if failures:
            self._notes.print(
                f"Ask again what failed with: {_command_line('--retry-errors')}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
        if all(result.failure is not None for result in outcome.results):
            return ERROR
        if any("verdicts are unscored" in line for line in failures):
            return INCOMPLETE
        return self._check_thresholds(prepared.config, results)

    def _explain_stop(self, outcome: RunOutcome, flag: str, run: Run | None) -> int:
        interrupted = outcome.stopped == _INTERRUPTED
        again = f"Continue with: {_command_line('--resume' if interrupted else flag)}"
        if run is None:
            again = "Nothing was kept, as output.save_intermediate is off."
        Console(stderr=True).print(
            f"Stopped after {len(outcome.results)} of {outcome.n_planned}: "
            f"{outcome.stopped}. {again}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        if interrupted:
            return INTERRUPTED
        return ERROR if outcome.refused else INCOMPLETE

    def _check_thresholds(self, config: EvaluationConfig, results: EvaluationResults) -> int:
        if self._options.skip_judge:
            return DONE
        missed = [
            f"{method}: {metric} {mean:.3f} is below {lowest:g}"
            for metric, lowest in config.thresholds.items()
            for method, means in results.by_method.items()
            if (mean := means[metric]) is not None and mean < lowest
        ]
        for line in missed:
            self._warn(f"threshold missed: {line}")
        return BELOW_THRESHOLD if missed else DONE

    def _show_estimate(self, prepared: Prepared) -> None:
        n_metrics = 0 if self._options.skip_judge else len(prepared.config.metrics)
        most = estimate(prepared.samples, prepared.config.methods, prepared.headers, n_metrics)
        tokens = "not bounded by the settings"
        if most.prompt_tokens is not None:
            tokens = f"at most about {most.prompt_tokens:,}, by the settings' context budgets"
        self._console.print(
            f"Dry run: nothing is sent.\n"
            f"Searches:         {most.searches:,}\n"
            f"Search calls:     at most {most.completion_calls:,} completions and "
            f"{most.embedding_calls:,} embeddings, retries aside\n"
            f"Judge calls:      {most.judge_calls:,}, retries aside\n"
            f"Prompt tokens:    {tokens}\n"
            f"Models:           {', '.join(prepared.models)}",
            highlight=False,
        )
        for model in prepared.models:
            self._console.print(describe_price(model), highlight=False)

    def _warn(self, text: str) -> None:
        self._notes.print(
            f"Warning: {text}", style="yellow", highlight=False, markup=False, soft_wrap=True
        )


def _read_config(options: CommandOptions) -> EvaluationConfig:
    path = options.config or options.root / "eval_config.yaml"
    config = EvaluationConfig.from_yaml(path, options.root)
    changes: dict[str, Any] = {}
    if options.methods is not None:
        changes["methods"] = [m.strip() for m in options.methods.split(",") if m.strip()]
    if options.concurrency is not None:
        changes["concurrency"] = options.concurrency
    if options.output is not None:
        changes["output"] = {**config.output.model_dump(), "dir": str(options.output.resolve())}
    if not changes:
        return config
    return parse_config({**config.model_dump(), "root": config.root, **changes}, "the flags")


def _select(config: EvaluationConfig, options: CommandOptions) -> list[Sample]:
    keys = list(config.indexes)
    if not keys:
        msg = "eval_config.yaml configures no index; add one under indexes."
        raise ConfigError(msg)
    samples = read_samples(config.dataset_path, keys[0] if len(keys) == 1 else None)
    if options.imdb_key is not None:
        samples = [s for s in samples if s.imdb_key == options.imdb_key]
        if not samples:
            msg = f"--imdb-key {options.imdb_key}: no question is asked of it; use one of {keys}."
            raise ConfigError(msg)
    return samples[: options.limit]


def _why_not(runs: Sequence[Run], setup: Mapping[str, Any], path: Path) -> str:
    if not runs:
        return f"There is no unfinished run in {path} to resume; leave --resume out."
    # An added method alone gives many lines about the indexes, so these come last.
    differences = list_differences(runs[0].setup, setup)
    differences.sort(key=lambda line: line.startswith("indexes."))
    shown = "; ".join(differences[:8])
    more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
    return (
        f"The last run ({runs[0].run_id}) was set up differently, so it can't be resumed: "
        f"{shown}{more}. Undo the change, or leave --resume out to begin a new run."
    )


def _describe_run(prepared: Prepared, outcome: RunOutcome, run: Run | None) -> EvaluationResults:
    config = prepared.config
    results = aggregate_results(outcome.results, config.metrics)
    models = sorted({*results.metadata["models"], *prepared.models})
    return replace(
        results,
        metadata={
            **results.metadata,
            "methods": list(config.methods) if not outcome.results else results.metadata["methods"],
            "models": models,
            "embedded_models": label_embedded(models),
            "setup": prepared.setup,
            "judge": prepared.setup["judge"],
            "metrics": list(config.metrics),
            "run_id": None if run is None else run.run_id,
            "is_complete": outcome.is_complete,
            "n_planned": outcome.n_planned,
            "n_done": len(outcome.results),
            "concurrency": config.concurrency,
        },
    )


def _command_line(flag: str) -> str:
    words = [w for w in sys.argv[1:] if w not in ("--resume", "--retry-errors", "--index")]
    return shlex.join(["graphrag", *(words or ["eval"]), flag])
