"""Lays this project over the released ``graphrag`` without replacing a file of it.

``graphrag_overlay.pth`` (from Python 3.15 on ``graphrag_overlay.start``) calls ``start`` when
the interpreter starts, so this module may import only ``sys`` and ``importlib.machinery`` by
then. It puts one finder on ``sys.meta_path``, which

1. finds the ``graphrag.*`` modules that the release lacks beside this file (an editable
   install; in a wheel they already lie in place);
2. after a module named in ``_AFTER`` has run, calls the function that adds to it.

Whatever goes wrong here leaves the release as it is: one warning says what is off, and only
the project's own commands refuse to run. docs/overlay.md tells users the same.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # typing's own constant would cost its import at every start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

_HERE = __file__.rpartition("/")[0] or __file__.rpartition("\\")[0]
_RELEASE = "3.3"
_OFF = "GTOG_OVERLAY"
_MAIN = "graphrag.cli.main"
_PROGRAMS = ("graphrag", "graphrag.exe", "gtog", "gtog.exe", "__main__.py", "-m")


def _add_commands(module: "ModuleType") -> None:
    from graphrag.cli.tog_query import add_tog_to_query
    from graphrag.eval.cli.app import add_eval_commands
    from graphrag.installation import ask_first

    ask_first(trouble)
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
        msg = "it reads no GraphRagConfig"
        raise LookupError(msg)
    vars(module)["GraphRagConfig"] = ProjectConfig


def _register_offline_completion(module: "ModuleType") -> None:
    def create(**arguments: "Any") -> "Any":
        from graphrag.offline.models import OfflineCompletion

        return OfflineCompletion(**arguments)

    module.register_completion("offline", create)


def _register_offline_embedding(module: "ModuleType") -> None:
    def create(**arguments: "Any") -> "Any":
        from graphrag.offline.models import OfflineEmbedding

        return OfflineEmbedding(**arguments)

    module.register_embedding("offline", create)


def _register_direct_completion(module: "ModuleType") -> None:
    def create(**arguments: "Any") -> "Any":
        from graphrag.query.direct.models import DirectCompletion

        return DirectCompletion(**arguments)

    module.register_completion("openai_direct", create)


def _register_direct_embedding(module: "ModuleType") -> None:
    def create(**arguments: "Any") -> "Any":
        from graphrag.query.direct.models import DirectEmbedding

        return DirectEmbedding(**arguments)

    module.register_embedding("openai_direct", create)


def _add_completions(module: "ModuleType") -> None:
    _register_offline_completion(module)
    _register_direct_completion(module)


def _add_embeddings(module: "ModuleType") -> None:
    _register_offline_embedding(module)
    _register_direct_embedding(module)


def _import_nltk_alone(module: "ModuleType") -> None:
    from graphrag.index.optional_imports import import_nltk

    import_nltk()


def _put_searches_in_place(module: "ModuleType") -> None:
    from graphrag.api import search

    added = {name: getattr(search, name) for name in search.__all__}
    vars(module).update(added, __all__=sorted({*module.__all__, *added}))


_AFTER: "dict[str, Callable[[ModuleType], None]]" = {
    _MAIN: _add_commands,
    "graphrag.config.load_config": _read_tog_section,
    "graphrag_llm.completion.completion_factory": _add_completions,
    "graphrag_llm.embedding.embedding_factory": _add_embeddings,
    "graphrag.index.operations.build_noun_graph.np_extractors.base": _import_nltk_alone,
    "graphrag.api": _put_searches_in_place,
}


class _Overlay:
    """What this process knows of the overlay."""

    checked: bool = False
    cause: str | None = None
    """Why nothing more is added to the release; None while all is well."""


def trouble() -> str | None:
    """Say why the project could not be laid over the release, or None if it could."""
    _check_release()
    return _Overlay.cause


def start() -> None:
    """Activate the overlay at interpreter start, unless ``GTOG_OVERLAY=0`` forbids it."""
    import os  # loaded by site long before

    if os.environ.get(_OFF) != "0":
        activate()


def activate() -> None:
    """Put the finder in place, and add to what is loaded already; a second call does nothing."""
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
    """The one finder; everything that is not named here is left to the others."""

    @staticmethod
    def find_spec(
        name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Find a module to add to, or one of this project's own beside this file."""
        if path is None or not name.startswith(("graphrag.", "graphrag_llm.")):
            return None
        _check_release()
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            if name in _AFTER:
                _add_after_running(name, spec)
            return spec
        beside = f"{_HERE}/{name.rpartition('.')[0].replace('.', '/')}"
        found = PathFinder.find_spec(name, [beside], target)
        return found if found is not None and found.origin is not None else spec


def _add_after_running(name: str, spec: ModuleSpec) -> None:
    loader: Any = spec.loader
    try:
        run = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            if name == module.__name__ == _MAIN and _is_eval_asked() and _lend_eval(module, run):
                return
            run(module)
            if module.__name__ == name:  # a loader may serve several modules
                _add_to(module)

        # On this one object: another tool's loader keeps all that it can do.
        loader.exec_module = exec_module
    except Exception as error:
        _give_up(name, error)


def _is_eval_asked() -> bool:
    program = sys.argv[0].replace("\\", "/").rpartition("/")[2] if sys.argv else ""
    return program in _PROGRAMS and sys.argv[1:2] == ["eval"]


def _lend_eval(module: "ModuleType", run: "Callable[[ModuleType], None]") -> bool:
    """Give a command line that is asked for ``eval`` that alone, so that it begins at once.

    The release's own commands import pandas, which takes longer than to say that a path is wrong.
    Whatever else is asked of the module is answered by the release's, which is run then. Returns
    whether that could be done.
    """
    _check_release()
    if _Overlay.cause is not None:
        return False
    try:
        import typer

        from graphrag.eval.cli.app import add_eval_commands
        from graphrag.installation import ask_first

        ask_first(trouble)
        app = typer.Typer()
        app.callback()(lambda: None)
        add_eval_commands(app)
    except Exception:  # told by those who add to the whole command line
        return False

    def whole(name: str) -> "Any":
        if name.startswith("__"):  # asked by the import system of every module
            raise AttributeError(name)
        vars(module).pop("__getattr__", None)
        run(module)
        _add_to(module)
        return getattr(module, name)

    vars(module).update({"app": app, "__getattr__": whole})
    return True


def _add_to(module: "ModuleType") -> None:
    # The seam between the release and this project. Whatever is raised here would be raised by
    # an import statement of the release, so it is told and goes no further.
    _check_release()
    if _Overlay.cause is None:
        try:
            _AFTER[module.__name__](module)
        except Exception as error:
            _give_up(module.__name__, error)
    if _Overlay.cause is not None and module.__name__ == _MAIN:
        _refuse_eval(module)


def _check_release() -> None:
    """Compare the installed release with the one this project was written for, once."""
    if _Overlay.checked:
        return
    _Overlay.checked = True
    from importlib.metadata import version

    try:
        found = version("graphrag")
        fits = found.split(".")[:2] == _RELEASE.split(".")
    except Exception:  # a frozen program has no metadata: then nothing speaks against it
        return
    if not fits:
        _tell(
            f"graphrag {found} is installed, and gtog needs {_RELEASE}",
            f'install that one: pip install "graphrag=={_RELEASE}.*"',
        )


def _give_up(name: str, error: Exception) -> None:
    if _Overlay.cause is not None:
        return
    try:
        from graphrag.installation import missing_requirements, pip_install

        missing = missing_requirements()
    except Exception:  # nothing may stop the warning; the error below is told all the same
        missing, pip_install = [], str
    if isinstance(error, ModuleNotFoundError) and missing:
        _tell(f"not installed: {', '.join(missing)}", f"run: {pip_install(missing)}")
        return
    text = str(error).partition("\n")[0].rstrip(".")
    _tell(
        f"{name} could not be extended ({type(error).__name__}{': ' if text else ''}{text})",
        f"install gtog again beside graphrag {_RELEASE}",
    )


def _tell(cause: str, remedy: str) -> None:
    _Overlay.cause = cause
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] # as under pythonw
        return
    # Not by the module warnings, whose filters may turn it into an error.
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
    except Exception:  # told already; without a command line there is nothing to refuse in
        return
