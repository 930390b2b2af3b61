"""Delays large packages that are imported but rarely used: they run when a name is looked up."""

import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType

_lock = RLock()
_begun: set[str] = set()


def leave_client() -> None:
    """Halve the time of a later ``import lancedb``.

    lancedb takes only models from the client of catalog services, whose package then does not run.
    """
    _leave("lance_namespace_urllib3_client")


def leave_openai() -> None:
    """Make the release's import of types from OpenAI's client a second faster.

    The types are in modules of their own, which need neither the client nor its other 500 types.
    """
    if _leave("openai"):
        _leave("openai.types")


def point_to_encodings() -> None:
    """Make tiktoken read the encodings that litellm brings, as importing litellm would."""
    with suppress(ValueError):  # a stand-in has no spec
        litellm = find_spec("litellm")
        if litellm is not None and litellm.origin is not None:
            folder = os.path.dirname(litellm.origin)
            brought = os.path.join(folder, "litellm_core_utils", "tokenizers")
            own = os.environ.get("CUSTOM_TIKTOKEN_CACHE_DIR")
            os.environ.setdefault("TIKTOKEN_CACHE_DIR", own or brought)


def _leave(name: str) -> bool:
    spec = None if name in sys.modules else find_spec(name)
    if spec is None:
        return False
    module = module_from_spec(spec)
    module.__class__ = _Unread
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    return True


class _Unread(ModuleType):
    def __getattr__(self, name: str) -> object:
        with _lock:  # the package itself comes here again while it runs
            if self.__name__ not in _begun:
                own = f"{self.__name__}.{name}"
                if not name.startswith("__") and find_spec(own) is not None:
                    return import_module(own)  # a part that runs first may ask for it
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                _begun.add(self.__name__)
                try:
                    self.__spec__.loader.exec_module(self)
                except BaseException:
                    _begun.remove(self.__name__)  # the next caller gets the cause as well
                    raise
                self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]
        return ModuleType.__getattribute__(self, name)
