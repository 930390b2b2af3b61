"""The pinned baseline: a run's rows beside the store."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from graphrag.command_lines import eval_line_here
from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.compare.changes import (
    SideLabels,
    changed_indexes,
    correct_pairs,
    list_setup_changes,
    usable,
    what_is_assumed,
    why_undecided,
)
from graphrag.eval.compare.figures import (
    FigureComparison,
    FigureKey,
    changed_under,
    compared_figure,
    hold_back,
)
from graphrag.eval.compare.pairing import (
    Flip,
    Joined,
    MetricPairs,
    QuestionChange,
    changes_of,
    check_questions,
    flips_of,
    join_rows,
    pairs_of_metric,
)
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.records import METRICS
from graphrag.eval.results.labels import corrected_result
from graphrag.eval.results.rows import Row
from graphrag.eval.results.runs import PinnedBaseline, RunMetadata, RunRows
from graphrag.eval.stats.correction import Corrected
from graphrag.eval.stats.gates import (
    MARGIN,
    FigureCase,
    GateCase,
    GateDecision,
    GateOutcome,
    check_figure,
    combine_outcomes,
    decide_figure,
    decide_gates,
)
from graphrag.eval.stats.intervals import Score
from graphrag.eval.stats.outcomes import State
from graphrag.eval.stats.paired import (
    PairedDifference,
    correct_family,
    holm,
    paired_binary,
    verdict_in_words,
)
from graphrag.eval.store.lookup import baseline_path
from graphrag.eval.store.whole_files import replace_files


def pin_baseline(run: RunRows, store_path: Path) -> Path:
    """Copy a run's rows beside the store as the pinned baseline and return the file.

    Raises
    ------
    UsageError
        If the run holds no row.
    StoreError
        If the file can't be written.
    """
    if not run.rows:
        msg = f"{run.metadata.name} holds no response to compare with; pin another run."
        raise UsageError(msg)
    path = baseline_path(store_path)
    pinned = PinnedBaseline(
        format=1,
        pinned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        metadata=run.metadata,
        rows=run.rows,
    )
    try:
        replace_files({path: pinned.model_dump_json(indent=1) + "\n"})
    except OSError as error:
        msg = f"{path} can't be written ({error.strerror}); choose another --output."
        raise StoreError(msg) from error
    return path


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


NEW, BASELINE = "new run", "baseline"


@dataclass(frozen=True, slots=True)
class GateTerms:
    """On what terms the gate decides.

    Attributes
    ----------
    accept_index_change : bool
        Decide although indexes changed, as if questions were independent.
    margins : dict
        Metric -> the loss accepted there, in (0, 1), where it is not that of the others.
    figures : dict
        (method, figure) -> what is to be decided on beside verdicts, see ``read_gate_figures``;
        one family with the verdicts.
    labels : dict
        Metric -> labels of the new run and of the baseline, see ``read_both_labels``.
    """

    accept_index_change: bool = False
    margins: Mapping[str, float] = field(default_factory=dict[str, float])
    figures: Mapping[FigureKey, FigureCase] = field(default_factory=dict[FigureKey, FigureCase])
    labels: Mapping[str, SideLabels] = field(default_factory=dict[str, SideLabels])


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """One method on one metric in two runs.

    Attributes
    ----------
    method, metric : str
    difference : PairedDifference
        New run less baseline, over the pairs of the gate.
    verdict : str
        The difference in words, by the two-sided test.
    decision : GateDecision
        The gate's answer, by the one-sided test.
    only_new, only_baseline : tuple of str
        Ids of the questions that only one of the runs holds.
    n_unanswered : tuple of int
        Failed searches and abstentions that count as not done well, of the new run and the
        baseline, among the questions that both hold.
    changed_indexes : tuple of str
        Documents whose index is another now.
    corrected : Corrected or None
        What labels say of the difference, or why they can't; None without any.
    corrected_difference : PairedDifference or None
        The difference with that in its place, which the verdict is by; None where it is not
        corrected.
    flips : tuple of Flip
        The questions that the decision counts as newly wrong and newly right.
    """

    method: str
    metric: str
    difference: PairedDifference
    verdict: str
    decision: GateDecision
    only_new: tuple[str, ...]
    only_baseline: tuple[str, ...]
    n_unanswered: tuple[int, int] = (0, 0)
    changed_indexes: tuple[str, ...] = ()
    corrected: Corrected | None = None
    corrected_difference: PairedDifference | None = None
    flips: tuple[Flip, ...] = ()


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs compared; every surface shows what stands here.

    Attributes
    ----------
    new, baseline : RunMetadata
    items : tuple of MethodComparison
        Empty only where figures alone are compared.
    warnings : tuple of str
        What makes the comparison weaker than it looks.
    figures : tuple of FigureComparison
        What else the gate was asked to decide on.
    questions : tuple of QuestionChange
        What became of every question that either run holds, on every metric compared.
    """

    new: RunMetadata
    baseline: RunMetadata
    items: tuple[MethodComparison, ...]
    warnings: tuple[str, ...]
    figures: tuple[FigureComparison, ...] = ()
    questions: tuple[QuestionChange, ...] = ()

    @property
    def flips(self) -> tuple[Flip, ...]:
        """Every question that flipped, item by item."""
        return tuple(flip for item in self.items for flip in item.flips)

    @property
    def outcome(self) -> GateOutcome:
        """FAIL if any item or figure fails, PASS if all pass, else INCONCLUSIVE."""
        return combine_outcomes([each.decision for each in (*self.items, *self.figures)])


def compare_runs(
    new: RunRows,
    baseline: RunRows,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    margin: float = MARGIN,
    terms: GateTerms | None = None,
) -> RunComparison:
    """Compare two runs, joined on documents and question ids.

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
    terms : GateTerms, optional

    Raises
    ------
    UsageError
        If a method, metric or margin can't be compared, both are the same run, or questions under
        the same id are others.
    """
    if metrics is None:
        shared = shared_metrics(new.metrics, baseline.metrics)
        metrics = ["correctness" if "correctness" in shared else shared[0]]
    terms = terms or GateTerms()
    margins = {metric: terms.margins.get(metric, margin) for metric in metrics}
    _check(new, baseline, metrics, (margin, *margins.values()), bool(terms.figures))
    chosen = _choose_methods(new.rows, baseline.rows, methods)
    joined = {method: join_rows(new.rows, baseline.rows, method) for method in chosen}
    doubts = check_questions(joined)
    keys = [(method, metric) for method in chosen for metric in metrics]
    pairs = {key: pairs_of_metric(joined[key[0]], key[1]) for key in keys}
    found = {
        key: case_of(new, baseline, key, joined[key[0]], pairs[key], terms.accept_index_change)
        for key in keys
    }
    changes = {
        key: correct_pairs(joined[key[0]], pairs[key], key, terms.labels, case)
        for key, (case, _) in found.items()
    }
    cases = {
        key: replace(case, corrected=change)
        for key, (case, _) in found.items()
        for change in [usable(changes[key])]
    }
    asked = {key: case for key, case in terms.figures.items() if key[0] in chosen}
    rebuilt = {key: changed_under(key, case, new, baseline) for key, case in asked.items()}
    if not terms.accept_index_change:
        asked = {key: hold_back(case, rebuilt[key]) for key, case in asked.items()}
    tests = {key: check_figure(case) for key, case in asked.items()}
    further = [test.p_family for test in tests.values()]
    decisions = decide(pairs, joined, margins, cases, further)
    family = [*(decision.p_family for decision in decisions.values()), *further]
    results = [_difference(pairs[key]) for key in keys]
    decided = [
        result if change is None else corrected_result(result, change)
        for key, result in zip(keys, results, strict=True)
        for change in [usable(changes[key])]
    ]
    items = tuple(
        MethodComparison(
            method=key[0],
            metric=key[1],
            difference=result,
            verdict=verdict_in_words(shown, NEW, BASELINE),
            decision=decisions[key],
            only_new=tuple(row.question_id for row in joined[key[0]].new),
            only_baseline=tuple(row.question_id for row in joined[key[0]].baseline),
            n_unanswered=count_unanswered(joined[key[0]], key[1]),
            changed_indexes=tuple(found[key][1]),
            corrected=changes[key],
            corrected_difference=None if usable(changes[key]) is None else shown,
            flips=flips_of(joined[key[0]], *key),
        )
        for key, result, shown in zip(
            keys, correct_family(results), correct_family(decided), strict=True
        )
    )
    warnings = _list_setup_warnings(new.metadata, baseline.metadata, chosen) + doubts
    if methods is None:
        warnings += _list_lone_methods(new.rows, baseline.rows, chosen)
    figures = tuple(
        compared_figure(
            key, decide_figure(test, p), rebuilt[key] if terms.accept_index_change else ()
        )
        for (key, test), p in zip(tests.items(), holm(family)[len(keys) :], strict=True)
    )
    questions = changes_of(joined, metrics, (NEW, BASELINE))
    return RunComparison(
        new.metadata, baseline.metadata, items, tuple(warnings), figures, questions
    )


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
            f"judge a run again with: {eval_line_here('judge', 'RUN', '--metrics', 'NAME')}"
        )
        raise UsageError(msg)
    return shared


def _check(
    new: RunRows,
    baseline: RunRows,
    metrics: Sequence[str],
    margins: Sequence[float],
    has_figures: bool,
) -> None:
    for margin in margins:
        if 0 < margin < 1:
            continue
        msg = f"The margin must lie between 0 and 1, not {margin:g}."
        raise UsageError(msg)
    if new.metadata.run_id is not None and new.metadata.run_id == baseline.metadata.run_id:
        msg = f"Both sides are run {new.metadata.run_id}; name another run to compare with."
        raise UsageError(msg)
    if not metrics and not has_figures:
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


def _difference(pairs: MetricPairs) -> PairedDifference:
    counts = Counter[tuple[Score, Score, Hashable]](
        (*pair, document or None)
        for pair, document in zip(pairs.scores, pairs.documents, strict=True)
    )
    return paired_binary(counts, view_documents=bool(counts) and all(pairs.documents))


def _list_setup_warnings(
    new: RunMetadata, baseline: RunMetadata, methods: Sequence[str]
) -> list[str]:
    warnings: list[str] = []
    for name, side in ((NEW, new), (BASELINE, baseline)):
        if side.status == "unfinished":
            warnings.append(f"the {name} is unfinished")
    facts = (new.indexes, baseline.indexes)
    return warnings + list_setup_changes(new.setup, baseline.setup, methods, facts)


def _list_lone_methods(
    new: Sequence[Row], baseline: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    sides = ((NEW, _methods(new)), (BASELINE, _methods(baseline)))
    alone = {name: [m for m in methods if m not in chosen] for name, methods in sides}
    return [f"only the {name} holds {', '.join(found)}" for name, found in alone.items() if found]
