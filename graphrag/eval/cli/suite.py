"""``graphrag eval suite``: test cases over the indexes, kept as a run that is shown again."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from graphrag.command_lines import again, eval_line_here, move_to
from graphrag.eval.cli.command import Quiet, Resume, Verbose, option
from graphrag.eval.cli.compare import show_outcome
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import (
    DONE,
    ERROR,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    explained,
    log_to,
    open_console,
    say,
    starting,
    working,
)
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import RunStoppedError, ServiceDownStop, UsageError
from graphrag.eval.report.cells import (
    EACH_ALONE,
    UNKNOWN,
    in_brackets,
    money,
    number,
    p_value,
    seconds,
    span,
    unfinished,
)
from graphrag.eval.report.table import STYLES, Line, Part, Table, show
from graphrag.eval.runner.event_loop import run_coroutine
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import run_folder, write_whole
from graphrag.text.json_pieces import whole_json

if TYPE_CHECKING:
    from graphrag.eval.results.runs import RunRows
    from graphrag.eval.suite.cases import EvaluationFile, Suite
    from graphrag.eval.suite.running import SuiteOutcome
    from graphrag.eval.suite.summary import CaseResult, Performance, SuiteReport

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
    place: Place,
    flags: SuiteFlags,
    target: Annotated[
        str | None,
        typer.Argument(help="A suite file, its name in eval/suites, or all.", show_default="all"),
    ] = None,
    test_suite: Annotated[str | None, option("The target, given by name.")] = None,
) -> int:
    """Run suites of test cases over the indexes.

    They are kept as a run. Exit codes: 0 every method reaches its passing threshold; 1 error; 2
    wrong usage; 3 a case has no score, or the gate is inconclusive; 100 one is below, a part of
    the scores regressed, or the gate fails.
    """
    from graphrag.eval.suite.cases import EVALUATION_FILE, find_suite_files, read_evaluation_file

    if target is not None and test_suite is not None and target != test_suite:
        raise typer.BadParameter(f"{test_suite} and {target} are two targets; give one.")
    named = target or test_suite or "all"
    place.store_path()
    path = place.root / EVALUATION_FILE
    enabled = read_evaluation_file(path) if path.is_file() else None
    if enabled is not None and named != "all" and named not in enabled.files:
        enabled = None
    files = find_suite_files(named, place.root) if enabled is None else []
    if enabled is not None and not enabled.files:
        what = "enables no suite" if enabled.settings.enabled else "is not enabled"
        say(f"{path} {what}; nothing ran.", "yellow", stderr=True)
        return DONE
    try:
        return _run(place, named, files, enabled, flags)
    except RunStoppedError as error:
        go_on = f"What was done is kept. Continue with: {again('--resume')}"
        say(f"Stopped: {error}. {go_on}", stderr=True)
        return INCOMPLETE if isinstance(error, ServiceDownStop) else ERROR
    except KeyboardInterrupt:
        note = (
            "Interrupted; the cases that were done are kept, as an unfinished run, which "
            "--resume continues."
        )
        say(note, stderr=True)
        return INTERRUPTED


def _run(
    place: Place,
    target: str,
    files: Sequence[Path],
    enabled: "EvaluationFile | None",
    flags: SuiteFlags,
) -> int:
    with starting(flags.quiet):
        from graphrag.eval.compare.compare import pin_baseline
        from graphrag.eval.report.files import write_run
        from graphrag.eval.results.runs import pinned_run_id, read_rows
        from graphrag.eval.suite.cases import read_suite
        from graphrag.eval.suite.running import hold_against
        from graphrag.eval.suite.summary import worst_status

    config, file, quiet = place.read_config(), place.file, flags.quiet
    if enabled is None:
        suites = [read_suite(path) for path in files]
    else:
        every = enabled.suites(list(config.indexes))
        suites = [each for each in every if target in ("all", each.name)]
        if place.folder is None:
            place = Place(place.root, place.config, enabled.results_directory.absolute())
            move_to(place.flags())
            config = place.read_config()
    reporting = None if enabled is None else enabled.settings.reporting
    store_path = place.store_path()
    baseline: RunRows | None = None
    held_against: str | None = None
    if flags.baseline is not None:
        # Read before the run, as it may be the latest one.
        source = place.find_run(flags.baseline, suites=True, quiet=quiet)
        baseline = read_rows(source, store_path)
        _check_baseline(baseline, suites)
        held_against = baseline.metadata.run_id
    elif reporting is not None and reporting.compare_with_baseline:
        held_against = pinned_run_id(store_path)
    outcome = _evaluate(suites, config, store_path, flags)
    run_id = str(outcome.run_id)
    if held_against is not None:
        with EvaluationStore(store_path) as store:
            outcome = hold_against(outcome, held_against, store) or outcome
    show(open_console(), list_suite_answers(outcome.reports, outcome.embedded_models))
    console = open_console(quiet=quiet)
    show(console, list_suites(outcome.reports, outcome.embedded_models, flags.verbose))
    for note in outcome.notes:
        say(note, quiet=quiet)
    has_cases = reporting is None or reporting.save_detailed_results
    written = {SUITES_FILE: render_suites(outcome, has_cases)}
    own = write_run(store_path.parent, run_id, written)
    write_whole(store_path.parent, written)
    say(f"Kept as run {run_id} in {own}.", quiet=quiet)
    if file is not None:
        write_whole(file.parent, {file.name: _render_reports(outcome)})
        say(f"Report: {file}", quiet=quiet)
    regressed = [each for each in outcome.regressions or () if each.regressed]
    for each in regressed:
        line = (
            f"Regressed: {each.metric} of {each.suite} ({each.method}) by {each.difference:+.3f} "
            f"over {each.n_pairs} cases, {p_value(each.p_holm)} after Holm over the metrics"
        )
        say(line, "bold red", quiet=quiet)
    if held_against is not None and outcome.regressions is None:
        say("Parts of the scores are not compared: the baseline's are not kept here.", quiet=quiet)
    code = EXIT_CODES[worst_status([report.outcome for report in outcome.reports])]
    if baseline is not None and code == INCOMPLETE:
        say("Not compared with the baseline, as cases have no score.", "yellow", quiet=quiet)
    elif baseline is not None:
        rows = read_rows(run_id, store_path), baseline
        gate = explained(lambda: _gate(rows, store_path, flags))
        code = code or gate
    if flags.set_baseline:
        # After the comparison, which may be with what is pinned until now.
        path = pin_baseline(read_rows(run_id, store_path), store_path)
        say(f"Pinned as the baseline in {path}.", quiet=quiet)
    return FAILED if regressed else code


def _gate(rows: "tuple[RunRows, RunRows]", store_path: Path, flags: SuiteFlags) -> int:
    from graphrag.eval.compare.compare import compare_rows

    comparison = compare_rows(rows, store_path, margin=flags.margin)
    return show_outcome(comparison, store_path, quiet=flags.quiet)


def _check_baseline(baseline: "RunRows", suites: "Sequence[Suite]") -> None:
    names = [suite.name for suite in suites]
    if not any(row.method.partition("/")[0] in names for row in baseline.rows):
        raise UsageError(
            f"The baseline {baseline.metadata.name} holds none of the suites {', '.join(names)}; "
            "name a run of them."
        )


def _evaluate(
    suites: "Sequence[Suite]", config: EvaluationConfig, store_path: Path, flags: SuiteFlags
) -> "SuiteOutcome":
    from graphrag.eval.suite.running import run_suites

    notes = open_console(stderr=True, quiet=flags.quiet)
    with (
        EvaluationStore(store_path) as store,
        log_to(store_path.with_name("eval.log"), flags.verbose),
        working(notes, "Running the suites") as tell,
    ):

        def show(done: int, total: int, latest: "CaseResult") -> None:
            tell(f"{done} of {total} evaluations, the latest: {latest.title}")

        return run_coroutine(
            run_suites(suites, config, store=store, on_case=show, resume=flags.resume)
        )


def show_suite_run(console: Console, store: EvaluationStore, run: Run, to: Path | None) -> None:
    """Show a run of suites again, and write its file to a folder, by default the run's own.

    StoreError if the file can't be written.
    """
    from graphrag.eval.suite.running import SuiteOutcome

    if run.details.report is None:
        n = f"{len(store.responses(run.run_id))} of {run.details.n_units}"
        what = f"Run {run.run_id} of suites is unfinished; {n} results are there."
        go_on = eval_line_here("suite", "--resume")
        say(f"{what} Go on with: {go_on}", "yellow", quiet=console.quiet)
        return
    outcome = SuiteOutcome.from_dict(run.details.report)
    show(console, list_suite_answers(outcome.reports, outcome.embedded_models))
    show(console, list_suites(outcome.reports, outcome.embedded_models))
    folder = run_folder(store.path.parent, run.run_id) if to is None else to
    (path,) = write_whole(folder, {SUITES_FILE: render_suites(outcome)})
    say(f"Wrote {path}.", quiet=console.quiet)


def list_suite_answers(reports: "Sequence[SuiteReport]", label: str | None = None) -> list[Line]:
    """Return the answer of each suite, a line each."""
    return [
        Line(
            f"Suite {report.name}: {report.status}{in_brackets(label)}: overall score "
            f"{number(report.score.mean, '.3f', UNKNOWN)} (passing {report.thresholds.passing:g}, "
            f"warning {report.thresholds.warning:g}), {report.n_passed} of {report.n_total} "
            "passed.",
            STYLES[report.status],
        )
        for report in reports
    ]


def list_suites(
    reports: "Sequence[SuiteReport]", label: str | None = None, every_case: bool = False
) -> Iterator[Part]:
    """Yield each suite's table, the cases that did not pass, or all, and the recommendations."""
    for report in reports:
        yield Table(
            f"Suite {report.name}{in_brackets(label)}",
            [
                *(("method", "text"), ("result", "text"), ("score", "percent")),
                *(("95 % interval", "interval"), ("passed", "count"), ("no score", "count")),
            ],
            [
                [
                    *(method.method, method.status, number(method.score.mean, ".3f")),
                    span(method.score.low, method.score.high, lambda limit: number(limit, ".3f")),
                    *(f"{method.n_passed}/{method.n_total}", method.n_unscored),
                ]
                for method in report.methods
            ],
            EACH_ALONE,
        )
        for method in report.methods:
            yield Line(f"{method.method} took {_performance(method.performance)}.")
        for result in report.results:
            if every_case or not report.thresholds.passes(result.score):
                score = "" if result.score is None else f" {result.score:.2f}"
                where = f"{result.case_id} ({result.method})"
                yield Line(f"  {result.status}{score} {where}: {result.reason}")
        for recommendation in report.recommendations:
            yield Line(recommendation, is_command=True)


def _performance(took: "Performance") -> str:
    calls = f"{UNKNOWN} calls" if took.llm_calls is None else f"{took.llm_calls:,} model calls"
    is_known = took.cost_usd is not None and took.judge_cost_usd is not None
    total = (took.cost_usd or 0) + (took.judge_cost_usd or 0)
    return (
        f"a median of {seconds(took.latency_median, '.3f', UNKNOWN)} s, "
        f"p95 {seconds(took.latency_p95, '.3f', UNKNOWN)} s{unfinished(took.latency_p95)}, "
        f"{calls}, {number(took.tokens, ',', UNKNOWN)} tokens, "
        f"$ {money(total if is_known else None, missing=UNKNOWN)} with the judge"
    )


def render_suites(outcome: "SuiteOutcome", has_cases: bool = True) -> str:
    """Return the content of the file of suites, with every case or without."""
    suites = [report.to_dict() for report in outcome.reports]
    for suite in suites if not has_cases else ():
        del suite["cases"]
    values: dict[str, object] = {
        "timestamp": datetime.fromisoformat(outcome.ended_at).isoformat(timespec="seconds"),
        "run_id": outcome.run_id,
        "embedded_models": outcome.embedded_models,
        "suites": suites,
    }
    if outcome.regressions is not None:
        values["regressions"] = [asdict(regression) for regression in outcome.regressions]
    return whole_json(values)


def _render_reports(outcome: "SuiteOutcome") -> str:
    """Return the report of a framework; of several suites ``{"suites": [...]}``."""
    ended_at = datetime.fromisoformat(outcome.ended_at)
    about = {"run_id": outcome.run_id, "embedded_models": outcome.embedded_models}
    reports = [
        {**report.evaluation_report(ended_at).to_dict(), **about, "status": report.status}
        for report in outcome.reports
    ]
    return whole_json(reports[0] if len(reports) == 1 else {"suites": reports})
