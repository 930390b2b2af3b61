"""A run as one of MLflow: parameters, means with their limits, answers with verdicts, files."""

import hashlib
import importlib
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from graphrag.eval.errors import StoreError
from graphrag.eval.report.cells import has_two_means
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.figures import Figures
from graphrag.eval.stats.intervals import Estimate
from graphrag.eval.store.whole_files import Content, write_whole
from graphrag.query.model_facts import is_offline
from graphrag.redaction import redact

_EXPERIMENT = "graphrag-eval"
_PARAMETERS = ("methods", "metrics", "models", "movies", "total_questions", "concurrency", "origin")
_EFFICIENCY = ("avg_latency", "avg_llm_calls", "avg_prompt_tokens", "avg_output_tokens", "cost_usd")
MLflow: TypeAlias = Any
"""MLflow itself, or what it gives: it need not be installed."""


def log_run(results: EvaluationResults, figures: Figures, files: Mapping[str, Content]) -> str:
    """Log a run, and return a sentence that says where it stands.

    MLflow's own variables say where to. What it has already is not logged again; where the run has
    changed since, the new one takes its place. Raises StoreError if MLflow can't take it.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    mlflow: MLflow = importlib.import_module("mlflow")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    where = redact(mlflow.get_tracking_uri())
    try:
        return f"{_log(mlflow, results, figures, files)} at {where}."
    except (mlflow.exceptions.MlflowException, OSError, ImportError) as error:
        cause = redact(" ".join(str(error).split()))[:300].rstrip(".")
        msg = f"MLflow at {where} can't take the run: {cause}; check MLFLOW_TRACKING_URI."
        raise StoreError(msg) from error


def _log(
    mlflow: MLflow, results: EvaluationResults, figures: Figures, files: Mapping[str, Content]
) -> str:
    about, client = results.metadata, mlflow.MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _EXPERIMENT)
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID")
    experiment = experiment or mlflow.set_experiment(name).experiment_id
    run_id, digest = about["run_id"], hashlib.sha256(results.to_json().encode()).hexdigest()
    is_whole = f"tags.`gtog.run_id` = '{run_id}' and attributes.status = 'FINISHED'"
    before = client.search_runs([experiment], is_whole)
    for each in before:
        if each.data.tags.get("gtog.digest") == digest:
            return f"Run {run_id} is run {each.info.run_id} of MLflow already, and unchanged,"
    tags = {"gtog.run_id": run_id, "gtog.digest": digest}
    if label := about.get("embedded_models"):
        tags["gtog.embedded_models"] = label
    run = client.create_run(experiment, run_name=run_id, tags=tags).info.run_id
    status = "FAILED"
    try:
        for key, value in _parameters(about).items():
            client.log_param(run, key, value)
        now = round(time.time() * 1000)
        numbers = list(_numbers(results, figures))
        metrics = [mlflow.entities.Metric(key, value, now, 0) for key, value in numbers]
        for start in range(0, len(metrics), 1000):  # the most that MLflow takes at once
            client.log_batch(run, metrics=metrics[start : start + 1000])
        with tempfile.TemporaryDirectory() as folder:
            write_whole(Path(folder), files)
            client.log_artifacts(run, folder)
        _log_answers(mlflow, results, experiment, run)
        status = "FINISHED"
    finally:
        client.set_terminated(run, status)
    for each in before:
        _remove(client, experiment, each.info.run_id)
    done = "replaces what MLflow had of it, as" if before else "is"
    n = f"with {len(results.results):,} answers, {len(numbers):,} figures and the files"
    return f"Run {run_id} {done} run {run} of MLflow, {n},"


def _parameters(about: Mapping[str, Any]) -> dict[str, str]:
    values = {name: about.get(name) for name in _PARAMETERS}
    values |= {f"judge.{name}": value for name, value in _judge(about).items()}
    known = {name: value for name, value in values.items() if value not in (None, [], {})}
    return {name: _text(value)[:6000] for name, value in known.items()}


def _judge(about: Mapping[str, Any]) -> Mapping[str, Any]:
    return about.get("judge") or {}


def _text(value: object) -> str:
    whole = isinstance(value, list)
    return ", ".join(map(str, cast("list[object]", value))) if whole else str(value)


def _numbers(results: EvaluationResults, figures: Figures) -> Iterator[tuple[str, float]]:
    """Yield what is known: means as the tables have them, their limits, what a search took."""
    outcomes = {} if results.analysis is None else results.analysis.outcomes
    for method, of in outcomes.items():
        for metric, found in of.items():
            yield from _estimate(f"{method}/{metric}", found.mean)
            if has_two_means(found):
                yield from _estimate(f"{method}/{metric}.failed_as_0", found.end_to_end)
        if method in figures.measures:
            for measure, summary in figures.measures[method].measures.items():
                yield from _estimate(f"{method}/{measure}", summary.estimate)
        for name in _EFFICIENCY:
            value: float | None = results.efficiency[method].get(name)
            if value is not None:
                yield _key(f"{method}/{name}"), float(value)
    if (cost := results.metadata.get("cost_usd")) is not None:
        yield "cost_usd", cost


def _estimate(name: str, of: Estimate) -> Iterator[tuple[str, float]]:
    for suffix, value in (("", of.mean), (".low", of.low), (".high", of.high)):
        if value is not None:
            yield _key(name + suffix), value
            if not suffix:
                yield _key(f"{name}.n"), of.n


def _key(name: str) -> str:
    """Return a name as MLflow takes it; no two become one."""
    return re.sub(r"[^\w\-. :/]|_x", lambda found: f"_x{ord(found[0][0]):x}_", name)


def _log_answers(mlflow: MLflow, results: EvaluationResults, experiment: str, run: str) -> None:
    judge = _judge(results.metadata).get("model") or "unknown"
    kind = "CODE" if is_offline(judge) else "LLM_JUDGE"
    source = mlflow.entities.AssessmentSource(kind, judge)
    for result in results.results:
        ended, latency = time.time_ns(), result.efficiency.latency
        span = mlflow.start_span_no_context(
            result.method,
            inputs={"question": result.question, "ground_truth": result.ground_truth},
            tags={"method": result.method, "question_id": result.sample_id},
            metadata={"mlflow.sourceRun": run},
            experiment_id=experiment,
            start_time_ns=ended - round((latency or 0) * 1e9),
        )
        span.set_attributes({"index": result.imdb_key, "trial": result.trial, "latency_s": latency})
        if result.failure is not None:
            span.set_status("ERROR")
        span.set_outputs(result.response)
        span.end(end_time_ns=ended)
        for metric in results.metrics if result.failure is None else ():
            verdict = result.scores.get(metric)
            error = None
            if verdict.failure is not None:
                kind, message = verdict.failure.kind, verdict.failure.message
                error = mlflow.entities.AssessmentError(kind, message)
            elif verdict.score is None:
                continue
            mlflow.log_feedback(
                trace_id=span.trace_id,
                name=metric,
                value=verdict.score,
                rationale=verdict.reason,
                source=source,
                error=error,
            )


def _remove(client: MLflow, experiment: str, run: str) -> None:
    while traces := client.search_traces(locations=[experiment], run_id=run, max_results=100):
        client.delete_traces(experiment, trace_ids=[each.info.trace_id for each in traces])
    client.delete_run(run)
