"""Carries out a run for a command: checks, plans, runs and stores it, or judges an old run again.

The work itself is done by :class:`EvaluationRunner`. Events are reported to a :class:`Listener`,
such as the terminal.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import DEFAULT_CRITERIA, Variant
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError, UsageError
from graphrag.eval.metrics.judge import judgeable
from graphrag.eval.metrics.measures import list_forms
from graphrag.eval.metrics.scorer_registry import SCORERS
from graphrag.eval.results.evaluation_results import AVERAGES
from graphrag.eval.runner.custom_methods import MethodSet
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.indexes import (
    check_indexes,
    check_inputs,
    describe_indexes,
    list_form_notes,
    list_lacking,
    read_headers,
    read_index_costs,
    read_index_facts,
    read_model_settings,
    release_searched,
)
from graphrag.eval.runner.judging import (
    FAITHFULNESS,
    asks_judge,
    check_judge_model,
    describe_judge,
    judge_model,
    list_judge_name_warnings,
    open_judge,
)
from graphrag.eval.runner.on_ray import open_executor
from graphrag.eval.runner.preflight import check_prices, list_judge_warnings, list_warnings
from graphrag.eval.runner.resume import choose_run
from graphrag.eval.runner.run_setup import (
    RunOptions,
    RunPlan,
    describe_judging,
    describe_setup,
    plan_judging,
    plan_run,
)
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.runner.stored_run import RunDescription
from graphrag.eval.store.database import EvaluationStore, find_run, open_store
from graphrag.eval.store.records import CLAIMS, Run, RunDetails
from graphrag.eval.store.session import StoredSession
from graphrag.eval.store.sqlite import IN_MEMORY
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.query.client.embedded_labels import announce_embedded
from graphrag.query.index.header import IndexHeader, model_name
from graphrag.text.cli_hints import again, eval_line_here
from graphrag.text.message_phrases import counted


class Listener(Protocol):
    """Receives the messages of a run, executes it, and uses its result."""

    def note(self, text: str) -> None:
        """Take a line of information."""

    def warn(self, text: str) -> None:
        """Take a warning."""

    def working(self, text: str) -> AbstractContextManager[object]:
        """Show what is being done within the block."""
        ...

    async def run(self, runner: EvaluationRunner, work: Work) -> RunOutcome:
        """Have the runner do the work, and show its progress."""
        ...

    def finish(self, description: RunDescription) -> bool:
        """Use the run's result while its store is open; return whether nothing is wrong."""
        ...


async def check_projects(
    config: EvaluationConfig,
    samples: Sequence[Sample],
    roots: Mapping[str, Path],
    options: RunOptions,
) -> None:
    """Raise ConfigError for problems with settings and documents, before an index is built."""
    headers, methods = read_model_settings(roots), MethodSet(config)
    for name, header in methods.pairs(headers):
        methods.describe(name, header)
    judging = _read_judging(config, samples, headers)
    _check_models(config, samples, methods, headers, judging, options)
    await check_inputs(config, roots)


def _read_judging(
    config: EvaluationConfig, samples: Sequence[Sample], headers: Mapping[str, IndexHeader]
) -> dict[str, IndexHeader]:
    keys = {sample.imdb_key for sample in samples}
    folders = {key: root for key, root in config.project_folders().items() if key in keys}
    others = read_model_settings({k: root for k, root in folders.items() if k not in headers})
    return {key: {**others, **headers}[key] for key in folders}


def _check_models(
    config: EvaluationConfig,
    samples: Sequence[Sample],
    methods: MethodSet,
    headers: Mapping[str, IndexHeader],
    judging: Mapping[str, IndexHeader],
    options: RunOptions,
) -> tuple[set[str], str | None]:
    """Return the models that are asked, and the judge, which is one of them, or None.

    Raises ConfigError if a cost limit is set and a price is unknown.
    """
    models = {m for pair in methods.pairs(headers) for m in methods.models(*pair).values()}
    asks = not options.skip_judge and asks_judge(config, samples)
    judge = _check_judge(config, judging) if asks else None
    models |= set() if judge is None else {judge}
    if options.max_cost_usd is not None:
        check_prices(sorted(models), "--limit")
    return models, judge


async def prepare_run(
    config: EvaluationConfig,
    samples: Sequence[Sample],
    roots: Mapping[str, Path],
    options: RunOptions,
    listener: Listener,
    unbuilt: Sequence[str] = (),
    warnings: tuple[str, ...] = (),
) -> RunPlan:
    """Check and plan a run, and warn of what makes its figures weaker than they look.

    - ``roots``: index name -> project folder, of the indexes that are asked.
    - ``unbuilt``: names of indexes that are not built: only their settings are read.
    - ``warnings``: earlier warnings, which are kept.
    """
    methods, keys = MethodSet(config), {sample.imdb_key for sample in samples}
    folders = {key: root for key, root in config.project_folders().items() if key in keys}
    built = await read_headers(
        {key: root for key, root in roots.items() if key not in unbuilt},
        config.searches_asked(folders),
    )
    headers = {**built, **read_model_settings({key: roots[key] for key in unbuilt})}
    headers = {name: headers[name] for name in roots}
    await check_indexes(config, samples, built)
    descriptions = describe_indexes(config, methods, headers, folders)
    judging = _read_judging(config, samples, headers)
    judge_setup = describe_judge(config, samples, judging)
    setup = describe_setup(config, samples, descriptions, judge_setup)
    models, judge = _check_models(config, samples, methods, headers, judging, options)
    others = [name for name in config.methods if methods.function(name) is not None]
    if others and options.max_cost_usd is not None:
        warnings += (
            f"--max-cost counts what {' and '.join(others)} took only once they answered, and "
            "only where they report it or ask a model of graphrag",
        )
    further, roomy = await list_warnings(config, samples, methods, headers, built, judge)
    warnings += tuple(further)
    if methods.reads_vectors():
        from graphrag.eval.validation.vectors import list_vector_warnings  # lancedb

        warnings += tuple(list_vector_warnings(built))
    for warning in warnings:
        listener.warn(warning)
    for note in list_form_notes(headers, roots):
        listener.note(note)
    if not asks_judge(config, samples):
        listener.note("No judge is asked: only what needs none is measured.")
    announced = announce_embedded(models)
    if announced is not None:
        listener.note(announced)
    units = plan_run(samples, config.methods, descriptions, config.trials)
    facts = {key: read_index_facts(header) for key, header in headers.items()}
    details = RunDetails(
        origin="command",
        n_units=len(units),
        config=config.to_dict(),
        models=tuple(sorted(models)),
        warnings=warnings,
        roomy=tuple(roomy),
        skip_judge=options.skip_judge,
        search_methods=methods.search_methods(),
        command=again(),
        indexes=facts,
        index_costs=read_index_costs(headers, facts),
        lacking=await asyncio.to_thread(list_lacking, methods, built),
    )
    return RunPlan(
        setup=setup,
        samples=samples,
        details=details,
        config=config,
        units=units,
        headers=headers,
        judging=judging,
        judge=judge,
    )


def prepare_judging(
    store: EvaluationStore, run_id: str, config: EvaluationConfig, options: RunOptions
) -> RunPlan:
    """Check and plan a run that judges the responses of another run again."""
    origin = _find_origin(store, run_id)
    samples = store.samples(origin.run_id)
    responses = store.outlines(origin.run_id)
    if not samples or not responses:
        missing = "was kept without its questions" if responses else "has no answers"
        msg = f"Run {origin.run_id} {missing}; run the evaluation again."
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
    if options.max_cost_usd is not None:
        check_prices([judge])
    units, methods = plan_judging(samples, config.methods, responses.values()), MethodSet(config)
    name_warnings = list_judge_name_warnings(config, headers)
    warnings = (*name_warnings, *list_judge_warnings(judge, answering))
    details = RunDetails(
        origin="judge",
        n_units=len(units),
        config=config.to_dict(),
        models=(judge, *answering),
        warnings=warnings,
        search_methods=methods.search_methods(),
        command=again(),
        index_costs=origin.details.index_costs,
        lacking=origin.details.lacking,
    )
    return RunPlan(
        setup=setup,
        samples=samples,
        details=details,
        config=config,
        units=units,
        headers=headers,
        judging=headers,
        judge=judge,
        origin=origin,
    )


def _check_judge(config: EvaluationConfig, headers: Mapping[str, IndexHeader]) -> str:
    model = judge_model(config, headers)
    check_judge_model(model, [*config.metrics, *config.judge.graded])
    return model_name(model)


async def judge_again(
    config: EvaluationConfig, run_id: str, options: RunOptions, listener: Listener
) -> None:
    """Judge the responses of a run again, as a new run."""
    with listener.working("Reading the run"), open_store(config.store_path) as store:
        plan = prepare_judging(store, run_id, config, options)
    for warning in plan.details.warnings:
        listener.warn(warning)
    await conduct(plan, options, listener)


async def conduct(plan: RunPlan, options: RunOptions, listener: Listener) -> None:
    """Do the work of a plan that is not stored yet, and hand the result to the listener."""
    config, origin, telemetry = plan.config, plan.origin, options.telemetry
    keeps = origin is not None or config.output.save_intermediate
    with EvaluationStore(config.store_path if keeps else IN_MEMORY) as store:
        if keeps:
            run = choose_run(store, plan, options, listener.note, listener.warn)
        else:
            run = store.add_run(plan.setup, plan.samples, plan.details)
        if origin is not None:
            store.copy_responses(origin.run_id, run.run_id)
            if run.status != "finished":
                listener.note(
                    f"Judging {counted(len(plan.units), 'response')} of run {origin.run_id} "
                    f"with {plan.judge} as run {run.run_id}; no search is paid for."
                )
        session = StoredSession(
            store,
            run.run_id,
            retry_errors=options.retry_errors,
            prepaid=origin is not None,
            keeps_calls=keeps and config.output.keep_calls,
        )
        if telemetry is not None:
            telemetry.run_id = run.run_id
        outcome = await _ask(plan, options, session, listener)
        release_searched()
        if outcome.allow_usd is not None:  # with the same limit it would stop at once
            more = {"--max-cost": f"{outcome.allow_usd:g}"}
            run = replace(run, details=replace(run.details, command=again(instead=more)))
            store.keep_details(run.run_id, run.details)
        samples = store.samples(run.run_id)  # as they were checked when it began
        described = RunDescription.of_stored(store, run, config, samples, outcome)
        if not outcome.was_interrupted:
            with listener.working("Reading what was searched"):
                described = await described.with_views()
            for line in described.unread:
                listener.warn(line)
        is_well = listener.finish(described)
        if keeps:
            from graphrag.eval.results.runs import keep_lines  # numpy: no run needs it

            keep_lines(store.path, run.run_id)
        earlier = {} if origin is None else store.verdicts(origin.run_id)
    is_comparable = any(m in verdicts for verdicts in earlier.values() for m in config.metrics)
    if origin is not None and is_well and is_comparable:
        line = eval_line_here("compare", run.run_id, origin.run_id)
        listener.note(f"Compare with: {line}")


async def _ask(
    plan: RunPlan, options: RunOptions, session: StoredSession, listener: Listener
) -> RunOutcome:
    config, judge, telemetry = plan.config, None, options.telemetry
    folders = {**config.own_projects(), **config.project_folders()}
    roots = {name: folders[name] for name in {**plan.judging, **plan.headers}}
    work = Work(config, plan.units, session, options.skip_judge, options.max_cost_usd)
    async with open_executor(config, roots, address=options.address) as executor:
        if plan.judge is not None:
            with listener.working("Opening the judge"):
                judge = open_judge(config, plan.judging)
        try:
            runner = EvaluationRunner(config, judge, executor=executor, telemetry=telemetry)
            return await listener.run(runner, work)
        finally:
            if telemetry is not None and (undelivered := telemetry.close()):
                listener.warn(undelivered)


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
    """Return the configuration with the methods of a stored run, and its variants of searches."""
    stored: Mapping[str, Any] = origin.details.config
    methods = list(origin.setup.methods)
    searched = {
        name: Variant(**settings)
        for name, settings in stored.get("variants", {}).items()
        if name in methods and settings.get("method") is not None
    }
    variants = {**config.variants, **searched}
    return config.model_copy(update={"methods": methods, "variants": variants})


def check_success(config: EvaluationConfig, samples: Sequence[Sample], skip_judge: bool) -> None:
    """Raise ConfigError for a judge that does not exist, or a criterion that nothing would measure.

    Criteria that apply to every run by default are allowed: they show "not measured". The error
    names the criterion, and the nearest known name or what is missing.
    """
    settings = config.measures
    forms = {form.name: form.measure for form in list_forms(settings.cutoffs, settings.further)}
    for name in config.judge.graded:
        scorer = SCORERS.find(name)
        if scorer is None:
            raise ConfigError(
                f"judge.graded: {name!r} is no judge of your own; write it as module:object."
            )
        if scorer.of_pairs and name in config.thresholds:
            msg = f"thresholds: {name} compares pairs of methods; leave one of them out."
            raise ConfigError(msg)
    names = [
        *forms,
        *METRICS,
        *AVERAGES,
        *(f"{s.name}.{part}" for s in SCORERS.values() if not s.of_pairs for part in s.parts),
    ]
    for criterion in config.measures.criteria:
        name = criterion.metric
        if name not in names:
            msg = f"measures.criteria: unknown name {name!r}{nearest(name, names)}"
            raise ConfigError(as_sentence(msg))
        if criterion in DEFAULT_CRITERIA:
            continue
        needs = forms[name].needs if name in forms else ()
        lacking = _lack_of_judge(name, config, samples, skip_judge)
        if lacking is None and needs and not _is_given(needs, config, samples):
            lacking = f"no question names {' or '.join(needs)}"
        if lacking is not None:
            raise ConfigError(
                f"measures.criteria: {name} would not be measured, as {lacking}; change that, or "
                "leave the criterion out."
            )


def _lack_of_judge(
    name: str, config: EvaluationConfig, samples: Sequence[Sample], skip_judge: bool
) -> str | None:
    kind = name.partition(".")[0]
    if name in ("judge_score", "combined_score"):
        kind = "quality" if config.judge.quality else "correctness"
    if kind not in (*SCORERS, *METRICS):
        return None
    if skip_judge:
        return "the judge is not asked"
    if kind == CLAIMS:
        if not config.judges_claims:
            return "judge.faithfulness is not by: claim"
        kind = FAITHFULNESS
    if kind in SCORERS:
        if kind not in config.judge.scorers:
            return f"judge.{kind} is off"
        lacks = kind == "assertions" and not any(sample.assertions for sample in samples)
        return "no question has assertions" if lacks else None
    if kind not in config.metrics:
        return f"metrics leaves {kind} out"
    if not any(judgeable(sample, (kind,), config.judges_claims) for sample in samples):
        return f"no question has an answer, which {kind} needs"
    return None


def _is_given(needs: Iterable[str], config: EvaluationConfig, samples: Sequence[Sample]) -> bool:
    return any(
        getattr(config.measures, name, None)
        or any(getattr(sample, name, None) or sample.tags.get(name) for sample in samples)
        for name in needs
    )
