"""Audits a judge: draws responses for a person to label, and compares the judge with the labels.

Questions are drawn within document x verdicts, where the verdicts are on all methods
together: one draw then serves both the means and the paired differences.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import UsageError
from graphrag.eval.metrics.assertions import AssertionEvaluation
from graphrag.eval.report.formatting import EACH_ALONE, number, percent, points, share, span
from graphrag.eval.report.table import Line, Part, Table
from graphrag.eval.results.human_labels import (
    KeptLabels,
    LabelledQuestion,
    correct_methods,
    group_code,
    hash_values,
    judged_questions,
    keep_labels,
)
from graphrag.eval.results.runs import stored_metadata, stored_rows
from graphrag.eval.stats.agreement import BinaryAgreement, binary_agreement
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.label_correction import Corrected, draw_for_labels
from graphrag.eval.store.database import EvaluationStore, find_run
from graphrag.eval.store.records import StoredResponse
from graphrag.eval.types.metric_definitions import JUDGED_METRICS, METRICS
from graphrag.text.cli_hints import eval_line_here


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """The parts of a run that the audit of one metric needs.

    - ``questions``: the questions, without labels. ``texts``: question id -> its sample.
    - ``responses``: by question id and method.
    - ``all_vital_met``: for correctness, whether a response meets all vital assertions, 0 or 1.
    """

    run_id: str
    metric: str
    is_finished: bool
    methods: tuple[str, ...]
    questions: tuple[LabelledQuestion, ...]
    texts: Mapping[str, Sample]
    responses: Mapping[tuple[str, str], StoredResponse]
    embedded_models: str | None = None
    all_vital_met: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])


@dataclass(frozen=True, slots=True)
class AuditItem:
    """A response to label, which shows neither its method nor its verdict.

    ``item`` and ``group`` are codes: of the response, and of its question's stratum in the run when
    it was drawn. ``context`` is empty unless the metric is about it. ``label`` is 0, 1 or None.
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
    """The judge's agreement with the labels, on one method or on all.

    In ``weighted``, each label counts for the responses that it represents. ``alpha_unweighted`` is
    Krippendorff's alpha of the labeled responses as drawn; None if every verdict and label is the
    same.
    """

    weighted: BinaryAgreement
    alpha_unweighted: float | None


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """The difference ``a - b`` of two methods, before and after the correction."""

    a: str
    b: str
    corrected: Corrected


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of comparing the judge with labels; ``agreement`` and ``means`` are by method.

    - ``n_items``: responses in the file. ``n_labels``: how many of them have a label.
    - ``overall``: the agreement over all methods. Responses to one question are not independent,
      which the limits ignore.
    - ``differences``: of every pair of methods; their limits are not adjusted for their number.
    - ``labels``: kept with the run, so that its comparisons can be corrected later.
    - ``by_assertions``: name -> agreement over all methods: assertions with labels, verdicts with
      the same labels, and assertions with verdicts on all responses that have both. Empty without
      assertions.
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
    by_assertions: Mapping[str, JudgeAgreement] = field(default_factory=dict[str, JudgeAgreement])


def read_audited_run(store: EvaluationStore, name: str, metric: str) -> AuditedRun:
    """Read a run with its verdicts on one metric.

    ``name`` is an id, the beginning of one, or "latest". Raises UsageError if there is no such run
    or metric, or the run was kept without verdicts on it or without its questions.
    """
    if metric not in METRICS:
        raise UsageError(f"There is no metric {metric!r}; choose one of {', '.join(METRICS)}.")
    run = find_run(store.runs(), name, store.path)
    samples = store.samples(run.run_id)
    if not samples:
        msg = f"Run {run.run_id} was kept without its questions; run the evaluation again."
        raise UsageError(msg)
    methods = run.setup.methods
    by_key = {q.key: q for q in judged_questions(stored_rows(store, run), methods, metric)}
    missing = ("missing",) * len(methods)
    questions = [
        by_key.get(key)
        or LabelledQuestion(key=key, stratum=(key[0], missing), scores={}, judged=(), labels={})
        for key in ((sample.imdb_key, sample.id) for sample in samples)
    ]
    if not any(question.judged for question in questions):
        raise UsageError(
            f"Run {run.run_id} has no verdict on {metric}; judge it first: "
            f"{eval_line_here('judge', run.run_id, '--metrics', metric)}"
        )
    ruled = store.judgements(run.run_id) if metric == "correctness" else ()
    ends = {
        r.subject: AssertionEvaluation.from_dict(r.value).is_whole
        for r in ruled
        if r.kind == "assertions"
    }
    stored = [response for response in store.responses(run.run_id).values() if response.trial == 0]
    return AuditedRun(
        run_id=run.run_id,
        metric=metric,
        is_finished=run.status == "finished",
        methods=methods,
        questions=tuple(questions),
        texts={sample.id: sample for sample in samples},
        responses={(response.sample_id, response.method): response for response in stored},
        embedded_models=stored_metadata(store, run).embedded_models,
        all_vital_met={
            (response.sample_id, response.method): int(is_met)
            for response in stored
            if (is_met := ends.get(response.unit)) is not None
        },
    )


def draw_items(run: AuditedRun, n_questions: int, seed: int = 0) -> list[AuditItem]:
    """Draw questions at random within document x verdicts; return their scored responses.

    ``n_questions`` (>= 1) are wanted; more are drawn if there are more strata, fewer if there are
    fewer questions. A question without a verdict on any method is not drawn. The same seed draws
    the same items in the same, shuffled, order.
    """
    drawable = [question for question in run.questions if question.judged]
    drawn = draw_for_labels([question.stratum for question in drawable], n_questions, seed)
    fingerprint = _fingerprint(run)
    is_about_context = JUDGED_METRICS[run.metric].reads_context
    items: list[AuditItem] = []
    for question in (drawable[row] for row in drawn):
        text = run.texts[question.key[1]]
        for method in question.judged:
            response = run.responses[text.id, method]
            items.append(
                AuditItem(
                    item=_item_code(run, question, method),
                    run=run.run_id,
                    metric=run.metric,
                    group=group_code(question.stratum, fingerprint),
                    question=text.question,
                    ground_truth=text.ground_truth,
                    response=response.response,
                    context=(response.context_text or "") if is_about_context else "",
                )
            )
    random.Random(seed).shuffle(items)
    return items


def _fingerprint(run: AuditedRun) -> str:
    """Return a hash of the run and its verdicts; group codes change if any verdict changes."""
    return hash_values([run.run_id, run.metric, *((q.key[1], q.stratum) for q in run.questions)])


def _item_code(run: AuditedRun, question: LabelledQuestion, method: str) -> str:
    """Return a code of a response that only the store can resolve."""
    name = question.key[1]
    response = run.responses[name, method]
    # A letter in front: a spreadsheet would take 12e34567 for a number.
    return "r" + hash_values(
        [run.run_id, run.metric, name, method, response.response, response.context_text]
    )


def analyse_audit(run: AuditedRun, items: Sequence[AuditItem]) -> Audit:
    """Compare the judge with the labels, and correct its means and differences by them.

    ``items`` are the drawn items with labels; one that was removed counts as not labeled. Raises
    UsageError if the verdicts of ``run``, as the store has it now, are not those of the draw, an
    item is not of the run or comes twice, or the packages of the extra ``audit`` are missing.
    """
    labels = _read_labels(run, items)
    questions = [
        question._replace(
            labels={m: labels[key] for m in run.methods if (key := (question.key[1], m)) in labels}
        )
        for question in run.questions
    ]
    return Audit(
        run_id=run.run_id,
        metric=run.metric,
        n_items=len(items),
        n_labels=len(labels),
        overall=_agreement(questions, run.methods),
        agreement={method: _agreement(questions, [method]) for method in run.methods},
        means={method: correct_methods(questions, [method]) for method in run.methods},
        differences=tuple(
            CorrectedDifference(a, b, correct_methods(questions, [a, b]))
            for a, b in combinations(run.methods, 2)
        ),
        embedded_models=run.embedded_models,
        labels=keep_labels(questions, run.methods, run.metric),
        by_assertions=_assertion_agreement(run, questions),
    )


def _assertion_agreement(
    run: AuditedRun, questions: Sequence[LabelledQuestion]
) -> dict[str, JudgeAgreement]:
    """Compare the verdict and the assertions with the labels of the responses that have both."""

    def with_both(question: LabelledQuestion) -> LabelledQuestion:
        has = [m for m in question.judged if (question.key[1], m) in run.all_vital_met]
        labels = {m: label for m, label in question.labels.items() if m in has}
        return question._replace(judged=has, labels=labels)

    same = [with_both(question) for question in questions]
    if not any(question.labels for question in same):
        return {}
    by = [q._replace(scores={m: run.all_vital_met[q.key[1], m] for m in q.judged}) for q in same]
    return {
        "all vital met": _agreement(by, run.methods),
        "verdict, same answers": _agreement(same, run.methods),
        "the two, all answers": _agreement(
            [
                q._replace(labels={m: v.scores[m] for m in q.judged})
                for q, v in zip(by, same, strict=True)
            ],
            run.methods,
        ),
    }


def _read_labels(run: AuditedRun, items: Sequence[AuditItem]) -> dict[tuple[str, str], int]:
    """Return (question id, method) -> label."""
    fingerprint = _fingerprint(run)
    by_code = {
        _item_code(run, question, method): (
            (question.key[1], method),
            group_code(question.stratum, fingerprint),
        )
        for question in run.questions
        for method in question.judged
    }
    groups = {group for _, group in by_code.values()}
    labels: dict[tuple[str, str], int | None] = {}
    for item in items:
        key, group = by_code.get(item.item, (("", ""), None))
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


def _agreement(questions: Sequence[LabelledQuestion], methods: Sequence[str]) -> JudgeAgreement:
    sizes = Counter((q.stratum, method) for q in questions for method in q.judged)
    labelled = [
        (question.scores[method], question.labels[method], (question.stratum, method))
        for question in questions
        for method in methods
        if method in question.labels
    ]
    drawn = Counter(cell for _, _, cell in labelled)
    judge = [verdict for verdict, _, _ in labelled]
    human = [label for _, label, _ in labelled]
    weights = [sizes[cell] / drawn[cell] for _, _, cell in labelled]
    return JudgeAgreement(
        weighted=binary_agreement(judge, human, weights),
        alpha_unweighted=binary_agreement(judge, human).alpha,
    )


def list_audit(audit: Audit) -> list[Part]:
    """Return tables of the judge's agreement with the labels, and of its corrected figures.

    They are followed by one line for each reason why figures were not corrected.
    """
    note = f" ({audit.embedded_models})" if audit.embedded_models else ""
    agreement = {
        **audit.agreement,
        **({"all methods": audit.overall} if len(audit.agreement) > 1 else {}),
        **audit.by_assertions,
    }
    pairs = {f"{pair.a} - {pair.b}": pair.corrected for pair in audit.differences}
    figures = {**audit.means, **pairs}.items()
    refused = grouped((v.refused, k) for k, v in figures if v.refused is not None)
    return [
        Table(
            title=f"The judge against {audit.n_labels} labels: {audit.metric}, run {audit.run_id} "
            f"(95 % interval){note}",
            columns=[
                *(("method", "text"), ("labels", "count"), ("sensitivity %", "percent")),
                *(("specificity %", "percent"), ("agreement %", "percent")),
                ("kappa, AC1, alpha", "interval"),
            ],
            rows=[[method, *_agreement_cells(value)] for method, value in agreement.items()],
            note="all vital met: 1 for an answer that meets every vital assertion; the two: that "
            f"compared with the verdict, no label needed. {EACH_ALONE}"
            if audit.by_assertions
            else EACH_ALONE,
        ),
        Table(
            title=f"Means and differences in percentage points{note}",
            columns=[
                *(("", "text"), ("labels", "count"), ("by the judge", "percent")),
                *(("corrected", "percent"), ("95 % interval", "interval")),
            ],
            rows=[
                [
                    *(name, corrected.n_labels, cell(corrected.uncorrected)),
                    cell(corrected.estimate.mean),
                    span(corrected.estimate.low, corrected.estimate.high, cell),
                ]
                for figures, cell in ((audit.means, share), (pairs, points))
                for name, corrected in figures.items()
            ],
            note=EACH_ALONE,
        ),
        *(Line(f"Not corrected ({', '.join(names)}): {why}.") for why, names in refused.items()),
    ]


def _agreement_cells(agreement: JudgeAgreement) -> list[str]:
    weighted = agreement.weighted
    alpha = agreement.alpha_unweighted if weighted.alpha is None else weighted.alpha
    return [
        str(weighted.n),
        *map(percent, (weighted.sensitivity, weighted.specificity, weighted.raw_agreement)),
        ", ".join(map(number, (weighted.kappa, weighted.ac1, alpha))),
    ]
