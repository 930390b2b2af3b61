"""How long a reply may be: which bound is sent, and what is said of a reply that was cut off."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphrag.query.calls import CONTEXT_IS_FULL, CutOffReplyError
from graphrag.query.methods import section_name
from graphrag.query.model_facts import (
    known_facts,
)
from graphrag.query.usage import (
    OutputBound,
)

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

BOUND_KEYS = ("max_tokens", "max_completion_tokens")
REASONING_TOKENS = 25_000
"""What a model that thinks before it answers may think, on top of a bound: to providers both are
output. OpenAI advises to keep at least as much free."""
_THINKING = ("reasoning_effort", "thinking")
_OF_REQUEST = "max_tokens of the request"


def own_bound(config: "ModelConfig") -> OutputBound | None:
    """Return the bound in a model's own ``call_args``, None without one."""
    given: Mapping[str, Any] = config.call_args
    for key in BOUND_KEYS:
        if given.get(key) is not None:
            name = f"call_args.{key} of {config.model_provider}/{config.model} in settings.yaml"
            return OutputBound(int(given[key]), name)
    return None


def bind_output(
    request: Mapping[str, Any], config: "ModelConfig", of_scope: OutputBound | None
) -> tuple[OutputBound | None, dict[str, Any]]:
    """Return the bound of a request's output, and the request with that bound alone.

    It is the one in the model's own ``call_args`` (which are sent with every request), else the
    request's own, else the scope's; None without any.
    """
    rest = {key: value for key, value in request.items() if key not in BOUND_KEYS}
    own = own_bound(config)
    if own is not None:
        return own, rest
    for key in BOUND_KEYS:
        if request.get(key) is not None:
            return OutputBound(int(request[key]), _OF_REQUEST), {**rest, key: request[key]}
    if of_scope is None:
        return None, rest
    tokens = allowed_output(config, of_scope.tokens)
    return OutputBound(tokens, of_scope.setting), {**rest, "max_tokens": tokens}


def bound_in_force(config: "ModelConfig | None", wanted: OutputBound) -> OutputBound:
    """Return the bound that a model's replies have when ``wanted`` is asked for."""
    own = None if config is None else own_bound(config)
    return own or OutputBound(allowed_output(config, wanted.tokens), wanted.setting)


def allowed_output(config: "ModelConfig | None", tokens: int) -> int:
    """Return the bound to send for a reply of ``tokens``.

    A model that is known to think first, by litellm's map or by its ``call_args``, gets
    :data:`REASONING_TOKENS` more; none gets more than the most that it is known to write.
    """
    if config is None:
        return tokens
    facts = known_facts(f"{config.model_provider}/{config.model}")
    given: Mapping[str, Any] = config.call_args
    thinks = bool(facts.get("supports_reasoning")) or any(given.get(k) for k in _THINKING)
    wanted = tokens + REASONING_TOKENS if thinks else tokens
    return min(wanted, int(facts.get("max_output_tokens") or wanted))


def describe_cut(n_tokens: int | None, bound: OutputBound | None) -> str:
    """Return one sentence on a reply that was cut off after so many tokens, None: not known."""
    if n_tokens is None:
        raised = "" if bound is None else f"; raise {bound.setting}, now {bound.tokens}"
        return f"the reply was cut off{raised}"
    if bound is not None and n_tokens >= bound.tokens:
        return f"the reply was cut off at {n_tokens} tokens; raise {bound.setting}"
    allowed = "" if bound is None else f" of {bound.tokens} that it may have"
    return f"the reply was cut off after {n_tokens} tokens{allowed}: {CONTEXT_IS_FULL}"


def blame(error: CutOffReplyError, setting: str) -> CutOffReplyError:
    """Return the same error, naming the setting behind a bound that the request brought."""
    return CutOffReplyError(error.content, str(error).replace(_OF_REQUEST, setting))


_BUDGETS = {
    "global": "global_search.max_context_tokens and global_search.data_max_tokens",
    "drift": "drift_search.data_max_tokens and drift_search.local_search_max_data_tokens",
}


def context_budget(method: str) -> str:
    """Return the settings to lower where a method shows its model more than there is room for."""
    return _BUDGETS.get(method, f"{section_name(method)}.max_context_tokens") + " in settings.yaml"
