"""The page on which a person reviews a dataset, and what it asks its server."""

from collections.abc import Callable

from anyio.to_thread import run_sync
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graphrag.eval.annotation.review import Decision, Review
from graphrag.eval.errors import UsageError
from graphrag.eval.web.page import render
from graphrag.eval.web.server import body_handler, in_words

_MOST_BYTES = 1_000_000
"""Of a mended question with its quotes."""


def make_review_app(review: Review) -> Starlette:
    """Return the application; whoever reaches it is answered, so it stands behind a ``Guard``."""

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

    def decide(_: Request, body: bytes) -> Response:
        try:
            change = Decision.model_validate_json(body)
        except ValidationError as error:
            raise UsageError("That is no decision of this page.") from error
        return JSONResponse({"row": review.decide(change)})

    def at(path: str, answer: Callable[[Request], Response | str]) -> Route:
        async def answered(request: Request) -> Response:
            return await run_sync(in_words, lambda: answer(request), True)

        return Route(path, answered)

    return Starlette(
        routes=[
            at("/", page),
            at("/rows", lambda _: JSONResponse(review.rows())),
            at("/texts/{seen}", lambda r: JSONResponse(review.texts(r.path_params["seen"]))),
            Route("/decide", body_handler(decide, _MOST_BYTES, "text"), methods=["POST"]),
            at("/favicon.ico", lambda _: Response(status_code=204)),
        ]
    )
