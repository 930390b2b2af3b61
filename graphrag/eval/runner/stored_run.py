"""Describes a run, read from the store or just ended, for reports: results, cost and indexes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.runner.indexes import read_searched_views
from graphrag.eval.runner.judging import with_judged
from graphrag.eval.runner.run_setup import plan_judging
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.runner.stored_config import read_stored_config
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.session import StoredSession
from graphrag.eval.store.sqlite import damage_error
from graphrag.eval.types.metric_definitions import (
    BUILT_IN,
)
from graphrag.eval.types.own_code import find_part
from graphrag.query.client.usage import Usage
from graphrag.text.cli_hints import config_name


@dataclass(frozen=True, slots=True)
class RunDescription:
    """Everything that reports and the end of a run show about it.

    - ``recorded_at``: when the latest result was stored (ISO 8601); None: now.
    - ``forgotten``: usage of failed searches that were asked again, and of calls that belong to
      nothing stored. ``unfinished``: usage of work without a result yet.
    - ``views``: the indexes, for the measures that need no model. ``states``: whether each is still
      as it was searched, see :func:`find_searched`.
    - ``unread``: a line for each thing that can no longer be read.
    """

    run: Run
    config: EvaluationConfig
    samples: Sequence[Sample]
    outcome: RunOutcome
    recorded_at: str | None
    is_stored: bool
    forgotten: Sequence[Usage]
    unfinished: Sequence[Usage]
    views: Mapping[str, IndexView] = field(default_factory=dict[str, IndexView])
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: Sequence[str] = ()

    @classmethod
    def of_stored(
        cls,
        store: EvaluationStore,
        run: Run,
        config: EvaluationConfig,
        samples: Sequence[Sample],
        outcome: RunOutcome,
    ) -> "RunDescription":
        """Return the description of a run in a store, with its outcome so far."""
        from graphrag.eval.results.runs import unfinished_usages  # numpy: no run needs it

        counted = {(judgement.kind, judgement.subject) for _, judgement in outcome.judged}
        # Some, such as those of another release, no longer count.
        every = store.judgements(run.run_id)
        left = [each.usage for each in every if (each.kind, each.subject) not in counted]
        return cls(
            run,
            config,
            samples,
            outcome,
            recorded_at=store.recorded_at(run.run_id),
            is_stored=store.is_kept,
            forgotten=[*store.forgotten_usage(run.run_id), *left],
            unfinished=unfinished_usages(store, run, outcome.results),
        )

    async def with_views(self) -> "RunDescription":
        """Return the description with the views of unchanged indexes, and a line for the others."""
        roots = self.config.projects()
        views, states, unread = await read_searched_views(roots, self.run.setup)
        unread += _list_unknown(self.run)
        return replace(self, views=views, states=states, unread=unread)


def _list_unknown(run: Run) -> list[str]:
    """Return a line for each of the user's own judges and measures that is no longer known."""
    sections = cast("Mapping[str, Mapping[str, Mapping[str, object]]]", run.setup.root)
    described = {**sections.get("metrics", {}), **sections.get("further", {})}
    sources = {
        name: about.get("object") or about.get("package")
        for name, about in described.items()
        if name not in BUILT_IN and find_part("metrics", name) is None
    }
    measures = cast("Mapping[str, list[str]]", run.details.config.get("measures", {}))
    further = measures.get("further", ())
    sources |= {name: None for name in further if find_part("measures", name) is None}
    return [
        f"What {name}{f' ({source})' if source else ''} says is left out: it is code of your own; "
        f"name it in {config_name()} as module:object to see it."
        for name, source in sources.items()
    ]


def read_run(store: EvaluationStore, run: Run, root: Path | None) -> RunDescription:
    """Read the results of a stored run, without their contexts; nothing is asked.

    The run must not be one of suites. ``root``: the folder that the indexes are relative to; None:
    the folder at the time of the run. Raises ConfigError if the run's settings can't be read, and
    StoreError if the store is damaged.
    """
    details, samples = run.details, store.samples(run.run_id)
    config = read_stored_config(run, root)
    responses = store.outlines(run.run_id, with_texts=True)
    try:
        units = plan_judging(samples, config.methods, responses.values())
    except KeyError as error:
        raise damage_error(store.path, f"run {run.run_id} lacks the question {error}") from error
    session = StoredSession(store, run.run_id)
    work = Work(config, units, session, details.skip_judge)
    outcome = with_judged(work.read_outcome(), config, work)
    is_whole = len(outcome.results) == details.n_units
    is_collected = details.skip_judge and is_whole
    has_ended = run.status == "finished" or is_collected
    stopped = None if has_ended else "unfinished"
    outcome = replace(outcome, n_planned=details.n_units, stopped=stopped)
    return RunDescription.of_stored(store, run, config, samples, outcome)
