"""A run of suites as a file and, shown again, as what its file says."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from rich.console import Console

from graphrag.command_lines import eval_line_here
from graphrag.eval.report.suite import list_suite_answers, list_suites
from graphrag.eval.report.table import say, show
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import run_folder, write_whole
from graphrag.eval.suite.running import SuiteOutcome

SUITES_FILE = "suite_results.json"


def show_suite_run(console: Console, store: EvaluationStore, run: Run, to: Path | None) -> None:
    """Show a run of suites again, and write its file to a folder, by default the run's own.

    Raises
    ------
    StoreError
        If the file can't be written.
    """
    if run.details.report is None:
        n = f"{len(store.responses(run.run_id))} of {run.details.n_units}"
        what = f"Run {run.run_id} of suites is unfinished; {n} results are there."
        say(console, f"{what} Go on with: {eval_line_here('suite', '--resume')}", "yellow")
        return
    outcome = SuiteOutcome.from_dict(run.details.report)
    show(console, list_suite_answers(outcome.reports, outcome.embedded_models))
    show(console, list_suites(outcome.reports, outcome.embedded_models))
    folder = run_folder(store.path.parent, run.run_id) if to is None else to
    (path,) = write_whole(folder, {SUITES_FILE: render_suites(outcome)})
    say(console, f"Wrote {path}.")


def render_suites(outcome: SuiteOutcome, has_cases: bool = True) -> str:
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
        values["regressions"] = [asdict(each) for each in outcome.regressions]
    return _as_json(values)


def render_reports(outcome: SuiteOutcome) -> str:
    """Return the content of the file of reports as a framework gives them.

    One suite gives its report, several ``{"suites": [...]}``.
    """
    ended_at = datetime.fromisoformat(outcome.ended_at)
    told = {"run_id": outcome.run_id, "embedded_models": outcome.embedded_models}
    given = [
        {**report.evaluation_report(ended_at).to_dict(), **told, "status": report.status}
        for report in outcome.reports
    ]
    return _as_json(given[0] if len(given) == 1 else {"suites": given})


def _as_json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
