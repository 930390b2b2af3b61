"""The ``graphrag eval`` commands."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graphrag.eval.place import Place

app = typer.Typer(
    help="Compare search methods over a list of questions.",
    invoke_without_command=True,
    no_args_is_help=False,
)
baseline_app = typer.Typer(help="The run that others are compared with.", no_args_is_help=True)
app.add_typer(baseline_app, name="baseline")

RootOption = Annotated[
    Path | None, typer.Option("--root", "-r", help="Folder that paths are relative to.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Default: eval_config.yaml in the root."),
]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the results.")]


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
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            envvar=_env("REPEAT"),
            min=1,
            help="Ask everything this often, to see what varies by chance.",
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
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            envvar=_env("BASELINE"),
            help="Then compare with this run, file, latest or pinned, and let the gate decide.",
        ),
    ] = None,
    early_stop: Annotated[
        bool,
        typer.Option(
            "--early-stop",
            envvar=_env("EARLY_STOP"),
            help="With --baseline: stop as soon as the run is worse beyond doubt.",
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", envvar=_env("VERBOSE"), help="Tracebacks and debug log."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", envvar=_env("QUIET"), help="Only errors.")
    ] = False,
) -> None:
    """Ask every question by every method, judge the responses, and write the results.

    Exit codes: 0 done; 1 error; 2 wrong usage or configuration; 3 incomplete, or the gate is
    inconclusive; 100 a mean is below its threshold, or the gate fails; 130 interrupted, with the
    work saved.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LANCEDB_LOG", "error")
    if context.invoked_subcommand is not None:
        context.obj = (root, config, output)
        return
    from graphrag.eval.command import CommandOptions, run_command

    if early_stop and baseline is None:
        typer.echo("Error: --early-stop needs --baseline to compare with.", err=True)
        raise typer.Exit(2)
    options = CommandOptions(
        root=root,
        config=config,
        methods=methods,
        imdb_key=imdb_key,
        resume=resume or retry_errors,
        retry_errors=retry_errors,
        limit=limit,
        concurrency=concurrency,
        repeat=repeat,
        index=index,
        skip_judge=skip_judge,
        max_cost_usd=max_cost,
        dry_run=dry_run,
        output=output,
        verbose=verbose,
        quiet=quiet,
    )
    if baseline is None or dry_run:
        raise typer.Exit(run_command(options))
    if skip_judge:
        typer.echo("Error: --baseline needs verdicts; leave --skip-judge out.", err=True)
        raise typer.Exit(2)
    from graphrag.eval.compare_command import BaselineOptions, run_with_baseline
    from graphrag.eval.place import Place

    raise typer.Exit(
        run_with_baseline(
            Place(root, config, output),
            BaselineOptions(baseline, early_stop, quiet),
            lambda watch: run_command(replace(options, watch=watch)),
        )
    )


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


@app.command("compare")
def compare(
    context: typer.Context,
    new: Annotated[
        str,
        typer.Argument(help="Run id, its beginning, latest, or an eval_results_detailed.json."),
    ],
    old: Annotated[
        str | None, typer.Argument(help="The baseline, the same way; default: pinned.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The baseline, if not the second argument.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="What to compare, e.g. correctness,completeness.")
    ] = "correctness",
    methods: Annotated[
        str | None, typer.Option("--methods", "-m", help="Default: those that both runs hold.")
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", help="The loss that is still accepted, 0 to 1.")
    ] = 0.05,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write JUnit XML to this file as well.")
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Compare a run with a baseline, question by question, and let the gate decide.

    Exit codes: 0 PASS; 1 error; 2 wrong usage; 3 INCONCLUSIVE, which is not a pass; 100 FAIL.
    In a GitHub workflow the answer also goes to the job's summary and annotations.
    """
    from graphrag.eval.compare_command import CompareOptions, run_compare

    if old is not None and baseline is not None:
        typer.echo("Error: the baseline is named twice; leave --baseline out.", err=True)
        raise typer.Exit(2)
    options = CompareOptions(new, old or baseline or "pinned", metric, methods, margin, junit)
    raise typer.Exit(run_compare(_place(context, root, config, output), options))


@app.command("judge")
def judge(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run id, its beginning, or latest.")],
    model: Annotated[
        str | None,
        typer.Option("--model", help="The judge; default: judge.model in eval_config.yaml."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", help="E.g. correctness,faithfulness; default: the file's."),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", min=1, help="How often each verdict is asked for; odd."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the last unfinished judging.")
    ] = False,
    retry_errors: Annotated[
        bool,
        typer.Option("--retry-errors", help="Ask again for failed verdicts; implies --resume."),
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0, help="Begin no new work past this many US dollars."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Judge the responses of a run again, as a new run; no search is paid for.

    Exit codes are those of graphrag eval.
    """
    from graphrag.eval.judge_command import JudgeOptions, run_judge

    options = JudgeOptions(
        run=run,
        model=model,
        metrics=metrics,
        repeats=repeats,
        resume=resume,
        retry_errors=retry_errors,
        max_cost_usd=max_cost,
        quiet=quiet,
    )
    raise typer.Exit(run_judge(_place(context, root, config, output), options))


@app.command("plan")
def plan(
    context: typer.Context,
    detect: Annotated[
        float, typer.Option("--detect", help="The difference to be seen; 0.05 is 5 points.")
    ],
    discordance: Annotated[
        float | None,
        typer.Option(
            "--discordance",
            help="Share of the questions on which just one method is right; default: observed.",
        ),
    ] = None,
    power: Annotated[float, typer.Option("--power", help="Chance to see it, 0 to 1.")] = 0.8,
    run: Annotated[
        str | None, typer.Option("--run", help="Take the discordance from this run; latest.")
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Say how many questions it takes to see a difference between two methods."""
    from graphrag.eval.plan_command import PlanOptions, run_plan

    options = PlanOptions(detect, discordance, power, run)
    raise typer.Exit(run_plan(_place(context, root, config, output), options))


@app.command("history")
def history(
    context: typer.Context,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """List the runs in the output folder."""
    from graphrag.eval.compare_command import run_history

    raise typer.Exit(run_history(_place(context, root, config, output)))


@baseline_app.command("set")
def set_baseline(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(help="Run id, its beginning, latest, or an eval_results_detailed.json."),
    ],
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Pin a run as the baseline; its rows are copied, so that it outlives the run."""
    from graphrag.eval.compare_command import run_baseline_set

    raise typer.Exit(run_baseline_set(_place(context, root, config, output), run))


def _place(
    context: typer.Context, root: Path | None, config: Path | None, output: Path | None
) -> "Place":
    """Return where the results are; a flag may stand before or after the command's name."""
    from graphrag.eval.place import Place

    outer: tuple[Path, Path | None, Path | None] = context.obj
    return Place(root or outer[0], config or outer[1], output or outer[2])


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
