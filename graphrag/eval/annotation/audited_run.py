"""A run as far as an audit of its judge needs it: questions, responses and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag.command_lines import eval_line_here
from graphrag.eval.errors import UsageError
from graphrag.eval.records import METRICS
from graphrag.eval.results.labels import Stratum, question_stratum
from graphrag.eval.results.rows import paired_score
from graphrag.eval.results.runs import stored_metadata, stored_rows
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import find_run


@dataclass(frozen=True, slots=True)
class AuditedResponse:
    """A response that the judge scored."""

    response: str
    context: str
    verdict: int


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
    """A question of an audited run.

    Attributes
    ----------
    id, document, question, ground_truth : str
    stratum : (str, tuple of str)
        The document, and for each method the verdict or the state that left none.
    scores : dict
        method -> 0, 1 or None; a failed search is 0 where the metric says so.
    judged : dict
        method -> what the judge scored; a method without such a response is left out.
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
    texts = {
        (found.sample_id, found.method): (found.response, found.context_text)
        for found in store.responses(run.run_id).values()
        if found.trial == 0
    }
    questions: list[AuditedQuestion] = []
    for sample in samples:
        of_method = {m: rows[sample.id, m] for m in methods if (sample.id, m) in rows}
        unasked: Stratum = (sample.imdb_key, ("missing",) * len(methods))
        judged = {
            method: AuditedResponse(*texts[sample.id, method], verdict=score)
            for method, row in of_method.items()
            if (score := row.scores[metric]) is not None
        }
        questions.append(
            AuditedQuestion(
                id=sample.id,
                document=sample.imdb_key,
                question=sample.question,
                ground_truth=sample.ground_truth,
                stratum=question_stratum(of_method, methods, metric) if of_method else unasked,
                scores={method: paired_score(row, metric) for method, row in of_method.items()},
                judged=judged,
            )
        )
    if not any(question.judged for question in questions):
        msg = (
            f"Run {run.run_id} has no verdict on {metric}; judge it first: "
            f"{eval_line_here('judge', run.run_id, '--metrics', metric)}"
        )
        raise UsageError(msg)
    return AuditedRun(
        run_id=run.run_id,
        metric=metric,
        is_finished=run.status == "finished",
        methods=methods,
        questions=tuple(questions),
        embedded_models=stored_metadata(store, run).embedded_models,
    )
