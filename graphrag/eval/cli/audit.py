"""What ``graphrag eval audit export`` and ``audit import`` do."""

import json
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from graphrag.command_lines import eval_line_in
from graphrag.eval.annotation.audit import (
    Audit,
    analyse_audit,
    draw_items,
    list_audit,
    read_audited_run,
)
from graphrag.eval.annotation.sheet import read_sheet, write_sheet
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.report.files import write_run
from graphrag.eval.report.table import show
from graphrag.eval.stats.correction import MIN_LABELS
from graphrag.eval.store.lookup import open_store
from graphrag.eval.store.whole_files import run_folder, write_file, write_whole
from graphrag.eval.web.labels import render_labels


@dataclass(frozen=True, slots=True)
class AuditExportOptions:
    """The flags of ``graphrag eval audit export``; without ``to``, the output folder is taken."""

    run: str
    metric: str = "correctness"
    questions: int = 80
    seed: int = 0
    to: Path | None = None


def run_audit_export(place: Place, options: AuditExportOptions) -> int:
    """Draw responses to label, write their CSV and page, and return the exit code."""

    def export() -> int:
        if options.questions < 1:
            msg = f"{options.questions} questions can't be drawn; set --questions to 1 or more."
            raise UsageError(msg)
        store_path = place.store_path()
        name = place.take_run(options.run)
        with _reading(), open_store(store_path) as store:
            run = read_audited_run(store, name, options.metric)
        if not run.is_finished:
            _say(
                f"Warning: run {run.run_id} is unfinished; once it goes on, labels for it can't "
                "be imported.",
                "yellow",
            )
        items = draw_items(run, options.questions, options.seed)
        n_questions = len({(item.group, item.question) for item in items})
        if n_questions < MIN_LABELS:
            _say(
                f"Warning: {n_questions} questions are too few for corrected means, which need "
                f"{MIN_LABELS} labels a method.",
                "yellow",
            )
        folder = store_path.parent if options.to is None else options.to
        sheet = folder / f"audit_{run.metric}.csv"
        page = sheet.with_suffix(".html")
        _set_aside(sheet, run.run_id, store_path.parent)
        write_sheet(sheet, items)
        write_file(page, render_labels(items, run.embedded_models))
        _say(
            f"Wrote {sheet} and {page}: {len(items)} responses to {n_questions} questions. "
            "Label them in either, then: "
            f"{eval_line_in(store_path.parent, 'audit', 'import', sheet)}"
        )
        return DONE

    return explained(export)


def run_audit_import(place: Place, sheet: Path) -> int:
    """Compare the judge with a filled-in CSV, show and write it, and return the exit code."""

    def read_in() -> int:
        items = read_sheet(sheet)
        if all(item.label is None for item in items):
            msg = f"{sheet} holds no label yet; fill in its column label, or label on the page."
            raise UsageError(msg)
        store_path = place.store_path()
        with _reading(), open_store(store_path) as store:
            run = read_audited_run(store, items[0].run, items[0].metric)
        with working(open_console(stderr=True), "Comparing the judge with the labels"):
            audit = analyse_audit(run, items)
        show(open_console(), list_audit(audit))
        files = {f"audit_{audit.metric}.json": _to_json(audit)}
        write_run(store_path.parent, run.run_id, files)
        (path,) = write_whole(store_path.parent, files)
        _say(f"Wrote {path}.")
        return DONE

    return explained(read_in)


def _set_aside(sheet: Path, run_id: str, output_dir: Path) -> None:
    """Move the sheet and page of another run into that run's folder, as long as none is there."""
    if not sheet.exists():
        return
    earlier = read_sheet(sheet)[0].run
    folder = run_folder(output_dir, earlier)
    if earlier == run_id or (folder / sheet.name).exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in (sheet, sheet.with_suffix(".html")):
            if path.exists():
                shutil.move(path, folder / path.name)
    except OSError as error:
        msg = f"{sheet} of run {earlier} can't be moved to {folder}: {error.strerror}."
        raise StoreError(msg) from error
    _say(f"{sheet} was of run {earlier}; it is in {folder} now.")


def _reading() -> AbstractContextManager[object]:
    return working(open_console(stderr=True), "Reading the run")


def _to_json(audit: Audit) -> str:
    return json.dumps(asdict(audit), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _say(text: str, style: str | None = None) -> None:
    console = open_console(stderr=style is not None)
    console.print(text, style=style, soft_wrap=True)
