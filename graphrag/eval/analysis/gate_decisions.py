"""How the gate decides on the rows of two runs, and how often it errs on such runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from graphrag.eval.analysis.index_changes import changed_indexes, what_is_assumed, why_undecided
from graphrag.eval.analysis.pairing import Joined, MetricPairs
from graphrag.eval.analysis.rows import Row
from graphrag.eval.analysis.runs import RunRows
from graphrag.eval.statistics import (
    DocumentShifts,
    GateCase,
    GateDecision,
    GateErrors,
    State,
    decide_gates,
    document_shifts,
    gate_errors,
)

MetricKey: TypeAlias = tuple[str, str]
"""Method and metric."""
_NEVER_ASKED = {State.SEARCH_FAILED, State.ABSTAINED}


class Spread(NamedTuple):
    """How paired differences spread, and what that does to the gate.

    Attributes
    ----------
    shifts : DocumentShifts or None
        Whether differences vary between documents by more than chance; None where that can't be
        said.
    errors : GateErrors or None
        How often the gate errs on such a run; None without pairs, and where labels decide.
    """

    shifts: DocumentShifts | None = None
    errors: GateErrors | None = None


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


def spread_of(
    pairs: MetricPairs, decision: GateDecision, level: float, is_corrected: bool = False
) -> Spread:
    """Return how differences vary between documents, and how often the gate errs then."""
    known = [
        (*scores, document)
        for scores, document in zip(pairs.scores, pairs.documents, strict=True)
        if None not in scores
    ]
    are_known = bool(known) and all(document for _, _, document in known)
    shifts = document_shifts(Counter(known)) if are_known else None
    if not known or is_corrected:
        return Spread(shifts, None)
    sizes = Counter(document for _, _, document in known)
    errors = gate_errors(
        list(sizes.values()),
        (decision.newly_wrong + decision.newly_right) / decision.n_pairs,
        decision.margin,
        level,
        None if shifts is None else shifts.sd,
        documents_known=are_known,
    )
    return Spread(shifts, errors)


def count_unanswered(joined: Joined, metric: str) -> tuple[int, int]:
    """Return the failed searches and abstentions of the new run and of the baseline."""
    sides = ([new for new, _ in joined.pairs], [old for _, old in joined.pairs])
    new, old = (sum(row.states[metric] in _NEVER_ASKED for row in side) for side in sides)
    return new, old


def _coverage(rows: Sequence[Row], metric: str) -> float:
    asked = [row.states[metric] for row in rows if row.states[metric] not in _NEVER_ASKED]
    return sum(state is State.SCORED for state in asked) / len(asked) if asked else 1.0
