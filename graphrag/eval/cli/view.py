"""Defines ``graphrag eval view``: runs in a browser or a file, labels, reviews of questions."""

import asyncio
import getpass
import shutil
import webbrowser
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from graphrag.eval.cli.command import Quiet, option
from graphrag.eval.cli.interrupts import is_interrupted, run_coroutine, stop_by
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, starting, working
from graphrag.eval.cli.validate import find_roots
from graphrag.eval.errors import ConfigError, IndexUnavailableError, StoreError, UsageError
from graphrag.eval.store.atomic_files import run_folder, write_file
from graphrag.installation import missing_requirements, pip_install
from graphrag.text.cli_hints import eval_line_in
from graphrag.text.console import open_console, say

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from graphrag.eval.runner.draft_materials import Materials

DASHBOARD_FILE, COLLECTOR_FILE = "dashboard.html", "metrics.db"
LABELS = "Responses to label"
REVIEW = "Questions to vet"


def view(
    paths: Paths,
    port: Annotated[int, option("Port on 127.0.0.1; 0: any free one.", min=0, max=65535)] = 0,
    open_: Annotated[bool, option("Open it in a browser.", "--open")] = False,
    export: Annotated[
        Path | None, option("Serve nothing; write every run's figures over time to this file.")
    ] = None,
    collector: Annotated[
        Path | None,
        option("With --export: a MetricsCollector's file; default: metrics.db next to eval.db."),
    ] = None,
    labels: Annotated[
        str | None,
        option("Serve nothing; draw responses of this run to label.", rich_help_panel=LABELS),
    ] = None,
    metric: Annotated[str, option("The metric to label.", rich_help_panel=LABELS)] = "correctness",
    questions: Annotated[
        int, option("Draw at least N questions.", min=1, rich_help_panel=LABELS)
    ] = 80,
    seed: Annotated[int, option("Another number draws others.", rich_help_panel=LABELS)] = 0,
    review: Annotated[
        Path | None,
        option("Serve this dataset (JSON or JSON lines) for review.", rich_help_panel=REVIEW),
    ] = None,
    by: Annotated[
        str | None, option("Who reviews; default: your user name.", rich_help_panel=REVIEW)
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Show runs in a browser; label responses; review questions.

    Shows runs live, over time and side by side, and a page to label on. Only this machine can open
    it, at an address with a token, until Ctrl-C (exit code 130). --labels RUN writes a CSV and a
    page for people to fill in. --review DATASET shows each question with its quotes in place; you
    accept, mend or reject it, and each decision goes into the file at once.
    """
    if review is not None:
        return review_dataset(paths, review, by, port, open_, quiet)
    if labels is not None:
        return draw_labels(paths, labels, metric, questions, seed, quiet)
    if export is not None or collector is not None:
        return dashboard(paths, export, collector, quiet)
    store = paths.store_path()
    with starting(quiet):
        app = app_of(paths)
    return _serve(app, port, store, open_)


def _serve(app: "ASGIApp", port: int, source: Path, open_: bool) -> int:
    from graphrag.eval.web.server import Listener, make_server

    listener = Listener.on(port)
    say(f"Serving {source} at {listener.address}\nCtrl-C ends it.")
    if open_ and not webbrowser.open(listener.address):
        say("No browser could be opened; open the address yourself.", "yellow", stderr=True)
    server = make_server(app, listener)
    with stop_by(lambda: setattr(server, "should_exit", True)):
        server.run(sockets=[listener.socket])
    if is_interrupted():
        raise KeyboardInterrupt
    return DONE


def review_dataset(
    paths: Paths, dataset: Path, by: str | None, port: int, open_: bool, quiet: bool
) -> int:
    """Serve a dataset in a browser for a person to vet its questions; return the exit code."""
    path = dataset if dataset.is_file() else paths.root / dataset
    with starting(quiet):
        from graphrag.eval.annotation.review import Review
        from graphrag.eval.store.database import open_store
        from graphrag.eval.web.app import make_review_app

    review = Review(path=path, materials={}, name=by or getpass.getuser())
    review.check()
    if (paths.folder is not None or paths.has_config()) and paths.store_path().exists():
        with open_store(paths.store_path()) as store:
            review = replace(review, doubts=store.doubts())
    try:
        with working(open_console(stderr=True, quiet=quiet), "Reading the text units"):
            texts = run_coroutine(_read_texts(find_roots(paths)))
        review = replace(review, materials=texts)
    except (ConfigError, IndexUnavailableError) as error:
        _warn(f"quotes are shown without their position. {error}")
    return _serve(make_review_app(review), port, path, open_)


async def _read_texts(roots: "Mapping[str, Path]") -> "dict[str, Materials]":
    from graphrag.eval.runner.draft_materials import Materials
    from graphrag.eval.runner.indexes import read_headers
    from graphrag.query.index.tables import open_tables

    headers = await read_headers(roots, dict.fromkeys(roots, ("bm25",)))
    texts = {key: Materials(await open_tables(header.config)) for key, header in headers.items()}
    for materials in texts.values():
        materials.best("")  # the index of words is made now, and not while somebody waits
    return texts


def dashboard(
    paths: Paths,
    to: Annotated[
        Path | None, option("The HTML file; default: dashboard.html in the results' folder.")
    ] = None,
    collector: Annotated[
        Path | None, option("A MetricsCollector's file; default: metrics.db next to eval.db.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Write every figure of every run over time as one self-contained HTML page."""
    store_path = paths.store_path()
    if collector is not None and not collector.is_file():
        msg = f"--collector: {collector} does not exist; name a MetricsCollector's file."
        raise UsageError(msg)
    recorded = collector or store_path.with_name(COLLECTOR_FILE)
    with starting(quiet):
        from graphrag.eval.monitoring.collector import MetricsCollector
        from graphrag.eval.web.runs import StorePages

    series = MetricsCollector(recorded) if recorded.is_file() else None
    # Without a run the store's own error reports that, unless something was recorded.
    store = Path() if series is not None and not store_path.is_file() else store_path
    path = to or store_path.with_name(DASHBOARD_FILE)
    with working(open_console(stderr=True, quiet=quiet), "Drawing the page"):
        write_file(path, StorePages(store).page(series))
    say(f"Dashboard: {path}", quiet=quiet)
    return DONE


def app_of(paths: Paths, patience_s: float = 2) -> "Starlette":
    """Return the web app that serves the runs of a folder of results.

    ``patience_s``: seconds after which a waiting page is sent.
    """
    from graphrag.eval.cli.show_run import draw_page, page_state
    from graphrag.eval.web.app import make_app

    return make_app(
        paths.store_path(),
        lambda run_id: asyncio.run(draw_page(paths, run_id)),
        patience_s,
        lambda run_id: asyncio.run(page_state(paths, run_id)),
    )


def draw_labels(
    paths: Paths,
    name: str,
    metric: str = "correctness",
    questions: int = 80,
    seed: int = 0,
    quiet: bool = False,
) -> int:
    """Draw responses of a run for people to label; write a CSV and a page next to the store.

    ``name``: the run. ``questions``: how many to draw at least. Returns the exit code 0.
    """
    run_id = paths.find_run(name, quiet=quiet)
    with starting(quiet):
        from graphrag.eval.annotation.audit import draw_items, read_audited_run
        from graphrag.eval.annotation.sheet import write_sheet
        from graphrag.eval.stats.label_correction import MIN_LABELS
        from graphrag.eval.store.database import open_store
        from graphrag.eval.web.labels import render_labels

    store_path = paths.store_path()
    notes = open_console(stderr=True, quiet=quiet)
    with working(notes, "Reading the run"), open_store(store_path) as store:
        run = read_audited_run(store, run_id, metric)
    if not run.is_finished:
        _warn(f"run {run_id} is unfinished; once it goes on, labels for it can't be imported.")
    items = draw_items(run, questions, seed)
    n_questions = len({(item.group, item.question) for item in items})
    if n_questions < MIN_LABELS:
        _warn(
            f"{n_questions} questions are too few for corrected means, which need {MIN_LABELS} "
            "labels a method."
        )
    folder = store_path.parent
    sheet = folder / f"audit_{run.metric}.csv"
    _set_aside(sheet, run_id)
    write_sheet(sheet, items)
    page = sheet.with_suffix(".html")
    write_file(page, render_labels(items, run.embedded_models))
    then, lacking = eval_line_in(folder, "judge", "--labels", sheet), missing_requirements("audit")
    say(
        f"Wrote {sheet} and {page}: {len(items)} responses to {n_questions} questions. "
        "Label them in either (if in the page, name the file that its button Download CSV saves), "
        f"then: {f'{pip_install(lacking)} && ' if lacking else ''}{then}",
        quiet=quiet,
    )
    return DONE


def _set_aside(sheet: Path, run_id: str) -> None:
    """Move another run's CSV and page into that run's folder, unless it has a CSV already."""
    from graphrag.eval.annotation.sheet import read_sheet

    if not sheet.exists():
        return
    earlier = read_sheet(sheet)[0].run
    own = run_folder(sheet.parent, earlier)
    if earlier == run_id or (own / sheet.name).exists():
        return
    try:
        own.mkdir(parents=True, exist_ok=True)
        for path in (sheet, sheet.with_suffix(".html")):
            if path.exists():
                shutil.move(path, own / path.name)
    except OSError as error:
        msg = f"{sheet} of run {earlier} can't be moved to {own}: {error.strerror}."
        raise StoreError(msg) from error
    say(f"{sheet} was of run {earlier}; it is in {own} now.")


def _warn(text: str) -> None:
    say(f"Warning: {text}", "yellow", stderr=True)
