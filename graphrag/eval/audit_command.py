"""What ``graphrag eval audit export`` and ``audit import`` do."""

import json
from dataclasses import dataclass
from pathlib import Path

from graphrag.eval.audit import Audit, analyse_audit, draw_items
from graphrag.eval.audit_page import render_page
from graphrag.eval.audit_report import show_audit
from graphrag.eval.audit_sheet import read_sheet, write_sheet
from graphrag.eval.audited_run import read_audited_run
from graphrag.eval.correction import MIN_LABELS
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.exit_codes import DONE, explained
from graphrag.eval.place import Place
from graphrag.eval.run_rows import open_store
from graphrag.eval.terminal import open_console


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
        with open_store(store_path) as store:
            run = read_audited_run(store, options.run, options.metric)
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
        write_sheet(sheet, items)
        _write(page, render_page(items, run.embedded_models))
        _say(
            f"Wrote {sheet} and {page}: {len(items)} responses to {n_questions} questions. "
            "Label them in either, then: graphrag eval audit import FILE.csv"
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
        with open_store(store_path) as store:
            run = read_audited_run(store, items[0].run, items[0].metric)
        audit = analyse_audit(run, items)
        show_audit(open_console(), audit)
        path = store_path.with_name(f"audit_{audit.metric}.json")
        _write(path, _to_json(audit))
        _say(f"Wrote {path}.")
        return DONE

    return explained(read_in)


def _to_json(audit: Audit) -> str:
    return json.dumps(audit.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror}."
        raise StoreError(msg) from error


def _say(text: str, style: str | None = None) -> None:
    console = open_console(stderr=style is not None)
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
