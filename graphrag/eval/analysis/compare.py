"""Two runs on the same questions: what differs, how sure that is, and what the gate says."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.analysis.rows import Row, paired_score
from graphrag.eval.analysis.runs import RunMetadata, RunRows, read_rows
from graphrag.eval.analysis.setup_changes import list_setup_changes
from graphrag.eval.errors import UsageError
from graphrag.eval.records import METRICS
from graphrag.eval.statistics import (
    MARGIN,
    GateDecision,
    GateOutcome,
    Pair,
    PairedDifference,
    Score,
    State,
    combine_outcomes,
    correct_family,
    decide_gates,
    paired_binary,
    verdict_in_words,
)

__all__ = [
    "MethodComparison",
    "RunComparison",
    "RunMetadata",
    "RunRows",
    "compare_runs",
    "decide",
    "read_rows",
    "shared_metrics",
]

NEW, BASELINE = "new run", "baseline"
_NEVER_ASKED = {State.SEARCH_FAILED, State.ABSTAINED}


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """One method on one metric in two runs.

    Attributes
    ----------
    method, metric : str
    difference : PairedDifference
        New run less baseline, over the questions that both runs hold.
    verdict : str
        The difference in words, by the two-sided test.
    decision : GateDecision
        The gate's answer, by the one-sided test.
    only_new, only_baseline : tuple of str
        Ids of the questions that only one of the runs holds.
    """

    method: str
    metric: str
    difference: PairedDifference
    verdict: str
    decision: GateDecision
    only_new: tuple[str, ...]
    only_baseline: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs compared; every surface shows what stands here.

    Attributes
    ----------
    new, baseline : RunMetadata
    items : tuple of MethodComparison
        At least one.
    warnings : tuple of str
        What makes the comparison weaker than it looks.
    """

    new: RunMetadata
    baseline: RunMetadata
    items: tuple[MethodComparison, ...]
    warnings: tuple[str, ...]

    @property
    def outcome(self) -> GateOutcome:
        """FAIL if any item fails, PASS if all pass, else INCONCLUSIVE."""
        return combine_outcomes([item.decision for item in self.items])


def compare_runs(
    new: RunRows,
    baseline: RunRows,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    margin: float = MARGIN,
    stopped: Mapping[tuple[str, str], float] | None = None,
) -> RunComparison:
    """Compare two runs, joined on question ids.

    Parameters
    ----------
    new, baseline : RunRows
    methods : sequence of str, optional
        None: those that both runs hold, in the order of the new run.
    metrics : sequence of str, optional
        The primary metrics. With the methods they make the family over which Holm corrects
        both tests. None: correctness where both runs asked it, else the first of the new run's
        that both asked.
    margin : float
        The loss that the gate still accepts, in (0, 1).
    stopped : dict, optional
        For a run that was watched while it went on, see ``early_stop.EarlyStop``.

    Raises
    ------
    UsageError
        If a method, metric or margin can't be compared, or both are the same run.
    """
    if metrics is None:
        shared = shared_metrics(new.metrics, baseline.metrics)
        metrics = ["correctness" if "correctness" in shared else shared[0]]
    _check(new, baseline, metrics, margin)
    chosen = _choose_methods(new.rows, baseline.rows, methods)
    joined = {
        (method, metric): _join(new.rows, baseline.rows, method)
        for method in chosen
        for metric in metrics
    }
    decisions = decide({key: each.pairs for key, each in joined.items()}, margin, stopped)
    results = [_difference(each.pairs, metric) for (_, metric), each in joined.items()]
    items = tuple(
        MethodComparison(
            method=key[0],
            metric=key[1],
            difference=result,
            verdict=verdict_in_words(result, NEW, BASELINE),
            decision=decisions[key],
            only_new=each.only_new,
            only_baseline=each.only_baseline,
        )
        for (key, each), result in zip(joined.items(), correct_family(results), strict=True)
    )
    warnings = _list_setup_warnings(new.metadata, baseline.metadata, chosen)
    if methods is None:
        warnings += _list_lone_methods(new.rows, baseline.rows, chosen)
    return RunComparison(new.metadata, baseline.metadata, items, tuple(warnings))


def shared_metrics(new: Sequence[str], baseline: Sequence[str]) -> list[str]:
    """Return the metrics that two runs ask, in the order of the new one.

    Raises
    ------
    UsageError
        If there is none.
    """
    shared = [metric for metric in new if metric in baseline]
    if not shared:
        ours, theirs = (", ".join(names) or "none" for names in (new, baseline))
        msg = (
            f"There is no metric to compare: the new run asks {ours}, the baseline {theirs}; "
            "graphrag eval judge RUN --metrics NAME judges a run again."
        )
        raise UsageError(msg)
    return shared


def decide(
    pairs: Mapping[tuple[str, str], Sequence[tuple[Row, Row]]],
    margin: float = MARGIN,
    stopped: Mapping[tuple[str, str], float] | None = None,
) -> dict[tuple[str, str], GateDecision]:
    """Decide by the gate; the one place where a comparison is decided.

    Parameters
    ----------
    pairs : dict
        (method, metric) -> (new row, baseline row) of each question; the keys are the family
        over which the tests are corrected.
    margin : float
        In (0, 1).
    stopped : dict, optional
        (method, metric) -> evidence, of a run that was watched while it went on; those that
        are not among the pairs are left out.

    Notes
    -----
    Coverage is the share of the verdicts asked of the judge, on the joined questions, that
    exist; a response that was not judged counts as missing, a failed search was never asked.
    """
    names = {" ".join(key): key for key in pairs}
    decisions = decide_gates(
        {name: _scores(pairs[key], key[1]) for name, key in names.items()},
        margin=margin,
        coverages={
            name: (
                _coverage([new for new, _ in pairs[key]], key[1]),
                _coverage([old for _, old in pairs[key]], key[1]),
            )
            for name, key in names.items()
        },
        stopped=None
        if stopped is None
        else {name: stopped[key] for name, key in names.items() if key in stopped},
    )
    return {names[name]: decision for name, decision in decisions.items()}


class _Joined(NamedTuple):
    pairs: list[tuple[Row, Row]]
    only_new: tuple[str, ...]
    only_baseline: tuple[str, ...]


def _check(new: RunRows, baseline: RunRows, metrics: Sequence[str], margin: float) -> None:
    if not 0 < margin < 1:
        msg = f"The margin must lie between 0 and 1, not {margin:g}."
        raise UsageError(msg)
    if new.metadata.run_id is not None and new.metadata.run_id == baseline.metadata.run_id:
        msg = f"Both sides are run {new.metadata.run_id}; name another run to compare with."
        raise UsageError(msg)
    if not metrics:
        msg = f"No metric is named; choose of {', '.join(METRICS)}."
        raise UsageError(msg)
    for metric in metrics:
        if metric not in METRICS:
            msg = f"There is no metric {metric!r}{nearest(metric, METRICS)}"
            raise UsageError(as_sentence(msg))


def _methods(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.method for row in rows))


def _choose_methods(
    new: Sequence[Row], baseline: Sequence[Row], wanted: Sequence[str] | None
) -> list[str]:
    ours, theirs = _methods(new), _methods(baseline)
    both = [method for method in ours if method in theirs]
    for method in wanted or ():
        if method not in both:
            msg = f"Not both runs hold method {method!r}{nearest(method, both)}"
            raise UsageError(as_sentence(msg))
    if not both:
        msg = (
            f"No method is in both runs: the new run holds {', '.join(ours) or 'none'}, the "
            f"baseline {', '.join(theirs) or 'none'}."
        )
        raise UsageError(msg)
    return both if wanted is None else list(wanted)


def _by_id(rows: Sequence[Row], method: str) -> dict[str, Row]:
    found = {row.question_id: row for row in rows if row.method == method}
    n = sum(row.method == method for row in rows)
    if n > len(found):
        msg = (
            f"A run holds {n} responses of {method} to {len(found)} question ids; ids must differ."
        )
        raise UsageError(msg)
    return found


def _join(new: Sequence[Row], baseline: Sequence[Row], method: str) -> _Joined:
    ours, theirs = _by_id(new, method), _by_id(baseline, method)
    return _Joined(
        pairs=[(row, theirs[key]) for key, row in ours.items() if key in theirs],
        only_new=tuple(key for key in ours if key not in theirs),
        only_baseline=tuple(key for key in theirs if key not in ours),
    )


def _scores(pairs: Sequence[tuple[Row, Row]], metric: str) -> list[Pair]:
    return [(paired_score(new, metric), paired_score(old, metric)) for new, old in pairs]


def _difference(pairs: Sequence[tuple[Row, Row]], metric: str) -> PairedDifference:
    # A run in the store knows its documents only when it has one; the other side may know more.
    counts = Counter[tuple[Score, Score, Hashable]](
        (paired_score(new, metric), paired_score(old, metric), new.document or old.document)
        for new, old in pairs
    )
    known = bool(counts) and all(document for _, _, document in counts)
    return paired_binary(counts, view_documents=known)


def _coverage(rows: Sequence[Row], metric: str) -> float:
    asked = [row.states[metric] for row in rows if row.states[metric] not in _NEVER_ASKED]
    return sum(state is State.SCORED for state in asked) / len(asked) if asked else 1.0


def _list_setup_warnings(
    new: RunMetadata, baseline: RunMetadata, methods: Sequence[str]
) -> list[str]:
    warnings: list[str] = []
    for name, side in ((NEW, new), (BASELINE, baseline)):
        if side.status == "unfinished":
            warnings.append(f"the {name} is unfinished")
    return warnings + list_setup_changes(new.setup, baseline.setup, methods)


def _list_lone_methods(
    new: Sequence[Row], baseline: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    sides = ((NEW, _methods(new)), (BASELINE, _methods(baseline)))
    alone = {name: [m for m in methods if m not in chosen] for name, methods in sides}
    return [f"only the {name} holds {', '.join(found)}" for name, found in alone.items() if found]
