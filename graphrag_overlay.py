"""Lays this project over the released ``graphrag`` without replacing a file of it.

``graphrag_overlay.pth`` imports this module when the interpreter starts, so it may import
only ``sys`` and ``importlib.machinery``. It puts one finder on ``sys.meta_path``, which

1. finds the ``graphrag.*`` modules that the release lacks beside this file (an editable
   install; in a wheel they already lie in place);
2. after a module named in ``_AFTER`` has run, calls the function that adds to it.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

TYPE_CHECKING = False  # typing's own constant would cost its import at every start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

_HERE = __file__.rpartition("/")[0] or __file__.rpartition("\\")[0]


def _add_commands(module: "ModuleType") -> None:
    from graphrag.cli.tog_query import add_tog_to_query
    from graphrag.eval.cli import add_eval_commands

    add_tog_to_query(module.app)
    add_eval_commands(module.app)


def _read_tog_section(module: "ModuleType") -> None:
    from graphrag.config.models.tog_search_config import ProjectConfig

    vars(module)["GraphRagConfig"] = ProjectConfig


def _register_offline_completion(module: "ModuleType") -> None:
    def create(**arguments: "Any") -> "Any":
        from graphrag.offline.completion import OfflineCompletion

        return OfflineCompletion(**arguments)

    module.register_completion("offline", create)


def _register_offline_embedding(module: "ModuleType") -> None:
    def create(**arguments: "Any") -> "Any":
        from graphrag.offline.embedding import OfflineEmbedding

        return OfflineEmbedding(**arguments)

    module.register_embedding("offline", create)


def _put_searches_in_place(module: "ModuleType") -> None:
    from graphrag.api import search

    for name in search.__all__:
        setattr(module, name, getattr(search, name))
    vars(module)["__all__"] = sorted({*module.__all__, *search.__all__})


_AFTER: "dict[str, Callable[[ModuleType], None]]" = {
    "graphrag.cli.main": _add_commands,
    "graphrag.config.load_config": _read_tog_section,
    "graphrag_llm.completion.completion_factory": _register_offline_completion,
    "graphrag_llm.embedding.embedding_factory": _register_offline_embedding,
    "graphrag.api": _put_searches_in_place,
}


class _ThenLoader(SourceFileLoader):
    """Runs a module as it is, then what this project adds to it."""

    def exec_module(self, module: "ModuleType") -> None:
        super().exec_module(module)
        _AFTER[module.__name__](module)


class _OverlayFinder:
    """The one finder; everything that is not named here is left to the others."""

    @staticmethod
    def find_spec(
        name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Find a module to add to, or one of this project's own beside this file."""
        if path is None or not name.startswith(("graphrag.", "graphrag_llm.")):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if name in _AFTER:
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = _ThenLoader(spec.loader.name, spec.loader.path)
            return spec
        if spec is not None and spec.origin is not None:
            return spec
        beside = f"{_HERE}/{name.rpartition('.')[0].replace('.', '/')}"
        found = PathFinder.find_spec(name, [beside], target)
        return found if found is not None and found.origin is not None else spec


sys.meta_path.insert(0, _OverlayFinder)
