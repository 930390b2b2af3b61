"""``graphrag eval view``: the runs of a store in a browser."""

import asyncio
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag.eval.cli.first_look import look_at_place, starting
from graphrag.eval.cli.options import ConfigOption, OutputOption, RootOption, place_of

if TYPE_CHECKING:
    from graphrag.eval.cli.location import Place
    from graphrag.eval.web.app import Viewed


def view(
    context: typer.Context,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Of 127.0.0.1; 0: any free one.")
    ] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
) -> None:
    """Show the runs in a browser: live, over time, side by side; and label responses there.

    It is served to this machine alone, under an address with a token, until Ctrl-C (exit code
    130).
    """
    from graphrag.eval.cli.terminal import explained

    place = place_of(context, root, config, output)
    look_at_place(place)
    raise typer.Exit(explained(lambda: _view(place, port, open_)))


def viewed_of(place: "Place") -> "Viewed":
    """Return what is served of a place."""
    from graphrag.command_lines import eval_line_here, eval_line_in
    from graphrag.eval.web.app import Viewed

    store = place.store_path()
    return Viewed(
        store,
        render=lambda run, other: _render(place, run, other),
        draw_line=eval_line_here("audit", "export", "latest"),
        import_line=lambda sheet: eval_line_in(store.parent, "audit", "import", sheet),
    )


def _view(place: "Place", port: int, is_opened: bool) -> int:
    from graphrag.eval.cli.terminal import DONE, open_console

    with starting():
        from graphrag.eval.web.app import make_app
        from graphrag.eval.web.server import Listener, make_server

    viewed = viewed_of(place)
    listener = Listener.on(port)
    text = f"Serving {viewed.place} at {listener.address}\nCtrl-C ends it."
    open_console().print(text, soft_wrap=True)
    if is_opened and not webbrowser.open(listener.address):
        text = "No browser could be opened; open the address yourself."
        open_console(stderr=True).print(text, style="yellow")
    make_server(make_app(viewed), listener).run(sockets=[listener.socket])
    return DONE


def _render(place: "Place", run_id: str, other: str | None) -> str:
    from graphrag.eval.cli.kept import read_page

    written = read_page(place, run_id) if other is None else None
    return written or asyncio.run(_draw(place, run_id, other))


async def _draw(place: "Place", run_id: str, other: str | None) -> str:
    from graphrag.eval.cli.report import compare_for_page
    from graphrag.eval.cli.show import open_report
    from graphrag.eval.errors import UsageError

    async with open_report(place, run_id) as report:
        if not report.results.results:
            msg = f"Run {run_id} has no results yet."
            raise UsageError(msg)
        baseline = None
        if other is not None:
            baseline = compare_for_page(place.store_path(), run_id, other)
        return "".join(report.page(baseline))
