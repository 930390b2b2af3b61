"""What both embedded models are: a tokenizer, and metrics that are added up somewhere."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Asked:
    """The names of the embedded models that were asked, by what they were asked for."""

    completion: set[str] = field(default_factory=set[str])
    embedding: set[str] = field(default_factory=set[str])


_asked: ContextVar[Asked | None] = ContextVar("gtog_offline_asked", default=None)


@contextmanager
def watch_offline() -> Generator[Asked]:
    """Gather the embedded models that are asked inside the ``with`` block."""
    asked = Asked()
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


class CountedModel:
    """Keeps a model's tokenizer and metrics; mixed into the two embedded models."""

    _asked_for: ClassVar[Literal["completion", "embedding"]]
    _model_id: str
    _tokenizer: "Tokenizer"
    _metrics_store: "MetricsStore"
    _track_metrics: bool

    @property
    def metrics_store(self) -> "MetricsStore":
        """Where metrics of all calls are added up."""
        return self._metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """What the usage is counted with."""
        return self._tokenizer

    def _metrics_of(self, kwargs: dict[str, Any]) -> dict[str, float] | None:
        asked = _asked.get()
        if asked is not None:
            getattr(asked, self._asked_for).add(self._model_id)
        given = kwargs.pop("metrics", None)
        if not self._track_metrics:
            return None
        return {} if given is None else given

    def _keep_metrics(self, metrics: dict[str, float] | None) -> None:
        if metrics is not None:
            self._metrics_store.update_metrics(metrics=metrics)
