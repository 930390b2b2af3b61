"""Who judges, and who answers without an index: chosen from settings, opened, described."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graphrag_llm.config import ModelConfig

from graphrag.config.models.strict_section import nearest
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.judged.declaration import DEFAULT_METRICS
from graphrag.eval.judged.discovery import JUDGED_METRICS
from graphrag.eval.runner.controls import answering_config
from graphrag.eval.runner.judgements import asks_judge
from graphrag.eval.runner.verdicts import has_method
from graphrag.eval.scorers.judge import Judge, LLMJudge
from graphrag.offline.grading import RULES
from graphrag.query.calls import RetryPolicy
from graphrag.query.index_header import IndexHeader, model_name, public_call_args
from graphrag.query.model_facts import is_offline
from graphrag.query.plain_completion import open_plain

if TYPE_CHECKING:
    from graphrag_llm.completion import LLMCompletion


def open_answering(header: IndexHeader) -> "LLMCompletion":
    """Open the model of the methods that retrieve nothing."""
    from graphrag.query.models import open_completion

    return open_completion(answering_config(header))


def judge_model(config: EvaluationConfig, headers: Mapping[str, IndexHeader]) -> ModelConfig:
    """Return the model that judges.

    Raises
    ------
    ConfigError
        If no such model is configured, or the indexes name different ones.
    """
    if not headers:
        msg = "no index is configured that could name the judge's model; set indexes"
        raise ConfigError(msg)
    found: dict[str, ModelConfig] = {}
    for key, header in headers.items():
        chosen = _choose(config.judge.model, header)
        found[f"{key}: {model_name(chosen)}"] = chosen
    models = list(found.values())
    if any(_identity(model) != _identity(models[0]) for model in models):
        msg = (
            f"the indexes name different judges ({', '.join(found)}), so their scores could not "
            "be compared; set judge.model to provider/model"
        )
        raise ConfigError(msg)
    return models[0]


def check_judge_model(model: ModelConfig, metrics: Iterable[str]) -> None:
    """Refuse an embedded judge of a metric that it has no rule for.

    Raises
    ------
    ConfigError
        Naming the metrics.
    """
    unknown = [metric for metric in metrics if metric not in RULES]
    if model.type == "offline" and unknown:
        msg = (
            f"metrics: the embedded judge has no rule for {' and '.join(unknown)}; name a language "
            "model in judge.model, or leave it out."
        )
        raise ConfigError(msg)


def check_judge(judge: object, metrics: Iterable[str]) -> None:
    """Refuse a judge that can't grade one of the metrics; the default ones any judge can.

    Raises
    ------
    ConfigError
        Naming the metric, and what is missing.
    """
    further = [metric for metric in metrics if metric not in DEFAULT_METRICS]
    model = _model_of(judge)
    if model is not None:
        check_judge_model(model, further)
    for metric in further:
        if not (has_method(judge, "judge_metric") or has_method(judge, f"judge_{metric}")):
            wanted = f"judge_{metric}({', '.join(JUDGED_METRICS[metric].fields)})"
            msg = (
                f"The judge, of class {type(judge).__qualname__}, does not grade {metric}; give it "
                f"{wanted}, or leave {metric} out of metrics."
            )
            raise ConfigError(msg)


def _model_of(judge: object) -> ModelConfig | None:
    model = getattr(getattr(judge, "model", None), "config", None)
    return model if isinstance(model, ModelConfig) else None


def open_judge(config: EvaluationConfig, headers: Mapping[str, IndexHeader]) -> LLMJudge:
    """Make the judge of a configuration."""
    model = judge_model(config, headers)
    retry = RetryPolicy() if model.retry is None else None
    return LLMJudge(open_plain(model, retry), config.judge.temperature, config.judge.max_retries)


def describe_judge(
    config: EvaluationConfig, headers: Mapping[str, IndexHeader], judge: Judge | None = None
) -> dict[str, object]:
    """Return everything about the judge that changes what a score means."""
    if not asks_judge(config):
        return {"model": None}
    if judge is not None:
        own = _model_of(judge)
        named = None if own is None else model_name(own)
        return {"kind": type(judge).__qualname__, "model": named}
    model = judge_model(config, headers)
    return {
        "model": model_name(model),
        "call_args": public_call_args(model),
        "temperature": config.judge.temperature,
        "max_retries": config.judge.max_retries,
        **({"repeats": config.judge.repeats} if config.judge.repeats > 1 else {}),
    }


def list_judge_name_warnings(
    config: EvaluationConfig, headers: Mapping[str, IndexHeader]
) -> list[str]:
    """Warn of a judge whose name may be a misspelt key of ``completion_models``."""
    name = config.judge.model
    if name is None or "/" in name:
        return []
    for header in headers.values():
        models = header.config.completion_models
        hint = nearest(name, list(models))
        if hint and name not in models and all(m.model != name for m in models.values()):
            asked = model_name(_choose(name, header))
            return [f"judge.model: completion_models has no {name}, so {asked} is asked{hint}"]
    return []


def _choose(name: str | None, header: IndexHeader) -> ModelConfig:
    models = header.config.completion_models
    default_id = header.config.local_search.completion_model_id
    if name is None:
        return header.config.get_completion_model_config(default_id)
    if name in models:
        return models[name]
    named = {key: model for key, model in models.items() if model.model == name}
    if named:
        first, *others = named.values()
        if any(_identity(model) != _identity(first) for model in others):
            msg = (
                f"judge.model: {name} is the model of {' and '.join(named)} in completion_models, "
                "which differ; name one of these keys"
            )
            raise ConfigError(msg)
        return first
    base = header.config.get_completion_model_config(default_id)
    provider, slash, model = name.partition("/")
    if not slash:
        provider, model = base.model_provider, name
    is_embedded = is_offline(f"{provider}/{model}")
    if base.type == "offline" and not (slash and is_embedded):
        msg = (
            f"judge.model: {name} needs a key, and the project's own model is an embedded one; "
            "add it to completion_models in settings.yaml and name its key"
            f"{nearest(name, list(models))}"
        )
        raise ConfigError(msg)
    kind = base.type if provider == base.model_provider else "litellm"
    return base.model_copy(
        update={
            "type": "offline" if is_embedded else kind,
            "model_provider": provider,
            "model": model,
            "azure_deployment_name": None,  # else that deployment would judge under this name
        }
    )


def _identity(model: ModelConfig) -> object:
    return (model_name(model), model.api_base, model.call_args)
