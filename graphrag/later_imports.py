"""Importing one module without a large package that it names in annotations alone.

The module gets stand-ins for the package's names, which nobody reads at run time. Whoever uses the
package imports it then, and any other import of it is as ever.
"""

import builtins
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any


def import_without(module: str, package: str, names: Mapping[str, Any]) -> None:
    """Import a module with stand-ins for a package's names, unless either is loaded.

    Parameters
    ----------
    module : str
    package : str
        Where it is not installed, nothing is done.
    names : mapping
        Name -> its stand-in. The module gets them for ``from package import name`` of these names
        alone, and for ``import package``.
    """
    if {package, module}.isdisjoint(sys.modules) and find_spec(package) is not None:
        finder = _Finder(module, package, names)
        sys.meta_path.insert(0, finder)
        try:
            import_module(module)
        finally:
            sys.meta_path.remove(finder)


class _Finder:
    """Finds that one module, and has it run with the stand-ins."""

    def __init__(self, module: str, package: str, names: Mapping[str, Any]) -> None:
        self._module = module
        self._package = package
        self._names = names

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module."""
        spec = PathFinder.find_spec(name, path, target) if name == self._module else None
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
            run(module)

        loader.exec_module = exec_module
        return spec

    def _import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        if name == self._package and set(self._names).issuperset(fromlist or ()):
            return SimpleNamespace(**self._names)
        return builtins.__import__(name, globals, locals, fromlist, level)
