"""What both embedded models are: a tokenizer, and metrics that are added up somewhere."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer


class CountedModel:
    """Keeps a model's tokenizer and metrics; mixed into the two embedded models."""

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
        given = kwargs.pop("metrics", None)
        if not self._track_metrics:
            return None
        return {} if given is None else given

    def _keep_metrics(self, metrics: dict[str, float] | None) -> None:
        if metrics is not None:
            self._metrics_store.update_metrics(metrics=metrics)
