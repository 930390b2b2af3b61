"""What ``graphrag eval`` does: from flags to an exit code."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from graphrag.command_lines import again
from graphrag.eval.cli.building import build_missing
from graphrag.eval.cli.dry_run import DryRun, show_dry_run
from graphrag.eval.cli.first_look import ask_of, named_changes
from graphrag.eval.cli.kept import digest_run
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.log import log_to
from graphrag.eval.cli.optimise import list_vector_warnings
from graphrag.eval.cli.run_report import RunDescription
from graphrag.eval.cli.supervision import Supervisor, was_interrupted
from graphrag.eval.cli.terminal import DONE, FAILED, explained, open_console, working
from graphrag.eval.cli.validate import validate_indexes
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.samples import Sample, check_keys
from graphrag.eval.errors import ConfigError
from graphrag.eval.monitoring.watch import NextRound
from graphrag.eval.report.validation import list_faults
from graphrag.eval.runner.checks import (
    check_output,
    check_prices,
    check_success,
    describe_unbuilt,
    list_budget_warnings,
    list_judge_limit_warnings,
    list_judge_warnings,
    list_once,
    list_setting_warnings,
)
from graphrag.eval.runner.data_warnings import list_data_warnings
from graphrag.eval.runner.estimate import Measured, read_measured
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.runner.headers import (
    describe_indexes,
    read_headers,
    read_index_facts,
    read_model_settings,
)
from graphrag.eval.runner.index_building import is_built
from graphrag.eval.runner.judging import (
    asks_judge,
    check_judge_model,
    describe_judge,
    judge_model,
    list_judge_name_warnings,
    open_judge,
)
from graphrag.eval.runner.methods import MethodSet
from graphrag.eval.runner.on_ray import open_executor
from graphrag.eval.runner.plan import ResumeOptions, RunPlan, choose_run, describe_setup, plan_run
from graphrag.eval.runner.queue import RunOutcome, RunRequest
from graphrag.eval.scorers.index_view import IndexView, read_index_views
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import open_store
from graphrag.eval.store.records import RunDetails, RunSetup, Unit, new_run
from graphrag.eval.store.session import MemorySession, StoredSession
from graphrag.query.index_header import IndexHeader, model_name
from graphrag.query.model_labels import announce_embedded
from graphrag.text.phrases import counted


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The flags of ``graphrag eval``.

    ``round`` makes it a round of a watch: of these questions, without thresholds.
    """

    root: Path = Path()
    config: Path | None = None
    methods: str | None = None
    metrics: str | None = None
    imdb_key: str | None = None
    columns: str | None = None
    resume: bool = False
    retry_errors: bool = False
    limit: int | None = None
    concurrency: int | None = None
    workers: int | None = None
    address: str | None = None
    repeat: int | None = None
    equal_terms: bool = False
    budgets: str | None = None
    index: bool = False
    validate: bool = False
    skip_judge: bool = False
    max_cost_usd: float | None = None
    dry_run: bool = False
    output: Path | None = None
    verbose: bool = False
    quiet: bool = False
    full: bool = False
    round: NextRound | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a run needs, checked."""

    config: EvaluationConfig
    samples: list[Sample]
    roots: dict[str, Path]
    headers: dict[str, IndexHeader]
    methods: MethodSet
    units: list[Unit]
    setup: RunSetup
    models: list[str]
    warnings: tuple[str, ...]


def run_command(options: CommandOptions) -> int:
    """Run an evaluation and return its exit code; errors are one sentence on stderr."""
    console = open_console(quiet=options.quiet)
    notes = open_console(stderr=True, quiet=options.quiet)
    return explained(
        lambda: run_coroutine(_Command(options, console, notes).run()), options.verbose
    )


class _Command:
    def __init__(self, options: CommandOptions, console: Console, notes: Console) -> None:
        self._options = options
        self._console = console
        self._notes = notes
        self._supervisor = Supervisor(console, notes, options.full)
        self._validated: dict[str, tuple[str, ...]] = {}

    async def run(self) -> int:
        options = self._options
        if options.quiet and options.verbose:
            msg = "--quiet and --verbose exclude each other; leave one out."
            raise ConfigError(msg)
        config = _read_config(options)
        samples, said = _select(config, options)
        used = {sample.imdb_key for sample in samples}
        roots = {key: root for key, root in config.project_folders().items() if key in used}
        check_keys(samples, config.project_folders())
        check_success(config, samples, options.skip_judge)
        if not options.dry_run:
            check_output(config.output_folder, len(samples) * len(config.methods) * config.trials)
        if options.index and not options.dry_run:
            await build_missing(roots, self._notes, self._supervisor.warn)
        if options.validate:
            reports = validate_indexes(roots, self._notes)
            if not all(report.overall_passed for report in reports.values()):
                self._supervisor.warn("an index is not sound; mend it, or leave --validate out")
                return FAILED
            self._validated = {key: tuple(list_faults(each)) for key, each in reports.items()}
        # Without --dry-run all of them are built by now.
        unbuilt = [key for key, root in roots.items() if options.index and not is_built(root)]
        with working(self._notes, "Reading the indexes"):
            prepared = await self._prepare(config, samples, roots, said, unbuilt)
        if options.dry_run:
            lines = [await describe_unbuilt(key, roots[key]) for key in unbuilt]
            self._show_estimate(prepared, lines)
            return DONE
        with log_to(config.output_folder / "eval.log", options.verbose):
            return await self._run_prepared(prepared)

    async def _run_prepared(self, prepared: Prepared) -> int:
        config, options = prepared.config, self._options
        details = self._details(prepared)
        if not config.output.save_intermediate:
            outcome = await self._evaluate(prepared, MemorySession())
            run = new_run(prepared.setup, details)
            return await self._finish(prepared, outcome, RunDescription(run, config))
        with EvaluationStore.of(config) as store:
            chosen = choose_run(
                store,
                RunPlan(prepared.setup, prepared.samples, details),
                ResumeOptions(
                    options.resume, options.retry_errors, self._supervisor.lacks_files(config)
                ),
            )
            run = self._supervisor.take(chosen)
            session = StoredSession(store, run.run_id, options.retry_errors)
            outcome = await self._evaluate(prepared, session)
            recorded_at = store.recorded_at(run.run_id)
            forgotten = store.forgotten_usage(run.run_id)
            made_of = digest_run(store, run.run_id, config.output_folder)
            description = RunDescription(
                run, config, recorded_at=recorded_at, forgotten=forgotten, made_of=made_of
            )
            return await self._finish(prepared, outcome, description)

    def _details(self, prepared: Prepared) -> RunDetails:
        return RunDetails(
            origin="command" if self._options.round is None else "monitor",
            n_units=len(prepared.units),
            config=prepared.config.to_dict(),
            models=tuple(prepared.models),
            warnings=prepared.warnings,
            skip_judge=self._options.skip_judge,
            search_methods=prepared.methods.search_methods(),
            watch=None if self._options.round is None else self._options.round.note.to_dict(),
            command=again(),
            indexes=read_index_facts(prepared.headers),
            validated=self._validated,
        )

    async def _prepare(
        self,
        config: EvaluationConfig,
        samples: list[Sample],
        roots: dict[str, Path],
        said: Sequence[str],
        unbuilt: Sequence[str],
    ) -> Prepared:
        methods = MethodSet(config)
        built = await read_headers(
            {key: root for key, root in roots.items() if key not in unbuilt},
            vectors=methods.reads_vectors(config.methods),
        )
        settings = read_model_settings({key: roots[key] for key in unbuilt})
        headers = {key: {**built, **settings}[key] for key in roots}
        descriptions = describe_indexes(headers, methods, config.methods, headers)
        judge = describe_judge(config, headers)
        asked = [(name, header) for header in headers.values() for name in config.methods]
        models = {model for name, header in asked for model in methods.models(name, header)}
        judging: str | None = None
        if self._asks_judge(config):
            model = judge_model(config, headers)
            check_judge_model(model, config.metrics)
            judging = model_name(model)
            models.add(judging)
        if self._options.max_cost_usd is not None:
            check_prices(sorted(models))
        warnings = [*said, *list_setting_warnings(roots)]
        looked_up = [sample for sample in samples if sample.imdb_key in built]
        warnings += await list_data_warnings(looked_up, built)
        warnings += await list_budget_warnings(config, methods, built)
        if methods.reads_vectors(config.methods):
            warnings += await asyncio.to_thread(list_vector_warnings, built)
        if judging is not None:
            warnings += list_judge_name_warnings(config, headers)
            warnings += list_judge_warnings(
                judging,
                {
                    model
                    for name, header in asked
                    if (model := methods.answering_model(name, header)) is not None
                },
            )
            warnings += list_judge_limit_warnings(config, judging, methods, headers)
        without = sum(not sample.evidence for sample in samples)
        if "oracle" in config.methods and without:
            warnings.append(
                f"oracle is not asked {without} of the {len(samples)} questions, as these quote "
                "no evidence"
            )
        unanswered = sum(sample.names_sources_only for sample in samples)
        if unanswered:
            warnings.append(
                f"{unanswered} of {counted(len(samples), 'question')} have no answer, so that "
                "their responses are not judged on correctness"
            )
        if config.equal_terms is not None and config.budgets:
            self._supervisor.note(
                "Equal terms give the form of the answer alone: the context budgets are those of "
                "budgets."
            )
        elif config.equal_terms is not None and headers:
            warnings += [
                f"equal terms give {name} the form of the answer alone: it has no context budget"
                for name in methods.without_budget(next(iter(headers.values())))
            ]
        if config.budgets:
            warnings += list_once(config, methods)
        for warning in warnings:
            self._supervisor.warn(warning)
        if not asks_judge(config):
            self._supervisor.note("No judge is asked: only what needs none is measured.")
        announced = announce_embedded(models)
        if announced is not None:
            self._notes.print(announced)
        return Prepared(
            config=config,
            samples=samples,
            roots=roots,
            headers=headers,
            methods=methods,
            units=plan_run(samples, config.methods, descriptions, config.trials),
            setup=describe_setup(config, samples, descriptions, judge),
            models=sorted(models),
            warnings=tuple(warnings),
        )

    def _asks_judge(self, config: EvaluationConfig) -> bool:
        return not self._options.skip_judge and asks_judge(config)

    async def _evaluate(self, prepared: Prepared, session: MemorySession) -> RunOutcome:
        config = prepared.config
        judge = None
        if self._asks_judge(config):
            with working(self._notes, "Opening the judge"):
                judge = open_judge(config, prepared.headers)
        request = RunRequest(
            units=prepared.units,
            session=session,
            skip_judge=self._options.skip_judge,
            holds_contexts=False,
            max_cost_usd=self._options.max_cost_usd,
        )
        roots, address = prepared.roots, self._options.address
        async with open_executor(config, roots, address=address) as executor:
            runner = EvaluationRunner(config, judge, executor=executor)
            return await self._supervisor.run(runner, request)

    async def _finish(
        self, prepared: Prepared, outcome: RunOutcome, description: RunDescription
    ) -> int:
        views: dict[str, IndexView] = {}
        if not was_interrupted(outcome):
            with working(self._notes, "Reading what was searched"):
                views = await read_index_views(prepared.headers)
        return self._supervisor.finish(
            replace(
                description,
                samples=prepared.samples,
                views=views,
                is_stored=prepared.config.output.save_intermediate,
                file=_place(self._options).file,
            ),
            outcome,
        )

    def _show_estimate(self, prepared: Prepared, unbuilt: Sequence[str]) -> None:
        config = prepared.config
        place, measured = config.store_path, dict[str, Measured]()
        if place.is_file():
            with (
                working(self._notes, "Reading earlier runs"),
                open_store(place) as store,
            ):
                measured = read_measured(store, prepared.setup)
        judge = None
        if self._asks_judge(config):
            judge = model_name(judge_model(config, prepared.headers))
        show_dry_run(
            self._console,
            DryRun(
                config=config,
                units=prepared.units,
                headers=prepared.headers,
                methods=prepared.methods,
                models=prepared.models,
                n_metrics=0 if self._options.skip_judge else len(config.metrics),
                judge=judge,
                measured=measured,
                unbuilt=unbuilt,
            ),
        )


def _read_config(options: CommandOptions) -> EvaluationConfig:
    config = _place(options).read_config()
    changes = named_changes(
        config, options.methods, options.metrics, options.columns, options.budgets
    )
    if options.workers is not None:
        changes["workers"] = options.workers
    if options.concurrency is not None:
        changes["concurrency"] = options.concurrency
    if options.repeat is not None:
        changes["trials"] = options.repeat
    if options.round is not None:
        changes["thresholds"] = {}  # of a sample they would be missed by chance
    if options.equal_terms and config.equal_terms is None:
        changes["equal_terms"] = True
    if not changes:
        return config
    return parse_config({**config.model_dump(), "root": config.root, **changes}, "the flags")


def _place(options: CommandOptions) -> Place:
    return Place(options.root, options.config, options.output)


def _select(
    config: EvaluationConfig, options: CommandOptions
) -> tuple[list[Sample], tuple[str, ...]]:
    """Return the samples to be asked, and what is to be said of how they were read."""
    samples, warnings = ask_of(config, options.imdb_key)
    if options.round is not None:
        wanted = set(options.round.question_ids)
        samples = [sample for sample in samples if sample.id in wanted]
    return samples[: options.limit], warnings
