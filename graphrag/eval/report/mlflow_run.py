"""A run as one of MLflow: parameters, means with their limits, answers with verdicts, files."""

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
from graphrag.text.redaction import redact

_EXPERIMENT = "graphrag-eval"
_PARAMETERS = ("methods", "metrics", "models", "movies", "total_questions", "concurrency", "origin")
_EFFICIENCY = ("avg_latency", "avg_llm_calls", "avg_prompt_tokens", "avg_output_tokens", "cost_usd")
MLflow: TypeAlias = Any
"""MLflow itself, or what it gives: it need not be installed."""


def log_run(results: EvaluationResults, figures: Figures, files: Mapping[str, Content]) -> str:
    """Log a run, and return a sentence that says where it stands.

    MLflow's own variables say where to. Raises StoreError if MLflow can't take it.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    mlflow: MLflow = importlib.import_module("mlflow")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    where = redact(mlflow.get_tracking_uri())
    try:
        return f"{_log(mlflow, results, figures, files)} at {where}."
    except ImportError as error:
        need = f"{where} needs the package {error.name}"
        if not mlflow.is_tracking_uri_set():
            need = "No MLflow server is named, and a store on this machine needs all of MLflow"
        raise StoreError(
            f"{need}; set MLFLOW_TRACKING_URI to your server's address, or: pip install mlflow"
        ) from error
    except (mlflow.exceptions.MlflowException, OSError) as error:
        cause = redact(" ".join(str(error).split()))[:300].rstrip(".")
        msg = f"MLflow at {where} can't take the run: {cause}; check MLFLOW_TRACKING_URI."
        raise StoreError(msg) from error


def _log(
    mlflow: MLflow, results: EvaluationResults, figures: Figures, files: Mapping[str, Content]
) -> str:
    about, numbers = results.metadata, dict(_numbers(results, figures))
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _EXPERIMENT)
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID")
    experiment = experiment or mlflow.set_experiment(name).experiment_id
    tags = {"gtog.run_id": about["run_id"]}
    if label := about.get("embedded_models"):
        tags["gtog.embedded_models"] = label
    with (
        mlflow.start_run(experiment_id=experiment, run_name=about["run_id"], tags=tags) as run,
        tempfile.TemporaryDirectory() as folder,
    ):
        values = {name: about.get(name) for name in _PARAMETERS}
        values |= {f"judge.{name}": value for name, value in _judge(about).items()}
        parameters = {name: value for name, value in values.items() if value not in (None, [], {})}
        mlflow.log_params({name: _text(value)[:6000] for name, value in parameters.items()})
        mlflow.log_metrics(numbers)
        write_whole(Path(folder), files)
        mlflow.log_artifacts(folder)
        _log_answers(mlflow, results, experiment, run.info.run_id)
    return (
        f"Run {about['run_id']} is run {run.info.run_id} of MLflow, with "
        f"{len(results.results):,} answers, {len(numbers):,} figures and the files,"
    )


def _judge(about: Mapping[str, Any]) -> Mapping[str, Any]:
    return about.get("judge") or {}


def _text(value: object) -> str:
    whole = isinstance(value, list)
    return ", ".join(map(str, cast("list[object]", value))) if whole else str(value)


def _numbers(results: EvaluationResults, figures: Figures) -> Iterator[tuple[str, float]]:
    """Yield what is known: means as the tables have them, their limits, what a search took."""
    by_method = {} if results.analysis is None else results.analysis.outcomes
    for method, by_metric in by_method.items():
        for metric, outcomes in by_metric.items():
            yield from _estimate(f"{method}/{metric}", outcomes.mean)
            if has_two_means(outcomes):
                yield from _estimate(f"{method}/{metric}.failed_as_0", outcomes.end_to_end)
        if method in figures.measures:
            for measure, summary in figures.measures[method].measures.items():
                yield from _estimate(f"{method}/{measure}", summary.estimate)
        for name in _EFFICIENCY:
            value: float | None = results.efficiency[method].get(name)
            if value is not None:
                yield _key(f"{method}/{name}"), float(value)
    if (cost := results.metadata.get("cost_usd")) is not None:
        yield "cost_usd", cost


def _estimate(name: str, estimate: Estimate) -> Iterator[tuple[str, float]]:
    for suffix, value in (("", estimate.mean), (".low", estimate.low), (".high", estimate.high)):
        if value is not None:
            yield _key(name + suffix), value
            if not suffix:
                yield _key(f"{name}.n"), estimate.n


def _key(name: str) -> str:
    """Return a name as MLflow takes it; no two become one."""
    return re.sub(r"[^\w\-. :/]|_x", lambda match: f"_x{ord(match[0][0]):x}_", name)


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
