"""Every figure of a stored run, question by question: verdicts, grades, time, tokens, retrieval."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from graphrag.eval.records import METRICS, measured_latency
from graphrag.eval.results.rows import FAILED_AS_0, ZERO_IF_FAILED, QuestionKey, Row, item_scores
from graphrag.eval.results.runs import stored_rows
from graphrag.eval.scorers.quality import QUALITY_MEASURES, QualityEvaluation
from graphrag.eval.scorers.rubric import DIMENSIONS, LLMEvaluation
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import REPORT_FILE

Values = Mapping[QuestionKey, float | None]
"""Question -> value; None where there is none."""
ByMethod = dict[str, dict[str, Values]]
"""Method -> figure -> values."""

_UNJUDGED = (State.SEARCH_FAILED, State.NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class QuestionFigures:
    """The figures of a run, question by question: of several searches, their mean.

    What further judges gave, and the retrieval measures, are of the first search.

    Attributes
    ----------
    judged : dict
        Method -> what a judge gave: the metrics that were asked (0 or 1),
        ``rubric.<dimension>`` (1 to 5), ``quality.<measure>`` (in [0, 1]).
    measured : dict
        Method -> what needs no judge: ``latency_s`` of searches that answered, ``tokens``,
        ``cost_usd``, and the retrieval measures where the run's own file of them is there.
    failed_as_0 : dict
        Method -> metrics on which a failed search has nothing to judge, with 0 for it, where one
        failed.
    """

    judged: ByMethod
    measured: ByMethod
    failed_as_0: ByMethod


def read_question_figures(store: EvaluationStore, run: Run) -> QuestionFigures:
    """Return every figure of a run in the store; those not known are left out or None."""
    rows = stored_rows(store, run, every_trial=True)
    by_method = {m: [r for r in rows if r.method == m] for m in run.setup.methods}
    further = _further(store, run, {row.question_id: row.key for row in rows})
    retrieval = _retrieval(store.path.parent, run.run_id)
    return QuestionFigures(
        {m: {**_verdicts(run, of), **further.get(m, {})} for m, of in by_method.items()},
        {m: {**_efficiency(of), **retrieval.get(m, {})} for m, of in by_method.items()},
        {m: _failed_as_0(of) for m, of in by_method.items()},
    )


def mean_of(values: Values) -> float | None:
    """Return the mean of the values that there are; None without any."""
    known = [value for value in values.values() if value is not None]
    return fmean(known) if known else None


def _verdicts(run: Run, rows: list[Row]) -> dict[str, Values]:
    """Return the verdicts; without any, failed searches alone are no figure of 0."""
    found: dict[str, Values] = {}
    for metric in METRICS:
        if metric not in (run.setup.metrics or ()):
            continue
        states = {row.states[metric] for row in rows}
        waiting = State.NOT_JUDGED in states and not states.difference(_UNJUDGED)
        scores = item_scores(rows, metric)
        found[metric] = dict.fromkeys(scores) if waiting else scores
    return found


def _failed_as_0(rows: list[Row]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for metric in METRICS:
        states = {row.states[metric] for row in rows}
        if metric in ZERO_IF_FAILED or not {State.SEARCH_FAILED, State.SCORED} <= states:
            continue
        found[f"{metric}{FAILED_AS_0}"] = _item_means(
            rows, lambda row, m=metric: 0 if row.censored else row.scores[m]
        )
    return found


def _efficiency(rows: list[Row]) -> dict[str, Values]:
    return {
        "latency_s": _item_means(
            rows, lambda row: None if row.censored else measured_latency(row.latency_s)
        ),
        "tokens": _item_means(rows, lambda row: row.tokens),
        "cost_usd": _item_means(rows, lambda row: row.cost_usd),
    }


def _item_means(rows: list[Row], read: Callable[[Row], float | None]) -> Values:
    values: dict[QuestionKey, list[float]] = {row.key: [] for row in rows}
    for row in rows:
        value = read(row)
        values[row.key] += [] if value is None else [value]
    return {key: fmean(known) if known else None for key, known in values.items()}


def _further(
    store: EvaluationStore, run: Run, keys: Mapping[str, QuestionKey]
) -> dict[str, dict[str, Values]]:
    asked = run.setup.further
    responses = store.responses(run.run_id, with_texts=False)
    units = {u: found for u, found in responses.items() if found.trial == 0}
    names = [f"rubric.{name}" for name in DIMENSIONS if "rubric" in asked]
    names += [f"quality.{name}" for name in QUALITY_MEASURES if "quality" in asked]
    found: dict[str, dict[str, dict[QuestionKey, float | None]]] = {
        method: {name: {} for name in names} for method in run.setup.methods
    }
    for judged in store.judgements(run.run_id):
        unit = units.get(judged.subject)
        if unit is None or judged.kind not in ("rubric", "quality"):
            continue
        for name, value in _grades(judged.kind, judged.value).items():
            found[unit.method].setdefault(f"{judged.kind}.{name}", {})[keys[unit.sample_id]] = value
    return {method: dict(figures) for method, figures in found.items()}


def _grades(kind: str, value: dict[str, Any]) -> dict[str, float | None]:
    if kind == "rubric":
        grades = LLMEvaluation.from_dict(value).grades
        return {name: grades[name].score for name in DIMENSIONS}
    quality = QualityEvaluation.from_dict(value)
    return {name: getattr(quality, name) for name in QUALITY_MEASURES}


def _retrieval(output_dir: Path, run_id: str) -> dict[str, dict[str, Values]]:
    """Return the measures that the run's own file holds; empty where it is not there."""
    path = output_dir / "runs" / run_id / REPORT_FILE
    try:
        results: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
        found: dict[str, dict[str, dict[QuestionKey, float | None]]] = {}
        for question in results:
            key = question["imdb_key"], question["id"]
            for method, told in question["methods"].items():
                for name, value in told["measures"].items():
                    found.setdefault(method, {}).setdefault(name, {})[key] = value
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # not measured, or cut short
        return {}
    return {method: dict(figures) for method, figures in found.items()}
