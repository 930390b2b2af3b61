"""Chooses and checks the judge, asks it for verdicts, and plans the further judges.

A verdict is a score of 0 or 1 on a metric. A further judge gives other grades: rubric, quality,
assertions, claims, pairs of methods, or those of the user's own scorers.
"""

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from graphrag_llm.config import ModelConfig

from graphrag.config.models.strict_section import nearest
from graphrag.embedded.grading import RULES
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import JudgeSettings
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError, EvalError, RunStoppedError
from graphrag.eval.metrics.claims import judge_claims
from graphrag.eval.metrics.judge import (
    NO_REASON,
    Judge,
    JudgeModel,
    LLMJudge,
    MetricJudge,
    awaited,
)
from graphrag.eval.metrics.scorer import NO_ANSWER, NO_CONTEXT, Grading, Material, Scorer
from graphrag.eval.metrics.scorer_registry import SCORERS, list_further, list_pairs
from graphrag.eval.runner.custom_methods import answering_config
from graphrag.eval.runner.scheduler import FurtherTask, RunOutcome, Work, check_asked
from graphrag.eval.store.records import CLAIMS, DOUBT, Judgement, StoredResponse, Unit, pair_kind
from graphrag.eval.types.metric_definitions import (
    DEFAULT_METRICS,
    JUDGED_METRICS,
    REFUSAL,
    JudgedMetric,
)
from graphrag.eval.types.verdicts import Failure, JudgeResult, combine_repeats
from graphrag.query.client.call_errors import describe_error, is_refusal
from graphrag.query.client.model_prices import is_offline
from graphrag.query.client.models import open_completion
from graphrag.query.client.structured_output import read_choice
from graphrag.query.client.usage import CallLog, current_scope, measure_calls, phase
from graphrag.query.index.header import IndexHeader, describe_model, model_name

FAITHFULNESS = "faithfulness"
_REFUSE = f"judge_{REFUSAL.name}"
_NO_ANSWER = JudgeResult(score=None, reason=NO_ANSWER)
_NO_CONTEXT = JudgeResult(score=None, reason=NO_CONTEXT)


async def ask_verdicts(
    judge: Judge,
    unit: Unit,
    response: StoredResponse,
    metrics: Sequence[str],
    settings: JudgeSettings,
) -> dict[str, JudgeResult]:
    """Return metric -> verdict, the majority of as many verdicts as the settings ask for.

    Metrics that read the answer, like faithfulness, are not judged for an abstention; metrics that
    read the context are not judged if it is unknown. Raises RunStoppedError if the judge's service
    would refuse every further request as well or is down, or the allowed cost is spent.
    """
    unjudged = {metric: _nothing_to_judge(metric, response) for metric in metrics}
    remaining = [metric for metric in metrics if unjudged[metric] is None]
    by_claim = settings.faithfulness.by == "claim" and FAITHFULNESS in remaining
    asking = partial(_ask, judge, unit, response, remaining, by_claim)
    if settings.repeats == 1:  # no separate task is needed
        repeats = [await asking()]
    else:
        repeats = await asyncio.gather(*(asking() for _ in range(settings.repeats)))
    log = current_scope() or CallLog()
    check_asked(log)
    if remaining and not (isinstance(judge, MetricJudge) or log.attempts):
        log.has_uncounted = True
    _check_refused(verdict.failure for repeat in repeats for verdict in repeat.values())
    verdicts = {metric: combine_repeats([r[metric] for r in repeats]) for metric in remaining}
    return {metric: unjudged[metric] or verdicts[metric] for metric in metrics}


def _nothing_to_judge(metric: str, response: StoredResponse) -> JudgeResult | None:
    spec = JUDGED_METRICS[metric]
    if response.abstained and not spec.judges_abstentions:
        return _NO_ANSWER
    return _NO_CONTEXT if response.context_text is None and spec.reads_context else None


async def _ask(
    judge: Judge, unit: Unit, response: StoredResponse, metrics: Sequence[str], by_claim: bool
) -> dict[str, JudgeResult]:
    material = {
        "question": unit.sample.question,
        "ground_truth": unit.sample.ground_truth,
        "predicted": response.response,
        "context": response.context_text or "",
    }
    joint = [metric for metric in metrics if metric in DEFAULT_METRICS]
    # A judge needs only evaluate_all; to judge by claim it must be an LLMJudge, see check_judge.
    judges_singly = all(lists_method(judge, f"judge_{metric}") for metric in joint)
    if by_claim or (set(joint) != set(DEFAULT_METRICS) and judges_singly):
        joint = []
    single_metrics = {metric: JUDGED_METRICS[metric] for metric in metrics if metric not in joint}
    if not unit.sample.answerable and "correctness" in metrics and has_method(judge, _REFUSE):
        single_metrics["correctness"] = REFUSAL
    if not single_metrics:
        return await _ask_together(judge, joint, material)
    joint_verdicts, single_verdicts = await asyncio.gather(
        _ask_together(judge, joint, material),
        asyncio.gather(
            *(
                _ask_claims(judge, material)
                if by_claim and name == FAITHFULNESS
                else _ask_one(judge, metric, material)
                for name, metric in single_metrics.items()
            )
        ),
    )
    return {**joint_verdicts, **dict(zip(single_metrics, single_verdicts, strict=True))}


async def _ask_claims(judge: Judge, material: Mapping[str, str]) -> JudgeResult:
    assert isinstance(judge, LLMJudge)
    model = JudgeModel(judge.model, judge.temperature, judge.max_retries)
    texts = material["question"], material["predicted"], material["context"]
    with phase(FAITHFULNESS):
        return (await judge_claims(model, *texts)).verdict


async def _ask_together(
    judge: Judge, metrics: Sequence[str], material: Mapping[str, str]
) -> dict[str, JudgeResult]:
    if not metrics:
        return {}
    try:
        scores = await awaited(judge.evaluate_all(**material))
    except Exception as error:
        return dict.fromkeys(metrics, _failed_verdict(error))
    return {metric: read_verdict(_get_part(scores, metric)) for metric in metrics}


async def _ask_one(judge: Any, metric: JudgedMetric, material: Mapping[str, str]) -> JudgeResult:
    method_name = f"judge_{metric.name}"
    try:
        if metric.name in DEFAULT_METRICS or has_method(judge, method_name):
            fields = metric.material(**material)
            return read_verdict(await awaited(getattr(judge, method_name)(*fields.values())))
        return read_verdict(await awaited(judge.judge_metric(metric.name, **material)))
    except Exception as error:
        return _failed_verdict(error)


def lists_method(judge: object, name: str) -> bool:
    """Return whether a judge lists a method as its own; a mock answers to every name."""
    return name in dir(judge)


def has_method(judge: object, name: str) -> bool:
    """Return whether a judge lists a method, or answers to its name with a coroutine function."""
    return lists_method(judge, name) or inspect.iscoroutinefunction(getattr(judge, name, None))


def _failed_verdict(error: Exception) -> JudgeResult:
    """Return the verdict of a judge that raised an error.

    An EvalError is raised again, because it concerns the whole run.
    """
    if isinstance(error, EvalError):
        raise error
    message = describe_error(error)
    kind = "refused" if is_refusal(error) else "error"
    return JudgeResult(
        score=None,
        reason=f"Unscored: {message}",
        failure=Failure(stage="judge", kind=kind, message=message),
    )


def _get_part(scores: object, metric: str) -> object:
    """Return a metric's verdict from MetricScores, a mapping, or an object with attributes."""
    if isinstance(scores, Mapping):
        return cast("Mapping[str, object]", scores).get(metric)
    return getattr(scores, metric, None)


def read_verdict(value: object) -> JudgeResult:
    """Read a verdict: a JudgeResult, or an object with a score of 0 or 1 and perhaps a reason.

    Anything else is unscored.
    """
    if isinstance(value, JudgeResult):
        return value
    score, reason = read_choice(_get_part(value, "score"), (0, 1)), _get_part(value, "reason")
    if type(score) is int and score in (0, 1):
        doubt, text = _get_part(value, "doubt"), reason if isinstance(reason, str) else ""
        return JudgeResult(
            score=score, reason=text or NO_REASON, doubt=doubt if isinstance(doubt, str) else ""
        )
    message = f"the judge gave {type(value).__name__} without a score of 0 or 1"
    return JudgeResult(
        score=None,
        reason=f"Unscored: {message}",
        failure=Failure(stage="judge", kind="unreadable", message=message),
    )


def asks_further(config: EvaluationConfig, samples: Iterable[Sample]) -> bool:
    """Return whether a run asks a further judge."""
    return bool(list_pairs(config)) or bool(list_further(config, samples))


def asks_judge(config: EvaluationConfig, samples: Iterable[Sample]) -> bool:
    """Return whether a run asks any judge."""
    return bool(config.metrics) or asks_further(config, samples)


def with_judged(outcome: RunOutcome, config: EvaluationConfig, work: Work) -> RunOutcome:
    """Return an outcome with the further judgments; single results get all but those of pairs."""
    pairs = [pair_kind(scorer.name, a, b) for scorer, a, b in list_pairs(config)]
    claims = [CLAIMS] if config.judges_claims else []
    judgements = tuple(
        (unit, judgement)
        for unit in work.units
        for kind in (DOUBT, *claims, *list_further(config, [unit.sample]), *pairs)
        if (judgement := work.session.judgement(unit.key, kind)) is not None
    )
    grades = defaultdict[tuple[str, str, int], dict[str, Mapping[str, object]]](dict)
    for unit, judgement in judgements:
        if judgement.kind not in pairs:
            key = unit.sample.id, unit.method, unit.trial
            grades[key][judgement.kind] = judgement.value
    results = [
        replace(result, grades=values)
        if (values := grades.get((result.sample_id, result.method, result.trial)))
        else result
        for result in outcome.results
    ]
    return replace(outcome, results=results, judged=judgements)


def further_model(judge: Judge, config: EvaluationConfig) -> JudgeModel:
    """Return the model that further judges ask: that of the judge.

    Raises ConfigError if the judge has no model.
    """
    model = getattr(judge, "model", None) if "model" in dir(judge) else None
    if model is None:
        raise ConfigError(
            "judge.rubric, quality, graded, assertions (of a dataset with any) and pairwise need a "
            "judge with a model to ask; give it an attribute model, or turn them off."
        )
    return JudgeModel(model, config.judge.temperature, config.judge.max_retries)


def plan_further(
    model: JudgeModel,
    config: EvaluationConfig,
    work: Work,
    entity_types: Callable[[str], Awaitable[Mapping[str, str]]],
) -> list[FurtherTask]:
    """Return the further judgings that are still to be made; failed searches are left out.

    Pairs are judged in the first trial only. ``entity_types``: index key -> title -> type of its
    entities.
    """
    session = work.session
    units = {
        (unit.sample.id, unit.method, unit.trial): unit
        for unit in work.units
        if (state := session.state(unit.key)) is not None and not state.failed
    }

    def read(unit: Unit) -> StoredResponse:  # only when needed: a whole run may not fit into memory
        response = session.response(unit.key)
        assert response is not None
        return response

    def describe(unit: Unit) -> Material:
        response, index = read(unit), config.index_of(unit.sample.imdb_key, unit.method)
        text, context = response.response, response.context_text
        types = partial(entity_types, index)
        return Material(
            sample=unit.sample,
            response=text,
            context=context,
            method=unit.method,
            abstained=response.abstained,
            entity_types=types,
        )

    async def grade(scorer: Scorer, unit: Unit, other: Unit | None = None) -> Grading:
        assert scorer.grade is not None  # without one, its grade comes with the verdicts
        second = None if other is None else describe(other)
        return await scorer.grade(model, replace(describe(unit), other=second))

    jobs = [
        (unit.key, kind, partial(grade, SCORERS[kind], unit))
        for unit in units.values()
        for kind in list_further(config, [unit.sample])
    ]
    jobs += [
        (unit.key, pair_kind(scorer.name, a, b), partial(grade, scorer, unit, other))
        for scorer, a, b in list_pairs(config)
        for unit in units.values()
        if unit.method == a and unit.trial == 0 and scorer.asks(unit.sample)
        if (other := units.get((unit.sample.id, b, 0))) is not None
    ]
    return [
        FurtherTask(subject, kind, partial(_judge_further, subject, kind, ask))
        for subject, kind, ask in jobs
        if session.judgement(subject, kind) is None
    ]


async def _judge_further(
    subject: str, kind: str, ask: Callable[[], Awaitable[Grading]], log: CallLog
) -> Judgement:
    with measure_calls(log):
        value, failures = await ask()
    check_asked(log)
    failed = [failure for failure in failures if failure is not None]
    _check_refused(failed)
    return Judgement(
        subject=subject, kind=kind, value=dict(value), failed=bool(failed), usage=log.usage()
    )


def _check_refused(failures: Iterable[Failure | None]) -> None:
    for failure in failures:
        if failure is not None and failure.kind == "refused":
            raise RunStoppedError(f"The judge's service refuses the requests: {failure.message}")


def judge_model(config: EvaluationConfig, headers: Mapping[str, IndexHeader]) -> ModelConfig:
    """Return the configuration of the model that judges.

    Raises ConfigError if no such model is configured, or if the indexes name different ones.
    """
    if not headers:
        raise ConfigError("no index can be read that names the judge's model; check indexes")
    choices: dict[str, ModelConfig] = {}
    for key, header in headers.items():
        chosen = _choose(config.judge.model, header)
        choices[f"{key}: {model_name(chosen)}"] = chosen
    models = list(choices.values())
    if any(_identity(model) != _identity(models[0]) for model in models):
        raise ConfigError(
            f"the indexes name different judges ({', '.join(choices)}), so their scores could not "
            "be compared; set judge.model to provider/model"
        )
    return models[0]


def check_judge_model(model: ModelConfig, metrics: Iterable[str]) -> None:
    """Raise ConfigError if an embedded judge has no rule for one of the metrics, which it names."""
    unknown = [metric for metric in metrics if metric not in RULES]
    if model.type == "offline" and unknown:
        raise ConfigError(
            f"metrics: the embedded judge has no rule for {' and '.join(unknown)}; name a language "
            "model in judge.model, or leave it out."
        )


def check_judge(judge: object, config: EvaluationConfig) -> None:
    """Raise ConfigError if a judge can't grade a metric; any judge grades the default metrics.

    The error names the metric, and what the judge lacks.
    """
    further = [metric for metric in config.metrics if metric not in DEFAULT_METRICS]
    kind = type(judge).__qualname__
    if len(further) < len(config.metrics) and not any(
        callable(getattr(judge, name, None)) for name in ("evaluate_all", "judge_correctness")
    ):
        raise ConfigError(f"The judge, of class {kind}, has no evaluate_all; give LLMJudge(model).")
    if config.judges_claims and not isinstance(judge, LLMJudge):
        raise ConfigError(
            f"judge.faithfulness: the judge, of class {kind}, can't judge claim by claim; give an "
            "LLMJudge, or leave by: claim out."
        )
    model = _model_of(judge)
    if model is not None:
        check_judge_model(model, [*further, *config.judge.graded])
    for metric in further:
        if not (has_method(judge, "judge_metric") or has_method(judge, f"judge_{metric}")):
            signature = f"judge_{metric}({', '.join(JUDGED_METRICS[metric].fields)})"
            raise ConfigError(
                f"The judge, of class {kind}, does not grade {metric}; give it {signature}, or "
                f"leave {metric} out of metrics."
            )


def _model_of(judge: object) -> ModelConfig | None:
    model = getattr(getattr(judge, "model", None), "config", None)
    return model if isinstance(model, ModelConfig) else None


def open_judge(config: EvaluationConfig, headers: Mapping[str, IndexHeader]) -> LLMJudge:
    """Open the judge of a configuration."""
    model = judge_model(config, headers)
    return LLMJudge(open_completion(model), config.judge.temperature, config.judge.max_retries)


def describe_judge(
    config: EvaluationConfig,
    samples: Iterable[Sample],
    headers: Mapping[str, IndexHeader],
    judge: Judge | None = None,
) -> dict[str, object]:
    """Return everything about the judge that changes what a score means."""
    if not asks_judge(config, samples):
        return {"model": None}
    if judge is not None:
        own_model = _model_of(judge)
        named = None if own_model is None else model_name(own_model)
        return {"kind": type(judge).__qualname__, "model": named}
    model = judge_model(config, headers)
    return {
        **describe_model(model),
        "temperature": config.judge.temperature,
        "max_retries": config.judge.max_retries,
        **({"repeats": config.judge.repeats} if config.judge.repeats > 1 else {}),
    }


def list_judge_name_warnings(
    config: EvaluationConfig, headers: Mapping[str, IndexHeader]
) -> list[str]:
    """Return a warning if the judge's name may be a misspelled key of ``completion_models``.

    A service that has only one model answers with it, whatever name is asked for.
    """
    name = config.judge.model
    if name is None or "/" in name:
        return []
    for header in headers.values():
        models = header.config.completion_models
        hint = nearest(name, list(models))
        if hint and name not in models and all(m.model != name for m in models.values()):
            model = model_name(_choose(name, header))
            return [f"judge.model: completion_models has no {name}, so {model} is asked{hint}"]
    return []


def _choose(name: str | None, header: IndexHeader) -> ModelConfig:
    models = header.config.completion_models
    if name is None:
        return answering_config(header)
    if name in models:
        return models[name]
    matches = {key: model for key, model in models.items() if model.model == name}
    if matches:
        first, *others = matches.values()
        if any(_identity(model) != _identity(first) for model in others):
            raise ConfigError(
                f"judge.model: {name} is the model of {' and '.join(matches)} in completion_models"
                ", which differ; name one of these keys"
            )
        return first
    base = answering_config(header)
    provider, slash, model = name.partition("/")
    if not slash:
        provider, model = base.model_provider, name
    is_embedded = is_offline(f"{provider}/{model}")
    if base.type == "offline" and not (slash and is_embedded):
        raise ConfigError(
            f"judge.model: {name} needs a key, and the project's own model is an embedded one; "
            "add it to completion_models in settings.yaml and name its key"
            f"{nearest(name, list(models))}"
        )
    # An unset type stays unset, which leaves open how the service is asked.
    kind = "offline" if is_embedded else "litellm"
    changed = is_embedded or provider != base.model_provider
    return base.model_copy(
        update={
            **({"type": kind} if changed else {}),
            "model_provider": provider,
            "model": model,
            "azure_deployment_name": None,  # else that deployment would judge under this name
        }
    )


def _identity(model: ModelConfig) -> object:
    return (model_name(model), model.api_base, model.call_args)
