"""What ``graphrag eval judge`` does: the responses of an earlier run are judged again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag.command_lines import again, eval_line_here
from graphrag.config.models.strict_section import as_sentence
from graphrag.eval.cli.kept import digest_run
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.options import choose_metrics
from graphrag.eval.cli.run_report import RunDescription
from graphrag.eval.cli.supervision import Supervisor
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.config.budgets import check_pairs, read_budgets, split_name
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.config.sections import Variant
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ConfigError, UsageError
from graphrag.eval.runner.checks import check_prices, check_success, list_judge_warnings
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.runner.headers import (
    describe_unmeasured,
    read_model_settings,
    read_searched_views,
)
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
    plan_judging,
)
from graphrag.eval.runner.queue import RunRequest
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import check_there, find_run
from graphrag.eval.store.records import Run, RunDetails, RunSetup, Unit
from graphrag.eval.store.session import StoredSession
from graphrag.query.index_header import IndexHeader, model_name
from graphrag.text.phrases import counted


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """The flags of ``graphrag eval judge``; ``metrics`` are comma-separated."""

    run: str
    model: str | None = None
    metrics: str | None = None
    repeats: int | None = None
    resume: bool = False
    retry_errors: bool = False
    max_cost_usd: float | None = None
    workers: int | None = None
    address: str | None = None
    quiet: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class _Judging:
    """A run whose responses are to be judged again, and by whom."""

    origin: Run
    config: EvaluationConfig
    headers: dict[str, IndexHeader]
    samples: list[Sample]
    units: list[Unit]
    setup: RunSetup


def run_judge(place: Place, options: JudgeOptions) -> int:
    """Judge the responses of a run again as a new run, and return its exit code."""
    return explained(lambda: run_coroutine(_judge(place, options)))


async def _judge(place: Place, options: JudgeOptions) -> int:
    config = _read_config(place, options)
    notes = open_console(stderr=True, quiet=options.quiet)
    supervisor = Supervisor(open_console(quiet=options.quiet), notes, options.full)
    name = place.take_run(options.run, quiet=options.quiet)
    check_there(config.store_path)
    with EvaluationStore.of(config) as store:
        origin = _find_origin(store, name)
        with working(notes, "Reading the run"):
            judging = _prepare(store, config, origin)
        run = _begin(store, judging, options, supervisor)
        request = RunRequest(
            units=judging.units,
            session=StoredSession(store, run.run_id, options.retry_errors, prepaid=True),
            max_cost_usd=options.max_cost_usd,
            holds_contexts=False,
        )
        used = {
            key: root for key, root in config.project_folders().items() if key in judging.headers
        }
        async with open_executor(judging.config, used, address=options.address) as executor:
            with working(notes, "Opening the judge"):
                own_judge = open_judge(config, judging.headers)
            runner = EvaluationRunner(judging.config, own_judge, executor=executor)
            outcome = await supervisor.run(runner, request)
        recorded_at = store.recorded_at(run.run_id)
        forgotten = store.forgotten_usage(run.run_id)
        before = store.verdicts(judging.origin.run_id).values()
        is_comparable = any(m in verdicts for verdicts in before for m in judging.config.metrics)
        with working(notes, "Reading what was searched"):
            views = await read_searched_views(judging.config.project_folders(), judging.setup)
        for line in describe_unmeasured(key for key in judging.setup.indexes if key not in views):
            supervisor.warn(line)
        code = supervisor.finish(
            RunDescription(
                run=run,
                config=judging.config,
                samples=judging.samples,
                views=views,
                recorded_at=recorded_at,
                file=place.file,
                forgotten=forgotten,
                made_of=digest_run(store, run.run_id, config.output_folder),
            ),
            outcome,
        )
    if code == DONE and is_comparable:
        line = eval_line_here("compare", run.run_id, judging.origin.run_id)
        supervisor.note(f"Compare with: {line}")
    return code


def _read_config(place: Place, options: JudgeOptions) -> EvaluationConfig:
    config = place.read_config()
    judge = config.judge.model_dump()
    if options.model is not None:
        judge["model"] = options.model
    if options.repeats is not None:
        judge["repeats"] = options.repeats
    changes: dict[str, object] = {"judge": judge, "root": config.root}
    if options.workers is not None:
        changes["workers"] = options.workers
    if options.metrics is not None:
        changes = {**changes, **choose_metrics(config, options.metrics)}
    judging = parse_config({**config.model_dump(), **changes}, "the flags")
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


def _prepare(store: EvaluationStore, config: EvaluationConfig, origin: Run) -> _Judging:
    samples = store.samples(origin.run_id)
    responses = store.responses(origin.run_id, with_texts=False)
    if not samples or not responses:
        missing = "questions" if responses else "responses"
        msg = f"Run {origin.run_id} was kept without its {missing}; run the evaluation again."
        raise UsageError(msg)
    methods = origin.setup.methods
    config = config.model_copy(update={"methods": list(methods), **_budgets_of(origin, config)})
    try:
        check_pairs(config.budgets, config.judge)
    except ValueError as error:
        msg = f"Run {origin.run_id} is at several context budgets: {error}"
        raise ConfigError(as_sentence(msg)) from error
    used = set(origin.setup.indexes)
    roots = {key: root for key, root in config.project_folders().items() if key in used}
    headers = read_model_settings(roots)
    setup = describe_judging(origin, config, describe_judge(config, headers))
    units = plan_judging(samples, methods, responses.values())
    return _Judging(origin, config, headers, samples, units, setup)


def _budgets_of(origin: Run, config: EvaluationConfig) -> dict[str, object]:
    """Return the context budgets that a run was asked at, which a flag may have given."""
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
    variants = {**config.variants, **named}
    return {"budgets": budgets, "variants": variants, "equal_terms": terms}


def _begin(
    store: EvaluationStore, judging: _Judging, options: JudgeOptions, supervisor: Supervisor
) -> Run:
    """Check what would go wrong later, and return the run that the verdicts are kept in."""
    check_success(judging.config, judging.samples, skip_judge=False)
    model = judge_model(judging.config, judging.headers)
    check_judge_model(model, judging.config.metrics)
    judge = model_name(model)
    if options.max_cost_usd is not None:
        check_prices([judge])
    warnings = list_judge_name_warnings(judging.config, judging.headers)
    warnings += list_judge_warnings(judge, judging.setup.list_models("completion"))
    for warning in warnings:
        supervisor.warn(warning)
    details = RunDetails(
        origin="judge",
        n_units=len(judging.units),
        config=judging.config.to_dict(),
        models=(judge, *judging.setup.list_models("completion")),
        warnings=tuple(warnings),
        search_methods=MethodSet(judging.config).search_methods(),
        command=again(),
    )
    chosen = choose_run(
        store,
        RunPlan(judging.setup, judging.samples, details),
        ResumeOptions(options.resume, options.retry_errors, supervisor.lacks_files(judging.config)),
    )
    run = supervisor.take(chosen)
    store.copy_responses(judging.origin.run_id, run.run_id)
    if run.status == "finished":
        return run
    supervisor.note(
        f"Judging {counted(len(judging.units), 'response')} of run {judging.origin.run_id} "
        f"with {judge} as run {run.run_id}; no search is paid for."
    )
    return run
