"""What ``graphrag eval suite`` does: run suites, show them, keep them, compare with a baseline."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.analysis import Row, paired_score
from graphrag.eval.compare_command import CompareOptions, run_compare
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.display import log_to
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.exit_codes import DONE, FAILED, INCOMPLETE, INTERRUPTED, explained
from graphrag.eval.gate import MARGIN
from graphrag.eval.place import Place
from graphrag.eval.run_rows import LATEST, RunRows, read_rows
from graphrag.eval.statistics import LatencyQuantile
from graphrag.eval.store import EvaluationStore
from graphrag.eval.suite.cases import Suite, find_suite_files, read_suite
from graphrag.eval.suite.report import (
    CaseResult,
    MethodReport,
    Performance,
    SuiteReport,
    SuiteStatus,
    worst_status,
)
from graphrag.eval.suite.running import SuiteOutcome, run_suites
from graphrag.eval.terminal import open_console

SUITES_FILE = "suite_results.json"
EXIT_CODES: dict[SuiteStatus, int] = {
    "passed": DONE,
    "warning": DONE,
    "incomplete": INCOMPLETE,
    "failed": FAILED,
}
_STYLES = {"passed": "green", "warning": "yellow", "incomplete": "yellow", "failed": "bold red"}
_COLUMNS = ("method", "result", "score", "95 % interval", "passed", "no score")


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The flags of ``graphrag eval suite``.

    ``baseline`` is a run, a file, latest or pinned, ``margin`` the loss that the gate accepts;
    ``verbose`` shows every case.
    """

    baseline: str | None = None
    margin: float = MARGIN
    verbose: bool = False
    quiet: bool = False


def run_suite_command(place: Place, target: str, options: SuiteOptions | None = None) -> int:
    """Run a suite file, or all suites, and return the exit code.

    0: every method's score is over its suite's passing threshold, and the gate passes if a
    baseline is given; 100: one is below, or the gate fails; 3: a case has no score, or the gate
    is inconclusive; 2: wrong usage; 1: error; 130: interrupted, with what is done kept.
    """
    chosen = options or SuiteOptions()

    def run() -> int:
        try:
            return _run(place, target, chosen)
        except KeyboardInterrupt:
            note = "Interrupted; the cases that were done are kept, as an unfinished run."
            _say(open_console(stderr=True), note)
            return INTERRUPTED

    return explained(run, chosen.verbose)


def _run(place: Place, target: str, options: SuiteOptions) -> int:
    suites = [read_suite(path) for path in find_suite_files(target, place.root)]
    config, store_path = place.read_config(), place.store_path()
    # Read before the run, as it may be the latest one.
    source = options.baseline
    baseline = None if source is None else read_rows(source, store_path)
    if baseline is not None:
        _check_baseline(baseline, suites)
    outcome = _evaluate(suites, config, store_path, options)
    _write(store_path.with_name(SUITES_FILE), outcome)
    console = open_console(quiet=options.quiet)
    for report in outcome.reports:
        show_suite(console, report, outcome.embedded_models, options.verbose)
    _say(console, f"Kept as run {outcome.run_id} in {store_path.parent}.")
    code = EXIT_CODES[worst_status([report.status for report in outcome.reports])]
    if source is None or baseline is None or outcome.run_id is None:
        return code
    if code == INCOMPLETE:
        _say(console, "Not compared with the baseline, as cases have no score.", "yellow")
        return code
    old = baseline.metadata.run_id if source == LATEST else None
    gate = run_compare(
        Place(place.root, place.config, store_path.parent),
        CompareOptions(outcome.run_id, old or source, margin=options.margin),
    )
    for line in list_changes(read_rows(outcome.run_id, store_path).rows, baseline.rows):
        _say(console, line)
    return code or gate


def _check_baseline(baseline: RunRows, suites: Sequence[Suite]) -> None:
    names = [suite.name for suite in suites]
    if not any(row.method.partition("/")[0] in names for row in baseline.rows):
        msg = (
            f"The baseline {baseline.metadata.name} holds none of the suites {', '.join(names)}; "
            "name a run of them."
        )
        raise UsageError(msg)


def list_changes(new: Sequence[Row], baseline: Sequence[Row]) -> list[str]:
    """Name the cases that no longer pass, and those that pass now, one line each."""
    before = {(row.method, row.question_id): paired_score(row, "correctness") for row in baseline}
    changed: dict[tuple[int, int], list[str]] = {}
    for row in new:
        now, old = paired_score(row, "correctness"), before.get((row.method, row.question_id))
        if now is not None and old is not None:
            changed.setdefault((old, now), []).append(f"{row.question_id} ({row.method})")
    names = {(1, 0): "No longer passing", (0, 1): "Passing now"}
    return [f"{names[key]}: {', '.join(changed[key])}" for key in names if key in changed]


def _evaluate(
    suites: Sequence[Suite], config: EvaluationConfig, store_path: Path, options: SuiteOptions
) -> SuiteOutcome:
    notes = open_console(stderr=True, quiet=options.quiet)
    with (
        EvaluationStore(store_path) as store,
        log_to(store_path.with_name("eval.log"), options.verbose),
        notes.status("Running the suites") as status,
    ):

        def show(done: int, total: int, latest: CaseResult) -> None:
            status.update(f"{done} of {total} evaluations, the latest: {latest.title}")

        return asyncio.run(run_suites(suites, config, store=store, on_case=show))


def show_suite(
    console: Console, report: SuiteReport, label: str | None = None, every_case: bool = False
) -> None:
    """Print a suite's table, the cases that did not pass, or all, and the recommendations."""
    title = f"Suite {report.name}: {report.status}{f' ({label})' if label else ''}"
    table = Table(title=Text(title, style=_STYLES[report.status]), title_justify="left")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("method", "result") else "right")
    for method in report.methods:
        table.add_row(*_cells(method))
    console.print(table)
    for method in report.methods:
        _say(console, f"{method.method} took {_performance(method.performance)}.")
    share = f"{report.n_passed} of {report.n_total} passed"
    marks = f"passing {report.thresholds.passing:g}, warning {report.thresholds.warning:g}"
    _say(console, f"Overall score {_figure(report.score.mean)} ({marks}), {share}.")
    for result in report.results:
        if every_case or result.status in ("failed", "unscored"):
            _say(console, _case_line(result))
    if report.recommendations:
        _say(console, "What to look at:")
    for recommendation in report.recommendations:
        _say(console, f"- {recommendation.text}")
    console.print()


def _cells(method: MethodReport) -> list[Text]:
    limits = "unknown"
    if method.score.low is not None and method.score.high is not None:
        limits = f"{method.score.low:.3f} to {method.score.high:.3f}"
    given = [
        method.method,
        method.status,
        _figure(method.score.mean),
        limits,
        f"{method.n_passed}/{method.n_total}",
        str(method.n_unscored),
    ]
    return [Text(cell) for cell in given]


def _performance(took: Performance) -> str:
    calls = "unknown calls" if took.llm_calls is None else f"{took.llm_calls:,} model calls"
    tokens = "unknown tokens" if took.tokens is None else f"{took.tokens:,} tokens"
    known = took.cost_usd is not None and took.judge_cost_usd is not None
    cost = f"$ {(took.cost_usd or 0) + (took.judge_cost_usd or 0):.4f}" if known else "$ unknown"
    return (
        f"a median of {_seconds(took.latency_median)} s, p95 {_seconds(took.latency_p95)} s, "
        f"{calls}, {tokens}, {cost} with the judge"
    )


def _case_line(result: CaseResult) -> str:
    score = "" if result.score is None else f" {result.score:.2f}"
    return f"  {result.status}{score} {result.case_id} ({result.method}): {result.reason}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _seconds(found: LatencyQuantile) -> str:
    if found.at_least is not None:
        return f">= {found.at_least:.3f}"
    return "unknown" if found.value is None else f"{found.value:.3f}"


def _write(path: Path, outcome: SuiteOutcome) -> None:
    values: dict[str, Any] = {
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "run_id": outcome.run_id,
        "embedded_models": outcome.embedded_models,
        "suites": [report.to_dict() for report in outcome.reports],
    }
    text = json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror}."
        raise StoreError(msg) from error


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
