"""Records the replies that the released graphrag's models get while it builds an index.

The models report each reply through the release's metrics.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from graphrag_llm.config.metrics_config import MetricsConfig
from graphrag_llm.metrics.default_metrics_processor import DefaultMetricsProcessor
from graphrag_llm.metrics.memory_metrics_store import MemoryMetricsStore
from graphrag_llm.metrics.metrics_processor_factory import register_metrics_processor
from graphrag_llm.metrics.metrics_store_factory import register_metrics_store

from graphrag.config.project_settings import ProjectConfig
from graphrag.query.client.call_errors import asked_tier, read_usage
from graphrag.query.client.indexing_models import INDEXING, register_indexing
from graphrag.query.client.usage import CallAttempt, CallKind, current_phase, set_variable

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.types import Metrics

_COUNTED, _CACHED = "counted", "cached_prompt_tokens"
_KINDS: dict[str, CallKind] = {"completion_models": "completion", "embedding_models": "embedding"}
_REPORTING = ("litellm", "offline")
"""Types of models that report their replies."""


ReleaseReply: TypeAlias = tuple[CallAttempt, bool]
"""A reply, and whether it came from the project's cache, so that an earlier build has paid for it.
Its phase is the workflow; ``counted_by`` is "nobody" if its tokens are not known."""

_replies: ContextVar[list[ReleaseReply] | None] = ContextVar("gtog_replies", default=None)


def watch_replies() -> AbstractContextManager[list[ReleaseReply]]:
    """Collect the replies that models of :func:`count_replies` get inside the ``with`` block."""
    return set_variable(_replies, list[ReleaseReply]())


def count_replies(config: ProjectConfig) -> ProjectConfig | None:
    """Return settings whose models report their replies and leave out parameters that they refuse.

    None if a model's type can't report.
    """
    register_metrics_processor(_COUNTED, _Processor)
    register_metrics_store(_COUNTED, _Store)
    register_indexing()
    changes: dict[str, dict[str, ModelConfig]] = {}
    for name, kind in _KINDS.items():
        models = cast("dict[str, ModelConfig]", getattr(config, name))
        if any(model.type not in _REPORTING for model in models.values()):
            return None
        for key, model in models.items():
            own = {"type": _COUNTED, "store": _COUNTED, "kind": kind, "tier": asked_tier(model)}
            metrics = (model.metrics or MetricsConfig(writer=None)).model_copy(update=own)
            change: dict[str, object] = {"metrics": metrics}
            if kind == "completion" and model.type == "litellm":
                change["type"] = INDEXING
            changes.setdefault(name, {})[key] = model.model_copy(update=change)
    return config.model_copy(update=changes)


class _Processor(DefaultMetricsProcessor):
    """Adds the tokens that the provider read from its own cache, because they cost less."""

    def process_metrics(self, *, metrics: "Metrics", response: Any, **request: Any) -> None:
        super().process_metrics(metrics=metrics, response=response, **request)
        cached = read_usage(response.usage)[2]
        metrics |= {} if cached is None else {_CACHED: cached}


class _Store(MemoryMetricsStore):
    def __init__(self, *, kind: CallKind, tier: str | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._kind: CallKind = kind
        self._tier = tier

    def update_metrics(self, *, metrics: "Metrics") -> None:
        super().update_metrics(metrics=metrics)
        replies = _replies.get()
        if replies is None or not metrics.get("successful_response_count"):
            return
        cached = metrics.get(_CACHED)
        attempt = CallAttempt(
            kind=self._kind,
            model=self.id,
            phase=current_phase(),
            prompt_tokens=int(metrics.get("prompt_tokens", 0)),
            output_tokens=int(metrics.get("completion_tokens", 0)),
            counted_by="provider" if "prompt_tokens" in metrics else "nobody",
            latency_s=metrics.get("compute_duration_seconds", 0.0),
            cached_prompt_tokens=None if cached is None else int(cached),
            service_tier=self._tier,
        )
        replies.append((attempt, bool(metrics.get("cached_responses"))))
