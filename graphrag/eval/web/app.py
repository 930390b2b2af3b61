"""The addresses that are served, and what each of them answers."""

from collections.abc import Callable
from functools import wraps
from importlib.resources import files
from typing import Any, cast

from anyio.to_thread import run_sync
from jinja2 import Environment, FunctionLoader, StrictUndefined
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from graphrag.eval.annotation.labelling import MarkChange, MarkConflict, keep_mark, read_marks
from graphrag.eval.annotation.page import LabelKeeper, render_page
from graphrag.eval.errors import EvalError, UsageError
from graphrag.eval.records import METRICS
from graphrag.eval.store.records import now
from graphrag.eval.web.guard import own_policy
from graphrag.eval.web.library import drawing_library, page_style
from graphrag.eval.web.run_pages import NoSuchRun, StorePages
from graphrag.eval.web.viewed import Viewed
from graphrag.query.calls import describe_error
from graphrag.redaction import redact

Answer = Callable[["_Pages", Request], Response]
_MOST_BYTES = 100_000
"""Of a label with its comment."""


def make_app(viewed: Viewed) -> Starlette:
    """Return the application; whoever reaches it is answered, so it stands behind a ``Guard``."""
    pages = _Pages(viewed)

    def at(path: str, answer: Answer, method: str = "GET") -> Route:
        return Route(path, _answered(pages, answer), methods=[method])

    return Starlette(
        routes=[
            at("/", _Pages.runs),
            at("/runs/{run}", _Pages.run),
            at("/runs/{run}/now", _Pages.run_now),
            at("/runs/{run}/report", _Pages.report),
            at("/compare", _Pages.compare),
            at("/history", _Pages.history),
            at("/audit", _Pages.audits),
            at("/audit/{metric}", _Pages.audit),
            at("/audit/{metric}/labels", _Pages.labels),
            Route("/audit/{metric}/labels", _keep_label(pages), methods=["POST"]),
            at("/view.css", _Pages.style),
            at("/favicon.ico", _Pages.icon),
            at("/view.js", _Pages.script),
            at("/drawing.js", _Pages.library),
        ],
        exception_handlers={HTTPException: pages.refused},
    )


def _answered(pages: "_Pages", answer: Answer) -> Callable[[Request], Any]:
    """Answer in a thread; an error becomes a page of one sentence."""

    @wraps(answer)
    async def answered(request: Request) -> Response:
        return await run_sync(_in_words, pages, lambda: answer(pages, request))

    return answered


def _in_words(pages: "_Pages", answer: Callable[[], Response], as_json: bool = False) -> Response:
    try:
        return answer()
    except EvalError as error:
        status = 404 if isinstance(error, NoSuchRun) else 400
        return pages.sentence(str(error), status if isinstance(error, UsageError) else 500, as_json)
    except Exception as error:  # no traceback leaves; what failed is said
        return pages.sentence(f"Unexpected error: {describe_error(error)}.", 500, as_json)


def _keep_label(pages: "_Pages") -> Callable[[Request], Any]:
    async def keep(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return JSONResponse({"error": "The comment is too long."}, status_code=413)
        metric = request.path_params["metric"]
        return await run_sync(_in_words, pages, lambda: pages.keep(metric, body), True)

    return keep


class _Pages:
    """One method an address."""

    def __init__(self, viewed: Viewed) -> None:
        self._viewed = viewed
        self._store = StorePages(viewed)
        self._templates = Environment(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            loader=FunctionLoader(_read),
        )

    def _page(self, name: str, status: int = 200, **values: object) -> HTMLResponse:
        text = self._templates.get_template(name).render(
            place=redact(str(self._viewed.place)), **values
        )
        return HTMLResponse(text, status_code=status)

    def sentence(self, text: str, status: int, as_json: bool = False) -> Response:
        """Return what went wrong."""
        if as_json:
            return JSONResponse({"error": redact(text)}, status_code=status)
        return self._page("error.html.j2", status, text=redact(text))

    async def refused(self, request: Request, error: Exception) -> Response:
        """Return the page of an address that there is not."""
        status = cast("HTTPException", error).status_code
        return self.sentence("There is no such page here.", status)

    def runs(self, request: Request) -> Response:
        """Return the list of runs."""
        return self._page(
            "runs.html.j2", runs=self._store.list_runs(), has_baseline=self._store.has_baseline()
        )

    def run(self, request: Request) -> Response:
        """Return how far a run is; the page asks for it anew by itself."""
        live = self._store.live(request.path_params["run"])
        return self._page("run.html.j2", live=live, now=now())

    def run_now(self, request: Request) -> Response:
        """Return the part of that page that changes."""
        live = self._store.live(request.path_params["run"])
        return self._page("live.html.j2", live=live, now=now())

    def report(self, request: Request) -> Response:
        """Return the page of a run, as graphrag eval report writes it."""
        return self._report(request.path_params["run"])

    def compare(self, request: Request) -> Response:
        """Return the page of a run held against another."""
        new, old = (request.query_params.get(name, "") for name in ("new", "old"))
        return self._report(new, old)

    def _report(self, run: str, other: str | None = None) -> Response:
        text = self._store.report(run, other)
        return HTMLResponse(text, headers=own_policy(text))

    def history(self, request: Request) -> Response:
        """Return each metric over the runs."""
        metrics, pinned, notes = self._store.history()
        return self._page("history.html.j2", metrics=metrics, pinned=pinned, notes=notes)

    def audits(self, request: Request) -> Response:
        """Return the sheets that there are to label."""
        found: list[tuple[str, str, int, int, str]] = []
        for metric in METRICS:
            if (path := self._sheet(metric)).is_file():
                items, marks = read_marks(path)
                done = sum(bool(m.label or m.skipped) for m in marks.values())
                line = self._viewed.import_line(path)
                found.append((metric, items[0].run, done, len(items), line))
        return self._page("audits.html.j2", sheets=found, draw_line=self._viewed.draw_line)

    def audit(self, request: Request) -> Response:
        """Return the page on which a person labels."""
        metric = request.path_params["metric"]
        path = self._sheet(metric)
        items, marks = read_marks(path)
        keeper = LabelKeeper(f"/audit/{metric}/labels", path.name, marks)
        text = render_page(items, self._store.embedded_models(items[0].run), keeper)
        return HTMLResponse(text, headers=own_policy(text))

    def labels(self, request: Request) -> Response:
        """Return item -> mark, as the sheet has them now."""
        _, marks = read_marks(self._sheet(request.path_params["metric"]))
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

    def _sheet(self, metric: str) -> Any:
        if metric not in METRICS:
            msg = f"There is no metric {metric[:60]!r}."
            raise NoSuchRun(msg)
        return self._viewed.place.with_name(f"audit_{metric}.csv")

    def icon(self, request: Request) -> Response:
        """Return none, which browsers ask for."""
        return Response(status_code=204)

    def style(self, request: Request) -> Response:
        """Return the style."""
        return Response(page_style() + _read("view.css"), media_type="text/css")

    def script(self, request: Request) -> Response:
        """Return the script."""
        return Response(_read("view.js"), media_type="text/javascript")

    def library(self, request: Request) -> Response:
        """Return the drawing library."""
        return Response(
            drawing_library().encode("utf-8", "replace"),
            media_type="text/javascript; charset=utf-8",
        )


def _read(name: str) -> str:
    text = files("graphrag.eval.web").joinpath(name).read_text("utf-8")
    return text.replace("\r\n", "\n")
