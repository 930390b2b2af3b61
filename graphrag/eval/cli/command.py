"""What every ``graphrag eval`` command does beside its own work: its place, errors, exit code."""

import atexit
import gc
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from graphrag.cli.fitness import refuse_if_unfit
from graphrag.eval.cli.terminal import explained
from graphrag.eval.errors import ConfigError, UsageError
from graphrag.installation import missing_requirements, pip_install
from graphrag.text.command_lines import Invocation, remember, runnable, say_instead
from graphrag.text.console import open_console

if TYPE_CHECKING:
    from graphrag.eval.config.evaluation import EvaluationConfig

_NOT_FOLDERS = (".csv", ".db", ".html", ".json", ".jsonl", ".md", ".txt", ".xml", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the results are, as the flags name it: ``output``, else what the configuration says.

    - ``root``: Folder that the other two are relative to.
    - ``config``: None: eval_config.yaml in the root. One that the root lacks and the working
      directory has is taken from there.
    - ``output``: a folder; of suites also a file ``*.json``, beside what goes into the
      configuration's folder.
    """

    root: Path = Path()
    config: Path | None = None
    output: Path | None = None

    @property
    def file(self) -> Path | None:
        """The file that ``output`` names; None when it names a folder or nothing."""
        if self.output is None:
            return None
        path = self.root / self.output
        return path if path.suffix.lower() == ".json" and not path.is_dir() else None

    @property
    def folder(self) -> Path | None:
        """The folder that ``output`` names, None without; raises ConfigError if it is a file."""
        if self.output is None or self.file is not None:
            return None
        return _checked(self.root / self.output, "--output")

    @property
    def config_path(self) -> Path:
        """The configuration file, whether it is there or not."""
        if self.config is None:
            return self.root / "eval_config.yaml"
        path = self.root / self.config
        return self.config if not path.exists() and self.config.exists() else path

    def flags(self) -> dict[str, str]:
        """Return the flags that name this place from any folder, with their values."""
        flags = {"--root": str(self.root.absolute())}
        if self.config is not None:
            flags["--config"] = str(self.config_path.absolute())
        if self.output is not None:
            flags["--output"] = str((self.root / self.output).absolute())
        return flags

    def store_path(self) -> Path:
        """Return the eval.db of the output folder, whether it is there or not.

        Raises ConfigError if the configuration is needed and can't be read, or there is no folder
        in it.
        """
        folder = self.folder
        return self.read_config().store_path if folder is None else folder / "eval.db"

    def has_config(self) -> bool:
        """Whether a configuration is there, or one was named."""
        return self.config is not None or self.config_path.is_file()

    def read_config(self) -> "EvaluationConfig":
        """Return the configuration with this place's folder of results.

        Raises ConfigError if it can't be read, or the results would go into a file.
        """
        from graphrag.eval.config.evaluation import EvaluationConfig

        folder = self.folder
        config = EvaluationConfig.from_yaml(
            self.config_path, self.root, allow_outside=folder is not None
        )
        if folder is None:
            _checked(config.output_folder, "output.dir")
            return config
        output = config.output.model_copy(update={"dir": str(self.output)})
        return config.model_copy(update={"output": output})

    def find_run(self, name: str, suites: bool = False, quiet: bool = False) -> str:
        """Return the id of the run that a name means; "pinned" and a file of rows as they are.

        Says which run "latest" is, see :func:`latest_run`. Raises UsageError if there is no such
        run or file; StoreError if another process holds the store.
        """
        from graphrag.eval.store import database

        store_path = self.store_path()
        is_file = name.endswith((".json", ".csv")) or Path(name).is_file()
        if is_file or name == database.PINNED:
            path = Path(name) if is_file else database.baseline_path(store_path)
            if not path.is_file():
                raise database.no_such_file(path, store_path)
            return name
        with database.open_store(store_path) as store:
            runs = store.runs()
        run = database.find_run(runs, name, store_path, suites)
        if name == database.LATEST:
            notes = open_console(stderr=True, quiet=quiet)
            notes.print(database.explain_latest(runs, run), soft_wrap=True)
            say_instead(name, run.run_id)
        return run.run_id


def _checked(path: Path, name: str) -> Path:
    if not path.is_dir() and (path.exists() or path.suffix.lower() in _NOT_FOLDERS):
        raise ConfigError(f"{name}: {path} is the name of a file; name the folder of the results.")
    return path


def option(help: str, *names: str, **how: Any) -> Any:
    """Return an option; environment variables stand in the docs, not in ``--help``."""
    if "min" in how:  # a range of numbers takes more room than it is worth
        how.setdefault("metavar", "N")
    return typer.Option(*names, help=help, show_envvar=False, **how)


Quiet = Annotated[bool, option("Print errors and a one-line answer only.", "--quiet", "-q")]
Full = Annotated[bool, option("Print every table and line.", "--full")]
Verbose = Annotated[bool, option("Show tracebacks, write a debug log.", "--verbose", "-v")]
MaxCost = Annotated[float | None, option("Stop before the cost passes US$ N.", min=0)]
Resume = Annotated[bool, option("Continue the last unfinished run.", "--resume")]
RetryErrors = Annotated[bool, option("Resume, and retry what failed.", "--retry-errors")]
# Told in docs/scale.md.
Workers = Annotated[
    int | None, option("Processes that search and judge, by Ray.", min=1, hidden=True)
]
Address = Annotated[str | None, option("Of a Ray cluster.", hidden=True)]

_PLACE = {
    "root": "Folder where other paths start.",
    "config": "Default: eval_config.yaml.",
    "output": "Folder of the results.",
}
_HOW_TO_GO_ON = ("resume", "retry_errors", "index", "dry_run")
_ONLY = inspect.Parameter.KEYWORD_ONLY
_RUNS = ("baseline", "changed", "new", "old", "run", "suite", "target")
"""Parameters that name a run, or the path of a file."""


def command(
    run: Callable[..., int],
    takes_file: bool = False,
    place_flags: Sequence[str] = tuple(_PLACE),
    is_group: bool = False,
) -> Callable[..., None]:
    """Make a command of a function that gets a :class:`Place` first and returns the exit code.

    The command has the function's other parameters, or the fields of the dataclass that is its
    second one, and --root, --config and --output, which may stand before its name as well. Errors
    become a sentence and a code, see :func:`explained`.

    ``takes_file``: whether --output may also name a file. ``place_flags``: those of the place that
    the command takes. ``is_group``: whether the other commands stand below it.
    """
    _, *own = inspect.signature(run).parameters.values()
    record: Any = own.pop(0).annotation if own and is_dataclass(own[0].annotation) else None
    declared = [] if record is None else [*inspect.signature(record).parameters.values()]
    # What is no flag has no option.
    recorded = [p for p in declared if get_origin(p.annotation) is Annotated]

    def wrapped(context: typer.Context, **flags: Any) -> None:
        before: Place | None = context.obj  # what stood before the subcommand
        named = {name: flags.pop(name, None) or getattr(before, name, None) for name in _PLACE}
        place = Place(**{name: value for name, value in named.items() if value is not None})
        if is_group:
            _prepare()
        if context.invoked_subcommand is not None:
            context.obj = place
            return

        def explain() -> int:
            note_command(context, place)
            if place.file is not None and not takes_file:
                msg = f"--output {place.file} is a file; this command reads a folder of results."
                raise UsageError(msg)
            if record is None:
                return run(place, **flags)
            return run(place, record(**{p.name: flags.pop(p.name) for p in recorded}), **flags)

        raise typer.Exit(explained(explain, bool(flags.get("verbose"))))

    of_place = [_place_flag(name, takes_file, is_group) for name in place_flags]
    signature = [
        inspect.Parameter("context", _ONLY, annotation=typer.Context),
        *(of_place if is_group else ()),
        *(parameter.replace(kind=_ONLY) for parameter in (*recorded, *own)),
        *(() if is_group else of_place),
    ]
    wrapped.__signature__ = inspect.Signature(signature)  # pyright: ignore[reportFunctionMemberAccess]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    # A paragraph is one line: --help would keep the breaks of the code beside its own.
    paragraphs = inspect.cleandoc(run.__doc__ or "").split("\n\n")
    wrapped.__doc__ = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    wrapped.__name__ = run.__name__
    return wrapped


def _place_flag(name: str, takes_file: bool, is_group: bool) -> inspect.Parameter:
    help = _PLACE[name]
    if takes_file and name == "output":
        help = "Folder of the results, or a FILE.json."
    # Where results are has its variables without a command's name, e.g. GRAPHRAG_EVAL_ROOT.
    made = option(help, f"--{name}", f"-{name[0]}", allow_from_autoenv=is_group)
    return inspect.Parameter(name, _ONLY, annotation=Annotated[Path | None, made], default=None)


def need_extra(extra: str, what: str) -> None:
    """Raise UsageError, with how to install it, where an extra is missing that will be needed."""
    missing = missing_requirements(extra)
    if missing:
        raise UsageError(
            f"{what} needs the extra {extra}, which is missing: {pip_install(missing)}"
        )


def _prepare() -> None:
    refuse_if_unfit()
    # Going through all that the libraries left before the process ends takes a second of silence.
    atexit.register(gc.freeze)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LANCEDB_LOG", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")  # the bars of DRIFT search, one a step


def note_command(context: typer.Context, place: Place) -> None:
    """Remember the command that was given, as it could be given again from any folder."""
    group = context if context.obj is None else context.parent
    path = context.command_path if group is None else group.command_path
    names = context.command_path[len(path) :].split()
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        is_given = source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
        value = context.params.get(name)
        if not is_given or name in (*_PLACE, *_HOW_TO_GO_ON) or value is None or value is False:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(_word(name, value))
        else:
            options += [parameter.opts[0], *([] if value is True else [_word(name, value)])]
    remember(
        Invocation(
            runnable(path),
            (*names, *arguments, *options),
            place.flags(),
            any(parameter.name == "resume" for parameter in context.command.params),
        )
    )


def _word(name: str, value: object) -> str:
    path = Path(str(value))
    is_path = name in _RUNS and (path.suffix == ".json" or path.is_file())
    return str(path.absolute()) if isinstance(value, Path) or is_path else str(value)
