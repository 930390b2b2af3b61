"""The ``graphrag eval`` commands that work on projects."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag.command_lines import eval_line
from graphrag.eval.cli_options import Outer, note_command


def init(
    context: typer.Context,
    root: Annotated[
        Path | None, typer.Option("--root", "-r", help="An existing GraphRAG project.")
    ] = None,
) -> None:
    """Write eval_config.yaml and a dataset template beside a GraphRAG project."""
    from graphrag.config.models.tog_search_config import SettingsError, find_settings
    from graphrag.eval.templates import CONFIG_TEMPLATE, DATASET_TEMPLATE

    note_command(context)
    outer: Outer = context.obj
    root = root or outer.root
    try:
        find_settings(root)
    except SettingsError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    dataset = Path("eval") / "questions.csv"
    key = root.resolve().name
    files = {
        root / "eval_config.yaml": CONFIG_TEMPLATE.format(dataset=dataset, key=key, project="."),
        root / dataset: DATASET_TEMPLATE,
    }
    for path, content in files.items():
        _write_new(path, content)
    typer.echo(f"Next: put questions into {root / dataset}, then: {eval_line('--root', root)}")


def validate(
    context: typer.Context,
    root: Annotated[
        Path | None, typer.Option("--root", "-r", help="A built GraphRAG project.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the report to this file as well.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write it as Markdown as well.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
) -> None:
    """Check a built index, phase by phase; exit code 100 when a check fails."""
    from graphrag.eval.validate_command import ValidateOptions, run_validate

    options = ValidateOptions(json, markdown, quiet, verbose)
    note_command(context)
    raise typer.Exit(run_validate(root or context.obj.root, options))


def optimise(
    context: typer.Context,
    root: Annotated[
        Path | None,
        typer.Option("--root", "-r", help="A project, or a folder with eval_config.yaml."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
) -> None:
    """Index the vectors of built projects, so that every search method looks them up fast."""
    from graphrag.eval.vectors_command import run_optimise

    note_command(context)
    raise typer.Exit(run_optimise(root or context.obj.root, quiet, verbose))


def _write_new(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        typer.echo(f"{path} exists and is left as it is.")
        return
    except OSError as error:
        typer.echo(f"Error: {path} can't be written: {error.strerror}.", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"Wrote {path}.")
