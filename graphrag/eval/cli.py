"""The ``graphrag eval`` commands."""

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Compare search methods over a list of questions.",
    invoke_without_command=True,
    no_args_is_help=False,
)


def add_eval_commands(released: typer.Typer) -> None:
    """Add ``graphrag eval`` to the released command line."""
    released.add_typer(app, name="eval")


def _env(name: str) -> str:
    return f"GRAPHRAG_EVAL_{name}"


@app.callback()
def evaluate(
    context: typer.Context,
    root: Annotated[
        Path,
        typer.Option(
            "--root", "-r", envvar=_env("ROOT"), help="Folder that paths are relative to."
        ),
    ] = Path(),
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", envvar=_env("CONFIG"), help="Default: eval_config.yaml in the root."
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", "-m", envvar=_env("METHODS"), help="E.g. tog,local,basic."),
    ] = None,
    imdb_key: Annotated[
        str | None,
        typer.Option("--imdb-key", envvar=_env("IMDB_KEY"), help="Only questions of this index."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", envvar=_env("RESUME"), help="Continue the last unfinished run."),
    ] = False,
    retry_errors: Annotated[
        bool,
        typer.Option(
            "--retry-errors",
            envvar=_env("RETRY_ERRORS"),
            help="Continue the last run and ask again what failed; implies --resume.",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", envvar=_env("LIMIT"), min=1, help="Only the first questions."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-j",
            envvar=_env("CONCURRENCY"),
            min=1,
            help="Model calls in flight at the same time.",
        ),
    ] = None,
    index: Annotated[
        bool,
        typer.Option("--index", envvar=_env("INDEX"), help="First build the indexes missing."),
    ] = False,
    skip_judge: Annotated[
        bool,
        typer.Option(
            "--skip-judge",
            envvar=_env("SKIP_JUDGE"),
            help="Collect responses only; --resume judges them later.",
        ),
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            envvar=_env("MAX_COST"),
            min=0,
            help="Begin no new work once this many US dollars are spent.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            envvar=_env("DRY_RUN"),
            help="Show the most that would be asked; send nothing.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", envvar=_env("OUTPUT"), help="Folder of the results."),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", envvar=_env("VERBOSE"), help="Tracebacks and debug log."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", envvar=_env("QUIET"), help="Only errors.")
    ] = False,
) -> None:
    """Ask every question by every method, judge the responses, and write the results.

    Exit codes: 0 done; 1 error; 2 wrong usage or configuration; 3 incomplete; 100 a mean is
    below its threshold; 130 interrupted, with the work saved.
    """
    if context.invoked_subcommand is not None:
        return
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LANCEDB_LOG", "error")
    from graphrag.eval.command import CommandOptions, run_command

    options = CommandOptions(
        root=root,
        config=config,
        methods=methods,
        imdb_key=imdb_key,
        resume=resume or retry_errors,
        retry_errors=retry_errors,
        limit=limit,
        concurrency=concurrency,
        index=index,
        skip_judge=skip_judge,
        max_cost_usd=max_cost,
        dry_run=dry_run,
        output=output,
        verbose=verbose,
        quiet=quiet,
    )
    raise typer.Exit(run_command(options))


@app.command("init")
def init(
    root: Annotated[
        Path, typer.Option("--root", "-r", help="An existing GraphRAG project.")
    ] = Path(),
) -> None:
    """Write eval_config.yaml and a dataset template beside a GraphRAG project."""
    from graphrag.config.models.tog_search_config import SettingsError, find_settings
    from graphrag.eval.templates import CONFIG_TEMPLATE, DATASET_TEMPLATE

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
    typer.echo(f"Next: put questions into {root / dataset}, then: graphrag eval --root {root}")


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
