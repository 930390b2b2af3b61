"""The ``graphrag eval`` commands that look at runs over time."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag.eval.cli.first_look import look_at_place, look_for_runs, starting
from graphrag.eval.cli.options import ConfigOption, OutputOption, QuietOption, RootOption, place_of


def history(
    context: typer.Context,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: every mean of every run.")
    ] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """List the runs in the output folder."""
    place = place_of(context, root, config, output)
    look_at_place(place)
    with starting(quiet=json):
        from graphrag.eval.cli.compare import run_history

    raise typer.Exit(run_history(place, json))


def dashboard(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The HTML file; default: dashboard.html in the results' folder."),
    ] = None,
    collector: Annotated[
        Path | None,
        typer.Option(
            "--collector", help="A MetricsCollector's file; default: metrics.db beside eval.db."
        ),
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Write every figure of every run over time as one page that loads nothing."""
    place = place_of(context, root, config, output)
    look_at_place(place)
    with starting():
        from graphrag.eval.cli.dashboard import run_dashboard

    raise typer.Exit(run_dashboard(place, to, collector))


def monitor(
    context: typer.Context,
    every: Annotated[
        str | None,
        typer.Option("--every", help="Go on with a round every 30m, 6h, 1d; default: one round."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, help="With --every: end after this many.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="A round runs this suite; a name, a file, or all.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="A round asks this many questions, drawn anew."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another number draws others.")] = 0,
    baseline: Annotated[
        str, typer.Option("--baseline", help="Run id, file, latest or pinned, the default.")
    ] = "pinned",
    baseline_runs: Annotated[
        int,
        typer.Option(
            "--baseline-runs",
            min=1,
            help="Runs of the baseline: those beside the pinned one are made as a watch begins.",
        ),
    ] = 3,
    alarm: Annotated[
        Path | None,
        typer.Option("--alarm", help="Write an alarm to this file, as JSON."),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", help="Send an alarm to this address, as JSON."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", "-m", help="Default: the configuration's.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            min=0,
            help="Of a round or baseline run: begin nothing new past these dollars.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
    quiet: QuietOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Ask questions again and again, and raise an alarm when a metric fell against a baseline.

    Each round is a run in the history. A watch goes on where it was after any interruption.
    Exit codes: 100 an alarm; 0 none; 1 error; 2 wrong usage; 3 the round is incomplete; 130
    interrupted.
    """
    place = place_of(context, root, config, output)
    look_for_runs(place, baseline)
    with starting(quiet):
        from graphrag.eval.cli.monitor import MonitorOptions, run_monitor

    options = MonitorOptions(
        every=every,
        rounds=rounds,
        suite=suite,
        sample=sample,
        seed=seed,
        baseline=baseline,
        baseline_runs=baseline_runs,
        alarm=alarm,
        webhook=webhook,
        methods=methods,
        max_cost_usd=max_cost,
        verbose=verbose,
        quiet=quiet,
    )
    raise typer.Exit(run_monitor(place, options))
