"""What the ``graphrag eval`` commands share: where the results are, and how to go on."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag.command_lines import Invocation, remember, runnable

if TYPE_CHECKING:
    from graphrag.eval.cli.location import Place
    from graphrag.eval.config.evaluation import EvaluationConfig

# Where results are has its variables without a command's name, e.g. GRAPHRAG_EVAL_ROOT.
RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        "-r",
        allow_from_autoenv=False,
        help="Folder that --config and --output are relative to.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        allow_from_autoenv=False,
        help="Default: eval_config.yaml in the root.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        allow_from_autoenv=False,
        help="Folder of the results, from the root.",
    ),
]
FileOutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        allow_from_autoenv=False,
        help="Folder of the results, or a FILE.json to write besides, from the root.",
    ),
]
AcceptIndexOption = Annotated[
    bool,
    typer.Option(
        "--accept-index-change",
        help="Let the gate decide although an index changed, as if questions were independent.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="Processes that search and judge, by Ray; default: this one alone."
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option("--address", help="Of a Ray cluster; default: one of this machine's own."),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Only errors, and the answer in one line.")
]
FullOption = Annotated[
    bool, typer.Option("--full", help="Every table and line, not only what answers the question.")
]
_PLACE = ("root", "config", "output")
_HOW_TO_GO_ON = ("resume", "retry_errors", "index", "dry_run")
_RUNS = ("baseline", "new", "old", "run", "suite", "target")
"""Parameters that name a run, or the path of a file."""


@dataclass(frozen=True, slots=True)
class Outer:
    """What stood before the subcommand; ``path`` is the command line up to there."""

    root: Path
    config: Path | None
    output: Path | None
    path: str


def choose_metrics(config: "EvaluationConfig", given: str) -> dict[str, object]:
    """Return the changes that ``--metrics`` makes; "none" asks no judge for anything.

    Thresholds of metrics that are not asked are left out.
    """
    names = [name.strip() for name in given.split(",") if name.strip()]
    if names == ["none"]:
        further = {"rubric": False, "quality": False, "pairwise": False}
        judge = {**config.judge.model_dump(), **further}
        return {"metrics": [], "thresholds": {}, "judge": judge}
    kept = {m: least for m, least in config.thresholds.items() if m in names}
    return {"metrics": names, "thresholds": kept}


def choose_budgets(config: "EvaluationConfig", given: str) -> dict[str, object]:
    """Return the changes that ``--budgets`` makes; it goes before what the file says of budgets."""
    from graphrag.eval.config.budgets import without_budgets

    methods, variants = without_budgets(config.methods, config.variants, config.budgets)
    changes: dict[str, object] = {
        "budgets": [part.strip() for part in given.split(",")],
        "methods": methods,
        "variants": variants,
    }
    if config.equal_terms is not None:
        changes["equal_terms"] = {**config.equal_terms.model_dump(), "max_context_tokens": None}
    return changes


def place_of(
    context: typer.Context,
    root: Path | None,
    config: Path | None,
    output: Path | None,
    takes_file: bool = False,
) -> "Place":
    """Return where the results are; a flag may stand before or after the command's name.

    ``takes_file`` says that ``--output`` may also name a file.
    """
    from graphrag.eval.cli.location import Place

    outer: Outer = context.obj
    place = Place(root or outer.root, config or outer.config, output or outer.output)
    note_command(context, place)
    if place.file is not None and not takes_file:
        echo(
            f"Error: --output {place.file} is a file; this command reads a folder of results.",
            err=True,
        )
        raise typer.Exit(2)
    return place


def echo(text: str, err: bool = False) -> None:
    """Print one line; in the place of typer's, which a text could steer a terminal by."""
    from graphrag.eval.cli.terminal import open_console

    open_console(stderr=err).print(text, soft_wrap=True)


def note_command(context: typer.Context, place: "Place | None" = None) -> None:
    """Remember the command that was given, as it could be given again from any folder."""
    outer: Outer | None = context.obj
    path = context.command_path if outer is None else outer.path
    names = context.command_path[len(path) :].split()
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        given = source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
        if not given or name in (*_PLACE, *_HOW_TO_GO_ON):
            continue
        value = context.params.get(name)
        if parameter.param_type_name == "argument":
            arguments.append(_word(name, value))
        elif isinstance(value, bool):
            options += [parameter.opts[0]] if value else []
        elif value is not None:
            options += [parameter.opts[0], _word(name, value)]
    remember(
        Invocation(
            runnable(path),
            (*names, *arguments, *options),
            () if place is None else place.flags(),
            any(parameter.name == "resume" for parameter in context.command.params),
        )
    )


def _word(name: str, value: object) -> str:
    is_path = isinstance(value, Path)
    is_path = is_path or (
        name in _RUNS and (str(value).endswith(".json") or Path(str(value)).is_file())
    )
    return str(Path(str(value)).absolute()) if is_path else str(value)
