"""Defines ``graphrag eval compare``, which compares a run with a baseline, or pins a baseline."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag.eval.cli.command import Full, Quiet, option, split_names
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import (
    DONE,
    FAILED,
    INCOMPLETE,
    print_workflow_commands,
    starting,
    working,
)
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.report.table import show
from graphrag.eval.store.atomic_files import write_file
from graphrag.text.console import open_console, say
from graphrag.text.message_phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import RunComparison
    from graphrag.query.client.usage import Usage

EXIT_CODES = {"pass": DONE, "inconclusive": INCOMPLETE, "fail": FAILED}
PLAN = "How many questions"


def compare(
    paths: Paths,
    new: Annotated[
        str | None,
        typer.Argument(help="Run id, its beginning, latest, or the path of a baseline.json."),
    ] = None,
    old: Annotated[
        str | None, typer.Argument(help="The baseline, the same way; default: pinned.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "E.g. correctness,completeness=0.03, each with its own =MARGIN if it has one; default: "
            "correctness, or the first that both runs judged."
        ),
    ] = None,
    methods: Annotated[
        str | None, option("Default: those in both runs.", "--methods", "-m")
    ] = None,
    margin: Annotated[float, option("The loss that you accept, 0 to 1.")] = 0.05,
    accept_index_change: Annotated[
        bool,
        option(
            "Let the gate decide although an index changed, as if questions were independent.",
            "--accept-index-change",
        ),
    ] = False,
    full: Full = False,
    quiet: Quiet = False,
    junit: Annotated[Path | None, option("Also write JUnit XML to this file.")] = None,
    markdown: Annotated[
        Path | None, option("Also write Markdown for a pull request to this file.")
    ] = None,
    json: Annotated[Path | None, option("Also write every number to this file.")] = None,
    pin: Annotated[
        bool, option("Compare nothing; make NEW the baseline, pinned.", "--pin")
    ] = False,
    plan: Annotated[
        float | None,
        option(
            "Compare nothing; show how many questions it takes to see this difference: 0.05 is 5 "
            "points, if methods differ as often as in NEW or the latest run.",
            rich_help_panel=PLAN,
        ),
    ] = None,
) -> int:
    """Compare a run with a baseline, and let the gate decide.

    Exit codes: 0 PASS; 1 error; 2 wrong usage; 3 INCONCLUSIVE or TOO FEW, which is not a pass;
    100 FAIL. In a GitHub workflow the answer also goes to the job's summary and annotations.
    """
    if plan is not None:
        with starting(quiet):
            from graphrag.eval.cli.sample_size import show_plan

        return show_plan(paths, plan, new, methods)
    if new is None:
        msg = "Name the run that is to be compared: its id, latest, or a file of results."
        raise UsageError(msg)
    run = paths.find_run(new, quiet=quiet)
    baseline = None if pin else paths.find_run(old or "pinned", quiet=quiet)
    with starting(quiet):
        from graphrag.eval.compare.compare import compare_runs, read_metric_terms
        from graphrag.eval.report.comparison import render_json
        from graphrag.eval.report.pull_request import render_junit
        from graphrag.eval.results.runs import read_rows

    store_path, notes = paths.store_path(), open_console(stderr=True, quiet=quiet)
    if baseline is None:
        with working(notes, "Pinning the run"):
            return pin_run(run, store_path, quiet)
    with working(notes, "Reading both runs"):
        rows = read_rows(run, store_path), read_rows(baseline, store_path)
    chosen = None if methods is None else split_names(methods)
    with working(notes, f"Comparing {counted(len(rows[0].rows), 'answer')}"):
        metrics = read_metric_terms(metric) if metric else None
        comparison = compare_runs(*rows, chosen, metrics, margin, accept_index_change)
    if junit is not None:
        write_file(junit, render_junit(comparison))
    if json is not None:
        write_file(json, render_json(comparison))
    return show_outcome(comparison, store_path, full, quiet, markdown)


def show_outcome(
    comparison: "RunComparison",
    store_path: Path,
    full: bool = False,
    quiet: bool = False,
    markdown: Path | None = None,
) -> int:
    """Print a comparison, write its reports, and return the gate's exit code.

    ``markdown``: the file to write Markdown to. In a GitHub workflow the annotations and the job's
    summary are written as well.
    """
    from graphrag.eval.report.comparison import answer_comparison, list_comparison
    from graphrag.eval.report.pull_request import list_annotations, render_markdown
    from graphrag.eval.results.runs import read_usages

    for warning in comparison.warnings:
        say(f"Warning: {warning}", "yellow", stderr=True, quiet=quiet)
    usages: Mapping[str, Usage] = {}
    with suppress(StoreError):  # locked by a run: the cost of both is left out
        usages = read_usages(store_path, (comparison.new.run_id, comparison.baseline.run_id))
    if quiet:
        but = f" But {'; '.join(comparison.warnings)}." if comparison.warnings else ""
        say(f"{answer_comparison(comparison).line}{but}")
    show(open_console(quiet=quiet), list_comparison(comparison, full, usages))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print_workflow_commands(list_annotations(comparison))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    text = render_markdown(comparison, usages) if summary or markdown is not None else ""
    if markdown is not None:
        write_file(markdown, text)
    if summary:
        _append(Path(summary), text)
    return EXIT_CODES[comparison.outcome.value]


def pin_run(source: str, store_path: Path, quiet: bool = False) -> int:
    """Pin a run as the baseline of the output folder, and return the exit code 0.

    The run's rows are copied, so that the baseline outlives the run.
    """
    from graphrag.eval.compare.compare import pin_baseline
    from graphrag.eval.results.runs import pinned_run_id, read_rows

    run, before = read_rows(source, store_path), None
    with suppress(UsageError):  # an unreadable file is replaced all the same
        before = pinned_run_id(store_path)
    path = pin_baseline(run, store_path)
    if run.metadata.status == "unfinished":
        say(f"Warning: {run.metadata.name} is unfinished", "yellow", stderr=True)
    is_other = before is not None and before != run.metadata.run_id
    instead = f", in place of run {before}" if is_other else ""
    say(f"Pinned {run.metadata.name} in {path}{instead}.", quiet=quiet)
    return DONE


def _append(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}.") from error
