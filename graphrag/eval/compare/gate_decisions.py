"""How the gate decides on the rows of two runs."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from graphrag.eval.compare.index_changes import changed_indexes, what_is_assumed, why_undecided
from graphrag.eval.compare.pairing import Joined, MetricPairs
from graphrag.eval.results.rows import Row
from graphrag.eval.results.runs import RunRows
from graphrag.eval.stats.gate import decide_gates
from graphrag.eval.stats.gate_records import GateCase, GateDecision
from graphrag.eval.stats.outcomes import State

MetricKey: TypeAlias = tuple[str, str]
"""Method and metric."""
_NEVER_ASKED = {State.SEARCH_FAILED, State.ABSTAINED}


def decide(
    pairs: Mapping[MetricKey, MetricPairs],
    joined: Mapping[str, Joined],
    margins: Mapping[str, float],
    cases: Mapping[MetricKey, GateCase],
    further: Sequence[float | None] = (),
) -> dict[MetricKey, GateDecision]:
    """Decide by the gate; the one place where a comparison is decided.

    Parameters
    ----------
    pairs : dict
        (method, metric) -> scores; the keys are the family over which the tests are corrected.
    joined : dict
        Method -> its rows.
    margins : dict
        Metric -> the loss that is accepted, in (0, 1).
    cases : dict
        (method, metric) -> what else the gate has to know.
    further : sequence
        p values of other tests of the family.

    Notes
    -----
    Coverage is the share of the verdicts asked of the judge, on the joined questions, that
    exist; a response that was not judged counts as missing, a failed search was never asked.
    """
    names = {" ".join(key): key for key in pairs}
    decisions = decide_gates(
        {name: pairs[key].scores for name, key in names.items()},
        margin={name: margins[key[1]] for name, key in names.items()},
        coverages={
            name: (
                _coverage([new for new, _ in joined[key[0]].pairs], key[1]),
                _coverage([old for _, old in joined[key[0]].pairs], key[1]),
            )
            for name, key in names.items()
        },
        cases={name: cases[key] for name, key in names.items()},
        further=further,
    )
    return {names[name]: decision for name, decision in decisions.items()}


def case_of(
    new: RunRows,
    baseline: RunRows,
    key: MetricKey,
    joined: Joined,
    pairs: MetricPairs,
    accept: bool,
) -> tuple[GateCase, list[str]]:
    """Return what the gate has to know beside the pairs, and the documents whose index changed."""
    changed = changed_indexes(new.metadata, baseline.metadata, key[0], pairs.documents)
    case = GateCase(
        documents=pairs.documents,
        n_only_new=len(joined.new),
        n_only_baseline=pairs.n_only_baseline,
        n_other_reference=pairs.n_other_reference,
        undecided=why_undecided(changed) if changed and not accept else None,
        assumed=what_is_assumed(changed) if changed and accept else None,
    )
    return case, changed


def count_unanswered(joined: Joined, metric: str) -> tuple[int, int]:
    """Return the failed searches and abstentions of the new run and of the baseline."""
    sides = ([new for new, _ in joined.pairs], [old for _, old in joined.pairs])
    new, old = (sum(row.states[metric] in _NEVER_ASKED for row in side) for side in sides)
    return new, old


def _coverage(rows: Sequence[Row], metric: str) -> float:
    asked = [row.states[metric] for row in rows if row.states[metric] not in _NEVER_ASKED]
    return sum(state is State.SCORED for state in asked) / len(asked) if asked else 1.0
