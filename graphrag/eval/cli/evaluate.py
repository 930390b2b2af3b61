"""A run of ``graphrag eval``, and one that judges responses again: checked, asked, shown."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphrag.command_lines import again, eval_line_here
from graphrag.config.models.strict_section import as_sentence
from graphrag.eval.cli.building import build_missing
from graphrag.eval.cli.dry_run import DryRun, show_dry_run
from graphrag.eval.cli.kept import digest_run
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.run_end import RunDescription, Supervisor, was_interrupted
from graphrag.eval.cli.run_input import RunFlags, RunInput, change_metrics
from graphrag.eval.cli.terminal import DONE, FAILED, log_to, open_console, working
from graphrag.eval.cli.validate import list_vector_warnings, validate_indexes
from graphrag.eval.config.budgets import check_pairs, read_budgets, split_name
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.config.sections import Variant
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ConfigError, UsageError
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
from graphrag.eval.runner.estimate import read_measured
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.runner.headers import (
    describe_indexes,
    describe_unmeasured,
    read_headers,
    read_index_facts,
    read_model_settings,
    read_searched_views,
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
from graphrag.eval.runner.plan import (
    ResumeOptions,
    RunPlan,
    choose_run,
    describe_judging,
    describe_setup,
    plan_judging,
    plan_run,
)
from graphrag.eval.runner.queue import RunOutcome, RunRequest
from graphrag.eval.scorers.index_view import read_index_views
from graphrag.eval.scorers.judge import Judge
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import find_run, open_store
from graphrag.eval.store.records import Run, RunDetails, RunSetup, Unit, new_run
from graphrag.eval.store.session import MemorySession, StoredSession
from graphrag.eval.store.whole_files import PAGE_FILE, run_folder
from graphrag.query.index_header import IndexHeader, model_name
from graphrag.query.model_labels import announce_embedded
from graphrag.text.phrases import counted


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything that a run needs, checked; ``judge`` is the model that is asked, if one is."""

    headers: dict[str, IndexHeader]
    methods: MethodSet
    units: list[Unit]
    setup: RunSetup
    models: list[str]
    judge: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is asked of whom; ``open_judge`` is None where no judge is."""

    config: EvaluationConfig
    units: Sequence[Unit]
    roots: Mapping[str, Path]
    open_judge: Callable[[], Judge] | None

    async def ask(
        self, supervisor: Supervisor, flags: RunFlags, session: MemorySession
    ) -> RunOutcome:
        """Search and judge what the session lacks."""
        request = RunRequest(
            units=self.units,
            session=session,
            skip_judge=flags.skip_judge,
            max_cost_usd=flags.max_cost,
            holds_contexts=False,
        )
        judge = None
        async with open_executor(self.config, self.roots, address=flags.address) as executor:
            if self.open_judge is not None:
                with working(supervisor.notes, "Opening the judge"):
                    judge = self.open_judge()
            runner = EvaluationRunner(self.config, judge, executor=executor)
            return await supervisor.run(runner, request)


def evaluate(place: Place, flags: RunFlags, given: RunInput) -> int:
    """Run an evaluation and return its exit code."""
    return run_coroutine(_Evaluation(place, flags, given).run())


class _Evaluation:
    def __init__(self, place: Place, flags: RunFlags, given: RunInput) -> None:
        self._place = place
        self._flags = flags
        self._given = given
        self._config = given.config
        self._notes = open_console(stderr=True, quiet=flags.quiet)
        self._supervisor = Supervisor(flags.quiet, flags.full)
        self._asks_judge = not flags.skip_judge and asks_judge(given.config)
        self._validated: dict[str, tuple[str, ...]] = {}

    async def run(self) -> int:
        flags, config = self._flags, self._config
        _, samples, roots, _ = self._given
        check_success(config, samples, flags.skip_judge)
        unbuilt: list[str] = []
        if flags.dry_run:
            unbuilt = [key for key, root in roots.items() if flags.index and not is_built(root)]
        else:
            check_output(config.output_folder, len(samples) * len(config.methods) * config.trials)
            if flags.index:
                await build_missing(roots, self._notes, self._supervisor.warn)
        if flags.validate:
            reports = validate_indexes(roots, self._notes)
            if not all(report.overall_passed for report in reports.values()):
                self._supervisor.warn("an index is not sound; mend it, or leave --validate out")
                return FAILED
            self._validated = {key: tuple(list_faults(each)) for key, each in reports.items()}
        with working(self._notes, "Reading the indexes"):
            plan = await self._plan(unbuilt)
        if flags.dry_run:
            lines = [await describe_unbuilt(key, roots[key]) for key in unbuilt]
            self._show_estimate(plan, lines)
            return DONE
        with log_to(config.output_folder / "eval.log", flags.verbose):
            return await self._run(plan)

    async def _plan(self, unbuilt: Sequence[str]) -> _Plan:
        config, flags = self._config, self._flags
        _, samples, roots, _ = self._given
        methods = MethodSet(config)
        built = await read_headers(
            {key: root for key, root in roots.items() if key not in unbuilt},
            vectors=methods.reads_vectors(config.methods),
        )
        settings = read_model_settings({key: roots[key] for key in unbuilt})
        headers = {key: {**built, **settings}[key] for key in roots}
        descriptions = describe_indexes(headers, methods, config.methods, headers)
        setup = describe_setup(config, samples, descriptions, describe_judge(config, headers))
        pairs = [(name, header) for header in headers.values() for name in config.methods]
        models = {model for name, header in pairs for model in methods.models(name, header)}
        judge: str | None = None
        if self._asks_judge:
            model = judge_model(config, headers)
            check_judge_model(model, config.metrics)
            judge = model_name(model)
            models.add(judge)
        if flags.max_cost is not None:
            check_prices(sorted(models))
        warnings = await self._list_warnings(methods, headers, built, judge)
        for warning in warnings:
            self._supervisor.warn(warning)
        if config.equal_terms is not None and config.budgets:
            self._supervisor.note(
                "Equal terms give the form of the answer alone: the context budgets are those of "
                "budgets."
            )
        if not asks_judge(config):
            self._supervisor.note("No judge is asked: only what needs none is measured.")
        announced = announce_embedded(models)
        if announced is not None:
            self._notes.print(announced)
        units = plan_run(samples, config.methods, descriptions, config.trials)
        return _Plan(headers, methods, units, setup, sorted(models), judge, tuple(warnings))

    async def _list_warnings(
        self,
        methods: MethodSet,
        headers: dict[str, IndexHeader],
        built: dict[str, IndexHeader],
        judge: str | None,
    ) -> list[str]:
        config, (_, samples, roots, warnings) = self._config, self._given
        found = [*warnings, *list_setting_warnings(roots)]
        found += await list_data_warnings([s for s in samples if s.imdb_key in built], built)
        found += await list_budget_warnings(config, methods, built)
        if methods.reads_vectors(config.methods):
            found += await asyncio.to_thread(list_vector_warnings, built)
        if judge is not None:
            answering = {
                methods.answering_model(name, header)
                for header in headers.values()
                for name in config.methods
            }
            found += list_judge_name_warnings(config, headers)
            found += list_judge_warnings(judge, {each for each in answering if each is not None})
            found += list_judge_limit_warnings(config, judge, methods, headers)
        found += _sample_warnings(config, samples)
        if config.equal_terms is not None and not config.budgets and headers:
            found += [
                f"equal terms give {name} the form of the answer alone: it has no context budget"
                for name in methods.without_budget(next(iter(headers.values())))
            ]
        return [*found, *(list_once(config, methods) if config.budgets else ())]

    async def _run(self, plan: _Plan) -> int:
        config, flags, supervisor = self._config, self._flags, self._supervisor
        judge = partial(open_judge, config, plan.headers) if self._asks_judge else None
        work = _Work(config, plan.units, self._given.roots, judge)
        details = self._details(plan)
        if not config.output.save_intermediate:
            outcome = await work.ask(supervisor, flags, MemorySession())
            run = RunDescription(new_run(plan.setup, details), config, is_stored=False)
            return await self._finish(plan, outcome, run)
        with EvaluationStore.of(config) as store:
            run = _choose(
                store, RunPlan(plan.setup, self._given.samples, details), flags, supervisor
            )
            session = StoredSession(store, run.run_id, flags.retry_errors)
            outcome = await work.ask(supervisor, flags, session)
            return await self._finish(plan, outcome, _describe(store, run, config))

    def _details(self, plan: _Plan) -> RunDetails:
        watch = self._flags.round
        return RunDetails(
            origin="command" if watch is None else "monitor",
            n_units=len(plan.units),
            config=self._config.to_dict(),
            models=tuple(plan.models),
            warnings=plan.warnings,
            skip_judge=self._flags.skip_judge,
            search_methods=plan.methods.search_methods(),
            watch=None if watch is None else watch.note.to_dict(),
            command=again(),
            indexes=read_index_facts(plan.headers),
            validated=self._validated,
        )

    async def _finish(self, plan: _Plan, outcome: RunOutcome, description: RunDescription) -> int:
        if not was_interrupted(outcome):
            with working(self._notes, "Reading what was searched"):
                views = await read_index_views(plan.headers)
            description = replace(description, views=views)
        description = replace(description, samples=self._given.samples, file=self._place.file)
        return self._supervisor.finish(description, outcome)

    def _show_estimate(self, plan: _Plan, unbuilt: Sequence[str]) -> None:
        config, measured = self._config, None
        if config.store_path.is_file():
            with (
                working(self._notes, "Reading earlier runs"),
                open_store(config.store_path) as store,
            ):
                measured = read_measured(store, plan.setup)
        run = DryRun(
            config,
            plan.units,
            plan.headers,
            plan.methods,
            0 if self._flags.skip_judge else len(config.metrics),
            plan.judge,
            measured or {},
        )
        show_dry_run(open_console(quiet=self._flags.quiet), run, plan.models, unbuilt)


def _sample_warnings(config: EvaluationConfig, samples: Sequence[Sample]) -> list[str]:
    n, warnings = len(samples), list[str]()
    without = sum(not sample.evidence for sample in samples)
    if "oracle" in config.methods and without:
        warnings.append(
            f"oracle is not asked {without} of the {n} questions, as these quote no evidence"
        )
    unanswered = sum(sample.names_sources_only for sample in samples)
    if unanswered:
        warnings.append(
            f"{unanswered} of {counted(n, 'question')} have no answer, so that their responses are "
            "not judged on correctness"
        )
    return warnings


def judge_again(
    place: Place, run_id: str, flags: RunFlags, model: str | None, repeats: int | None
) -> int:
    """Judge the responses of a run again as a new run, and return its exit code."""
    config = _judging_config(place.read_config(), flags, model, repeats)
    return run_coroutine(_judge(place, run_id, flags, config))


async def _judge(place: Place, run_id: str, flags: RunFlags, config: EvaluationConfig) -> int:
    supervisor = Supervisor(flags.quiet, flags.full)
    with EvaluationStore.of(config) as store:
        origin = _find_origin(store, run_id)
        with working(supervisor.notes, "Reading the run"):
            samples = store.samples(origin.run_id)
            config = _as_searched(origin, config)
            plan = _plan_judging(store, config, origin, samples, flags)
        for warning in plan.warnings:
            supervisor.warn(warning)
        details = RunDetails(
            origin="judge",
            n_units=len(plan.units),
            config=config.to_dict(),
            models=tuple(plan.models),
            warnings=plan.warnings,
            search_methods=plan.methods.search_methods(),
            command=again(),
        )
        run = _choose(store, RunPlan(plan.setup, samples, details), flags, supervisor)
        store.copy_responses(origin.run_id, run.run_id)
        if run.status != "finished":
            supervisor.note(
                f"Judging {counted(len(plan.units), 'response')} of run {origin.run_id} "
                f"with {plan.judge} as run {run.run_id}; no search is paid for."
            )
        used = {key: root for key, root in config.project_folders().items() if key in plan.headers}
        work = _Work(config, plan.units, used, partial(open_judge, config, plan.headers))
        session = StoredSession(store, run.run_id, flags.retry_errors, prepaid=True)
        outcome = await work.ask(supervisor, flags, session)
        description = _describe(store, run, config)
        before = store.verdicts(origin.run_id).values()
        is_comparable = any(m in verdicts for verdicts in before for m in config.metrics)
        with working(supervisor.notes, "Reading what was searched"):
            views = await read_searched_views(config.project_folders(), plan.setup)
        for line in describe_unmeasured(key for key in plan.setup.indexes if key not in views):
            supervisor.warn(line)
        description = replace(description, samples=samples, views=views, file=place.file)
        code = supervisor.finish(description, outcome)
    if code == DONE and is_comparable:
        supervisor.note(f"Compare with: {eval_line_here('compare', run.run_id, origin.run_id)}")
    return code


def _choose(store: EvaluationStore, plan: RunPlan, flags: RunFlags, supervisor: Supervisor) -> Run:
    """Return the run that is begun or resumed, and say what is to be said of the choice."""
    folder = store.path.parent

    def lacks_files(run: Run) -> bool:  # the page comes last
        return not (run_folder(folder, run.run_id) / PAGE_FILE).exists()

    options = ResumeOptions(flags.resume, flags.retry_errors, lacks_files)
    chosen = choose_run(store, plan, options)
    for line in chosen.warnings:
        supervisor.warn(line)
    for line in chosen.notes:
        supervisor.note(line)
    return chosen.run


def _describe(store: EvaluationStore, run: Run, config: EvaluationConfig) -> RunDescription:
    """Describe a run as it is kept now."""
    return RunDescription(
        run,
        config,
        recorded_at=store.recorded_at(run.run_id),
        forgotten=store.forgotten_usage(run.run_id),
        made_of=digest_run(store, run.run_id, config.output_folder),
    )


def _judging_config(
    config: EvaluationConfig, flags: RunFlags, model: str | None, repeats: int | None
) -> EvaluationConfig:
    changes = {} if flags.metrics is None else change_metrics(config, flags.metrics)
    if flags.workers is not None:
        changes["workers"] = flags.workers
    named = {"model": model, "repeats": repeats}
    judge = {**config.judge.model_dump(), **{k: v for k, v in named.items() if v is not None}}
    values = {**config.model_dump(), "root": config.root, "judge": judge, **changes}
    judging = parse_config(values, "the flags")
    if not asks_judge(judging):
        msg = "There is nothing to judge, as no metric is named; name some with --metrics."
        raise ConfigError(msg)
    return judging


def _find_origin(store: EvaluationStore, name: str) -> Run:
    """Return the run that a name means, or the one whose responses it judged."""
    runs = store.runs()
    origin = find_run(runs, name, store.path)
    if origin.setup.responses_of is not None:
        origin = find_run(runs, origin.setup.responses_of, store.path)
    if origin.setup.is_of_suites:  # its ground truths are expected outputs, not answers
        msg = (
            f"Run {origin.run_id} is of suites, whose evaluators score it; run them again with: "
            f"{eval_line_here('suite', 'all')}"
        )
        raise UsageError(msg)
    return origin


def _as_searched(origin: Run, config: EvaluationConfig) -> EvaluationConfig:
    """Return the configuration with the methods and context budgets that a run was asked at."""
    told: Mapping[str, Any] = origin.details.config
    budgets = read_budgets(told.get("budgets"))
    named = {
        name: Variant(**settings)
        for name, settings in told.get("variants", {}).items()
        if split_name(name, budgets)[1] is not None
    }
    terms = config.equal_terms
    if budgets and terms is not None:  # the budgets stood in place of theirs
        terms = terms.model_copy(update={"max_context_tokens": None})
    try:
        check_pairs(budgets, config.judge)
    except ValueError as error:
        msg = f"Run {origin.run_id} is at several context budgets: {error}"
        raise ConfigError(as_sentence(msg)) from error
    variants, methods = {**config.variants, **named}, list(origin.setup.methods)
    changes = {"methods": methods, "budgets": budgets, "variants": variants, "equal_terms": terms}
    return config.model_copy(update=changes)


def _plan_judging(
    store: EvaluationStore,
    config: EvaluationConfig,
    origin: Run,
    samples: list[Sample],
    flags: RunFlags,
) -> _Plan:
    responses = store.responses(origin.run_id, with_texts=False)
    if not samples or not responses:
        missing = "questions" if responses else "responses"
        msg = f"Run {origin.run_id} was kept without its {missing}; run the evaluation again."
        raise UsageError(msg)
    used = set(origin.setup.indexes)
    roots = {key: root for key, root in config.project_folders().items() if key in used}
    headers = read_model_settings(roots)
    setup = describe_judging(origin, config, describe_judge(config, headers))
    units = plan_judging(samples, origin.setup.methods, responses.values())
    check_success(config, samples, skip_judge=False)
    model = judge_model(config, headers)
    check_judge_model(model, config.metrics)
    judge, answering = model_name(model), setup.list_models("completion")
    if flags.max_cost is not None:
        check_prices([judge])
    warnings = list_judge_name_warnings(config, headers) + list_judge_warnings(judge, answering)
    models = [judge, *answering]
    return _Plan(headers, MethodSet(config), units, setup, models, judge, tuple(warnings))
