"""The runs of a store, as the history lists them."""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from graphrag.eval.analysis.rows import paired_score
from graphrag.eval.analysis.runs import pinned_run_id, stored_metadata, stored_rows
from graphrag.eval.statistics import State
from graphrag.eval.store import ORIGIN_NAMES, EvaluationStore, Run, open_store
from graphrag.query.usage import sum_usages

_UNJUDGED = (State.SEARCH_FAILED, State.NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A line of the history.

    Attributes
    ----------
    run_id, started_at, status : str
    n_questions : int
        Questions planned.
    correctness : dict
        method -> mean in [0, 1] over scored responses and failed searches, which count 0;
        None without any, while no response has been judged, and in a run that did not ask for it.
    cost_usd : float or None
        Of searches and judge, what was asked again included, and without the searches of a run
        whose responses were judged again; None when a price is not known.
    is_pinned : bool
        Whether it is the pinned baseline.
    embedded_models : str or None
        The label of the embedded models when they had a part.
    origin : str
        Who began it; "not recorded" in a run of an older release.
    """

    run_id: str
    started_at: str
    status: str
    n_questions: int
    correctness: dict[str, float | None]
    cost_usd: float | None
    is_pinned: bool
    embedded_models: str | None = None
    origin: str = ORIGIN_NAMES[None]


def list_runs(store_path: Path) -> list[StoredRun]:
    """Return the runs of a store, the newest first.

    Raises
    ------
    UsageError
        If there is no store.
    StoreError
        If another process holds it.
    """
    pinned = pinned_run_id(store_path)
    with open_store(store_path) as store:
        return [_describe(store, run, run.run_id == pinned) for run in store.runs()]


def _describe(store: EvaluationStore, run: Run, is_pinned: bool) -> StoredRun:
    rows = stored_rows(store, run)
    scores = {
        method: [paired_score(row, "correctness") for row in rows if row.method == method]
        for method in run.setup.methods
    }
    known = {m: [s for s in given if s is not None] for m, given in scores.items()}
    judged = {row.method for row in rows if row.states["correctness"] not in _UNJUDGED}
    waiting = {row.method for row in rows if row.states["correctness"] is State.NOT_JUDGED}
    if "correctness" not in (run.setup.metrics or ()):
        waiting = set(known)
    for method in waiting - judged:  # the failed searches alone would make the mean 0
        known[method] = []
    searches = {} if run.setup.responses_of is not None else store.responses(run.run_id)
    usages = [found.usage for found in searches.values()]
    usages += [usage for each in store.judge_usage(run.run_id).values() for usage in each]
    usages += store.forgotten_usage(run.run_id)
    usages += [judged.usage for judged in store.judgements(run.run_id)]
    usages += store.unclaimed_usage(run.run_id).values()
    return StoredRun(
        run_id=run.run_id,
        started_at=run.started_at,
        status=run.status,
        n_questions=run.setup.n_questions,
        correctness={method: fmean(given) if given else None for method, given in known.items()},
        cost_usd=sum_usages(usages).cost_usd,
        is_pinned=is_pinned,
        embedded_models=stored_metadata(store, run).embedded_models,
        origin=ORIGIN_NAMES[run.origin],
    )
