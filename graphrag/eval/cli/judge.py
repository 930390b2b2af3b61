"""Defines ``graphrag eval judge``, which judges a run again or compares its judge with labels."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graphrag.eval.cli.command import (
    Address,
    Full,
    MaxCost,
    Quiet,
    Resume,
    RetryErrors,
    Workers,
    need_extra,
    option,
)
from graphrag.eval.cli.interrupts import run_coroutine
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, starting, working
from graphrag.eval.errors import UsageError
from graphrag.eval.report.table import show
from graphrag.eval.store.atomic_files import write_whole
from graphrag.text.console import open_console, say
from graphrag.text.json_records import whole_json


def judge(
    paths: Paths,
    run: Annotated[
        str | None, typer.Argument(help="Run id, its beginning, or latest.", show_default="latest")
    ] = None,
    model: Annotated[
        str | None, option("The judge; default: judge.model in eval_config.yaml.")
    ] = None,
    metrics: Annotated[
        str | None, option("E.g. correctness,faithfulness; default: the file's.")
    ] = None,
    labels: Annotated[
        Path | None, option("Ask nothing; compare the verdicts with this CSV of labels.")
    ] = None,
    resume: Resume = False,
    retry_errors: RetryErrors = False,
    max_cost: MaxCost = None,
    workers: Workers = None,
    address: Address = None,
    full: Full = False,
    quiet: Quiet = False,
) -> int:
    """Judge a run again, or compare its judge with people.

    Judging again makes a new run and pays for no search. With --labels no model is asked: the
    judge is compared with people's labels. Exit codes are those of graphrag eval.
    """
    if labels is not None:
        paths.store_path()
        if not labels.exists():
            msg = f"{labels} does not exist; name the CSV that you filled in, or the one that the"
            raise UsageError(f"{msg} page's button Download CSV saved, often in ~/Downloads.")
        need_extra("audit", "--labels")
        return import_labels(paths, labels, quiet)
    if run is None:
        raise UsageError("Name the run whose responses are to be judged: its id, or latest.")
    run_id = paths.find_run(run, quiet=quiet)
    with starting(quiet):
        from graphrag.eval.cli.finish_run import Supervisor
        from graphrag.eval.cli.load_run import change_config
        from graphrag.eval.runner.evaluate_run import judge_again
        from graphrag.eval.runner.run_setup import RunOptions

    config = change_config(paths.read_config(), metrics, model, workers=workers)
    options = RunOptions(
        resume=resume, retry_errors=retry_errors, max_cost_usd=max_cost, address=address
    )
    supervisor = Supervisor(quiet, full)
    run_coroutine(judge_again(config, run_id, options, supervisor))
    return supervisor.exit_code


def import_labels(paths: Paths, sheet: Path, quiet: bool = False) -> int:
    """Compare the judge with people's labels in a CSV; print and keep how far they agree.

    Writes audit_<metric>.json, from which later reports of the run take the labels. Returns the
    exit code 0. Raises UsageError if the CSV has no label.
    """
    with starting(quiet):
        from graphrag.eval.annotation.audit import analyse_audit, list_audit, read_audited_run
        from graphrag.eval.annotation.sheet import read_sheet
        from graphrag.eval.store.database import open_store

    items = read_sheet(sheet)
    if all(item.label is None for item in items):
        msg = f"{sheet} has no label yet; fill in its column label, or label on the page."
        raise UsageError(msg)
    notes = open_console(stderr=True, quiet=quiet)
    with working(notes, "Reading the run"), open_store(paths.store_path()) as store:
        run = read_audited_run(store, items[0].run, items[0].metric)
    with working(notes, "Comparing the judge with the labels"):
        audit = analyse_audit(run, items)
    show(open_console(quiet=quiet), list_audit(audit))
    _write(paths, f"audit_{audit.metric}.json", asdict(audit), run.run_id, quiet)
    return DONE


def _write(
    paths: Paths, name: str, values: Mapping[str, object], run_id: str | None, quiet: bool
) -> None:
    from graphrag.eval.report.files import write_run

    folder = paths.store_path().parent
    text = whole_json(values)
    if run_id is not None:
        write_run(folder, run_id, {name: text})
    (path,) = write_whole(folder, {name: text})
    say(f"Wrote {path}.", quiet=quiet)
