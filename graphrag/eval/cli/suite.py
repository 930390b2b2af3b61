"""Defines ``graphrag eval suite``, which runs suites of test cases and keeps them as a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from graphrag.eval.cli.command import Quiet, Resume, Verbose, option
from graphrag.eval.cli.compare import pin_run, show_outcome
from graphrag.eval.cli.interrupts import run_coroutine
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    explained,
    log_to,
    starting,
    working,
)
from graphrag.eval.errors import RunStoppedError, ServiceDownStop, UsageError
from graphrag.eval.report.formatting import p_value
from graphrag.eval.report.table import show
from graphrag.eval.store.atomic_files import run_folder, write_whole
from graphrag.text.cli_hints import again, eval_line_here, move_to
from graphrag.text.console import open_console, say

if TYPE_CHECKING:
    from graphrag.eval.results.runs import RunRows
    from graphrag.eval.store.database import EvaluationStore
    from graphrag.eval.store.records import Run
    from graphrag.eval.suite.cases import EvaluationFile, Suite
    from graphrag.eval.suite.summary import CaseResult, SuiteOutcome

EXIT_CODES = {"passed": DONE, "incomplete": INCOMPLETE, "failed": FAILED}
SUITES_FILE = "suite_results.json"


@dataclass(frozen=True, slots=True)
class SuiteFlags:
    """The flags of ``graphrag eval suite``."""

    baseline: Annotated[str | None, option("Then compare with this run, latest or pinned.")] = None
    set_baseline: Annotated[bool, option("Pin this run as the baseline.", "--set-baseline")] = False
    resume: Resume = False
    margin: Annotated[float, option("The loss that you accept, 0 to 1.")] = 0.05
    verbose: Verbose = False
    quiet: Quiet = False


def suite(
    paths: Paths,
    flags: SuiteFlags,
    target: Annotated[
        str | None,
        typer.Argument(help="A suite file, its name in eval/suites, or all.", show_default="all"),
    ] = None,
    test_suite: Annotated[str | None, option("The same as TARGET.")] = None,
) -> int:
    """Run suites of test cases over the indexes.

    They are kept as a run. Exit codes: 0 every method reaches its passing threshold; 1 error; 2
    wrong usage; 3 a case has no score, or the gate is inconclusive; 100 a method is below its
    threshold, a metric regressed, or the gate fails.
    """
    if target is not None and test_suite is not None and target != test_suite:
        raise typer.BadParameter(f"{test_suite} and {target} are two targets; give one.")
    named, file, quiet = target or test_suite or "all", paths.file, flags.quiet
    paths.store_path()
    enabled, files = _find_suites(paths.root, named)
    if enabled is not None and not enabled.files:
        state = "enables no suite" if enabled.settings.enabled else "is not enabled"
        say(f"{enabled.path} {state}; nothing ran.", "yellow", stderr=True)
        return DONE
    with starting(quiet):
        from graphrag.eval.results.runs import pinned_run_id, read_rows
        from graphrag.eval.suite.cases import read_suite

    suites = [read_suite(path) for path in files]
    reporting = None
    if enabled is not None:
        suites = enabled.suites(list(paths.read_config().indexes), named)
        reporting = enabled.settings.reporting
        if paths.folder is None:
            paths = Paths(paths.root, paths.config, enabled.results_directory.absolute())
            move_to(paths.flags())
    store_path = paths.store_path()
    baseline: RunRows | None = None
    baseline_id: str | None = None
    if flags.baseline is not None:
        # Read before the run, as it may be the latest one.
        source = paths.find_run(flags.baseline, suites=True, quiet=quiet)
        baseline = read_rows(source, store_path)
        names = [suite.name for suite in suites]
        if not any(row.method.partition("/")[0] in names for row in baseline.rows):
            raise UsageError(
                f"The baseline {baseline.metadata.name} has none of the suites "
                f"{', '.join(names)}; name a run of them."
            )
        baseline_id = baseline.metadata.run_id
    elif reporting is not None and reporting.compare_with_baseline:
        baseline_id = pinned_run_id(store_path)
    try:
        outcome = _evaluate(suites, paths, flags, baseline_id)
    except RunStoppedError as error:
        go_on = f"What was done is kept. Continue with: {again('--resume')}"
        say(f"Stopped: {error}. {go_on}", stderr=True)
        return INCOMPLETE if isinstance(error, ServiceDownStop) else ERROR
    _show(outcome, open_console(quiet=quiet), flags.verbose)
    written = {SUITES_FILE: outcome.render(reporting is None or reporting.save_detailed_results)}
    own = run_folder(store_path.parent, str(outcome.run_id))
    for folder in (own, store_path.parent):
        write_whole(folder, written)
    lines = [*outcome.notes, f"Kept as run {outcome.run_id} in {own}."]
    if file is not None:
        write_whole(file.parent, {file.name: outcome.render_reports()})
        lines.append(f"Report: {file}")
    for line in lines:
        say(line, quiet=quiet)
    return _decide(outcome, baseline, store_path, flags)


def _decide(
    outcome: "SuiteOutcome", baseline: "RunRows | None", store_path: Path, flags: SuiteFlags
) -> int:
    """Compare with the baseline, pin the run if that is wanted, and return the exit code."""
    from graphrag.eval.compare.compare import compare_runs
    from graphrag.eval.results.runs import read_rows
    from graphrag.eval.suite.summary import worst_status

    run_id, quiet = str(outcome.run_id), flags.quiet
    regressed = [part for part in outcome.regressions or () if part.regressed]
    for part in regressed:
        line = (
            f"Regressed: {part.metric} of {part.suite} ({part.method}) by {part.difference:+.3f} "
            f"over {part.n_pairs} cases, {p_value(part.p_holm)} after Holm over the metrics"
        )
        say(line, "bold red", quiet=quiet)
    code = EXIT_CODES[worst_status([report.outcome for report in outcome.reports])]
    if baseline is not None and code == INCOMPLETE:
        say("Not compared with the baseline, as cases have no score.", "yellow", quiet=quiet)
    elif baseline is not None:
        rows, margin = (read_rows(run_id, store_path), baseline), flags.margin
        gate = explained(
            lambda: show_outcome(compare_runs(*rows, margin=margin), store_path, quiet=quiet)
        )
        code = code or gate
    if flags.set_baseline:
        # After the comparison, which may be with the run that is pinned until now.
        pin_run(run_id, store_path, quiet)
    return FAILED if regressed else code


def _find_suites(root: Path, target: str) -> "tuple[EvaluationFile | None, list[Path]]":
    """Return the evaluation.yml that enables the target, or the suite files that it names."""
    from graphrag.eval.suite.cases import EVALUATION_FILE, find_suite_files, read_evaluation_file

    path = root / EVALUATION_FILE
    enabled = read_evaluation_file(path) if path.is_file() else None
    if enabled is not None and (target == "all" or target in enabled.files):
        return enabled, []
    return None, find_suite_files(target, root)


def _evaluate(
    suites: "Sequence[Suite]", paths: Paths, flags: SuiteFlags, baseline: str | None
) -> "SuiteOutcome":
    from graphrag.eval.store.database import EvaluationStore
    from graphrag.eval.suite.run_suites import run_suites

    config, store_path = paths.read_config(), paths.store_path()
    notes = open_console(stderr=True, quiet=flags.quiet)
    with (
        EvaluationStore(store_path) as store,
        log_to(store_path.with_name("eval.log"), flags.verbose),
        working(notes, "Running the suites") as update,
    ):

        def show_case(done: int, total: int, latest: "CaseResult") -> None:
            update(f"{done} of {total} evaluations, the latest: {latest.title}")

        return run_coroutine(
            run_suites(
                suites, config, store, on_case=show_case, resume=flags.resume, baseline=baseline
            )
        )


def show_suite_run(console: Console, store: "EvaluationStore", run: "Run") -> None:
    """Show a run of suites again, and write its report to the run's own folder.

    Raises StoreError if the report can't be written.
    """
    from graphrag.eval.suite.summary import SuiteOutcome

    if run.details.report is None:
        n = f"{len(store.responses(run.run_id))} of {run.details.n_units}"
        state = f"Run {run.run_id} of suites is unfinished; {n} results are there."
        go_on = eval_line_here("suite", "--resume")
        say(f"{state} Go on with: {go_on}", "yellow", quiet=console.quiet)
        return
    outcome = SuiteOutcome.from_dict(run.details.report)
    _show(outcome, console)
    folder = run_folder(store.path.parent, run.run_id)
    (path,) = write_whole(folder, {SUITES_FILE: outcome.render()})
    say(f"Wrote {path}.", quiet=console.quiet)


def _show(outcome: "SuiteOutcome", console: Console, every_case: bool = False) -> None:
    from graphrag.eval.suite.summary import list_suite_answers, list_suites

    show(open_console(), list_suite_answers(outcome))
    show(console, list_suites(outcome, every_case))
