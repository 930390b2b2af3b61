"""What ``graphrag eval compare``, ``history`` and ``baseline`` do."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from graphrag.command_lines import say_instead
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import (
    DONE,
    FAILED,
    INCOMPLETE,
    explained,
    open_console,
    tell_workflow,
    working,
)
from graphrag.eval.compare.changes import read_both_labels
from graphrag.eval.compare.compare import (
    GateTerms,
    RunComparison,
    compare_runs,
    pin_baseline,
    shared_metrics,
)
from graphrag.eval.compare.figures import compare_figures, read_gate_figures, read_metric_terms
from graphrag.eval.compare.pairing import check_samples
from graphrag.eval.dataset.samples import read_dataset
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.judged.discovery import METRICS
from graphrag.eval.report.comparison import (
    answer_line,
    list_comparison,
    list_figure_changes,
    render_json,
    runs_table,
)
from graphrag.eval.report.pull_request import list_annotations, render_junit, render_markdown
from graphrag.eval.report.table import show
from graphrag.eval.results.runs import RunRows, list_runs, read_rows, read_usages
from graphrag.eval.stats.gates import MARGIN, GateOutcome
from graphrag.eval.store.lookup import PINNED
from graphrag.eval.store.whole_files import DETAILED_FILE, run_folder, write_file
from graphrag.text.controls import escape_controls
from graphrag.text.phrases import counted

EXIT_CODES = {
    GateOutcome.PASS: DONE,
    GateOutcome.INCONCLUSIVE: INCOMPLETE,
    GateOutcome.FAIL: FAILED,
}


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The flags of ``graphrag eval compare``.

    ``metrics`` are ``NAME`` or ``NAME=MARGIN``; they and ``methods`` may be comma-separated.
    """

    new: str
    baseline: str = PINNED
    metrics: Sequence[str] | None = None
    methods: str | None = None
    margin: float = MARGIN
    junit: Path | None = None
    markdown: Path | None = None
    json: Path | None = None
    accept_index_change: bool = False
    full: bool = False
    quiet: bool = False


def run_compare(place: Place, options: CompareOptions) -> int:
    """Compare two runs, show the answer everywhere it is wanted, and return its exit code."""

    def compare() -> int:
        store_path, quiet = place.store_path(), options.quiet
        names = [place.take_run(each, quiet=quiet) for each in (options.new, options.baseline)]
        notes = open_console(stderr=True, quiet=quiet)
        with working(notes, "Reading both runs"):
            new, baseline = (read_rows(name, store_path) for name in names)
        with working(notes, f"Comparing {counted(len(new.rows), 'answer')}"):
            metrics, terms = _terms(options, new, baseline, store_path)
            terms = replace(terms, labels=read_both_labels(new, baseline, store_path.parent))
            comparison = compare_runs(
                new,
                baseline,
                None if options.methods is None else _names(options.methods),
                metrics,
                options.margin,
                terms=terms,
            )
        _show(comparison, open_console(quiet=quiet), store_path, options)
        if options.json is not None:
            write_file(options.json, render_json(comparison))
        if not quiet:
            _show_changes(comparison, store_path, options.full)
        return EXIT_CODES[comparison.outcome]

    return explained(compare)


def _terms(
    options: CompareOptions, new: RunRows, baseline: RunRows, store_path: Path
) -> tuple[list[str] | None, GateTerms]:
    """Return the metrics that a judge gives, None where none is named, and all other terms."""
    accept = options.accept_index_change
    if options.metrics is None:
        return None, GateTerms(accept)
    wanted = read_metric_terms(options.metrics)
    judged = {name: margin for name, margin in wanted.items() if name in METRICS}
    figures = {name: margin for name, margin in wanted.items() if name not in METRICS}
    for name, margin in judged.items():
        if margin is not None and margin.is_relative:
            msg = f"The margin of {name} is a number of points, such as {name}=0.03."
            raise UsageError(msg)
    return list(judged), GateTerms(
        accept,
        {name: margin.value for name, margin in judged.items() if margin is not None},
        read_gate_figures(new, baseline, figures, store_path, options.margin) if figures else {},
    )


@dataclass(frozen=True, slots=True)
class BaselineOptions:
    """The flags of ``graphrag eval`` with a baseline."""

    source: str
    quiet: bool = False
    accept_index_change: bool = False
    full: bool = False


def run_with_baseline(place: Place, options: BaselineOptions, evaluate: Callable[[], int]) -> int:
    """Evaluate, then compare what was written with a baseline, which is read beforehand.

    Returns
    -------
    int
        The evaluation's exit code unless that is 0, else the gate's; an evaluation that stopped
        early, or left verdicts unscored, is not compared.
    """

    def run() -> int:
        config, store_path = place.read_config(), place.store_path()
        notes = open_console(stderr=True, quiet=options.quiet)
        source = place.take_run(options.source, quiet=options.quiet)
        with working(notes, "Reading the baseline"):
            baseline = read_rows(source, store_path)
        _keep_meaning(options.source, baseline, store_path)
        keys = list(config.indexes)
        only = keys[0] if len(keys) == 1 else None
        dataset = read_dataset(config.dataset_path, only, config.dataset.columns)
        check_samples(dataset.samples, baseline.rows)
        metric = shared_metrics(config.metrics, baseline.metrics)[0]
        code = evaluate()
        if code not in (DONE, FAILED):
            return code
        with working(notes, "Comparing with the baseline"):
            new = read_rows(str(store_path.with_name(DETAILED_FILE)), store_path)
            comparison = compare_runs(
                new,
                baseline,
                metrics=[metric],
                terms=GateTerms(
                    options.accept_index_change,
                    labels=read_both_labels(new, baseline, store_path.parent),
                ),
            )
        console = open_console(quiet=options.quiet)
        _show(comparison, console, store_path, CompareOptions("latest", full=options.full))
        return code or EXIT_CODES[comparison.outcome]

    return explained(run)


def _keep_meaning(source: str, baseline: RunRows, store_path: Path) -> None:
    """See to it that a follow-up compares with this baseline, even after the files show another."""
    run_id = baseline.metadata.run_id
    if run_id is None or source == PINNED:
        return
    own = run_folder(store_path.parent, run_id) / DETAILED_FILE
    if Path(source).is_file() and own.exists():
        say_instead(str(Path(source).absolute()), str(own.absolute()))


def run_history(place: Place, as_json: bool = False) -> int:
    """Show the runs of the output folder, as a table or as JSON."""

    def listed() -> int:
        with working(open_console(stderr=True, quiet=as_json), "Reading the runs"):
            runs = list_runs(place.store_path())
        if as_json:
            text = json.dumps(
                [run.to_dict() for run in runs], ensure_ascii=False, indent=2, allow_nan=False
            )
            sys.stdout.write(f"{escape_controls(text)}\n")
        else:
            show(open_console(), [runs_table(runs)])
        return DONE

    return explained(listed)


def run_baseline_set(place: Place, source: str) -> int:
    """Pin a run as the baseline of the output folder."""

    def pin() -> int:
        store_path = place.store_path()
        with working(open_console(stderr=True), "Pinning the run"):
            run = read_rows(place.take_run(source), store_path)
            path = pin_baseline(run, store_path)
        if run.metadata.status == "unfinished":
            _complain(f"Warning: {run.metadata.name} is unfinished", "yellow")
        open_console().print(f"Pinned {run.metadata.name} in {path}.", soft_wrap=True)
        return DONE

    return explained(pin)


def _show(
    comparison: RunComparison, console: Console, store_path: Path, options: CompareOptions
) -> None:
    for warning in comparison.warnings:
        _complain(f"Warning: {warning}", "yellow", console.quiet)
    if console.quiet:
        but = f"; but {'; '.join(comparison.warnings)}" if comparison.warnings else ""
        open_console().print(f"{answer_line(comparison)}{but}", soft_wrap=True)
    show(console, list_comparison(comparison, options.full))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        tell_workflow(list_annotations(comparison))
    if options.junit is not None:
        write_file(options.junit, render_junit(comparison))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary or options.markdown is not None:
        runs = (comparison.new.run_id, comparison.baseline.run_id)
        text = render_markdown(comparison, read_usages(store_path, runs))
        if options.markdown is not None:
            write_file(options.markdown, text)
        if summary:
            _append(Path(summary), text)


def _show_changes(comparison: RunComparison, store_path: Path, full: bool) -> None:
    """Say what else changed between two runs of the store: what got worse, or everything."""
    new, old = comparison.new.run_id, comparison.baseline.run_id
    if new is None or old is None or not store_path.is_file():
        return
    with working(open_console(stderr=True), "Looking at every other figure"):
        changes = compare_figures(new, old, store_path)
    shown = changes if full else [each for each in changes if each.is_worse]
    for line in list_figure_changes(shown)[0 if full else 1 :]:
        open_console().print(line, soft_wrap=True)


def _complain(text: str, style: str, quiet: bool = False) -> None:
    console = open_console(stderr=True, quiet=quiet)
    console.print(text, style=style, soft_wrap=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _append(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror}."
        raise StoreError(msg) from error
