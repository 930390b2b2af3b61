"""What importing graphrag need not load since this project is installed.

graphrag imports nltk, for one of its ways to index, and nltk takes what it finds of scipy and
scikit-learn, for functions that graphrag never calls. The release brings neither. This project
brings scipy, and its extras scikit-learn, so without this module every ``import graphrag.api``
would load them: seconds, and tens of megabytes. Here nltk gets the same names, which are looked
up when they are first used.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_NAMES = {
    "scipy": ("sparse",),
    "scipy.stats": ("fisher_exact",),
    "sklearn": ("svm",),
    "sklearn.datasets": ("load_svmlight_file",),
    "sklearn.feature_extraction": ("DictVectorizer",),
    "sklearn.preprocessing": ("LabelEncoder",),
}
"""Module -> what nltk takes of it; it does without any other module, as in the release."""


def import_nltk() -> None:
    """Import nltk as the release does next, without what nltk finds by our installation.

    Does nothing where nltk is loaded, or where the program has loaded scipy or scikit-learn
    itself.
    """
    if not {"nltk", "scipy", "sklearn"}.isdisjoint(sys.modules):
        return
    sys.meta_path.insert(0, _NltkOnly)
    try:
        import_module("nltk")
    except Exception:
        return  # the release imports it next, and tells its own error
    finally:
        sys.meta_path.remove(_NltkOnly)
        for name in _NAMES:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]


class _Later:
    """Stands for a name of a module, which is imported when the name is used."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def _found(self) -> Any:
        module = import_module(self._module)
        if hasattr(module, self._name):
            return getattr(module, self._name)
        return import_module(f"{self._module}.{self._name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._found()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)


class _StandIn(ModuleType):
    """A module that holds nothing but names for later."""


class _StandInLoader:
    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        for name in _NAMES[module.__name__]:
            setattr(module, name, _Later(module.__name__, name))


class _NltkOnly:
    """Finds the stand-ins, for the modules of nltk alone."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a stand-in for a module that is installed."""
        top = name.partition(".")[0]
        if name not in _NAMES or not _asked_by_nltk() or PathFinder.find_spec(top) is None:
            return None
        loader: Any = _StandInLoader
        return ModuleSpec(name, loader, is_package=True)


def _asked_by_nltk() -> bool:
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _module_of(frame).startswith(("importlib", __name__)):
        frame = frame.f_back
    return frame is not None and _module_of(frame).startswith("nltk.")


def _module_of(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", ""))
