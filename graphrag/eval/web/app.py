"""Defines the web applications and their addresses: runs and labels, and reviews of datasets."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import NamedTuple, TypeAlias

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from graphrag.eval.annotation.review import Decision, Review
from graphrag.eval.annotation.sheet import MarkChange, keep_mark, read_marks
from graphrag.eval.errors import UsageError
from graphrag.eval.store.notes import Note, keep_note
from graphrag.eval.store.records import now
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.web.labels import render_labels
from graphrag.eval.web.page import render
from graphrag.eval.web.runs import StorePages
from graphrag.eval.web.server import NotFound, answer_not_found, body_handler, in_words, own_policy
from graphrag.text.cli_hints import eval_line_here, eval_line_in
from graphrag.text.redaction import redact

_Answer: TypeAlias = Callable[[Request], Response | str]
_MOST_BYTES = 100_000
"""Limit of a label with its comment, and of a run's note."""
_MOST_OF_A_ROW = 1_000_000
"""Limit of a mended question with its quotes."""
_FRESH_S = 10
"""Seconds for which a page is kept that was ready only after its request had been answered."""


class _NoteChange(NamedTuple):
    wanted: Note
    seen: Note


def _waited(path: str, answer: _Answer, as_json: bool = False) -> Route:
    """Return the route of an answer that is waited for, however long it takes; see ``in_words``."""

    async def answered(request: Request) -> Response:
        return await run_sync(in_words, lambda: answer(request), as_json)

    return Route(path, answered, methods=["GET"])


def make_app(
    store_path: Path,
    render_run: Callable[[str], str],
    patience_s: float = 2,
    state_of: Callable[[str], str] = str,
) -> Starlette:
    """Return the application for runs and labels, which must be behind a ``Guard``.

    It answers everybody who reaches it. ``render_run`` returns the page of a run's id.
    ``patience_s``: if a page takes longer than this many seconds to make, a waiting page that
    reloads itself is sent. ``state_of``: see :class:`StorePages`.
    """
    pages = _Pages(store_path, patience_s)
    store = StorePages(store_path, render_run, state_of)
    store_name = redact(str(store_path))

    def at(path: str, answer: _Answer) -> Route:
        async def answered(request: Request) -> Response:
            return await run_sync(pages.in_time, str(request.url), lambda: answer(request))

        return Route(path, answered, methods=["GET"])

    def live(request: Request, template: str = "live.html.j2") -> str:
        run = store.live(request.path_params["run"])
        return render(template, ["live.js"], asks=True, live=run, now=now())

    def report(request: Request) -> str:
        return store.report(request.path_params["run"])

    def run(request: Request) -> str:
        has_page = store.has_page(request.path_params["run"])
        return report(request) if has_page else live(request, "run.html.j2")

    def compare(request: Request) -> Response | str:
        """Return the page of two runs, or the list of runs if these two can't be compared."""
        names = request.query_params
        new, old = names.get("new", ""), names.get("old", "")
        try:
            return store.compare(new, old, store_name)
        except UsageError as error:
            text = f"{error} Choose two of these." if new and old else "Choose two runs to compare."
            html = store.page(store_name=store_name, notice=redact(text))
            return HTMLResponse(html, 404 if isinstance(error, NotFound) else 400, own_policy(html))

    def keep_run_note(request: Request, change: _NoteChange) -> Note:
        run_id = request.path_params["run"]
        return keep_note(store_path, run_id, change.wanted, change.seen)

    def sheet(request: Request) -> Path:
        return pages.sheet(request.path_params["metric"])

    def label(request: Request) -> str:
        items, marks = read_marks(path := sheet(request))
        return render_labels(items, store.embedded_models(items[0].run), path.name, marks)

    def marks_of(request: Request) -> Response:
        _, marks = read_marks(sheet(request))
        return JSONResponse({item: mark.model_dump() for item, mark in marks.items()})

    labels = "/audit/{metric}/labels"
    note = body_handler(_NoteChange, keep_run_note, _MOST_BYTES, ("note", "note"))
    mark = body_handler(
        MarkChange,
        lambda request, change: keep_mark(sheet(request), change),
        _MOST_BYTES,
        ("label", "comment"),
    )
    return Starlette(
        routes=[
            at("/", lambda _: store.page(store_name=store_name)),
            at("/runs/{run}", run),
            _waited("/runs/{run}/now", live),
            at("/runs/{run}/report", report),
            Route("/runs/{run}/note", note, methods=["POST"]),
            at("/compare", compare),
            at("/audit", lambda _: pages.audits()),
            at("/audit/{metric}", label),
            _waited(labels, marks_of),
            Route(labels, mark, methods=["POST"]),
            at("/favicon.ico", lambda _: Response(status_code=204)),
        ],
        exception_handlers={HTTPException: answer_not_found},
    )


class _Pages:
    """The pages that are being made, and the pages of label sheets."""

    def __init__(self, store_path: Path, patience_s: float) -> None:
        self._store_path, self._patience_s = store_path, patience_s
        self._draw_line = eval_line_here("view", "--labels", "latest")
        self._made: dict[str, Future[tuple[float, Response]]] = {}

    def in_time(self, address: str, answer: Callable[[], Response | str]) -> Response:
        """Return the page, or a waiting page that asks again if making it takes longer."""
        made = self._made.get(address)
        if made is None or (made.done() and monotonic() - made.result()[0] > _FRESH_S):
            new = made = self._made[address] = Future[tuple[float, Response]]()

            def make() -> None:
                page = in_words(answer)
                new.set_result((monotonic(), page))

            Thread(target=make, daemon=True).start()  # so that Ctrl-C does not wait for it
        try:
            _, page = made.result(self._patience_s)
        except TimeoutError:
            html = render("waiting.html.j2", asks=True)
            return HTMLResponse(html, headers=own_policy(html))
        self._made.pop(address, None)
        return page

    def audits(self) -> str:
        """Return the page that lists the sheets to label."""
        sheets: list[tuple[str, str, int, int, str]] = []
        for metric in METRICS:
            if (path := self.sheet(metric)).is_file():
                items, marks = read_marks(path)
                done = sum(bool(m.label or m.skipped) for m in marks.values())
                line = eval_line_in(path.parent, "judge", "--labels", path)
                sheets.append((metric, items[0].run, done, len(items), line))
        return render("audits.html.j2", asks=True, sheets=sheets, draw_line=self._draw_line)

    def sheet(self, metric: str) -> Path:
        """Return the path of the labels on a metric; raises NotFound if there is no such metric."""
        if metric not in METRICS:
            raise NotFound(f"There is no metric {metric[:60]!r}.")
        return self._store_path.with_name(f"audit_{metric}.csv")


def make_review_app(review: Review) -> Starlette:
    """Return the application for the review of a dataset, which must be behind a ``Guard``.

    It answers everybody who reaches it.
    """

    def page(_: Request) -> str:
        return render(
            "review.html.j2",
            ["review.js"],
            asks=True,
            file=review.path.name,
            rejected=review.rejected_path.name,
            person=review.name,
            has_texts=bool(review.materials),
            data={"rows": review.rows()},
        )

    decide = body_handler(
        Decision,
        lambda _, change: {"row": review.decide(change)},
        _MOST_OF_A_ROW,
        ("decision", "text"),
    )

    at = partial(_waited, as_json=True)
    return Starlette(
        routes=[
            at("/", page),
            at("/rows", lambda _: JSONResponse(review.rows())),
            at("/texts/{seen}", lambda r: JSONResponse(review.texts(r.path_params["seen"]))),
            Route("/decide", decide, methods=["POST"]),
            at("/favicon.ico", lambda _: Response(status_code=204)),
        ]
    )
