"""Decides whether a new run is worse than a baseline: FAIL, PASS or INCONCLUSIVE per metric."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor
from statistics import fmean
from typing import TypeVar

from graphrag.eval.stats.intervals import Score, Structure
from graphrag.eval.stats.paired import (
    MCNEMAR,
    MIN_COVERAGE,
    PLAIN_BOUND,
    Pair,
    PairCounts,
    add_up,
    bonett_price,
    difference_interval,
    difference_test,
    holm,
    structure_of,
    tally_documents,
)
from graphrag.eval.stats.power import ALPHA

MARGIN = 0.05
MAX_COVERAGE_GAP = 0.02
_Key = TypeVar("_Key", bound=Hashable)


class GateOutcome(StrEnum):
    """The three answers; INCONCLUSIVE is not a pass."""

    FAIL = "fail"
    PASS = "pass"
    INCONCLUSIVE = "inconclusive"


def combine_outcomes(outcomes: Iterable[GateOutcome]) -> GateOutcome:
    """Return FAIL if any answer is FAIL, PASS if all are PASS, else INCONCLUSIVE, also for none."""
    answers = set(outcomes)
    if GateOutcome.FAIL in answers:
        return GateOutcome.FAIL
    return GateOutcome.PASS if answers == {GateOutcome.PASS} else GateOutcome.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a gate answers as it does; ``str`` of it is the sentence.

    ``kind``: the words, with {} for each of the ``figures``, which are the formatted numbers.
    """

    kind: str
    figures: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.kind.format(*self.figures)

    def and_also(self, other: "Reason") -> "Reason":
        """Return one reason that gives both."""
        return Reason(f"{self.kind}; {other.kind}", (*self.figures, *other.figures))


_OPEN = Reason("")


@dataclass(frozen=True, slots=True)
class GateCase:
    """One metric of one method in two runs.

    - ``pairs``: (new score, baseline score) per question that both runs had to answer; 0, 1, or
      None if the verdict is missing. ``documents``: the document of each pair.
    - ``margin``: the loss that is still accepted, in (0, 1).
    - ``coverages``: of the new run and the baseline, the share of the verdicts that exist; None:
      taken from the pairs.
    - ``undecided``: why the pairs can't decide, for example because the index is another one.
    - ``assumed``: what the decision takes for granted.
    """

    pairs: Sequence[Pair]
    margin: float = MARGIN
    coverages: tuple[float | None, float | None] = (None, None)
    documents: Sequence[Hashable] | None = None
    undecided: Reason | None = None
    assumed: Reason | None = None


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The gate's answer on one metric of one method; figures of the pairs are None without pairs.

    - ``n_pairs`` questions have both verdicts, ``n_dropped_pairs`` lack one, ``n_baseline`` have a
      score in the baseline.
    - ``difference``: new run less baseline, in [-1, 1]. ``lower_bound``: its one-sided 95 % limit,
      named by ``bound``. ``margin``: the loss that is accepted.
    - ``p``: one-sided, for "newly wrong > newly right", named by ``test``.
    - ``p_family``: the p with which this metric entered Holm's family; if verdicts are missing, the
      p with every missing one in favor of the new run. ``p_holm``: this p, corrected.
    - ``coverage``, ``baseline_coverage``: share of the verdicts that exist.
    - ``is_complete``: whether the pairs allow a decision; INCONCLUSIVE then means too few
      questions.
    """

    outcome: GateOutcome
    reason: Reason
    n_pairs: int
    n_dropped_pairs: int
    newly_wrong: int
    newly_right: int
    difference: float | None
    lower_bound: float | None
    margin: float
    p: float | None
    p_holm: float | None
    coverage: float | None
    baseline_coverage: float | None
    n_baseline: int = 0
    p_family: float | None = None
    test: str = MCNEMAR
    bound: str = PLAIN_BOUND
    is_complete: bool = False


def decide_gates(cases: Mapping[_Key, GateCase]) -> dict[_Key, GateDecision]:
    """Decide on the primary metrics; the tests of several are corrected by Holm's method.

    Verdicts may not be missing at random. If a coverage is below 95 %, the two coverages are more
    than 2 points apart, the pairs are fewer than 95 % of the baseline's scored questions, or there
    are no pairs, the answer is INCONCLUSIVE; it is FAIL only if the test fails even with every
    missing verdict in favor of the new run. The metric stays in the family. In all other cases it
    is FAIL at p <= .05, PASS if the lower bound is above -margin, and INCONCLUSIVE otherwise.

    Raises ValueError if a score is not 0, 1 or None.
    """
    tested = {metric: _test(case) for metric, case in cases.items()}
    family = holm([draft.p_family for draft, _ in tested.values()])
    return {
        metric: _decide(draft, cases[metric], incomplete, p_holm)
        for (metric, (draft, incomplete)), p_holm in zip(tested.items(), family, strict=False)
    }


def _test(case: GateCase) -> tuple[GateDecision, Reason | None]:
    """Return a decision that lacks the answer and the correction, and what is missing for one."""
    pairs = case.pairs
    documents = [document or None for document in case.documents or [None] * len(pairs)]
    counts = Counter[tuple[Score, Score, Hashable]](
        (*pair, document)
        for pair, document in zip(pairs, documents, strict=True)
        if None not in pair
    )
    n, right, wrong = add_up(tally_documents(counts))
    new, old = (
        fmean(pair[side] is not None for pair in pairs) if share is None and pairs else share
        for side, share in enumerate(case.coverages)
    )
    n_baseline = sum(then is not None for _, then in pairs)
    incomplete = _incompleteness(new, old, n, n_baseline)
    p, test = difference_test(counts, "less")
    lower, bound = _lower_bound(counts)
    p_family = p
    if case.undecided is not None:
        p_family = None if p is None else 1.0  # it counts in the family and can't fail
    elif incomplete is not None:
        shares = [share for share in (new, old) if share is not None]
        unseen = ceil((1 - min(shares, default=1.0)) * len(pairs) - 1e-9) - (len(pairs) - n)
        p_family = _best_case(pairs, documents, max(0, unseen))
    draft = GateDecision(
        outcome=GateOutcome.INCONCLUSIVE,
        reason=_OPEN,
        n_pairs=n,
        n_dropped_pairs=len(pairs) - n,
        newly_wrong=wrong,
        newly_right=right,
        difference=(right - wrong) / n if n else None,
        lower_bound=lower,
        margin=case.margin,
        p=p,
        p_holm=None,
        coverage=new,
        baseline_coverage=old,
        n_baseline=n_baseline,
        p_family=p_family,
        test=test,
        bound=bound,
        is_complete=incomplete is None and case.undecided is None and lower is not None,
    )
    return draft, incomplete


def _lower_bound(counts: PairCounts) -> tuple[float | None, str]:
    """Return the one-sided 95 % limit of the difference, and its name.

    The limit is clustered if there are many documents. Few documents could only narrow it: the gate
    does not use that, and pools them.
    """
    tallies = tally_documents(counts)
    if not tallies:
        return None, PLAIN_BOUND
    confidence = 1 - 2 * ALPHA
    n, right, wrong = add_up(tallies)
    if structure_of(tallies) is not Structure.CLUSTERED:
        return bonett_price(right, wrong, n, confidence)[0], PLAIN_BOUND
    low, _, name = difference_interval(counts, confidence)
    return low, name


def _best_case(pairs: Sequence[Pair], documents: Sequence[Hashable], unseen: int) -> float | None:
    """Return the test's p if all that is missing, and ``unseen`` pairs more, favored the new run.

    It is the largest p that the missing verdicts could give: each verdict in favor of the new run
    raises it, by question as well as by document.
    """
    if not pairs:
        return None
    counts = Counter[tuple[Score, Score, Hashable]](
        (1 if new is None else new, 0 if old is None else old, document)
        for (new, old), document in zip(pairs, documents, strict=True)
    )
    if unseen:
        counts[1, 0, None] += unseen
    return difference_test(counts, "less")[0]


def _incompleteness(
    new: float | None, old: float | None, n_pairs: int, n_baseline: int
) -> Reason | None:
    """Return the reason why the pairs can't decide; None if they are enough."""
    shares = {run: s for run, s in (("new run", new), ("baseline", old)) if s is not None}
    for run, share in shares.items():
        if share < MIN_COVERAGE:
            return Reason(
                f"the judge gave {{}} of the verdicts asked of it in the {run}, under 95 %",
                (percent_below(share),),
            )
    if new is not None and old is not None and abs(new - old) > MAX_COVERAGE_GAP + 1e-12:
        return Reason(
            "the judge gave {} of the verdicts asked of it in the new run and {} in the baseline, "
            "{} points apart, over 2",
            (f"{new:.1%}", f"{old:.1%}", f"{ceil(1000 * abs(new - old) - 1e-9) / 10:.1f}"),
        )
    if n_pairs == 0:
        return Reason("there is no question with both verdicts")
    if n_pairs < MIN_COVERAGE * n_baseline:
        return Reason(
            "{} of the baseline's {} scored questions have a verdict to compare with it, {}, under "
            "95 %",
            (f"{n_pairs:,}", f"{n_baseline:,}", percent_below(n_pairs / n_baseline)),
        )
    return None


def _decide(
    draft: GateDecision, case: GateCase, incomplete: Reason | None, p: float | None
) -> GateDecision:
    if case.undecided is not None:
        p, outcome, reason = None, GateOutcome.INCONCLUSIVE, case.undecided
    else:
        outcome, reason = _answer(draft, case, incomplete, p)
    if case.assumed is not None:
        reason = reason.and_also(case.assumed)
    return replace(draft, outcome=outcome, reason=reason, p_holm=p)


def _answer(
    draft: GateDecision, case: GateCase, incomplete: Reason | None, p: float | None
) -> tuple[GateOutcome, Reason]:
    if p is not None and p <= ALPHA:
        worse = "more newly wrong than newly right answers"
        figures = ("p < 0.001" if p < 0.001 else f"p = {p:.3g}",)
        if incomplete is None:
            return GateOutcome.FAIL, Reason(f"{worse} ({{}})", figures)
        saved = "even with all that is missing in favor of the new run"
        return GateOutcome.FAIL, Reason(f"{worse} {saved} ({{}})", figures).and_also(incomplete)
    lower = draft.lower_bound
    if incomplete is not None or lower is None:
        return GateOutcome.INCONCLUSIVE, incomplete or Reason("there is nothing to compare")
    loss = f"{ceil(round(-1000 * min(lower, 0.0), 6)) / 10:.1f}"  # it is at most that
    if lower > -draft.margin:
        ruled_out = "a loss over {} points is ruled out at 95 % confidence"
        return GateOutcome.PASS, Reason(ruled_out, (loss,))
    return GateOutcome.INCONCLUSIVE, Reason(
        "a loss of up to {} points can't be ruled out at 95 % confidence, more than the accepted "
        "loss of {} points",
        (loss, f"{100 * draft.margin:g}"),
    )


def percent_below(share: float) -> str:
    """Return a share below a bound in percent, rounded down, so that 94.96 does not become 95.0."""
    return f"{floor(1000 * share + 1e-9) / 10:.1f}%"
