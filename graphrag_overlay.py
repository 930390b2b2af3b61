"""Lays this project over the released ``graphrag`` without replacing a file of it.

``graphrag_overlay.pth`` imports this module when the interpreter starts, so it may import
only ``sys`` and ``importlib.machinery``. It puts one finder on ``sys.meta_path``, which

1. finds the ``graphrag.*`` modules that the release lacks beside this file (an editable
   install; in a wheel they already lie in place);
2. after a module named in ``_AFTER`` has run, calls the function that adds to it.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

_HERE = __file__.rpartition("/")[0] or __file__.rpartition("\\")[0]


def _add_commands(module):
    from graphrag.cli.tog_query import add_tog_to_query
    from graphrag.eval.cli import add_eval_commands

    add_tog_to_query(module.app)
    add_eval_commands(module.app)


def _register_offline_completion(module):
    def create(**arguments):
        from graphrag.offline.completion import OfflineCompletion

        return OfflineCompletion(**arguments)

    module.register_completion("offline", create)


def _register_offline_embedding(module):
    def create(**arguments):
        from graphrag.offline.embedding import OfflineEmbedding

        return OfflineEmbedding(**arguments)

    module.register_embedding("offline", create)


def _put_searches_in_place(module):
    from graphrag.api import search

    for name in search.__all__:
        setattr(module, name, getattr(search, name))
    module.__all__ = sorted({*module.__all__, *search.__all__})


_AFTER = {
    "graphrag.cli.main": _add_commands,
    "graphrag_llm.completion.completion_factory": _register_offline_completion,
    "graphrag_llm.embedding.embedding_factory": _register_offline_embedding,
    "graphrag.api": _put_searches_in_place,
}


class _ThenLoader(SourceFileLoader):
    """Runs a module as it is, then what this project adds to it."""

    def exec_module(self, module):
        super().exec_module(module)
        _AFTER[module.__name__](module)


class _OverlayFinder:
    """The one finder; everything that is not named here is left to the others."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Find a module to add to, or one of this project's own beside this file."""
        if name in _AFTER:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = _ThenLoader(spec.loader.name, spec.loader.path)
            return spec
        if path is None or not name.startswith("graphrag."):
            return None
        if PathFinder.find_spec(name, path, target) is not None:
            return None
        beside = f"{_HERE}/{name.rpartition('.')[0].replace('.', '/')}"
        spec: ModuleSpec | None = PathFinder.find_spec(name, [beside], target)
        return spec if spec is not None and spec.origin is not None else None


sys.meta_path.insert(0, _OverlayFinder)
