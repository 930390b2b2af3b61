"""Lays this project over the released ``graphrag`` without replacing a file of it.

``graphrag_overlay.pth`` (from Python 3.15 on ``graphrag_overlay.start``) calls ``start`` when the
interpreter starts, so this module may import only ``sys`` and ``importlib.machinery`` at its top.
If anything goes wrong, the release stays as it is and one warning says why; see docs/design.md.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # typing's own constant would cost its import at every start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

_HERE = __file__.rpartition("/")[0] or __file__.rpartition("\\")[0]
_RELEASE = "3.3"
_OFF = "GTOG_OVERLAY"
_MAIN = "graphrag.cli.main"
_PACKAGES = ("graphrag.", "graphrag_llm.", "graphrag_storage.", "graphrag_vectors.")


def _add_commands(module: "ModuleType") -> None:
    from graphrag.cli.query_command import add_tog_to_query
    from graphrag.eval.cli.mount import add_eval_commands
    from graphrag.installation import ask_overlay

    ask_overlay(trouble)
    app = module.app
    before = [*app.registered_commands], [*app.registered_groups]
    try:
        add_tog_to_query(app)
        add_eval_commands(app)
    except Exception:
        app.registered_commands[:], app.registered_groups[:] = before
        raise


def _read_tog_section(module: "ModuleType") -> None:
    from graphrag.config.project_settings import ProjectConfig

    if not hasattr(module, "GraphRagConfig"):
        raise LookupError("it reads no GraphRagConfig")
    vars(module)["GraphRagConfig"] = ProjectConfig


def _put_searches_in_place(module: "ModuleType") -> None:
    from graphrag.api import search

    added = {name: getattr(search, name) for name in search.__all__}
    vars(module).update(added, __all__=sorted({*module.__all__, *added}))


_AFTER: "dict[str, Callable[[ModuleType], None]]" = {
    _MAIN: _add_commands,
    "graphrag.config.load_config": _read_tog_section,
    "graphrag_llm.completion.completion_factory": lambda module: module.register_completion(
        "offline", _Later("graphrag.embedded.models", "OfflineCompletion")
    ),
    "graphrag_llm.embedding.embedding_factory": lambda module: module.register_embedding(
        "offline", _Later("graphrag.embedded.models", "OfflineEmbedding")
    ),
    "graphrag_llm.tokenizer.tokenizer_factory": lambda module: module.register_tokenizer(
        "litellm", _Later("graphrag.query.client.tokens", "ModelTokenizer"), "singleton"
    ),
    "graphrag.api": _put_searches_in_place,
}
_NOUNS = "graphrag.index.operations.build_noun_graph.np_extractors"
_LANCE = "lance_namespace_urllib3_client"
_LATER: "dict[str, tuple[str, ...]]" = {
    "graphrag.config.models.graph_rag_config": ("devtools",),
    "graphrag.index.operations.snapshot_graphml": ("networkx",),
    "graphrag.query.structured_search.drift_search.state": ("networkx",),
    "graphrag_llm.middleware.with_errors_for_testing": ("litellm",),
    "graphrag_llm.model_cost_registry.model_cost_registry": ("litellm",),
    "graphrag_llm.types.types": ("litellm",),
    "graphrag_llm.utils.function_tool_manager": ("openai",),
    "graphrag_storage.tables.table_provider": ("pandas",),
    "graphrag_vectors.lancedb": (_LANCE,),
    f"{_NOUNS}.base": ("spacy",),
    f"{_NOUNS}.cfg_extractor": ("spacy",),
    f"{_NOUNS}.regex_extractor": ("nltk", "textblob"),
    f"{_NOUNS}.resource_loader": ("nltk",),
    f"{_NOUNS}.syntactic_parsing_extractor": ("spacy",),
}
"""Module -> large packages that it imports but uses rarely or never. They are imported when they
are first used, which saves a search seconds."""


_MOVED = {
    "graphrag.eval.judged": "graphrag.eval.types.metric_definitions",
    "graphrag.eval.scorers.evaluable": "graphrag.eval.metrics.judge_input",
    "graphrag.eval.scorers": "graphrag.eval.metrics",
    "graphrag.eval.dataset.samples": "graphrag.eval.dataset.dataset_reader",
    "graphrag.eval.metrics.evaluable": "graphrag.eval.metrics.judge_input",
    "graphrag.eval.records.answers": "graphrag.eval.types.query_results",
    "graphrag.eval.records.judged": "graphrag.eval.types.metric_definitions",
    "graphrag.eval.records": "graphrag.eval.types",
    "graphrag.query.models": "graphrag.query.client.models",
    "graphrag.query.tokens": "graphrag.query.client.tokens",
}
"""Module that the documentation of 1.0 and 1.1 named for imports -> where it is now. If two begin
alike, the longer one comes first."""


class _Overlay:
    checked: bool = False
    cause: str | None = None
    """Why nothing more is added to the release; None if all is well."""


def trouble() -> str | None:
    """Return why the project could not be laid over the release; None if it could."""
    _check_release()
    return _Overlay.cause


def start() -> None:
    """Activate the overlay at interpreter start, unless ``GTOG_OVERLAY=0`` forbids it."""
    import os  # loaded by site long before

    if os.environ.get(_OFF) != "0":
        activate()


def activate() -> None:
    """Add the import finder, and extend the modules already loaded; a second call does nothing."""
    if _OverlayFinder in sys.meta_path:
        return
    sys.meta_path.insert(0, _OverlayFinder)
    for name in _AFTER:
        if name in sys.modules:
            _add_to(sys.modules[name])


def main() -> None:
    """Run ``gtog``: the released command line with the project's commands, however installed."""
    activate()
    try:
        from graphrag.cli.main import app
    except ImportError as error:
        _give_up("graphrag.cli.main", error)
        sys.stderr.write(f"Error: there is no `gtog` here: {_Overlay.cause}.\n")
        sys.exit(2)
    app(prog_name="gtog")


class _OverlayFinder:
    """Finds the modules that the overlay extends, moves or adds, and leaves others alone."""

    @staticmethod
    def find_spec(
        name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Return the spec of a module to extend, of a moved one, or of this project's own."""
        if path is None or not name.startswith(_PACKAGES):
            return None
        for before, now in _MOVED.items():
            if name == before or name.startswith(f"{before}."):
                return ModuleSpec(name, _Moved(now + name.removeprefix(before)))  # pyright: ignore
        _check_release()
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            if name in _AFTER or name in _LATER:
                _run_with(_import_later if name in _LATER else _extend, name, spec)
            return spec
        beside = f"{_HERE}/{name.rpartition('.')[0].replace('.', '/')}"
        own_spec = PathFinder.find_spec(name, [beside], target)
        return own_spec if own_spec is not None and own_spec.origin is not None else spec


def _run_with(
    step: "Callable[[ModuleType, Callable[[ModuleType], None]], None]", name: str, spec: ModuleSpec
) -> None:
    loader: Any = spec.loader
    try:
        run = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            # A loader may serve several modules.
            step(module, run) if module.__name__ == name else run(module)

        # Only this object changes, so another tool's loader keeps all its abilities.
        loader.exec_module = exec_module
    except Exception as error:
        _give_up(name, error)


def _extend(module: "ModuleType", run: "Callable[[ModuleType], None]") -> None:
    run(module)
    _add_to(module)


def _import_later(module: "ModuleType", run: "Callable[[ModuleType], None]") -> None:
    import builtins

    _check_release()
    packages = _LATER[module.__name__]
    if _Overlay.cause is None:
        if "litellm" in packages:
            _leave("point_to_encodings", module.__name__)
            _leave("leave_openai", module.__name__)
        if _LANCE in packages:
            _leave("leave_client", module.__name__)

        def import_(
            name: str,
            env: "Mapping[str, object] | None" = None,
            names: "Mapping[str, object] | None" = None,
            fromlist: "Sequence[str]" = (),
            level: int = 0,
        ) -> object:
            top = name.partition(".")[0]
            if level == 0 and top in packages:
                return _Later(name if fromlist else top)
            return builtins.__import__(name, env, names, fromlist, level)

        vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_}
    run(module)


class _Moved:
    """Loads a module under its earlier name: the same module object, so its types are the same."""

    def __init__(self, name: str) -> None:
        self._name, self._spec = name, None

    def create_module(self, _: ModuleSpec) -> "ModuleType":
        from importlib import import_module

        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: "ModuleType") -> None:
        module.__spec__ = self._spec


class _Later:
    """Stands for a module or a name in it, which is imported when it is first used."""

    __slots__ = ("_module", "_names")

    def __init__(self, module: str, *names: str) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> "_Later":
        if name.startswith("__"):
            raise AttributeError(name)
        return _Later(self._module, *self._names, name)

    def _resolve(self) -> "Any":
        from importlib import import_module

        value: Any = import_module(self._module)
        for name in self._names:
            value = getattr(value, name)
        return value

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._resolve()(*args, **kwargs)

    def __setitem__(self, key: object, value: object) -> None:
        self._resolve()[key] = value

    @property
    def __dict__(self) -> "dict[str, object]":  # pyright: ignore[reportIncompatibleVariableOverride]
        attributes: dict[str, object] = self._resolve().__dict__
        return attributes

    def __or__(self, other: object) -> type:  # in annotations
        return object

    __ror__ = __or__


def _leave(function: str, name: str) -> None:
    """Delay packages that ``_import_later`` does not see, or set up what they would set up."""
    try:
        from graphrag.query import delayed_imports

        getattr(delayed_imports, function)()
    except Exception as error:
        _give_up(name, error)


def _add_to(module: "ModuleType") -> None:
    # The release and this project meet here. An error here would come out of an import statement
    # of the release, so it is reported and not raised.
    _check_release()
    if _Overlay.cause is None:
        try:
            _AFTER[module.__name__](module)
        except Exception as error:
            _give_up(module.__name__, error)
    if _Overlay.cause is not None and module.__name__ == _MAIN:
        _refuse_eval(module)


def _check_release() -> None:
    """Check, once, that the installed release is the one this project was written for."""
    if _Overlay.checked:
        return
    _Overlay.checked = True
    from importlib.metadata import version

    try:
        installed = version("graphrag")
        fits = installed.split(".")[:2] == _RELEASE.split(".")
    except Exception:  # a frozen program has no metadata: then nothing speaks against it
        return
    if not fits:
        _warn(
            f"graphrag {installed} is installed, and gtog needs {_RELEASE}",
            f'install that one: pip install "graphrag=={_RELEASE}.*"',
        )


def _give_up(name: str, error: Exception) -> None:
    if _Overlay.cause is not None:
        return
    try:
        from graphrag.installation import missing_requirements, pip_install

        missing = missing_requirements()
    except Exception:  # nothing may stop the warning; the error below is reported all the same
        missing, pip_install = [], str
    if isinstance(error, ModuleNotFoundError) and missing:
        _warn(f"not installed: {', '.join(missing)}", f"run: {pip_install(missing)}")
        return
    text = str(error).partition("\n")[0].rstrip(".")
    _warn(
        f"{name} could not be extended ({type(error).__name__}{': ' if text else ''}{text})",
        f"install gtog again beside graphrag {_RELEASE}",
    )


def _warn(cause: str, remedy: str) -> None:
    _Overlay.cause = cause
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] # as under pythonw
        return
    # Not through the module warnings, because its filters may turn the warning into an error.
    sys.stderr.write(
        f"Warning: graphrag runs as released, without gtog: {cause}; {remedy}, "
        f"or set {_OFF}=0 to hear no more of it.\n"
    )


def _refuse_eval(module: "ModuleType") -> None:
    try:
        import typer

        def refuse() -> None:
            typer.echo(f"Error: there is no `graphrag eval` here: {_Overlay.cause}.", err=True)
            raise typer.Exit(2)

        settings = {"allow_extra_args": True, "ignore_unknown_options": True}
        add = module.app.command("eval", context_settings=settings, add_help_option=False)
        add(refuse)
    except Exception:  # reported already; without a command line there is nothing to refuse
        return
