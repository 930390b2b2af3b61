"""The ``graphrag eval`` commands that work on runs which are there, and those of suites."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag.eval.cli.first_look import look_at_place, look_for_runs, look_for_suites, starting
from graphrag.eval.cli.options import (
    AddressOption,
    ConfigOption,
    FileOutputOption,
    FullOption,
    OutputOption,
    QuietOption,
    RootOption,
    WorkersOption,
    place_of,
)


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
        typer.Option(
            "--max-cost", min=0, help="Send no call that would pass this many US dollars."
        ),
    ] = None,
    workers: WorkersOption = None,
    address: AddressOption = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: FileOutputOption = None,
) -> None:
    """Judge the responses of a run again, as a new run; no search is paid for.

    Exit codes are those of graphrag eval.
    """
    place = place_of(context, root, config, output, takes_file=True)
    look_for_runs(place, run)
    with starting(quiet):
        from graphrag.eval.cli.judge import JudgeOptions, run_judge

    options = JudgeOptions(
        run=run,
        model=model,
        metrics=metrics,
        repeats=repeats,
        resume=resume,
        retry_errors=retry_errors,
        max_cost_usd=max_cost,
        workers=workers,
        address=address,
        quiet=quiet,
        full=full,
    )
    raise typer.Exit(run_judge(place, options))


def show(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(help="Run id, its beginning, or latest, the default.")
    ] = "latest",
    question: Annotated[
        str | None, typer.Option("--question", help="Show this question: answers, verdicts, paths.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Show the questions with a failure or a 0.")
    ] = False,
    changed: Annotated[
        str | None,
        typer.Option("--changed", help="Show what flipped since this run, latest or pinned."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write the files to this folder, not to the run's own."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write every row to this FILE.csv or FILE.parquet as well."),
    ] = None,
    inspect: Annotated[
        Path | None,
        typer.Option("--inspect", help="Write a log for Inspect's viewer: a folder or FILE.json."),
    ] = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: FileOutputOption = None,
) -> None:
    """Show a run again and write its files again, or show its questions; no model is asked."""
    place = place_of(context, root, config, output, takes_file=True)
    look_for_runs(place, run, changed, question=question)
    if not (question or failed or changed or to or export or inspect):
        from graphrag.eval.cli.kept import show_kept

        shown = show_kept(place, run, full, quiet)
        if shown is not None:
            raise typer.Exit(shown)
    with starting(quiet):
        from graphrag.eval.cli.show import ShowOptions, run_show
        from graphrag.eval.cli.show_questions import Wanted

    wanted = Wanted(question, failed, changed, full)
    raise typer.Exit(run_show(place, ShowOptions(run, to, export, inspect, quiet, full, wanted)))


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
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            help="How many are compared, or which, e.g. tog,local,basic; default: configured.",
        ),
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Say how many questions it takes to see a difference between two methods."""
    place = place_of(context, root, config, output)
    with starting():
        from graphrag.eval.cli.plan import PlanOptions, run_plan

    options = PlanOptions(detect, discordance, power, run, methods)
    raise typer.Exit(run_plan(place, options))


def export_audit(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run id, its beginning, or latest.")],
    metric: Annotated[str, typer.Option("--metric", help="The verdicts to check.")] = "correctness",
    questions: Annotated[
        int, typer.Option("--questions", min=1, help="How many are drawn, at least.")
    ] = 80,
    seed: Annotated[int, typer.Option("--seed", help="Another number draws others.")] = 0,
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder to write to; default: the results'.")
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Draw responses for people to label, and write them as CSV and as a page to fill in."""
    place = place_of(context, root, config, output)
    look_for_runs(place, run)
    with starting():
        from graphrag.eval.cli.audit import AuditExportOptions, run_audit_export

    options = AuditExportOptions(run, metric, questions, seed, to)
    raise typer.Exit(run_audit_export(place, options))


def import_audit(
    context: typer.Context,
    labels: Annotated[Path, typer.Argument(help="The CSV file, labelled.")],
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Hold the judge against the labels, and correct its means by them."""
    place = place_of(context, root, config, output)
    look_at_place(place, (labels, "the CSV that graphrag eval audit export wrote"))
    with starting():
        from graphrag.eval.cli.audit import run_audit_import

    raise typer.Exit(run_audit_import(place, labels))


def ratings(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="CSV or JSON lines: question_id, method, rating 1 to 5, comment.")
    ],
    run: Annotated[str, typer.Option("--run", help="Run id, its beginning, or latest.")] = "latest",
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Hold what users say of the responses beside what the judge says."""
    place = place_of(context, root, config, output)
    look_at_place(place, (file, "a .csv or .jsonl file of ratings"))
    with starting():
        from graphrag.eval.cli.ratings import run_ratings

    raise typer.Exit(run_ratings(place, file, run))


def suite(
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(help="A suite file, its name in eval/suites, or all.", show_default="all"),
    ] = None,
    test_suite: Annotated[
        str | None, typer.Option("--test-suite", help="The target, given by name.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="Then compare with this run, latest or pinned."),
    ] = None,
    set_baseline: Annotated[
        bool, typer.Option("--set-baseline", help="Pin this run as the baseline.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the last unfinished run of these suites.")
    ] = False,
    margin: Annotated[
        float, typer.Option("--margin", help="The loss that is still accepted, 0 to 1.")
    ] = 0.05,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every case.")] = False,
    quiet: QuietOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: FileOutputOption = None,
) -> None:
    """Run suites of test cases over the indexes, and keep them as a run.

    Exit codes: 0 every method reaches its passing threshold; 1 error; 2 wrong usage; 3 a case
    has no score, or the gate is inconclusive; 100 one is below, a part of the scores regressed,
    or the gate fails.
    """
    if target is not None and test_suite is not None and target != test_suite:
        raise typer.BadParameter(f"{test_suite} and {target} are two targets; give one.")
    place = place_of(context, root, config, output, takes_file=True)
    named = target or test_suite or "all"
    look_for_suites(place, named)
    with starting(quiet):
        from graphrag.eval.cli.suite import SuiteOptions, run_suite_command

    options = SuiteOptions(baseline, margin, verbose, quiet, resume, set_baseline)
    raise typer.Exit(run_suite_command(place, named, options))
