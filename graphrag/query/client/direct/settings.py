"""Reads from a model's settings whether its service is asked directly, and how."""

import os
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from graphrag.query.client.model_prices import known_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphrag_llm.config import ModelConfig

_OPENAI = "https://api.openai.com/v1"
_OF_LITELLM = frozenset(
    {
        *("additional_drop_params", "allowed_openai_params", "api_base", "api_key", "api_version"),
        *("azure_ad_token", "azure_ad_token_provider", "base_url", "cache", "caching", "client"),
        *("context_window_fallback_dict", "custom_llm_provider", "deployment_id", "drop_params"),
        *("fallbacks", "functions", "input_cost_per_token", "litellm_params", "mock_response"),
        *("model_info", "model_list", "num_retries", "output_cost_per_token", "ssl_verify"),
        *("thinking", "tools"),
    }
)
"""Call arguments for litellm, which a service would not know."""
_SENT_OTHERWISE = {
    *("timeout", "max_retries", "organization", "extra_body", "extra_query"),
    *("headers", "extra_headers"),
}


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """Contains the address of a service, and the contents of every request to it.

    ``base`` has no slash at its end. ``proxy`` is the address of the proxy that the environment
    names, None without one.
    """

    base: str
    headers: dict[str, str] = field(repr=False)
    query: dict[str, str] = field(repr=False)
    body: dict[str, object]
    proxy: str | None = field(repr=False)


def is_asked_directly(config: "ModelConfig") -> bool:
    """Say whether a model's service is asked directly, not through litellm.

    It is if ``model_provider`` is openai and no ``type`` is written, unless the settings need
    something that only litellm does, or the model is known to reason.
    """
    if config.type != "litellm" or "type" in config.model_fields_set:
        return False
    if config.model_provider != "openai" or config.auth_method != "api_key":
        return False
    if config.api_version or config.mock_responses or _OF_LITELLM & set(config.call_args):
        return False
    parts = urlsplit(_base(config))
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return False
    # Reasoning models take other arguments than searches and judges send.
    return not known_facts(f"openai/{config.model}").get("supports_reasoning")


def read_settings(config: "ModelConfig") -> DirectSettings:
    """Read how to reach the service of a model that is asked directly."""
    call_args = config.call_args
    base, authorization = _address(config)
    headers = {"Content-Type": "application/json", **authorization}
    organization = call_args.get("organization") or (config.model_extra or {}).get("organization")
    if organization := organization or os.environ.get("OPENAI_ORG_ID"):
        headers["OpenAI-Organization"] = str(organization)
    for key in ("headers", "extra_headers"):
        more = cast("Mapping[str, object]", call_args.get(key) or {})
        headers.update({name: str(value) for name, value in more.items()})
    in_address = parse_qsl(urlsplit(config.api_base or "").query)
    query: dict[str, object] = {**dict(in_address), **(call_args.get("extra_query") or {})}
    sent = {k: v for k, v in call_args.items() if k not in _SENT_OTHERWISE and v is not None}
    return DirectSettings(
        base=base,
        headers=headers,
        query={str(key): str(value) for key, value in query.items()},
        body={"model": config.model, **sent, **(call_args.get("extra_body") or {})},
        proxy=proxy_of(base),
    )


def _base(config: "ModelConfig") -> str:
    named = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    return config.api_base or named or _OPENAI


def _address(config: "ModelConfig") -> tuple[str, dict[str, str]]:
    parts = urlsplit(_base(config))
    user, _, host = parts.netloc.rpartition("@")
    plain = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    if user:
        pair = unquote(user) if ":" in user else f"{unquote(user)}:"
        return plain, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return plain, {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}


def proxy_of(base: str) -> str | None:
    """Return the proxy that the environment names for an address, None without one."""
    parts = urlsplit(base)
    proxies = getproxies()
    if not proxies or proxy_bypass(parts.netloc):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")
