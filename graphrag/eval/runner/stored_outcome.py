"""What a run came to, read from the store: the same as when the run itself ended."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.results.runs import unfinished_usages
from graphrag.eval.runner.judging import list_judged, with_grades
from graphrag.eval.runner.plan import plan_judging
from graphrag.eval.runner.queue import RunOutcome, RunRequest
from graphrag.eval.store.connection import damage_error
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.session import StoredSession
from graphrag.query.usage import Usage


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run as the store holds it.

    ``config``: as it was when the run was made. ``outcome``: its results are in outline;
    ``outcome.read_whole`` reads the rest while the store is open. ``recorded_at``: when its latest
    result was kept; None without any. ``forgotten``: of failed searches that were asked again, and
    of calls that are part of nothing kept; ``unfinished``: of what is no result yet, and goes on.
    """

    run: Run
    config: EvaluationConfig
    samples: tuple[Sample, ...]
    outcome: RunOutcome
    recorded_at: str | None
    forgotten: tuple[Usage, ...] = ()
    unfinished: tuple[Usage, ...] = ()


def read_run(store: EvaluationStore, run: Run, root: Path | None) -> ReadRun:
    """Read the results of a run that is not of suites; nothing is asked.

    ``root`` is the folder that the indexes are relative to; None: where it was when the run was
    made.

    Raises ConfigError if the settings of the run can't be read; StoreError if the store is damaged.
    """
    details, samples = run.details, store.samples(run.run_id)
    values = {**details.config, **({} if root is None else {"root": root})}
    methods = cast("list[str]", details.config["methods"])
    config = parse_config(values, f"the settings of run {run.run_id}", methods)
    responses = store.responses(run.run_id, with_texts=False).values()
    try:
        units = plan_judging(samples, config.methods, responses)
    except KeyError as error:
        raise damage_error(store.path, f"run {run.run_id} lacks the question {error}") from error
    session = StoredSession(store, run.run_id)
    request = RunRequest(units, session, details.skip_judge, holds_contexts=False)
    outcome = request.read_outcome(config)
    is_whole = len(outcome.results) == details.n_units
    is_collected = details.skip_judge and is_whole
    has_ended = run.status == "finished" or is_collected
    # The further judges begin once everything has its verdicts.
    asks_further = not is_collected and (has_ended or is_whole)
    judged = list_judged(config, units, session) if asks_further else ()
    return ReadRun(
        run=run,
        config=config,
        samples=tuple(samples),
        outcome=replace(
            outcome,
            results=with_grades(outcome.results, judged),
            n_planned=details.n_units,
            stopped=None if has_ended else "unfinished",
            judged=judged,
        ),
        recorded_at=store.recorded_at(run.run_id),
        forgotten=tuple(store.forgotten_usage(run.run_id)),
        unfinished=unfinished_usages(store, run, outcome.results),
    )
