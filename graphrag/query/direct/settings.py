"""A model's entry of settings.yaml, read for asking its service directly, or refused."""

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from graphrag.query.model_facts import known_facts

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

DIRECT = "openai_direct"
_OPENAI = "https://api.openai.com/v1"
_OF_LITELLM = frozenset(
    {
        "additional_drop_params",
        "allowed_openai_params",
        "api_base",
        "api_key",
        "api_version",
        "azure_ad_token",
        "azure_ad_token_provider",
        "base_url",
        "cache",
        "caching",
        "client",
        "context_window_fallback_dict",
        "custom_llm_provider",
        "deployment_id",
        "drop_params",
        "fallbacks",
        "input_cost_per_token",
        "litellm_params",
        "mock_response",
        "model_info",
        "model_list",
        "num_retries",
        "output_cost_per_token",
        "ssl_verify",
        "thinking",
    }
)
_SENT_OTHERWISE = ("timeout", "max_retries", "organization", "extra_body", "extra_query")
_HEADERS = ("headers", "extra_headers")


class DirectSettingsError(ValueError):
    """A model can't be asked directly; the message is one sentence with the next step."""


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """How a service is asked.

    Attributes
    ----------
    base : str
        The address that the paths of the interface are added to, without a slash at its end.
    headers, query : dict
        Sent with every request.
    body : dict
        Part of every request, with the model's name.
    timeout_s : float
        Seconds for a request, > 0.
    proxy : str or None
        The address of the proxy that the environment names.
    """

    base: str
    headers: dict[str, str] = field(repr=False)
    query: dict[str, str] = field(repr=False)
    body: dict[str, Any]
    timeout_s: float
    proxy: str | None = field(repr=False)


def read_settings(config: "ModelConfig") -> DirectSettings:
    """Read how a model's service is asked.

    Raises
    ------
    DirectSettingsError
        If something is configured that only litellm knows to do, or something is missing.
    """
    name = f"{config.model_provider}/{config.model}"
    _check(config, name)
    given: dict[str, Any] = dict(config.call_args)
    base, authorization = _address(config, name)
    headers = {"Content-Type": "application/json", **authorization}
    organization = given.get("organization") or (config.model_extra or {}).get("organization")
    if organization := organization or os.environ.get("OPENAI_ORG_ID"):
        headers["OpenAI-Organization"] = str(organization)
    for key in _HEADERS:
        headers.update(
            {str(k): str(v) for k, v in cast("dict[str, Any]", given.get(key) or {}).items()}
        )
    in_address = parse_qsl(urlsplit(config.api_base or "").query)
    extra: dict[str, Any] = {**dict(in_address), **(given.get("extra_query") or {})}
    left_out = {*_SENT_OTHERWISE, *_HEADERS}
    sent = {key: value for key, value in given.items() if key not in left_out and value is not None}
    timeout: Any = given.get("timeout")
    return DirectSettings(
        base=base,
        headers=headers,
        query={str(key): str(value) for key, value in extra.items()},
        body={"model": config.model, **sent, **(given.get("extra_body") or {})},
        timeout_s=float(timeout) if isinstance(timeout, int | float) and timeout > 0 else 600.0,
        proxy=_proxy(base),
    )


def _check(config: "ModelConfig", name: str) -> None:
    keep = f"leave `type: {DIRECT}` out, and litellm asks it"
    azure = config.model_provider.startswith("azure") or config.azure_deployment_name
    if azure or config.api_version or config.auth_method != "api_key":
        msg = f"type {DIRECT} of {name} knows nothing of Azure's interface (its deployments, "
        msg += f"api_version and identities); {keep}."
        raise DirectSettingsError(msg)
    unknown = sorted(_OF_LITELLM & set(config.call_args))
    if unknown:
        msg = f"call_args.{unknown[0]} of {name} is an instruction to litellm, and type {DIRECT} "
        msg += f"sends what it is given to the service; leave it out, or {keep}."
        raise DirectSettingsError(msg)
    if config.mock_responses:
        msg = f"mock_responses of {name} are litellm's, and type {DIRECT} asks a service; {keep}."
        raise DirectSettingsError(msg)
    if config.model_provider == "openai" and known_facts(name).get("supports_reasoning"):
        msg = f"{name} takes other arguments than the searches and the judge send, and litellm "
        msg += f"translates them where type {DIRECT} does not; {keep}."
        raise DirectSettingsError(msg)


def _address(config: "ModelConfig", name: str) -> tuple[str, dict[str, str]]:
    """Return the address of the service, and the header that lets in."""
    base, key = config.api_base, config.api_key
    if base is None:
        if config.model_provider != "openai":
            msg = f"type {DIRECT} does not know the address of {config.model_provider}; set the "
            msg += f"api_base of {name}."
            raise DirectSettingsError(msg)
        base = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or _OPENAI
        key = key or os.environ.get("OPENAI_API_KEY")
        if not key:
            msg = f"{name} needs a key; set its api_key, or OPENAI_API_KEY in the environment."
            raise DirectSettingsError(msg)
    parts = urlsplit(base)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f"the api_base of {name} is no address of HTTP; write it as https://host/v1."
        raise DirectSettingsError(msg)
    user, _, host = parts.netloc.rpartition("@")
    plain = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    if user:
        pair = unquote(user) if ":" in user else f"{unquote(user)}:"
        return plain, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return plain, {"Authorization": f"Bearer {key}"} if key else {}


def _proxy(base: str) -> str | None:
    parts = urlsplit(base)
    proxies: Mapping[str, str] = getproxies()
    if not proxies or proxy_bypass(parts.netloc):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")
