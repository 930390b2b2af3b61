"""The addresses that are served, and what each of them answers."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TypeAlias, cast

from anyio.to_thread import run_sync
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from graphrag.eval.annotation.sheet import MarkChange, MarkConflict, keep_mark, read_marks
from graphrag.eval.errors import EvalError, UsageError
from graphrag.eval.judged import METRICS
from graphrag.eval.store.records import now
from graphrag.eval.web.labels import LabelKeeper, render_labels
from graphrag.eval.web.page import render
from graphrag.eval.web.runs import NoSuchRun, StorePages
from graphrag.eval.web.server import own_policy
from graphrag.query.calls import describe_error
from graphrag.redaction import redact

_Answered: TypeAlias = Callable[[Request], Awaitable[Response]]
_MOST_BYTES = 100_000
"""Of a label with its comment."""
_FRESH_S = 10
"""How long a page that was made while nobody waited any more is still given out."""


@dataclass(frozen=True, slots=True)
class Viewed:
    """What is served.

    Attributes
    ----------
    place : Path
        The store.
    render : callable
        From a run's id to its page.
    draw_line : str
        The command line that draws responses to label.
    import_line : callable
        From a sheet of labels to the command line that reads it.
    patience_s : float
        After which a page that is still made says so, and asks for itself again.
    """

    place: Path
    render: Callable[[str], str]
    draw_line: str
    import_line: Callable[[Path], str]
    patience_s: float = 2


def make_app(viewed: Viewed) -> Starlette:
    """Return the application; whoever reaches it is answered, so it stands behind a ``Guard``."""
    pages = _Pages(viewed)

    def at(path: str, answer: Callable[[Request], Response | str], waits: bool = False) -> Route:
        async def answered(request: Request) -> Response:
            if waits:
                return await run_sync(pages.in_words, lambda: answer(request))
            return await run_sync(pages.in_time, str(request.url), lambda: answer(request))

        return Route(path, answered, methods=["GET"])

    return Starlette(
        routes=[
            at("/", lambda _: pages.runs()),
            at("/runs/{run}", lambda r: pages.run(r.path_params["run"])),
            at("/runs/{run}/now", lambda r: pages.now(r.path_params["run"]), waits=True),
            at("/runs/{run}/report", lambda r: pages.report(r.path_params["run"])),
            at("/compare", lambda r: pages.compare(dict(r.query_params))),
            at("/audit", lambda _: pages.audits()),
            at("/audit/{metric}", lambda r: pages.audit(r.path_params["metric"])),
            at(
                "/audit/{metric}/labels",
                lambda r: pages.labels(r.path_params["metric"]),
                waits=True,
            ),
            Route("/audit/{metric}/labels", _keep_label(pages), methods=["POST"]),
            at("/favicon.ico", lambda _: Response(status_code=204)),
        ],
        exception_handlers={HTTPException: pages.refused},
    )


def _keep_label(pages: "_Pages") -> _Answered:
    async def keep(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return JSONResponse({"error": "The comment is too long."}, status_code=413)
        metric = request.path_params["metric"]
        return await run_sync(pages.in_words, lambda: pages.keep(metric, body), True)

    return keep


class _Pages:
    """One method an address."""

    def __init__(self, viewed: Viewed) -> None:
        self._viewed = viewed
        self._store = StorePages(viewed.place, viewed.render)
        self._place = redact(str(viewed.place))
        self._made: dict[str, Future[tuple[float, Response]]] = {}

    def in_time(self, address: str, answer: Callable[[], Response | str]) -> Response:
        """Answer with a page, or with one that asks again where making it takes its time."""
        made = self._made.get(address)
        if made is None or (made.done() and monotonic() - made.result()[0] > _FRESH_S):
            made = self._made[address] = Future[tuple[float, Response]]()
            # Ctrl-C waits for no daemon.
            Thread(target=self._make, args=(made, answer), daemon=True).start()
        try:
            _, page = made.result(self._viewed.patience_s)
        except TimeoutError:
            html = render("waiting.html.j2", asks=True)
            return HTMLResponse(html, headers=own_policy(html))
        self._made.pop(address, None)
        return page

    def _make(
        self, made: Future[tuple[float, Response]], answer: Callable[[], Response | str]
    ) -> None:
        page = self.in_words(answer)
        made.set_result((monotonic(), page))

    def in_words(self, answer: Callable[[], Response | str], as_json: bool = False) -> Response:
        """Answer with a page; an error becomes one of one sentence, no traceback leaves."""
        try:
            page = answer()
        except EvalError as error:
            status = 404 if isinstance(error, NoSuchRun) else 400
            status = status if isinstance(error, UsageError) else 500
            return self._sentence(str(error), status, as_json)
        except Exception as error:
            text = f"Unexpected error: {describe_error(error)}."
            return self._sentence(text, 500, as_json)
        return HTMLResponse(page, headers=own_policy(page)) if isinstance(page, str) else page

    async def refused(self, request: Request, error: Exception) -> Response:
        """Return the page of an address that there is not."""
        status = cast("HTTPException", error).status_code
        return self._sentence("There is no such page here.", status)

    def _sentence(self, text: str, status: int, as_json: bool = False) -> Response:
        if as_json:
            return JSONResponse({"error": redact(text)}, status_code=status)
        page = render("error.html.j2", asks=True, text=redact(text))
        return HTMLResponse(page, status, own_policy(page))

    def runs(self) -> str:
        """Return the list of runs, and each figure over time."""
        return self._store.page(place=self._place)

    def run(self, run: str) -> str:
        """Return the page of a run: of one that goes on, how far it is, asked anew by itself."""
        return self.report(run) if self._store.is_whole(run) else self._live(run, "run.html.j2")

    def now(self, run: str) -> str:
        """Return how far a run is, without the page around it."""
        return self._live(run, "live.html.j2")

    def _live(self, run: str, template: str) -> str:
        live = self._store.live(run)
        return render(template, ["live.js"], asks=True, live=live, now=now())

    def report(self, run: str) -> str:
        """Return the page of a run as far as it is, as graphrag eval show writes it."""
        return self._store.report(run)

    def compare(self, names: dict[str, str]) -> str:
        """Return the page of a run held against another."""
        return self._store.compare(names.get("new", ""), names.get("old", ""), self._place)

    def audits(self) -> str:
        """Return the sheets that there are to label."""
        sheets: list[tuple[str, str, int, int, str]] = []
        for metric in METRICS:
            if (path := self._sheet(metric)).is_file():
                items, marks = read_marks(path)
                done = sum(bool(m.label or m.skipped) for m in marks.values())
                line = self._viewed.import_line(path)
                sheets.append((metric, items[0].run, done, len(items), line))
        draw_line = self._viewed.draw_line
        return render("audits.html.j2", asks=True, sheets=sheets, draw_line=draw_line)

    def audit(self, metric: str) -> str:
        """Return the page on which a person labels."""
        path = self._sheet(metric)
        items, marks = read_marks(path)
        keeper = LabelKeeper(f"/audit/{metric}/labels", path.name, marks)
        return render_labels(items, self._store.embedded_models(items[0].run), keeper)

    def labels(self, metric: str) -> Response:
        """Return item -> mark, as the sheet has them now."""
        _, marks = read_marks(self._sheet(metric))
        return JSONResponse({item: mark.model_dump() for item, mark in marks.items()})

    def keep(self, metric: str, body: bytes) -> Response:
        """Keep one label; 409 with what stands there if somebody else has changed it."""
        try:
            kept = keep_mark(self._sheet(metric), MarkChange.model_validate_json(body))
        except MarkConflict as error:
            return JSONResponse(error.found.model_dump(), status_code=409)
        except ValidationError as error:
            msg = "That is no label of this page."
            raise UsageError(msg) from error
        return JSONResponse(kept.model_dump())

    def _sheet(self, metric: str) -> Path:
        if metric not in METRICS:
            msg = f"There is no metric {metric[:60]!r}."
            raise NoSuchRun(msg)
        return self._viewed.place.with_name(f"audit_{metric}.csv")
