"""litellm's completions, asked once each; importing this module imports litellm."""

from typing import TYPE_CHECKING, Any

from graphrag_llm.cache import create_cache_key
from graphrag_llm.completion.lite_llm_completion import LiteLLMCompletion
from graphrag_llm.metrics.noop_metrics_store import NoopMetricsStore

from graphrag.query.plain_completion import bare_config

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.tokenizer import Tokenizer


class OneAttemptLiteLLM(LiteLLMCompletion):
    """The released litellm completion, asked once and without parsing what comes back."""

    def __init__(self, config: "ModelConfig", tokenizer: "Tokenizer") -> None:
        super().__init__(
            **(config.model_extra or {}),
            model_id=f"{config.model_provider}/{config.model}",
            model_config=bare_config(config, {**config.call_args, "max_retries": 0}),
            tokenizer=tokenizer,
            metrics_store=NoopMetricsStore(),
            cache_key_creator=create_cache_key,
        )

    async def ask(self, **request: Any) -> Any:
        """Send one request; a reply that can't be parsed is still a reply, with its usage."""
        # Named even where there is none, as the release does: without the name it would ask for
        # a JSON object in the steps of global and DRIFT search, which some services refuse.
        form = request.pop("response_format", None)
        return await self._completion_async(
            **request, response_format=form, enable_json_schema_validation=False
        )
