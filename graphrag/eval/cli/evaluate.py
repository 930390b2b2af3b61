"""A run of ``graphrag eval``, and one that judges responses again: checked, asked, shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrag.command_lines import again, eval_line_here
from graphrag.config.models.strict_section import as_sentence
from graphrag.eval.cli.building import build_missing
from graphrag.eval.cli.dry_run import DryRun, count_units, read_earlier, show_dry_run
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.run_end import Supervisor, was_interrupted
from graphrag.eval.cli.run_input import RunFlags, RunInput, change_metrics
from graphrag.eval.cli.terminal import DONE, log_to, open_console, working
from graphrag.eval.cli.validate import list_vector_warnings
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.config.sections import Variant, check_pairs, read_budgets, split_name
from graphrag.eval.errors import ConfigError, UsageError
from graphrag.eval.report.run import describe_index_costs
from graphrag.eval.results.runs import unfinished_usages
from graphrag.eval.runner.checks import (
    check_output,
    check_prices,
    check_success,
    list_judge_warnings,
    list_warnings,
)
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.runner.headers import (
    describe_indexes,
    read_headers,
    read_index_costs,
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
from graphrag.eval.runner.plan import (
    ResumeOptions,
    RunDescription,
    RunPlan,
    choose_run,
    describe_judging,
    describe_setup,
    plan_judging,
    plan_run,
)
from graphrag.eval.runner.queue import RunOutcome, RunRequest
from graphrag.eval.store.database import EvaluationStore, find_run, open_store
from graphrag.eval.store.records import Run, RunDetails, Unit, new_run
from graphrag.eval.store.session import MemorySession, StoredSession
from graphrag.query.index_header import IndexHeader, model_name
from graphrag.query.model_labels import announce_embedded
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.runner.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class _Plan(RunPlan):
    """Everything that a run needs, checked.

    ``judge`` is the model that is asked, if one is; ``origin`` the run whose responses are judged
    again, None where searches are made.
    """

    config: EvaluationConfig
    headers: Mapping[str, IndexHeader]
    methods: MethodSet
    units: Sequence[Unit]
    judge: str | None
    origin: Run | None = None


def evaluate(flags: RunFlags, given: RunInput) -> int:
    """Run an evaluation and return its exit code."""
    return run_coroutine(_evaluate(flags, given))


def judge_again(
    place: Place, run_id: str, flags: RunFlags, model: str | None, repeats: int | None
) -> int:
    """Judge the responses of a run again as a new run, and return its exit code."""
    config = _judging_config(place.read_config(), flags, model, repeats)
    supervisor = Supervisor(flags.quiet, flags.full)
    with working(supervisor.notes, "Reading the run"), open_store(config.store_path) as store:
        plan = _plan_judging(store, run_id, config, flags)
    for warning in plan.details.warnings:
        supervisor.warn(warning)
    return run_coroutine(_conduct(flags, plan, supervisor))


async def _evaluate(flags: RunFlags, given: RunInput) -> int:
    config, samples, roots, _ = given
    supervisor = Supervisor(flags.quiet, flags.full)
    telemetry = None
    if flags.otel and not flags.dry_run:
        from graphrag.eval.runner.telemetry import Telemetry

        telemetry = Telemetry()
    check_success(config, samples, flags.skip_judge)
    unbuilt: list[str] = []
    if flags.dry_run:
        unbuilt = [key for key, root in roots.items() if flags.index and not is_built(root)]
    else:
        if flags.index:  # what the settings forbid is told before anything is built
            describe_indexes(read_model_settings(roots), MethodSet(config), config.methods, roots)
        check_output(config.output_folder, len(samples) * len(config.methods) * config.trials)
        if flags.index:
            await build_missing(roots, supervisor.notes, supervisor.warn)
    with working(supervisor.notes, "Reading the indexes"):
        plan = await _plan_run(flags, given, unbuilt, supervisor)
    if flags.dry_run:
        lines = [
            f"Index {key} is not built, and building it is not in these figures. --max-cost does "
            "not bound it."
            for key in unbuilt
        ]
        built = {key: plan.details.index_costs.get(key) for key in roots if key not in unbuilt}
        lines += describe_index_costs(built)
        run = DryRun(
            config,
            plan.units,
            plan.headers,
            plan.methods,
            plan.judge,
            await count_units(plan.headers, unbuilt),
            read_earlier(config.store_path, plan.details.models),
        )
        show_dry_run(open_console(quiet=flags.quiet), run, plan.details.models, lines)
        return DONE
    with log_to(config.output_folder / "eval.log", flags.verbose):
        return await _conduct(flags, plan, supervisor, telemetry)


async def _plan_run(
    flags: RunFlags, given: RunInput, unbuilt: Sequence[str], supervisor: Supervisor
) -> _Plan:
    config, samples, roots, warnings = given
    methods = MethodSet(config)
    built = await read_headers(
        {key: root for key, root in roots.items() if key not in unbuilt},
        vectors=methods.reads_vectors(config.methods),
    )
    headers = {**built, **read_model_settings({key: roots[key] for key in unbuilt})}
    headers = {key: headers[key] for key in roots}
    descriptions = describe_indexes(headers, methods, config.methods, headers)
    judged = describe_judge(config, samples, headers)
    setup = describe_setup(config, samples, descriptions, judged)
    pairs = [(name, header) for header in headers.values() for name in config.methods]
    models = {model for name, header in pairs for model in methods.models(name, header)}
    asks = not flags.skip_judge and asks_judge(config, samples)
    judge = _check_judge(config, headers) if asks else None
    models |= set() if judge is None else {judge}
    if flags.max_cost is not None:
        check_prices(sorted(models))
        if others := [name for name in config.methods if methods.function(name) is not None]:
            warnings += (
                f"--max-cost counts what {' and '.join(others)} took only once they answered, and "
                "only where they tell it or ask a model of graphrag",
            )
    further, roomy = await list_warnings(config, samples, methods, headers, built, judge)
    warnings += tuple(further)
    if methods.reads_vectors(config.methods):
        warnings += tuple(list_vector_warnings(built))
    for warning in warnings:
        supervisor.warn(warning)
    if config.equal_terms is not None and config.budgets:
        supervisor.note(
            "Equal terms give the form of the answer alone: the context budgets are those of "
            "budgets."
        )
    if not asks_judge(config, samples):
        supervisor.note("No judge is asked: only what needs none is measured.")
    announced = announce_embedded(models)
    if announced is not None:
        supervisor.notes.print(announced)
    units = plan_run(samples, config.methods, descriptions, config.trials)
    facts = read_index_facts(headers)
    details = RunDetails(
        origin="command" if flags.round is None else "monitor",
        n_units=len(units),
        config=config.to_dict(),
        models=tuple(sorted(models)),
        warnings=warnings,
        roomy=tuple(roomy),
        skip_judge=flags.skip_judge,
        search_methods=methods.search_methods(),
        watch=None if flags.round is None else flags.round.note.to_dict(),
        command=again(),
        indexes=facts,
        index_costs=read_index_costs(headers, facts),
    )
    return _Plan(setup, samples, details, config, headers, methods, units, judge)


def _plan_judging(
    store: EvaluationStore, run_id: str, config: EvaluationConfig, flags: RunFlags
) -> _Plan:
    origin = _find_origin(store, run_id)
    samples = store.samples(origin.run_id)
    responses = store.responses(origin.run_id, with_texts=False)
    if not samples or not responses:
        missing = "questions" if responses else "responses"
        msg = f"Run {origin.run_id} was kept without its {missing}; run the evaluation again."
        raise UsageError(msg)
    config = _as_searched(origin, config)
    folders = config.project_folders()
    headers = read_model_settings({k: folders[k] for k in folders if k in origin.setup.indexes})
    if not asks_judge(config, samples):
        msg = "There is nothing to judge, as no metric is named; name some with --metrics."
        raise ConfigError(msg)
    judging = describe_judge(config, samples, headers)
    setup = describe_judging(origin, config, samples, judging)
    check_success(config, samples, skip_judge=False)
    judge, answering = _check_judge(config, headers), setup.completion_models()
    if flags.max_cost is not None:
        check_prices([judge])
    units, methods = plan_judging(samples, config.methods, responses.values()), MethodSet(config)
    warnings = list_judge_name_warnings(config, headers) + list_judge_warnings(judge, answering)
    details = RunDetails(
        origin="judge",
        n_units=len(units),
        config=config.to_dict(),
        models=(judge, *answering),
        warnings=tuple(warnings),
        search_methods=methods.search_methods(),
        command=again(),
        index_costs=origin.details.index_costs,
    )
    return _Plan(setup, samples, details, config, headers, methods, units, judge, origin)


def _check_judge(config: EvaluationConfig, headers: Mapping[str, IndexHeader]) -> str:
    model = judge_model(config, headers)
    check_judge_model(model, config.metrics)
    return model_name(model)


async def _conduct(
    flags: RunFlags, plan: _Plan, supervisor: Supervisor, telemetry: "Telemetry | None" = None
) -> int:
    """Ask what is not kept yet, show what came of it, and return the exit code."""
    config, origin = plan.config, plan.origin
    if origin is None and not config.output.save_intermediate:
        outcome = await _ask(flags, plan, MemorySession(), supervisor, telemetry)
        run = new_run(plan.setup, plan.details)
        described = RunDescription(run, config, plan.samples, is_stored=False)
        return await _finish(described, outcome, supervisor)
    with EvaluationStore.of(config) as store:
        chosen = choose_run(store, plan, ResumeOptions(flags.resume, flags.retry_errors, True))
        for line in chosen.warnings:
            supervisor.warn(line)
        for line in chosen.notes:
            supervisor.note(line)
        run = chosen.run
        if origin is not None:
            store.copy_responses(origin.run_id, run.run_id)
        if origin is not None and run.status != "finished":
            supervisor.note(
                f"Judging {counted(len(plan.units), 'response')} of run {origin.run_id} "
                f"with {plan.judge} as run {run.run_id}; no search is paid for."
            )
        is_prepaid = origin is not None
        session = StoredSession(
            store, run.run_id, flags.retry_errors, is_prepaid, config.judge.cache
        )
        if telemetry is not None:
            telemetry.run_id = run.run_id
        outcome = await _ask(flags, plan, session, supervisor, telemetry)
        if outcome.allow_usd is not None:  # by the same limit it would stop at once
            more = {"--max-cost": f"{outcome.allow_usd:g}"}
            run = replace(run, details=replace(run.details, command=again(instead=more)))
            store.keep_details(run.run_id, run.details)
        described = RunDescription(
            run,
            config,
            store.samples(run.run_id),  # as they were vetted when it began
            recorded_at=store.recorded_at(run.run_id),
            forgotten=store.forgotten_usage(run.run_id),
            unfinished=unfinished_usages(store, run, outcome.results),
        )
        code = await _finish(described, outcome, supervisor)
        before = {} if origin is None else store.verdicts(origin.run_id)
    is_comparable = any(m in verdicts for verdicts in before.values() for m in config.metrics)
    if origin is not None and code == DONE and is_comparable:
        line = eval_line_here("compare", run.run_id, origin.run_id)
        supervisor.note(f"Compare with: {line}")
    return code


async def _ask(
    flags: RunFlags,
    plan: _Plan,
    session: MemorySession,
    supervisor: Supervisor,
    telemetry: "Telemetry | None",
) -> RunOutcome:
    config, judge = plan.config, None
    folders = config.project_folders()
    roots = {key: folders[key] for key in plan.headers}
    request = RunRequest(
        units=plan.units,
        session=session,
        skip_judge=flags.skip_judge,
        max_cost_usd=flags.max_cost,
        holds_contexts=False,
        telemetry=telemetry,
    )
    async with open_executor(config, roots, address=flags.address) as executor:
        if plan.judge is not None:
            with working(supervisor.notes, "Opening the judge"):
                judge = open_judge(config, plan.headers)
        try:
            runner = EvaluationRunner(config, judge, executor=executor)
            return await supervisor.run(runner, request)
        finally:
            if telemetry is not None and (lost := telemetry.close()):
                supervisor.warn(lost)


async def _finish(description: RunDescription, outcome: RunOutcome, supervisor: Supervisor) -> int:
    if not was_interrupted(outcome):
        with working(supervisor.notes, "Reading what was searched"):
            description = await description.with_views()
        for line in description.unread:
            supervisor.warn(line)
    return supervisor.finish(description, outcome)


def _judging_config(
    config: EvaluationConfig, flags: RunFlags, model: str | None, repeats: int | None
) -> EvaluationConfig:
    changes = {} if flags.metrics is None else change_metrics(config, flags.metrics)
    if flags.workers is not None:
        changes["workers"] = flags.workers
    named = {"model": model, "repeats": repeats}
    judge = {**config.judge.model_dump(), **{k: v for k, v in named.items() if v is not None}}
    values = {**config.model_dump(), "root": config.root, "judge": judge, **changes}
    return parse_config(values, "the flags")


def _find_origin(store: EvaluationStore, name: str) -> Run:
    runs = store.runs()
    origin = find_run(runs, name, store.path)
    if origin.setup.responses_of is not None:
        origin = find_run(runs, origin.setup.responses_of, store.path)
    if origin.setup.is_of_suites:  # its ground truths are expected outputs, not answers
        raise UsageError(
            f"Run {origin.run_id} is of suites, whose evaluators score it; run them again with: "
            f"{eval_line_here('suite', 'all')}"
        )
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
