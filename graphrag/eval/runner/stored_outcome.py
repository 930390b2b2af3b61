"""What a run came to, read from the store: the same as when the run itself ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.records import METRICS, JudgeResult
from graphrag.eval.runner.judging import is_wanted, list_judged, with_grades
from graphrag.eval.runner.plan import plan_judging, plan_run
from graphrag.eval.runner.queue import RunOutcome, RunRequest, Stop, Work
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, RunDetails, StoredResponse, Unit
from graphrag.eval.store.session import StoredSession
from graphrag.query.methods import METHODS
from graphrag.query.usage import CallLog, Usage

_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run as the store holds it.

    Attributes
    ----------
    run : Run
        With details, as far as they are known.
    config : EvaluationConfig
        As it was when the run was made, as far as that is known.
    samples : tuple of Sample
    outcome : RunOutcome
        Its results are in outline; ``outcome.read_whole`` reads the rest while the store is open.
    recorded_at : str or None
        When its latest result was kept; None without any.
    lacks : tuple of str
        What an older release did not keep of it, a sentence each.
    forgotten : tuple of Usage
        Of failed searches that were asked again, and of calls that are part of nothing kept.
    """

    run: Run
    config: EvaluationConfig
    samples: tuple[Sample, ...]
    outcome: RunOutcome
    recorded_at: str | None
    lacks: tuple[str, ...] = ()
    forgotten: tuple[Usage, ...] = ()


async def read_run(
    store: EvaluationStore, run: Run, root: Path | None, present: EvaluationConfig | None
) -> ReadRun:
    """Read a run's results; nothing is asked.

    Parameters
    ----------
    store : EvaluationStore
    run : Run
        Not of suites.
    root : Path or None
        Folder that the indexes are relative to; None: where it was when the run was made.
    present : EvaluationConfig or None
        What stands in for the settings that an older release did not keep.
    """
    lacks: list[str] = []
    samples = store.samples(run.run_id)
    responses = list(store.responses(run.run_id, with_texts=False).values())
    if not samples:
        samples = [Sample(each, "", "", "") for each in dict.fromkeys(_ids(responses))]
        lacks.append(
            "the run was kept without its questions, so that questions, ground truths and "
            "documents are blank"
        )
    config = _config_of(run, root)
    if config is None:
        config = _assume_config(run, present)
        lacks.append(
            "the run was kept without its settings, so that its measures are taken as "
            f"{'eval_config.yaml has them now' if present else 'they are by default'}, and its "
            "warnings are not known"
        )
    if run.details is None:
        run = replace(run, details=_assume_details(run, config, samples))
    assert run.details is not None
    units = plan_judging(samples, config.methods, responses)
    session = StoredSession(store, run.run_id)
    outcome = await _outcome_of(units, session, run, config)
    outcome = replace(outcome, n_planned=run.details.n_units)
    return ReadRun(
        run=run,
        config=config,
        samples=tuple(samples),
        outcome=outcome,
        recorded_at=store.recorded_at(run.run_id),
        lacks=tuple(lacks),
        forgotten=tuple(store.forgotten_usage(run.run_id)),
    )


async def _outcome_of(
    units: Sequence[Unit], session: StoredSession, run: Run, config: EvaluationConfig
) -> RunOutcome:
    assert run.details is not None
    stop = Stop()
    stop.request(_UNFINISHED)
    request = RunRequest(
        units=units, session=session, skip_judge=run.details.skip_judge, holds_contexts=False
    )
    work = Work(request, config, _ask_nothing, _judge_nothing, stop)
    await work.run()
    found = work.outcome()
    collected = run.details.skip_judge and len(found.results) == run.details.n_units
    if run.status == "finished" or collected:
        judged = list_judged(config, units, session) if is_wanted(config) else ()
        judged = () if collected else judged
        return replace(
            found, results=with_grades(found.results, judged), stopped=None, judged=judged
        )
    # The further judges begin once everything has its verdicts.
    has_verdicts = len(found.results) == run.details.n_units
    judged = list_judged(config, units, session) if has_verdicts else ()
    return replace(
        found, results=with_grades(found.results, judged), stopped=_UNFINISHED, judged=judged
    )


async def _ask_nothing(unit: Unit, log: CallLog) -> StoredResponse:
    msg = f"nothing is asked when a run is read, not even {unit.key}"
    raise AssertionError(msg)


async def _judge_nothing(
    unit: Unit, found: StoredResponse, metrics: Sequence[str], log: CallLog
) -> dict[str, JudgeResult]:
    msg = f"nothing is judged when a run is read, not even {unit.key}"
    raise AssertionError(msg)


def _config_of(run: Run, root: Path | None) -> EvaluationConfig | None:
    if run.details is None:
        return None
    values = dict(run.details.config)
    if root is not None:
        values["root"] = root
    try:
        return parse_config(values, f"the settings of run {run.run_id}")
    except ConfigError:  # of a release with other settings; the caller says so
        return None


def _assume_config(run: Run, present: EvaluationConfig | None) -> EvaluationConfig:
    base = present or EvaluationConfig()
    # Older releases sorted the names by which a setup goes; the first metric is the main one.
    order = dict.fromkeys((*base.metrics, *METRICS))
    judge = base.judge.model_copy(
        update={
            "rubric": "rubric" in run.setup.further,
            "quality": "quality" in run.setup.further,
            "pairwise": run.setup.pairs,
        }
    )
    return base.model_copy(
        update={
            "methods": list(run.setup.methods),
            "metrics": tuple(m for m in order if m in (run.setup.metrics or ())),
            "trials": run.setup.trials,
            "judge": judge,
        }
    )


def _assume_details(run: Run, config: EvaluationConfig, samples: Sequence[Sample]) -> RunDetails:
    variants = config.variants
    chosen = {
        name: name if name in METHODS else variants[name].method
        for name in config.methods
        if name in METHODS or name in variants
    }
    return RunDetails(
        origin=run.origin or "command",
        n_units=_count_units(run, config, samples),
        config={},
        models=_models_of(run),
        search_methods={name: method for name, method in chosen.items() if method is not None},
    )


def _count_units(run: Run, config: EvaluationConfig, samples: Sequence[Sample]) -> int:
    described = run.setup.indexes
    if all(sample.imdb_key in described for sample in samples):
        return len(plan_run(samples, config.methods, described, config.trials))
    return run.setup.n_questions * len(config.methods) * config.trials


def _models_of(run: Run) -> tuple[str, ...]:
    judge = run.setup.judge_model
    return tuple(sorted({*run.setup.list_models(), *([] if judge is None else [judge])}))


def _ids(responses: Sequence[StoredResponse]) -> list[str]:
    return [found.sample_id for found in responses]
