"""LanceDB, without the client of catalog services that its import names and nobody here asks."""

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType

_CLIENT = "lance_namespace_urllib3_client"
_running = RLock()


def leave_client() -> None:
    """Let a later ``import lancedb`` take half of its time: the client's package does not run.

    LanceDB takes only models from it. The package runs when a name is first looked for in it.
    """
    spec = None if _CLIENT in sys.modules else find_spec(_CLIENT)
    if spec is not None:
        module = module_from_spec(spec)
        module.__class__ = _Unread
        sys.modules[_CLIENT] = module


class _Unread(ModuleType):
    def __getattr__(self, name: str) -> object:
        with _running:
            if self.__class__ is _Unread:
                self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
        return getattr(self, name)
