"""The ``graphrag eval`` commands that hold a run against another."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag.eval.cli.first_look import look_for_runs, starting
from graphrag.eval.cli.options import (
    AcceptIndexOption,
    ConfigOption,
    FullOption,
    OutputOption,
    RootOption,
    echo,
    place_of,
)


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
        list[str] | None,
        typer.Option(
            "--metric",
            help="E.g. correctness,completeness or tokens=5%; also cost_usd, latency_s, hit_rate, "
            "mrr, rubric.NAME, quality.NAME; each with its own =MARGIN; default: correctness, or "
            "the first that both ask.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", "-m", help="Default: those that both runs hold.")
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", help="The loss that is still accepted, 0 to 1.")
    ] = 0.05,
    accept_index_change: AcceptIndexOption = False,
    full: FullOption = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write JUnit XML to this file as well.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="Write Markdown for a pull request to this file as well."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write every number to this file as well.")
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Compare a run with a baseline, question by question, and let the gate decide.

    Exit codes: 0 PASS; 1 error; 2 wrong usage; 3 INCONCLUSIVE, which is not a pass; 100 FAIL.
    In a GitHub workflow the answer also goes to the job's summary and annotations.
    """
    if old is not None and baseline is not None:
        echo("Error: the baseline is named twice; leave --baseline out.", err=True)
        raise typer.Exit(2)
    place = place_of(context, root, config, output)
    look_for_runs(place, new, old or baseline or "pinned")
    with starting():
        from graphrag.eval.cli.compare import CompareOptions, run_compare

    options = CompareOptions(
        new=new,
        baseline=old or baseline or "pinned",
        metrics=metric or None,
        methods=methods,
        margin=margin,
        junit=junit,
        markdown=markdown,
        json=json,
        accept_index_change=accept_index_change,
        full=full,
    )
    raise typer.Exit(run_compare(place, options))


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
    place = place_of(context, root, config, output)
    look_for_runs(place, run)
    with starting():
        from graphrag.eval.cli.compare import run_baseline_set

    raise typer.Exit(run_baseline_set(place, run))
