"""What every ``graphrag eval`` command does beside its own work: its place, errors, exit code."""

import atexit
import gc
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from graphrag.cli.fitness import refuse_if_unfit
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import explained
from graphrag.eval.errors import UsageError
from graphrag.installation import missing_requirements, pip_install
from graphrag.text.command_lines import Invocation, remember, runnable


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
    # After each 700 new objects, as Python does it, looking for garbage takes a tenth of the time.
    gc.set_threshold(10_000)
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
