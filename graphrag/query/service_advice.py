"""What to say of a service that can't be used: its address, and the setting to look at.

The errors of the clients below graphrag name neither. Who sends a request knows both and puts
the sentence on the error, which keeps it on its way up.
"""

from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from graphrag.config.models.strict_section import nearest

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

_KEYS = {401: "api_key", 403: "api_key", 404: "model and api_base"}


class _Advice(str):
    """A note on an error that is part of its one sentence."""

    __slots__ = ()


def is_wrong_provider(error: BaseException) -> bool:
    """Say whether litellm can't tell where to send a request; none was sent then."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return "LiteLLMUnknownProvider" in names or "LLM Provider NOT provided" in str(error)


def is_unconnected(error: BaseException) -> bool:
    """Say whether there was no connection to the service, or it was lost."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APITimeoutError" in names or "Timeout" in names:
        return False
    text = str(error)
    return "Connection error." in text or "Cannot connect to host" in text


def advise(
    error: BaseException, kind: Literal["completion", "embedding"], config: "ModelConfig"
) -> None:
    """Put on an error what its sentence is to say of the service.

    Parameters
    ----------
    error : BaseException
        Of one request.
    kind : {"completion", "embedding"}
    config : ModelConfig
        Of the model that was asked.
    """
    where = f"under {kind}_models in settings.yaml"
    keys = _KEYS.get(cast("int", getattr(error, "status_code", None)))
    if is_wrong_provider(error):
        error.add_note(_Advice(_describe_provider(kind, config.model_provider, where)))
    elif is_unconnected(error):
        address = name_service(config)
        remedy = f"start the service, or check api_base {where}"
        if config.api_base is None:
            remedy = f"check the network, or set api_base {where}"
        error.add_note(_Advice(f"no connection to {address}; {remedy}"))
    elif keys is not None:
        error.add_note(_Advice(f"; {name_service(config)} was asked: check {keys} {where}"))


def read_advice(error: BaseException) -> str | None:
    """Return what :func:`advise` put on an error; with a leading ``;`` it follows the message."""
    notes: list[Any] = getattr(error, "__notes__", [])
    return next((str(note) for note in notes if isinstance(note, _Advice)), None)


def _describe_provider(kind: str, provider: str, where: str) -> str:
    import litellm

    known = sorted({str(getattr(each, "value", each)) for each in litellm.provider_list})
    if provider in known:
        return f"{provider} offers no {kind}s: correct model_provider {where}"
    meant = nearest(provider, known)
    correct = f"{' C' if meant else '; c'}orrect model_provider {where}"
    return f"there is no provider {provider!r}{meant}{correct}"


def name_service(config: "ModelConfig") -> str:
    """Return the model and the address of its service, without a password or a key in it."""
    model = f"{config.model_provider}/{config.model}"
    if config.api_base is None:
        return model
    parts = urlsplit(config.api_base)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path} ({model})" if host else f"{model} (api_base)"
