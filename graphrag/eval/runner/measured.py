"""What searches and verdicts of the same settings took in earlier runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.setup import RunSetup
from graphrag.query.usage import Usage, sum_usages

_SEARCHING = ("max_output_tokens", "equal_terms")
_JUDGING = ("judge", "metrics", "further")


@dataclass(slots=True)
class Measured:
    """What was measured of one method: a usage for each answer, and for each that was judged."""

    searches: list[Usage] = field(default_factory=list[Usage])
    judgings: list[Usage] = field(default_factory=list[Usage])


def mean_tokens(usages: list[Usage]) -> float:
    """Return the mean prompt tokens of completions; raises StatisticsError without any."""
    return fmean(usage.prompt_tokens for usage in usages)


def mean_usd(usages: list[Usage]) -> float | None:
    """Return the mean US dollars; None as soon as one is not known."""
    known = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    return fmean(known) if len(known) == len(usages) else None


def read_measured(store: EvaluationStore, setup: RunSetup) -> dict[str, Measured]:
    """Return method -> what its earlier answers took, under the settings of a setup.

    The content of the index and the questions may have been others. Failed searches are left out,
    and so are the comparisons of two methods.
    """
    found = {method: Measured() for method in setup.methods}
    for run in store.runs():
        methods = [method for method in found if _is_alike(run, setup, method)]
        if not methods or run.setup.responses_of is not None:
            continue
        unit_methods: dict[str, str] = {}
        for unit, response in store.responses(run.run_id, with_texts=False).items():
            if response.method in methods and response.failure is None:
                unit_methods[unit] = response.method
                if response.usage.is_counted:
                    found[response.method].searches.append(response.usage)
        if all(run.setup.root.get(name) == setup.root.get(name) for name in _JUDGING):
            for unit, usage in _judgings(store, run.run_id).items():
                if unit in unit_methods:
                    found[unit_methods[unit]].judgings.append(usage)
    return found


def _judgings(store: EvaluationStore, run_id: str) -> dict[str, Usage]:
    """Return unit -> what its verdicts, rubric and quality took together."""
    usages = {unit: list(each) for unit, each in store.judge_usage(run_id).items()}
    for judged in store.judgements(run_id):
        if judged.subject in usages and not judged.kind.startswith("pairwise:"):
            usages[judged.subject].append(judged.usage)
    return {unit: sum_usages(each) for unit, each in usages.items()}


def _is_alike(run: Run, setup: RunSetup, method: str) -> bool:
    """Say whether a method had the same settings in a run, on an index of both."""
    if run.setup.is_of_suites or method not in run.setup.methods:
        return False
    if any(run.setup.root.get(name) != setup.root.get(name) for name in _SEARCHING):
        return False
    keys = run.setup.indexes.keys() & setup.indexes.keys()
    return bool(keys) and all(
        _settings(run.setup.indexes[key].get(method)) == _settings(setup.indexes[key][method])
        for key in keys
    )


def _settings(described: Mapping[str, object] | None) -> dict[str, object] | None:
    """Return a method's description without the content of the index."""
    return None if described is None else {k: v for k, v in described.items() if k != "index"}
