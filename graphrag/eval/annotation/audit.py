"""An audit of the judge: which responses a person labels, and what the labels say of it.

Questions are drawn within document x verdicts, the verdicts being those on every method at once:
so one draw serves the means and the paired differences alike.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TypeAlias

from graphrag.eval.annotation.audited_run import AuditedQuestion, AuditedRun
from graphrag.eval.errors import UsageError
from graphrag.eval.judged.discovery import JUDGED_METRICS
from graphrag.eval.results.labels import (
    KeptLabels,
    LabelledQuestion,
    correct_methods,
    group_code,
    hash_values,
    keep_labels,
)
from graphrag.eval.stats.agreement import BinaryAgreement, binary_agreement
from graphrag.eval.stats.correction import Corrected, draw_for_labels


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
    """What the labels say of the judge.

    Attributes
    ----------
    run_id, metric : str
    n_items, n_labels : int
        Responses in the file, and those with a label.
    overall : JudgeAgreement
        All methods' responses together. Those to one question are not independent, which the
        limits leave out.
    agreement : dict
        method -> JudgeAgreement.
    means : dict
        method -> its mean, corrected and not.
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

    def to_dict(self) -> dict[str, object]:
        """Return the figures as JSON-ready values; undefined is None."""
        return asdict(self)


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
    codes = _Codes.of(run)
    is_about_context = JUDGED_METRICS[run.metric].reads_context
    items = [
        AuditItem(
            item=codes.item(question, method),
            run=run.run_id,
            metric=run.metric,
            group=codes.group(question),
            question=question.question,
            ground_truth=question.ground_truth,
            response=found.response,
            context=found.context if is_about_context else "",
        )
        for question in (drawable[row] for row in drawn)
        for method, found in question.judged.items()
    ]
    random.Random(seed).shuffle(items)
    return items


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
    differences = tuple(
        CorrectedDifference(a, b, correct_methods(questions, [a, b]))
        for a, b in combinations(run.methods, 2)
    )
    return Audit(
        run_id=run.run_id,
        metric=run.metric,
        n_items=len(items),
        n_labels=len(labels),
        overall=_agree(run, labels, run.methods),
        agreement={method: _agree(run, labels, [method]) for method in run.methods},
        means={method: correct_methods(questions, [method]) for method in run.methods},
        differences=differences,
        embedded_models=run.embedded_models,
        labels=keep_labels(questions, run.methods, run.metric),
    )


_Key: TypeAlias = tuple[str, str]  # question id, method
_Labels: TypeAlias = Mapping[_Key, int]


@dataclass(frozen=True, slots=True)
class _Codes:
    """Codes that only the store can be used to decipher; any changed verdict changes groups."""

    run: AuditedRun
    fingerprint: str

    @classmethod
    def of(cls, run: AuditedRun) -> "_Codes":
        return cls(
            run, hash_values([run.run_id, run.metric, *((q.id, q.stratum) for q in run.questions)])
        )

    def item(self, question: AuditedQuestion, method: str) -> str:
        found = question.judged[method]
        # A letter in front: a spreadsheet would take 12e34567 for a number.
        return "r" + hash_values(
            [self.run.run_id, self.run.metric, question.id, method, found.response, found.context]
        )

    def group(self, question: AuditedQuestion) -> str:
        return group_code(question.stratum, self.fingerprint)


def _read_labels(run: AuditedRun, items: Sequence[AuditItem]) -> _Labels:
    codes = _Codes.of(run)
    known = {
        codes.item(question, method): ((question.id, method), codes.group(question))
        for question in run.questions
        for method in question.judged
    }
    groups = {group for _, group in known.values()}
    labels: dict[_Key, int] = {}
    seen: set[str] = set()
    for item in items:
        if item.group not in groups:
            msg = (
                f"The verdicts of run {run.run_id} on {run.metric} have changed since the export; "
                "export the audit again."
            )
            raise UsageError(msg)
        if item.item in seen:
            msg = f"Item {item.item} is there twice; keep one of its rows."
            raise UsageError(msg)
        if item.item not in known or known[item.item][1] != item.group:
            msg = (
                f"Item {item.item} of group {item.group} was not drawn from run {run.run_id}; "
                "leave the columns item, run, metric and group as they were exported."
            )
            raise UsageError(msg)
        seen.add(item.item)
        if item.label is not None:
            labels[known[item.item][0]] = item.label
    return labels


def _agree(run: AuditedRun, labels: _Labels, methods: Sequence[str]) -> JudgeAgreement:
    labelled = [
        (question.judged[method].verdict, labels[question.id, method], (question.stratum, method))
        for question in run.questions
        for method in methods
        if (question.id, method) in labels
    ]
    sizes = Counter(
        (question.stratum, method) for question in run.questions for method in question.judged
    )
    drawn = Counter(cell for _, _, cell in labelled)
    judge = [verdict for verdict, _, _ in labelled]
    human = [label for _, label, _ in labelled]
    weights = [sizes[cell] / drawn[cell] for _, _, cell in labelled]
    return JudgeAgreement(
        weighted=binary_agreement(judge, human, weights),
        alpha_unweighted=binary_agreement(judge, human).alpha,
    )
