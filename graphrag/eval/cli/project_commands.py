"""The ``graphrag eval`` commands that work on a GraphRAG project: init, validate, optimise."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag.command_lines import eval_line
from graphrag.eval.cli.first_look import look_at_project, starting
from graphrag.eval.cli.options import ConfigOption, Outer, QuietOption, echo, note_command, place_of


def init(
    context: typer.Context,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", "-r", allow_from_autoenv=False, help="An existing GraphRAG project."
        ),
    ] = None,
) -> None:
    """Write eval_config.yaml and a dataset template beside a GraphRAG project."""
    from graphrag.config.models.prompt_files import SettingsError
    from graphrag.config.settings_files import find_settings
    from graphrag.eval.cli.templates import CONFIG_TEMPLATE, DATASET_TEMPLATE

    note_command(context)
    outer: Outer = context.obj
    root = root or outer.root
    try:
        find_settings(root)
    except SettingsError as error:
        echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    from graphrag.eval.config.file_schema import config_schema
    from graphrag.eval.suite.cases import suite_schema

    dataset, schema = Path("eval") / "questions.csv", Path("eval") / "eval_config.schema.json"
    config = CONFIG_TEMPLATE.format(
        dataset=dataset, key=root.resolve().name, project=".", schema=schema.as_posix()
    )
    _write_new(root / "eval_config.yaml", config)
    _write_new(root / dataset, DATASET_TEMPLATE)
    for path, made in (
        (schema, config_schema()),
        (schema.with_name("suite.schema.json"), suite_schema()),
    ):
        _write_schema(root / path, made)
    echo(f"Next: put questions into {root / dataset}, then: {eval_line('--root', root)}")


def validate(
    context: typer.Context,
    root: Annotated[
        Path | None,
        typer.Option("--root", "-r", allow_from_autoenv=False, help="A built GraphRAG project."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the report to this file as well.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write it as Markdown as well.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Check a built index, phase by phase; exit code 100 when a check fails."""
    note_command(context)
    project = root or context.obj.root
    look_at_project(project, verbose)
    with starting(quiet):
        from graphrag.eval.cli.validate import ValidateOptions, run_validate

    raise typer.Exit(run_validate(project, ValidateOptions(json, markdown, quiet, verbose)))


def optimise(
    context: typer.Context,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            "-r",
            allow_from_autoenv=False,
            help="A project, or a folder with eval_config.yaml.",
        ),
    ] = None,
    config: ConfigOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
) -> None:
    """Index the vectors of built projects, so that every search method looks them up fast."""
    with starting(quiet):
        from graphrag.eval.cli.optimise import run_optimise

    raise typer.Exit(run_optimise(place_of(context, root, config, None), quiet, verbose))


def _write_new(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        echo(f"{path} exists and is left as it is.")
        return
    except OSError as error:
        echo(f"Error: {path} can't be written: {error.strerror}.", err=True)
        raise typer.Exit(1) from None
    echo(f"Wrote {path}.")


def _write_schema(path: Path, schema: dict[str, Any]) -> None:
    """Write a schema, also over an earlier release's: it is nobody's own work."""
    import json

    try:
        path.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        echo(f"Error: {path} can't be written: {error.strerror}.", err=True)
        raise typer.Exit(1) from None
    echo(f"Wrote {path}, by which editors check what is written.")
