"""A run as an evaluation log of Inspect, which its viewer and its data frames read.

Written from Inspect's published log format (version 2 of its JSON form) without the library: one
log a run, one sample a question and method, one epoch a trial.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from graphrag.eval.errors import UsageError
from graphrag.eval.records import QueryResult
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.rows import state_of
from graphrag.eval.results.usage import is_judged
from graphrag.eval.stats.outcomes import Outcomes, State
from graphrag.query.usage import Usage, sum_known
from graphrag.text.json_pieces import json_pieces

_TASK = "graphrag-eval"
_SUFFIX = ".json"
_ROLES = ("search", "judge")
_KEPT = ("embedded_models", "methods", "models", "judge", "setup", "warnings")
_COUNTS = ("input_tokens", "input_tokens_cache_read", "output_tokens", "total_tokens")
Usages: TypeAlias = dict[str, dict[str, Any]]
"""Model or role -> its tokens and US dollars, as Inspect names them."""
_Means: TypeAlias = Mapping[str, Mapping[str, Outcomes]]


def check_inspect_path(path: Path) -> None:
    """Refuse a file of another form than JSON; raises UsageError."""
    if path.suffix not in ("", _SUFFIX) and not path.is_dir():
        raise UsageError(f"--inspect {path}: name a folder, or a file that ends in {_SUFFIX}.")


def place_log(path: Path, results: EvaluationResults) -> Path:
    """Return the file of a log: ``path``, or one in the folder ``path``.

    In a folder it is named as Inspect lists logs, which begin with a time.
    """
    if path.suffix == _SUFFIX and not path.is_dir():
        return path
    stamp = str(results.metadata["timestamp"]).replace(":", "-")
    return path / f"{stamp}_{_TASK}_{results.metadata.get('run_id') or 'run'}{_SUFFIX}"


def inspect_pieces(results: EvaluationResults, retrieval: Mapping[str, Any]) -> Iterator[str]:
    """Yield a run as a log of Inspect, as JSON, a sample a piece.

    A verdict is a score of 0 or 1 with the judge's reason. One that is missing or that no mean
    counts, as an abstention's, is none, and stands with its cause in the sample's metadata; a
    failed search is the sample's error, and 0 where the means count it as 0. The results have each
    metric's mean by method, as the tables have it. A sum of usages has no
    figure where one of them is not known: it is left out, of a sample and of the whole log, and
    the log's metadata counts the samples whose usage is not known. ``retrieval``: the content of
    retrieval_results.json of the same run.
    """
    metadata = results.metadata
    measured = {
        (question["imdb_key"], question["id"], method): told["measures"]
        for question in retrieval["results"]
        for method, told in question["methods"].items()
    }
    means = {} if results.analysis is None else results.analysis.outcomes
    samples = (
        _sample(r, _counted(r, results.metrics, means), measured.get(key))
        for r in results.read_whole(results.results)
        for key in [(r.imdb_key, r.sample_id, r.method)]
    )
    stamp, run_id = metadata["timestamp"], metadata.get("run_id") or "unknown"
    values = {
        "version": 2,
        "status": "success" if metadata.get("is_complete", True) else "cancelled",
        "eval": {
            "eval_id": run_id,
            "run_id": run_id,
            "created": stamp,
            "task": _TASK,
            "task_id": run_id,
            "dataset": {"name": "questions", "samples": metadata.get("total_questions")},
            "model": _asked(results.results),
            "config": {"epochs": 1 + max((r.trial for r in results.results), default=0)},
            "tags": list(metadata.get("methods", ())),
            "scorers": [{"name": metric} for metric in results.metrics],
            "metadata": {
                **{name: metadata.get(name) for name in _KEPT},
                "n_usage_unknown": {
                    role: sum(_by_role(r)[role] is None for r in results.results) for role in _ROLES
                },
            },
        },
        # The reader of a log's header takes no log without it.
        "plan": {"name": "plan", "steps": [{"solver": m} for m in metadata.get("methods", ())]},
        "results": {
            "total_samples": metadata.get("n_planned", len(results.results)),
            "completed_samples": sum(r.failure is None for r in results.results),
            "scores": [_mean(metric, means) for metric in results.metrics],
        },
        "stats": {"completed_at": stamp, **_add_up([*map(_by_role, results.results)])},
        "samples": samples,
    }
    yield from json_pieces(values)
    yield "\n"


def _mean(metric: str, means: _Means) -> dict[str, Any]:
    by_method = {method: of[metric].mean.mean for method, of in means.items()}
    metrics = {m: {"name": m, "value": mean} for m, mean in by_method.items() if mean is not None}
    return {"name": metric, "scorer": metric, "metrics": metrics}


def _counted(result: QueryResult, metrics: Sequence[str], means: _Means) -> dict[str, bool]:
    """Return metric -> whether the tables' means count this result's score."""
    counted: dict[str, bool] = {}
    for metric in metrics:
        state, of = state_of(result, metric), means.get(result.method)
        counts_0 = of is not None and of[metric].failed_search_is_zero and of[metric].mean.n > 0
        counted[metric] = state is State.SCORED or (state is State.SEARCH_FAILED and counts_0)
    return counted


def _sample(
    result: QueryResult, metrics: Mapping[str, bool], measures: Mapping[str, Any] | None
) -> dict[str, Any]:
    roles = _by_role(result)
    where = [each for each in (result.imdb_key, result.sample_id, result.method) if each]
    answer = {"role": "assistant", "content": result.response, "source": "generate"}
    seconds = result.efficiency.latency
    verdicts = {metric: result.scores.get(metric) for metric in metrics}
    states = {metric: state_of(result, metric).value for metric in metrics}
    values: dict[str, Any] = {
        "id": "/".join(where),
        "epoch": result.trial + 1,
        "input": result.question,
        "target": result.ground_truth,
        "messages": [{"role": "user", "content": result.question, "source": "input"}, answer],
        "output": {
            "model": _asked([result]),
            "choices": [{"message": answer, "stop_reason": "unknown"}],
            "time": seconds,
        },
        "scores": {
            metric: {
                "value": verdict.score,
                "explanation": verdict.reason,
                "metadata": {"state": states[metric], "repeats": list(verdict.repeats)},
            }
            for metric, verdict in verdicts.items()
            if metrics[metric]
        },
        "metadata": {
            "method": result.method,
            "document": result.imdb_key,
            "question_id": result.sample_id,
            "trial": result.trial,
            "abstained": result.abstained,
            "unscored": {
                metric: {"state": states[metric], "reason": verdict.reason}
                for metric, verdict in verdicts.items()
                if not metrics[metric]
            },
            "measures": dict(measures or {}) if result.trial == 0 else {},
            "cost_usd": None if result.usage is None else result.usage.cost_usd,
            **result.grades,
            "context": result.context_text,
        },
        **_add_up([roles]),
        "total_time": seconds,
    }
    if result.failure is not None:
        message = f"{result.failure.kind}: {result.failure.message}"
        values["error"] = dict.fromkeys(("message", "traceback", "traceback_ansi"), message)
    return values


def _asked(results: Iterable[QueryResult]) -> str:
    """Return the models that were asked for completions, as one name."""
    usages = [result.usage for result in results if result.usage is not None]
    asked = (u.models if u.completion_models is None else u.completion_models for u in usages)
    return " + ".join(sorted({name for names in asked for name in names})) or "none"


def _add_up(every: Sequence[Mapping[str, Usages | None]]) -> dict[str, Usages]:
    """Return usages by model and by role; nothing for what is not known of them all."""
    unknown = {role for of in every for role, used in of.items() if used is None}
    entries = [
        (role, model, entry)
        for of in every
        for role, used in of.items()
        for model, entry in (used or {}).items()
    ]
    # Any model may have had a part that is not known.
    by_model = _sums((model, entry) for _, model, entry in entries if not unknown)
    by_role = _sums((role, entry) for role, _, entry in entries if role not in unknown)
    return {"model_usage": by_model, "role_usage": by_role}


def _by_role(result: QueryResult) -> dict[str, Usages | None]:
    is_unjudged = result.judge_usage is None and not is_judged(result)
    return {
        "search": _usage_of(result.usage),
        "judge": {} if is_unjudged else _usage_of(result.judge_usage),
    }


def _usage_of(usage: Usage | None) -> Usages | None:
    """Return what was used by model; None where it was not counted.

    Several models that were asked for the same kind of call share an entry, as their tokens are
    not known apart.
    """
    if usage is None or not usage.is_counted:
        return None
    cached, embedded = usage.cached_prompt_tokens, usage.embedding_tokens
    completions = (usage.prompt_tokens - (cached or 0), cached, usage.output_tokens)
    asked, searched = usage.completion_models, usage.embedding_models
    groups = [(asked or (), completions), (searched or (), (embedded, None, 0))]
    if asked is None or searched is None or set(asked) & set(searched):
        groups = [(usage.models, (completions[0] + embedded, *completions[1:]))]
    used: Usages = {}
    for names, counts in groups:
        costs = [usage.cost_usd_by_model.get(name) for name in names]
        if names:
            used[" + ".join(names)] = {
                **dict(zip(_COUNTS, (*counts, sum(n or 0 for n in counts)), strict=True)),
                "total_cost": sum_known(costs),
            }
    return used


def _sums(entries: Iterable[tuple[str, dict[str, Any]]]) -> Usages:
    """Add entries up by name, leaving out counts that were not reported; a cost needs them all."""
    named: dict[str, list[dict[str, Any]]] = {}
    for name, entry in entries:
        named.setdefault(name, []).append(entry)
    sums: Usages = {}
    for name, of in named.items():
        known = {k: [entry[k] for entry in of if entry[k] is not None] for k in _COUNTS}
        counts = {k: sum(values) if values else None for k, values in known.items()}
        sums[name] = {**counts, "total_cost": sum_known(entry["total_cost"] for entry in of)}
    return sums
