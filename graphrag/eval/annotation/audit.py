"""An audit of the judge: which responses a person labels, and what the labels say of it.

Questions are drawn within document x verdicts, the verdicts being those on every method at once:
so one draw serves the means and the paired differences alike.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from graphrag.command_lines import eval_line_here
from graphrag.eval.errors import UsageError
from graphrag.eval.judged import JUDGED_METRICS, METRICS
from graphrag.eval.report.cells import EACH_ALONE, number, percent, points, share, span
from graphrag.eval.report.table import Line, Part, Table
from graphrag.eval.results.labels import (
    KeptLabels,
    LabelledQuestion,
    Stratum,
    correct_methods,
    group_code,
    hash_values,
    keep_labels,
    question_stratum,
)
from graphrag.eval.results.rows import paired_score
from graphrag.eval.results.runs import stored_metadata, stored_rows
from graphrag.eval.stats.agreement import BinaryAgreement, binary_agreement
from graphrag.eval.stats.correction import Corrected, draw_for_labels
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import find_run

_Labels: TypeAlias = Mapping[tuple[str, str], int]  # (question id, method) -> label


@dataclass(frozen=True, slots=True)
class AuditedResponse:
    """A response that the judge scored."""

    response: str
    context: str
    verdict: int


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
    """A question of an audited run; scores and what the judge scored are by method.

    A failed search has the score 0 where the metric says so, and is not ``judged``.
    """

    id: str
    document: str
    question: str
    ground_truth: str
    stratum: Stratum
    scores: Mapping[str, int | None]
    judged: Mapping[str, AuditedResponse]


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """A run as far as the audit of one metric needs it."""

    run_id: str
    metric: str
    is_finished: bool
    methods: tuple[str, ...]
    questions: tuple[AuditedQuestion, ...]
    embedded_models: str | None = None


@dataclass(frozen=True, slots=True)
class AuditItem:
    """A response to label; neither its method nor its verdict can be seen in it.

    Attributes
    ----------
    item, group : str
        Codes of the response, and of the stratum of its question in the run as it was drawn.
    context : str
        Empty unless the metric is about it.
    label : int or None
        0, 1, or None when not labelled.
    """

    item: str
    run: str
    metric: str
    group: str
    question: str
    ground_truth: str
    response: str
    context: str = ""
    label: int | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The judge against the labels, on one method or on all.

    Attributes
    ----------
    weighted : BinaryAgreement
        Each label counts for the responses that it stands for.
    alpha_unweighted : float or None
        Krippendorff's alpha of the labelled responses alone, as drawn; None when every verdict
        and label is the same.
    """

    weighted: BinaryAgreement
    alpha_unweighted: float | None


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """``a - b`` between two methods, before and after the correction."""

    a: str
    b: str
    corrected: Corrected


@dataclass(frozen=True, slots=True)
class Audit:
    """What the labels say of the judge; agreement and means are by method.

    Attributes
    ----------
    n_items, n_labels : int
        Responses in the file, and those with a label.
    overall : JudgeAgreement
        All methods' responses together. Those to one question are not independent, which the
        limits leave out.
    differences : tuple of CorrectedDifference
        Every pair of methods; the limits are not adjusted for their number.
    embedded_models : str or None
        Their label when they had a part.
    labels : KeptLabels or None
        What later corrections of the run's comparisons need.
    """

    run_id: str
    metric: str
    n_items: int
    n_labels: int
    overall: JudgeAgreement
    agreement: dict[str, JudgeAgreement]
    means: dict[str, Corrected]
    differences: tuple[CorrectedDifference, ...]
    embedded_models: str | None = None
    labels: KeptLabels | None = None


def read_audited_run(store: EvaluationStore, name: str, metric: str) -> AuditedRun:
    """Read a run's responses and verdicts on one metric.

    Parameters
    ----------
    store : EvaluationStore
    name : str
        A run id, the beginning of one, or "latest".
    metric : str

    Raises
    ------
    UsageError
        If there is no such run or metric, or the run has no verdict on it or no question text.
    """
    if metric not in METRICS:
        msg = f"There is no metric {metric!r}; choose one of {', '.join(METRICS)}."
        raise UsageError(msg)
    run = find_run(store.runs(), name, store.path)
    samples = store.samples(run.run_id)
    if not samples:
        msg = f"Run {run.run_id} was kept without its questions; run the evaluation again."
        raise UsageError(msg)
    methods = run.setup.methods
    rows = {(row.question_id, row.method): row for row in stored_rows(store, run)}
    responses = {
        (r.sample_id, r.method): r for r in store.responses(run.run_id).values() if r.trial == 0
    }
    questions: list[AuditedQuestion] = []
    for sample in samples:
        of_method = {m: rows[sample.id, m] for m in methods if (sample.id, m) in rows}
        unasked: Stratum = (sample.imdb_key, ("missing",) * len(methods))
        texts = {m: responses[sample.id, m] for m in of_method}
        questions.append(
            AuditedQuestion(
                id=sample.id,
                document=sample.imdb_key,
                question=sample.question,
                ground_truth=sample.ground_truth,
                stratum=question_stratum(of_method, methods, metric) if of_method else unasked,
                scores={method: paired_score(row, metric) for method, row in of_method.items()},
                judged={
                    m: AuditedResponse(texts[m].response, texts[m].context_text, verdict)
                    for m, row in of_method.items()
                    if (verdict := row.scores[metric]) is not None
                },
            )
        )
    if not any(question.judged for question in questions):
        msg = (
            f"Run {run.run_id} has no verdict on {metric}; judge it first: "
            f"{eval_line_here('judge', run.run_id, '--metrics', metric)}"
        )
        raise UsageError(msg)
    label, is_finished = stored_metadata(store, run).embedded_models, run.status == "finished"
    return AuditedRun(run.run_id, metric, is_finished, methods, tuple(questions), label)


def draw_items(run: AuditedRun, n_questions: int, seed: int = 0) -> list[AuditItem]:
    """Draw questions at random within document x verdicts; return their scored responses.

    Parameters
    ----------
    run : AuditedRun
    n_questions : int
        Questions wanted, >= 1; more when there are more strata, fewer when there are fewer
        questions. A question that no method has a verdict on is not drawn.
    seed : int
        The same seed draws the same items in the same, shuffled, order.
    """
    drawable = [question for question in run.questions if question.judged]
    drawn = draw_for_labels([question.stratum for question in drawable], n_questions, seed)
    fingerprint = _fingerprint(run)
    is_about_context = JUDGED_METRICS[run.metric].reads_context
    items = [
        AuditItem(
            item=_item_code(run, question, method),
            run=run.run_id,
            metric=run.metric,
            group=group_code(question.stratum, fingerprint),
            question=question.question,
            ground_truth=question.ground_truth,
            response=judged.response,
            context=judged.context if is_about_context else "",
        )
        for question in (drawable[row] for row in drawn)
        for method, judged in question.judged.items()
    ]
    random.Random(seed).shuffle(items)
    return items


def _fingerprint(run: AuditedRun) -> str:
    """Return what makes group codes those of this run: any changed verdict changes them."""
    return hash_values([run.run_id, run.metric, *((q.id, q.stratum) for q in run.questions)])


def _item_code(run: AuditedRun, question: AuditedQuestion, method: str) -> str:
    """Return a code that only the store can be used to decipher."""
    judged = question.judged[method]
    # A letter in front: a spreadsheet would take 12e34567 for a number.
    return "r" + hash_values(
        [run.run_id, run.metric, question.id, method, judged.response, judged.context]
    )


def analyse_audit(run: AuditedRun, items: Sequence[AuditItem]) -> Audit:
    """Compare the judge with the labels, and correct its means and differences by them.

    Parameters
    ----------
    run : AuditedRun
        The run as the store has it now.
    items : sequence of AuditItem
        As they were drawn, with labels; an item that was taken out counts as not labelled.

    Raises
    ------
    UsageError
        If the run's verdicts are not those of the draw, an item is not of the run or comes
        twice, or the packages of the extra ``audit`` are missing.
    """
    labels = _read_labels(run, items)
    questions = [
        LabelledQuestion(
            key=(question.document, question.id),
            stratum=question.stratum,
            scores=question.scores,
            judged=question.judged,
            labels={m: labels[question.id, m] for m in run.methods if (question.id, m) in labels},
        )
        for question in run.questions
    ]
    return Audit(
        run_id=run.run_id,
        metric=run.metric,
        n_items=len(items),
        n_labels=len(labels),
        overall=_agree(run, labels, run.methods),
        agreement={method: _agree(run, labels, [method]) for method in run.methods},
        means={method: correct_methods(questions, [method]) for method in run.methods},
        differences=tuple(
            CorrectedDifference(a, b, correct_methods(questions, [a, b]))
            for a, b in combinations(run.methods, 2)
        ),
        embedded_models=run.embedded_models,
        labels=keep_labels(questions, run.methods, run.metric),
    )


def _read_labels(run: AuditedRun, items: Sequence[AuditItem]) -> _Labels:
    fingerprint = _fingerprint(run)
    known = {
        _item_code(run, question, method): (
            (question.id, method),
            group_code(question.stratum, fingerprint),
        )
        for question in run.questions
        for method in question.judged
    }
    groups = {group for _, group in known.values()}
    labels: dict[tuple[str, str], int | None] = {}
    for item in items:
        key, group = known.get(item.item, (("", ""), None))
        msg = ""
        if item.group not in groups:
            msg = (
                f"The verdicts of run {run.run_id} on {run.metric} have changed since the export; "
                "export the audit again."
            )
        elif key in labels:
            msg = f"Item {item.item} is there twice; keep one of its rows."
        elif group != item.group:
            msg = (
                f"Item {item.item} of group {item.group} was not drawn from run {run.run_id}; "
                "leave the columns item, run, metric and group as they were exported."
            )
        if msg:
            raise UsageError(msg)
        labels[key] = item.label
    return {key: label for key, label in labels.items() if label is not None}


def _agree(run: AuditedRun, labels: _Labels, methods: Sequence[str]) -> JudgeAgreement:
    labelled = [
        (question.judged[method].verdict, labels[question.id, method], (question.stratum, method))
        for question in run.questions
        for method in methods
        if (question.id, method) in labels
    ]
    sizes = Counter((q.stratum, method) for q in run.questions for method in q.judged)
    drawn = Counter(cell for _, _, cell in labelled)
    judge = [verdict for verdict, _, _ in labelled]
    human = [label for _, label, _ in labelled]
    weights = [sizes[cell] / drawn[cell] for _, _, cell in labelled]
    return JudgeAgreement(
        weighted=binary_agreement(judge, human, weights),
        alpha_unweighted=binary_agreement(judge, human).alpha,
    )


def list_audit(audit: Audit) -> list[Part]:
    """Return the judge's agreement with the labels, and the corrected figures beside the judge's.

    Then why figures were not corrected, a line each reason.
    """
    note = f" ({audit.embedded_models})" if audit.embedded_models else ""
    agreement = {
        **audit.agreement,
        **({"all methods": audit.overall} if len(audit.agreement) > 1 else {}),
    }
    pairs = {f"{each.a} - {each.b}": each.corrected for each in audit.differences}
    refused: dict[str, list[str]] = {}
    for name, corrected in {**audit.means, **pairs}.items():
        if corrected.refused is not None:
            refused.setdefault(corrected.refused, []).append(name)
    return [
        Table(
            f"The judge against {audit.n_labels} labels: {audit.metric}, run {audit.run_id} "
            f"(95 % interval){note}",
            [
                *(("method", "text"), ("labels", "count"), ("sensitivity %", "percent")),
                *(("specificity %", "percent"), ("agreement %", "percent")),
                ("kappa, AC1, alpha", "interval"),
            ],
            [[method, *_agreement_cells(each)] for method, each in agreement.items()],
            EACH_ALONE,
        ),
        Table(
            f"Means and differences in percentage points{note}",
            [
                *(("", "text"), ("labels", "count"), ("by the judge", "percent")),
                *(("corrected", "percent"), ("95 % interval", "interval")),
            ],
            [
                [
                    *(name, corrected.n_labels, shown(corrected.uncorrected)),
                    shown(corrected.estimate.mean),
                    span(corrected.estimate.low, corrected.estimate.high, shown),
                ]
                for figures, shown in ((audit.means, share), (pairs, points))
                for name, corrected in figures.items()
            ],
            EACH_ALONE,
        ),
        *(Line(f"Not corrected ({', '.join(names)}): {why}.") for why, names in refused.items()),
    ]


def _agreement_cells(agreement: JudgeAgreement) -> list[str]:
    found = agreement.weighted
    alpha = agreement.alpha_unweighted if found.alpha is None else found.alpha
    return [
        str(found.n),
        *map(percent, (found.sensitivity, found.specificity, found.raw_agreement)),
        ", ".join(map(number, (found.kappa, found.ac1, alpha))),
    ]
