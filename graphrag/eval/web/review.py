"""The page on which a person reviews a dataset, and what it asks its server."""

from collections.abc import Callable

from anyio.to_thread import run_sync
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from graphrag.eval.annotation.review import Decision, Review, RowChanged
from graphrag.eval.errors import EvalError, StoreError, UsageError
from graphrag.eval.web.page import render
from graphrag.eval.web.server import own_policy

_MOST_BYTES = 1_000_000
"""Of a mended question with its quotes."""


def make_review_app(review: Review) -> Starlette:
    """Return the application; whoever reaches it is answered, so it stands behind a ``Guard``."""

    def page() -> Response:
        html = render(
            "review.html.j2",
            ["review.js"],
            asks=True,
            file=review.path.name,
            rejected=review.rejected_path.name,
            person=review.name,
            has_texts=bool(review.materials),
            data={"rows": review.rows()},
        )
        return HTMLResponse(html, headers=own_policy(html))

    def decide(body: bytes) -> Response:
        try:
            change = Decision.model_validate_json(body)
        except ValidationError as error:
            msg = "That is no decision of this page."
            raise UsageError(msg) from error
        return JSONResponse({"row": review.decide(change)})

    def at(path: str, answer: Callable[[Request], Response]) -> Route:
        async def answered(request: Request) -> Response:
            return await run_sync(_in_words, lambda: answer(request))

        return Route(path, answered)

    async def keep(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return JSONResponse({"error": "The text is too long."}, status_code=413)
        return await run_sync(_in_words, lambda: decide(body))

    return Starlette(
        routes=[
            at("/", lambda _: page()),
            at("/rows", lambda _: JSONResponse(review.rows())),
            at("/texts/{seen}", lambda r: JSONResponse(review.texts(r.path_params["seen"]))),
            Route("/decide", keep, methods=["POST"]),
            at("/favicon.ico", lambda _: Response(status_code=204)),
        ]
    )


def _in_words(answer: Callable[[], Response]) -> Response:
    """Answer, or say in one sentence why not: 409 where the file was changed meanwhile."""
    try:
        return answer()
    except EvalError as error:
        status = (
            409 if isinstance(error, RowChanged) else 500 if isinstance(error, StoreError) else 400
        )
        return JSONResponse({"error": str(error)}, status_code=status)
