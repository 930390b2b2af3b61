"""Adds tog, ppr, bm25, hybrid and agentic to the methods of the released ``graphrag query``."""

import contextlib
import logging
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from graphrag.config.enums import SearchMethod
from graphrag.installation import refuse_if_unfit
from graphrag.log_lines import lines_to
from graphrag.offline import watch_offline
from graphrag.query.methods import OWN_METHODS, embeds
from graphrag.query.model_labels import ANSWERS, EMBEDDINGS, Part, label_roles
from graphrag.redaction import redact, redact_error
from graphrag.text.controls import ShownStream, strip_controls

if TYPE_CHECKING:
    from graphrag.query.counted_result import CountedSearchResult


class QueryMethod(StrEnum):
    """The released search methods, and this project's own."""

    LOCAL = "local"
    GLOBAL = "global"
    DRIFT = "drift"
    BASIC = "basic"
    TOG = "tog"
    PPR = "ppr"
    BM25 = "bm25"
    HYBRID = "hybrid"
    AGENTIC = "agentic"


def add_tog_to_query(app: typer.Typer) -> None:
    """Put a ``query`` that knows our methods in place of the released one, which it calls."""
    released = next((c for c in app.registered_commands if c.name == "query"), None)
    if released is None or released.callback is None:
        msg = "the command line has no command query"
        raise LookupError(msg)
    ours = _query_command(released.callback)
    if {*signature(released.callback).parameters} != {*signature(ours).parameters} - {"connect"}:
        msg = "the command query has other options than this project knows"
        raise LookupError(msg)
    app.registered_commands.remove(released)
    app.command("query")(ours)


def _query_command(released: Callable[..., None]) -> Callable[..., None]:
    def query(
        query: Annotated[str, typer.Argument(help="The query to execute.")],
        root: Annotated[
            Path,
            typer.Option(
                "--root",
                "-r",
                help="The project root directory.",
                exists=True,
                file_okay=False,
                resolve_path=True,
            ),
        ] = Path(),
        method: Annotated[
            QueryMethod, typer.Option("--method", "-m", help="The query algorithm to use.")
        ] = QueryMethod.GLOBAL,
        verbose: Annotated[
            bool,
            typer.Option(
                "--verbose",
                "-v",
                help="Verbose logging; with tog, ppr, bm25, hybrid and agentic, also what the "
                "query cost, and with tog and ppr the paths.",
            ),
        ] = False,
        data: Annotated[
            Path | None,
            typer.Option(
                "--data",
                "-d",
                help="Index output directory (contains the parquet files).",
                exists=True,
                file_okay=False,
                resolve_path=True,
            ),
        ] = None,
        community_level: Annotated[
            int,
            typer.Option(
                "--community-level",
                help="Deepest community level that local, global and drift read.",
            ),
        ] = 2,
        dynamic_community_selection: Annotated[
            bool,
            typer.Option(
                "--dynamic-community-selection/--no-dynamic-selection",
                help="Use global search with dynamic community selection.",
            ),
        ] = False,
        response_type: Annotated[
            str,
            typer.Option("--response-type", help="Free-form description of the answer."),
        ] = "Multiple Paragraphs",
        streaming: Annotated[
            bool,
            typer.Option("--streaming/--no-streaming", help="Print the response as it arrives."),
        ] = False,
        connect: Annotated[
            bool,
            typer.Option(
                "--connect",
                help="With tog: answer from the paths between the entities named in the query, "
                "and show them.",
            ),
        ] = False,
    ) -> None:
        """Query a knowledge graph index."""
        if connect and method is not QueryMethod.TOG:
            msg = f"it belongs to --method tog, not {method.value}"
            raise typer.BadParameter(msg, param_hint="--connect")
        if method.value in OWN_METHODS:
            refuse_if_unfit()
            options = AnswerOptions(response_type, streaming, verbose, connect)
            with _shown_stdout():
                run_own_query(method.value, query, root, data, options)
            return
        # Not read from the settings: the release may have answered by what is refused here.
        with watch_offline() as asked, _redacted_errors(), _shown_stdout():
            released(
                query=query,
                root=root,
                method=SearchMethod(method.value),
                verbose=verbose,
                data=data,
                community_level=community_level,
                dynamic_community_selection=dynamic_community_selection,
                response_type=response_type,
                streaming=streaming,
            )
        embeds_elsewhere = not asked.embedding and method is not QueryMethod.GLOBAL
        _say_if_offline(
            Part(frozenset(asked.completion), others=not asked.completion),
            Part(frozenset(asked.embedding), others=embeds_elsewhere),
        )

    return query


@contextlib.contextmanager
def _redacted_errors() -> Generator[None]:
    """Let an error of the release pass as it is, without the keys that a service wrote into it."""
    try:
        yield
    except Exception as error:
        if not redact_error(error):
            said = strip_controls(redact(f"{type(error).__name__}: {error}"))
            raise RuntimeError(said) from None
        raise


@contextlib.contextmanager
def _shown_stdout() -> Generator[None]:
    """Show what is printed of an answer, whole or as it arrives, as text and nothing else."""
    with contextlib.redirect_stdout(cast("IO[str]", ShownStream(sys.stdout))):
        yield


def _say_if_offline(answers: Part, embeddings: Part) -> None:
    """Say in which roles embedded models were asked, if they were."""
    from graphrag.eval.cli.options import echo

    label = label_roles({ANSWERS: answers, EMBEDDINGS: embeddings})
    if label is not None:
        echo(f"({label})", err=True)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How a question is answered and shown.

    Attributes
    ----------
    response_type : str
        Free-form description of the answer's form.
    streaming : bool
        Whether the response is printed as it arrives.
    verbose : bool
        Whether the paths and what the query cost are printed, too.
    connect : bool
        The ``mode: connect`` of ``tog_search`` for this question.
    """

    response_type: str
    streaming: bool = False
    verbose: bool = False
    connect: bool = False


def run_own_query(
    method: str, query: str, root: Path, data: Path | None, options: AnswerOptions
) -> None:
    """Answer one question by a method that the release lacks, and print the response.

    Raises
    ------
    typer.Exit
        With code 1 when the search fails, 2 when the project can't be used.
    """
    import asyncio
    import os

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

    from graphrag.config.models.prompt_files import SettingsError
    from graphrag.eval.cli.options import echo
    from graphrag.query.graph_index import GraphIndex, SearchError
    from graphrag.query.index_header import SearchOptions, read_header
    from graphrag.query.index_tables import IndexNotBuiltError, open_tables

    def show(piece: str) -> None:
        sys.stdout.write(piece)
        sys.stdout.flush()

    async def answer() -> "CountedSearchResult":
        given = SearchOptions(response_type=options.response_type)
        header = await read_header(root, data, given, vectors=embeds(method))
        if options.connect:
            header = header.changed("tog", {"mode": "connect"})
        index = GraphIndex(header, await open_tables(header.config))
        return await index.search(method, query, on_text=show if options.streaming else None)

    # The libraries log each attempt with its traceback; without a handler Python prints that.
    quiet = lines_to(logging.NullHandler(), logging.WARNING)
    try:
        with contextlib.nullcontext() if options.verbose else quiet:
            result = asyncio.run(answer())
    except (SettingsError, IndexNotBuiltError) as error:
        echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from (error if options.verbose else None)
    except SearchError as error:
        echo(f"Error: the search failed: {error}", err=True)
        raise typer.Exit(1) from (error if options.verbose else None)
    show("\n" if options.streaming else f"{result.response}\n")
    _say_if_offline(
        Part(frozenset(result.usage.completion_models or ())),
        Part(frozenset(result.usage.embedding_models or ())),
    )
    if options.verbose or options.connect:
        _show_paths(result)
    if options.verbose:
        for line in describe_usage(result):
            echo(line, err=True)


def _show_paths(result: "CountedSearchResult") -> None:
    """Print what the search walked; on stderr, as the response alone is what a pipe is given."""
    from graphrag.cli.tog_paths import searches_of, tree_of
    from graphrag.eval.cli.terminal import open_console

    console = open_console(stderr=True)
    for line in searches_of(result.context_data):
        console.print(line, soft_wrap=True)
    tree = tree_of(result.context_data, str(result.response))
    if tree is not None:
        console.print(tree)


def describe_usage(result: "CountedSearchResult") -> list[str]:
    """Return what a search cost as lines of text."""
    usage = result.usage
    cost = "price not known" if usage.cost_usd is None else f"${usage.cost_usd:.6f}"
    lines = [
        f"models: {', '.join(usage.models)}",
        f"completions: {usage.llm_calls} calls, {usage.prompt_tokens} prompt tokens, "
        f"{usage.output_tokens} output tokens",
    ]
    lines += [
        f"  {phase}: {calls} calls, {usage.prompt_tokens_by_phase[phase]} prompt tokens, "
        f"{usage.output_tokens_by_phase[phase]} output tokens"
        for phase, calls in usage.llm_calls_by_phase.items()
    ]
    lines.append(f"embeddings: {usage.embedding_calls} calls, {usage.embedding_tokens} tokens")
    if usage.cached_prompt_tokens is not None:
        lines.append(
            f"prompt tokens from the provider's cache: {usage.cached_prompt_tokens}, as "
            f"{usage.calls_reporting_cached_tokens} calls report"
        )
    lines.append(f"failed calls: {usage.failed_calls}")
    if usage.tokens_counted_here:
        lines.append(f"calls whose tokens were counted here: {usage.tokens_counted_here}")
    lines.append(f"cost: {cost}")
    lines.append(f"time: {result.completion_time:.2f} s")
    return lines
