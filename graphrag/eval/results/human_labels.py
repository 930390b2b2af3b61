"""Reads people's labels of a run, and corrects its means and comparisons by them."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter, ValidationError

from graphrag.eval.results.analysis import Analysis, Comparison, CorrectedComparison
from graphrag.eval.results.scored_rows import QuestionKey, Row, paired_score
from graphrag.eval.stats.family import (
    FamilyFigures,
    Inference,
    compare_family,
    correct_family,
    inference_of,
)
from graphrag.eval.stats.intervals import Score, grouped
from graphrag.eval.stats.label_correction import (
    MIN_LABELS,
    Corrected,
    corrected_difference,
    corrected_mean,
    not_corrected,
)
from graphrag.eval.stats.outcomes import State
from graphrag.eval.stats.paired import PairedDifference, paired_binary
from graphrag.eval.stats.power import ALPHA
from graphrag.eval.store.atomic_files import label_file, run_folder
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.text.cli_hints import eval_line_here

_FILE = TypeAdapter(dict[str, object])
Stratum: TypeAlias = tuple[str, tuple[str, ...]]
"""A document, and how the response of each method on it ended."""


@dataclass(frozen=True, slots=True)
class KeptLabel:
    """The label that a person gave one response."""

    document: str
    id: str
    method: str
    label: Literal[0, 1]


@dataclass(frozen=True, slots=True)
class KeptLabels:
    """The labels of one run and metric, as an import keeps them, without texts of responses.

    ``methods``: those of the run, in the order of the strata. ``fingerprint``: a hash of the run's
    verdicts on the metric; labels are of no use once these change.
    """

    metric: str
    methods: tuple[str, ...]
    fingerprint: str
    responses: tuple[KeptLabel, ...]


class LabelledQuestion(NamedTuple):
    """A question with the judge's scores and people's labels of its responses.

    ``scores``: method -> 0, 1 or None; a failed search is 0 if the metric counts it so. ``judged``:
    the methods whose score is the judge's. ``labels``: method -> 0 or 1.
    """

    key: QuestionKey
    stratum: Stratum
    scores: Mapping[str, int | None]
    judged: Collection[str]
    labels: Mapping[str, int]


Labels: TypeAlias = Sequence[LabelledQuestion] | str
"""A run's questions with the labels on one metric, or a sentence on why those can't be used."""


def judged_questions(
    rows: Iterable[Row], methods: Sequence[str], metric: str
) -> list[LabelledQuestion]:
    """Return the questions of rows with the judge's scores, and no labels yet."""
    questions: list[LabelledQuestion] = []
    for key, of_question in grouped((row.key, row) for row in rows).items():
        by_method = {row.method: row for row in of_question}
        answered = {method: by_method[method] for method in methods if method in by_method}
        scored = [m for m, row in answered.items() if row.states[metric] is State.SCORED]
        ends = {m: row.states[metric].value for m, row in answered.items()}
        ends |= {method: str(answered[method].scores[metric]) for method in scored}
        questions.append(
            LabelledQuestion(
                key=key,
                stratum=(key[0], tuple(ends.get(method, "missing") for method in methods)),
                scores={method: paired_score(row, metric) for method, row in answered.items()},
                judged=scored,
                labels={},
            )
        )
    return questions


def group_code(stratum: Stratum, fingerprint: str) -> str:
    """Return a code for a stratum, so that people who label it don't see its verdicts."""
    return "g" + hash_values([fingerprint, stratum])


def hash_values(values: Sequence[object]) -> str:
    """Return a short hash of JSON-ready values."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=8).hexdigest()


def keep_labels(
    questions: Sequence[LabelledQuestion], methods: Sequence[str], metric: str
) -> KeptLabels:
    """Return a run's labels with what is needed to apply them later."""
    answered = [question for question in questions if question.scores]
    labels = (
        KeptLabel(*question.key, method=method, label=1 if label else 0)
        for question in answered
        for method, label in question.labels.items()
    )
    return KeptLabels(
        metric=metric,
        methods=tuple(methods),
        fingerprint=_fingerprint(answered),
        responses=tuple(labels),
    )


def read_labels(output_dir: Path, run_id: str | None, rows: Sequence[Row]) -> dict[str, Labels]:
    """Read the labels in a run's folder below ``output_dir``: metric -> labels, or why not.

    Labels can be used while the run's verdicts on the metric are as they were. ``run_id``: None if
    the rows are of a file that names no run; it has no labels.
    """
    labels: dict[str, Labels] = {}
    for metric in METRICS if run_id is not None else ():
        path = run_folder(output_dir, run_id or "") / label_file(metric)
        if path.exists():
            labels[metric] = _join_labels(_read(path), rows, metric)
    return labels


def correct_methods(questions: Sequence[LabelledQuestion], methods: Sequence[str]) -> Corrected:
    """Correct the mean of one method, or the difference between two, by labels.

    ``n_labels`` of the result counts the questions that are labeled and known on every method. A
    failed search that counts 0 is known without a label, but does not count towards the least
    number of labels. Only a run that is labeled in part needs that number.
    """
    truths = [[_known(question, method) for method in methods] for question in questions]
    touched = [any(method in question.labels for method in methods) for question in questions]
    n_labels = sum(was and None not in values for was, values in zip(touched, truths, strict=True))
    corrected = _correct_known(questions, methods, truths)
    if n_labels < MIN_LABELS and not (n_labels and corrected.is_complete):
        nothing = [None] * len(methods)
        truths = [v if was else nothing for was, v in zip(touched, truths, strict=True)]
        corrected = _correct_known(questions, methods, truths)
    return replace(corrected, n_labels=n_labels)


def _correct_known(
    questions: Sequence[LabelledQuestion],
    methods: Sequence[str],
    truths: Sequence[Sequence[int | None]],
) -> Corrected:
    draw = (
        [question.stratum for question in questions],
        [question.key[0] or None for question in questions],
        [tuple(method in question.judged for method in methods) for question in questions],
    )
    scores = [[question.scores.get(method) for method in methods] for question in questions]
    if len(methods) == 1:
        return corrected_mean([score for (score,) in scores], [truth for (truth,) in truths], *draw)
    return corrected_difference([(a, b) for a, b in scores], [(a, b) for a, b in truths], *draw)


def _known(question: LabelledQuestion, method: str) -> int | None:
    return (question.labels if method in question.judged else question.scores).get(method)


def _fingerprint(answered: Sequence[LabelledQuestion]) -> str:
    return hash_values(sorted([*question.key, *question.stratum[1]] for question in answered))


def _read(path: Path) -> KeptLabels | str:
    """Return the labels in a file, or a sentence on why there are none."""
    # Its sheet lies in the run's folder where another's was drawn since.
    own = path.with_suffix(".csv")
    sheet = own if own.exists() else path.parents[2] / own.name
    remedy = f"import its sheet again with: {eval_line_here('judge', '--labels', sheet)}"
    try:
        kept = _FILE.validate_json(path.read_bytes()).get("labels")
        if kept is None:
            return f"{path.name} was written without them; {remedy}"
        return TypeAdapter(KeptLabels).validate_python(kept)
    except (OSError, ValidationError):
        return f"{path.name} can't be read; {remedy}"


def _join_labels(kept: KeptLabels | str, rows: Sequence[Row], metric: str) -> Labels:
    if isinstance(kept, str):
        return kept
    labels = grouped(
        ((label.document, label.id), (label.method, label.label)) for label in kept.responses
    )
    questions = [
        question._replace(labels=dict(labels.get(question.key, ())))
        for question in judged_questions(rows, kept.methods, metric)
    ]
    if _fingerprint(questions) != kept.fingerprint:
        return "the verdicts have changed since they were imported; export the audit again"
    return questions


def correct_comparisons(analysis: Analysis, labels: Mapping[str, Labels]) -> Analysis:
    """Return the analysis with scores and comparisons on labeled metrics as labels correct them.

    ``labels``: metric -> labels, see :func:`read_labels`. A comparison that can't be corrected
    keeps its own figures and stays in the family; its ``corrected`` has the reason.
    """
    comparisons: list[Comparison] = []
    for metric, of_metric in grouped((pair.metric, pair) for pair in analysis.comparisons).items():
        comparisons += _correct(of_metric, labels[metric]) if metric in labels else of_metric
    means = {
        metric: {method: _correct_score(run_labels, [method]) for method in analysis.outcomes}
        for metric, run_labels in labels.items()
    }
    return replace(analysis, comparisons=comparisons, corrected_means=means)


def _correct(comparisons: Sequence[Comparison], labels: Labels) -> list[Comparison]:
    changes = [_correct_score(labels, [compared.a, compared.b]) for compared in comparisons]
    family: list[FamilyFigures | None] = [None] * len(comparisons)
    moved = [
        (compared.result, compared.inference)
        if isinstance(labels, str) or change.refused
        else _compare_by_labels(compared, change, labels)
        for compared, change in zip(comparisons, changes, strict=True)
    ]
    results = [result for result, _ in moved]
    margins = [c.family.equivalence_margin for c in comparisons if c.family is not None]
    if all(change.refused for change in changes):
        family = [compared.family for compared in comparisons]
    elif margins:
        results = correct_family(results)
        level = ALPHA / max(1, sum(result.p is not None for result in results))
        results = [
            result
            if change.refused or change.is_complete
            else replace(result, detectable_at_80=change.detectable(level))
            for result, change in zip(results, changes, strict=True)
        ]
        family = [*compare_family(results, [inference for _, inference in moved], margins[0])]
    return [_decide(*parts) for parts in zip(comparisons, changes, results, family, strict=True)]


def _correct_score(labels: Labels, methods: Sequence[str]) -> Corrected:
    """Return the correction of a mean or a difference, or why there is none."""
    if isinstance(labels, str):
        return not_corrected(labels)
    return correct_methods(labels, methods)


def _compare_by_labels(
    compared: Comparison, change: Corrected, questions: Sequence[LabelledQuestion]
) -> tuple[PairedDifference, Inference]:
    """Return a comparison's result and inference by labels.

    If labels cover every pair, they are compared as any scores are.
    """
    result = _corrected_result(compared.result, change)
    if not change.is_complete:
        return result, Inference(partial(_cut_limits, change), change.outside)
    counts = Counter[tuple[Score, Score, Hashable]](
        (a, b, question.key[0] or None)
        for question in questions
        for a, b in [(_known(question, compared.a), _known(question, compared.b))]
        if a is not None and b is not None
    )
    names = ("n_pairs", "n10", "n01", "discordance", "detectable_at_80", "test")
    own = paired_binary(counts)
    result = replace(result, **{name: getattr(own, name) for name in names})
    return result, inference_of(result, counts)


def _corrected_result(result: PairedDifference, corrected: Corrected) -> PairedDifference:
    """Return the result with the corrected difference, test and limits instead of its own."""
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
        test="of the interval",
        is_graded=False,
    )


def _cut_limits(corrected: Corrected, confidence: float) -> tuple[float, float]:
    low, high = corrected.limits(confidence)
    return max(low, -1.0), min(high, 1.0)


def _decide(
    compared: Comparison, change: Corrected, result: PairedDifference, family: FamilyFigures | None
) -> Comparison:
    if change.refused is not None:
        # Its own figures, but in a family with corrected p values.
        corrected = CorrectedComparison(refused=change.refused, n_labels=change.n_labels)
        return replace(compared, result=result, family=family, corrected=corrected)
    corrected = CorrectedComparison(
        refused=None,
        n_labels=change.n_labels,
        result=result,
        family=family,
        se=change.se,
        judged_alone=compared.verdict,
    )
    return replace(compared, corrected=corrected)
