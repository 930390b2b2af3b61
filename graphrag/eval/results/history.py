"""The runs of a store, as the history lists them."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from graphrag.eval.results.question_figures import ByMethod, mean_of, read_question_figures
from graphrag.eval.results.runs import pinned_run_id, stored_metadata
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import ORIGIN_NAMES, open_store
from graphrag.eval.store.records import Run
from graphrag.query.usage import Usage, sum_usages

Means: TypeAlias = dict[str, dict[str, float | None]]


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
    means : dict
        method -> metric -> mean, of what a judge gave: the metrics that the run asked for, as its
        tables show them, ``rubric.<dimension>`` in [1, 5], ``quality.<measure>`` in [0, 1]; and
        ``<metric>, failed as 0`` where failed searches make the two differ.
    n : dict
        method -> figure -> questions behind its mean, of those in ``means``.
    measured : dict
        method -> figure -> mean, of what needs no judge: ``latency_s`` of searches that answered,
        ``tokens`` and ``cost_usd`` of a search, and the retrieval measures, where the run's own
        file of them is there.
    """

    run_id: str
    started_at: str
    status: str
    n_questions: int
    correctness: dict[str, float | None]
    cost_usd: float | None
    is_pinned: bool
    embedded_models: str | None = None
    origin: str = ORIGIN_NAMES["python"]
    means: Means = field(default_factory=dict[str, dict[str, float | None]])
    n: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    measured: Means = field(default_factory=dict[str, dict[str, float | None]])

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON-ready values."""
        return asdict(self)


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
        return [describe_run(store, run, run.run_id == pinned) for run in store.runs()]


def read_usages(store_path: Path, run_ids: Iterable[str | None]) -> dict[str, Usage]:
    """Return run id -> all that a run took, of those runs that the store holds.

    Searches and judge, what was asked again included.

    Raises
    ------
    StoreError
        If another process holds the store.
    """
    if not store_path.is_file():
        return {}
    wanted = set(run_ids)
    with open_store(store_path) as store:
        runs = [run for run in store.runs() if run.run_id in wanted]
        return {run.run_id: sum_usages(paid_usages(store, run)) for run in runs}


def describe_run(store: EvaluationStore, run: Run, is_pinned: bool) -> StoredRun:
    """Return a run's line in the history."""
    figures = read_question_figures(store, run)
    judged = {m: {**of, **figures.failed_as_0[m]} for m, of in figures.judged.items()}
    means = _means(judged)
    return StoredRun(
        run_id=run.run_id,
        started_at=run.started_at,
        status=run.status,
        n_questions=run.setup.n_questions,
        correctness={method: found.get("correctness") for method, found in means.items()},
        cost_usd=sum_usages(paid_usages(store, run)).cost_usd,
        is_pinned=is_pinned,
        embedded_models=stored_metadata(store, run).embedded_models,
        origin=ORIGIN_NAMES[run.origin],
        means=means,
        n={
            m: {name: sum(v is not None for v in values.values()) for name, values in of.items()}
            for m, of in judged.items()
        },
        measured=_means(figures.measured),
    )


def paid_usages(store: EvaluationStore, run: Run) -> list[Usage]:
    """Return all that a run paid for, also what was asked again or belongs to nothing complete.

    Of a run whose responses were judged again the searches are left out.
    """
    again = run.setup.responses_of is not None
    searches = {} if again else store.responses(run.run_id, with_texts=False)
    usages = [found.usage for found in searches.values()]
    usages += [usage for each in store.judge_usage(run.run_id).values() for usage in each]
    usages += store.forgotten_usage(run.run_id)
    usages += [judged.usage for judged in store.judgements(run.run_id)]
    usages += store.unclaimed_usage(run.run_id).values()
    return usages


def _means(figures: ByMethod) -> Means:
    return {m: {name: mean_of(values) for name, values in f.items()} for m, f in figures.items()}
