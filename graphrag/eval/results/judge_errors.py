"""What a judge's errors do to comparisons, corrected by labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from graphrag.eval.errors import UsageError
from graphrag.eval.results.corrections import CorrectedComparison
from graphrag.eval.results.judge_labels import LabelledQuestion, RunLabels, Stratum, correct_methods
from graphrag.eval.results.rows import Row
from graphrag.eval.results.summary import Analysis, Comparison
from graphrag.eval.stats.correction import Corrected
from graphrag.eval.stats.estimates import Estimate
from graphrag.eval.stats.family import FamilyFigures, Inference, compare_family, correct_family
from graphrag.eval.stats.gate import ALPHA
from graphrag.eval.stats.judge_error import corrected_change
from graphrag.eval.stats.paired import Pair, PairedDifference
from graphrag.eval.stats.verdicts import shown_sign, verdict_in_words

NO_SPREAD = "no label and no verdict differs from the others, which leaves no interval"


def correct_comparisons(analysis: Analysis, found: Mapping[str, RunLabels]) -> Analysis:
    """Decide the comparisons on labelled metrics by what the labels correct them to.

    Parameters
    ----------
    analysis : Analysis
    found : dict
        Metric -> the run's labels, see ``read_labels``.

    Returns
    -------
    Analysis
        ``corrected`` of each comparison on those metrics, and its verdict by it. A comparison
        that is not corrected keeps its own figures, and its place in the family.
    """
    comparisons: list[Comparison] = []
    for metric in dict.fromkeys(compared.metric for compared in analysis.comparisons):
        of_metric = [each for each in analysis.comparisons if each.metric == metric]
        labels = found.get(metric)
        comparisons += of_metric if labels is None else _correct(of_metric, labels)
    return replace(analysis, comparisons=comparisons)


def correct_change(
    pairs: Sequence[tuple[Row, Row]],
    scores: Sequence[Pair],
    method: str,
    new: RunLabels | None,
    baseline: RunLabels | None,
) -> Corrected | None:
    """Correct the difference between two runs by the labels of both.

    Parameters
    ----------
    pairs : sequence of (Row, Row)
        New row and baseline row of each question that both hold.
    scores : sequence of (new, baseline)
        What they count in the comparison, 0, 1 or None; same length.
    method : str
    new, baseline : RunLabels or None
        Of the metric; None for a run without labels.

    Returns
    -------
    Corrected or None
        None when neither run has labels.
    """
    sides = (new, baseline)
    if new is None and baseline is None:
        return None
    for name, side in zip(("the new run", "the baseline"), sides, strict=True):
        if side is None or side.refused is not None:
            why = "no labels" if side is None else f"labels that can't be used: {side.refused}"
            return refuse_change(f"{name} has {why}")
    cells = [(_cell(new, row, method), _cell(baseline, old, method)) for row, old in pairs]
    return corrected_change(
        scores,
        [(of_new.label, of_old.label) for of_new, of_old in cells],
        [(of_new.stratum, of_old.stratum) for of_new, of_old in cells],
        [row.document or old.document or None for row, old in pairs],
    )


def refuse_change(why: str) -> Corrected:
    """Return a difference that is not corrected."""
    return Corrected(None, Estimate(None, 0, None, None, "labels of both runs"), 0, why)


class _Cell(NamedTuple):
    """A response's label, and the group that it was drawn in: none where none is needed."""

    label: int | None
    stratum: Stratum | None


def _cell(labels: RunLabels | None, row: Row, method: str) -> _Cell:
    question = None if labels is None else labels.questions[row.key]
    if question is None or method not in question.judged:
        return _Cell(None, None)
    return _Cell(question.labels.get(method), question.stratum)


def _correct(comparisons: Sequence[Comparison], labels: RunLabels) -> list[Comparison]:
    questions = list(labels.questions.values())
    found: list[Corrected | None] = []
    refused: list[CorrectedComparison] = []
    for compared in comparisons:
        corrected, why = _correct_pair(questions, compared, labels.refused)
        refused.append(CorrectedComparison(why, 0 if corrected is None else corrected.n_labels))
        found.append(None if why else corrected)
    results = [
        compared.result if corrected is None else corrected_result(compared.result, corrected)
        for compared, corrected in zip(comparisons, found, strict=True)
    ]
    if not any(found):
        return [
            replace(each, corrected=kept) for each, kept in zip(comparisons, refused, strict=True)
        ]
    family: list[FamilyFigures | None] = [None] * len(results)
    margins = [c.family.equivalence_margin for c in comparisons if c.family is not None]
    if margins:
        results = correct_family(results)
        n_tests = max(1, sum(result.p is not None for result in results))
        results = [
            result
            if corrected is None
            else replace(result, detectable_at_80=corrected.detectable(ALPHA / n_tests))
            for result, corrected in zip(results, found, strict=True)
        ]
        inferences = [
            compared.inference if corrected is None else _inference(corrected)
            for compared, corrected in zip(comparisons, found, strict=True)
        ]
        family = list(compare_family(results, inferences, margins[0]))
    return [
        _decided(*each) for each in zip(comparisons, found, refused, results, family, strict=True)
    ]


def _correct_pair(
    questions: Sequence[LabelledQuestion], compared: Comparison, refused: str | None
) -> tuple[Corrected | None, str | None]:
    """Return the correction, and why it can't be used."""
    if refused is not None:
        return None, refused
    try:
        corrected = correct_methods(questions, [compared.a, compared.b])
    except UsageError as error:  # a package is missing, and a run is shown even so
        return None, str(error).removesuffix(".")
    return corrected, corrected.refused or (NO_SPREAD if corrected.se is None else None)


def corrected_result(result: PairedDifference, corrected: Corrected) -> PairedDifference:
    """Return the result with the corrected difference, test and limits in place of its own."""
    estimate, bounds = corrected.estimate, result.difference_bounds
    if bounds is not None and estimate.mean is not None and result.difference is not None:
        moved = (result.coverage or 0) * (estimate.mean - result.difference)
        bounds = (max(bounds[0] + moved, -1.0), min(bounds[1] + moved, 1.0))
    return replace(
        result,
        difference=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        p=corrected.p,
        p_holm=None,
        detectable_at_80=corrected.detectable(ALPHA),
        difference_bounds=bounds,
        interval=estimate.method,
    )


def _inference(corrected: Corrected) -> Inference:
    def limits(confidence: float) -> tuple[float, float]:
        low, high = corrected.limits(confidence)
        return max(low, -1.0), min(high, 1.0)

    return Inference(limits, corrected.outside)


def _decided(
    compared: Comparison,
    corrected: Corrected | None,
    kept: CorrectedComparison,
    result: PairedDifference,
    family: FamilyFigures | None,
) -> Comparison:
    words = verdict_in_words(result, compared.a, compared.b, family=family)
    compared = replace(compared, sign=shown_sign(result))
    if corrected is None:
        # Its own figures, but the place in a family that holds corrected p values.
        return replace(compared, corrected=kept, result=result, family=family, verdict=words)
    filled = replace(
        kept,
        difference=result.difference,
        low=result.low,
        high=result.high,
        se=corrected.se,
        p=result.p,
        p_holm=result.p_holm,
        detectable_at_80=result.detectable_at_80,
        interval=result.interval,
        judged_alone=compared.verdict,
    )
    if family is not None:
        filled = replace(
            filled,
            low_simultaneous=family.low_simultaneous,
            high_simultaneous=family.high_simultaneous,
            p_equivalence=family.p_equivalence,
            is_equivalent=family.is_equivalent,
        )
    verdict = f"{words} (corrected by labels on {kept.n_labels} questions)"
    return replace(compared, corrected=filled, verdict=verdict)
