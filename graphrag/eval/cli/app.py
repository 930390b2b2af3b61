"""The ``graphrag eval`` commands."""

import atexit
import gc
import os
from pathlib import Path
from typing import Annotated

import typer

from graphrag.eval.cli import commands, gate_commands, over_time, project_commands, report, view
from graphrag.eval.cli.first_look import look_at_questions, starting
from graphrag.eval.cli.options import (
    AcceptIndexOption,
    AddressOption,
    FullOption,
    Outer,
    QuietOption,
    WorkersOption,
    echo,
    note_command,
)
from graphrag.installation import refuse_if_unfit

app = typer.Typer(
    help="Compare search methods over a list of questions.",
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"auto_envvar_prefix": "GRAPHRAG_EVAL"},
)
baseline_app = typer.Typer(help="The run that others are compared with.", no_args_is_help=True)
audit_app = typer.Typer(help="How far the judge agrees with people.", no_args_is_help=True)
app.add_typer(baseline_app, name="baseline")
app.add_typer(audit_app, name="audit")
app.command("init")(project_commands.init)
app.command("validate")(project_commands.validate)
app.command("optimise")(project_commands.optimise)
app.command("compare")(gate_commands.compare)
app.command("judge")(commands.judge)
app.command("plan")(commands.plan)
app.command("show")(commands.show)
app.command("report")(report.report)
app.command("view")(view.view)
app.command("history")(over_time.history)
app.command("dashboard")(over_time.dashboard)
app.command("monitor")(over_time.monitor)
app.command("suite")(commands.suite)
app.command("ratings")(commands.ratings)
baseline_app.command("set")(gate_commands.set_baseline)
audit_app.command("export")(commands.export_audit)
audit_app.command("import")(commands.import_audit)


def add_eval_commands(released: typer.Typer) -> None:
    """Add ``graphrag eval`` to the released command line."""
    released.add_typer(app, name="eval")


@app.callback()
def evaluate(
    context: typer.Context,
    root: Annotated[
        Path,
        typer.Option(
            "--root",
            "-r",
            help="Folder that --config, --output and the configuration's paths are relative to.",
        ),
    ] = Path(),
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="Default: eval_config.yaml in the root."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", "-m", help="E.g. tog,local,basic."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics", help="E.g. correctness,relevance; none: measure without a judge."
        ),
    ] = None,
    imdb_key: Annotated[
        str | None,
        typer.Option("--imdb-key", help="Only questions of this index."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the last unfinished run."),
    ] = False,
    retry_errors: Annotated[
        bool,
        typer.Option(
            "--retry-errors",
            help="Continue the last run and ask again what failed; implies --resume.",
        ),
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            help="Which columns of the dataset hold what, e.g. question=Frage,answer=Antwort.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Only the first questions."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-j",
            min=1,
            help="Model calls in flight at the same time.",
        ),
    ] = None,
    workers: WorkersOption = None,
    address: AddressOption = None,
    equal_terms: Annotated[
        bool,
        typer.Option(
            "--equal-terms",
            help="Hold the searches to one form of answer and one context budget.",
        ),
    ] = False,
    budgets: Annotated[
        str | None,
        typer.Option(
            "--budgets",
            help="Ask each search at several context budgets in tokens, e.g. 1000,2000,4000.",
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            min=1,
            help="Ask everything this often, to see what varies by chance.",
        ),
    ] = None,
    index: Annotated[
        bool,
        typer.Option("--index", help="First build the indexes missing."),
    ] = False,
    validate: Annotated[
        bool,
        typer.Option("--validate", help="First check the indexes; stop at a fault."),
    ] = False,
    skip_judge: Annotated[
        bool,
        typer.Option(
            "--skip-judge",
            help="Collect responses only; --resume judges them later.",
        ),
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            min=0,
            help="Send no call that would pass this many US dollars.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show what is expected to be asked, and the most; send nothing.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the results; or a FILE.json that the summary is written to besides.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            help="Then compare with this run, file, latest or pinned, and let the gate decide.",
        ),
    ] = None,
    accept_index_change: AcceptIndexOption = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Tracebacks and debug log."),
    ] = False,
    full: FullOption = False,
    quiet: QuietOption = False,
) -> None:
    """Ask every question by every method, judge the responses, and write the results.

    Exit codes: 0 done; 1 error; 2 wrong usage or configuration; 3 incomplete, or the gate is
    inconclusive; 100 a mean is below its threshold, or the gate fails; 130 interrupted, with the
    work saved.
    """
    refuse_if_unfit()
    # Going through all that the libraries left before the process ends takes a second of silence.
    atexit.register(gc.freeze)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LANCEDB_LOG", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")  # the bars of DRIFT search, one a step
    if context.invoked_subcommand is not None:
        context.obj = Outer(root, config, output, context.command_path)
        return
    from graphrag.eval.cli.location import Place

    place = Place(root, config, output)
    note_command(context, place)

    look_at_questions(
        place,
        methods=methods,
        metrics=metrics,
        columns=columns,
        imdb_key=imdb_key,
        verbose=verbose,
        budgets=budgets,
        builds=index,
        limit=limit,
    )
    with starting(quiet):
        from graphrag.eval.cli.evaluate import CommandOptions, run_command

    options = CommandOptions(
        root=root,
        config=config,
        methods=methods,
        metrics=metrics,
        imdb_key=imdb_key,
        columns=columns,
        resume=resume,
        retry_errors=retry_errors,
        limit=limit,
        concurrency=concurrency,
        workers=workers,
        address=address,
        repeat=repeat,
        equal_terms=equal_terms,
        budgets=budgets,
        index=index,
        validate=validate,
        skip_judge=skip_judge,
        max_cost_usd=max_cost,
        dry_run=dry_run,
        output=output,
        verbose=verbose,
        quiet=quiet,
        full=full,
    )
    if baseline is None or dry_run:
        raise typer.Exit(run_command(options))
    if skip_judge:
        echo("Error: --baseline needs verdicts; leave --skip-judge out.", err=True)
        raise typer.Exit(2)
    from graphrag.eval.cli.compare import BaselineOptions, run_with_baseline

    raise typer.Exit(
        run_with_baseline(
            place,
            BaselineOptions(baseline, quiet, accept_index_change, full),
            lambda: run_command(options),
        )
    )
