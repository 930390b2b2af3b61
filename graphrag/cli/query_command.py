"""Adds gtog's methods to the released ``graphrag query``."""

import contextlib
import gc
import logging
import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from copy import copy
from enum import StrEnum
from inspect import Parameter, signature
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from graphrag.cli.fitness import refuse_if_unfit
from graphrag.config.enums import SearchMethod
from graphrag.embedded import watch_offline
from graphrag.installation import HASHED, STAND_IN, has_no_wordllama
from graphrag.query.client.embedded_labels import ANSWERS, EMBEDDINGS, Part, label_roles
from graphrag.query.methods import OWN_METHODS
from graphrag.text.console import open_console, replace_unknown_characters, say
from graphrag.text.library_logs import lines_to
from graphrag.text.message_phrases import counted
from graphrag.text.redaction import redact
from graphrag.text.terminal_escape import ShownStream, strip_controls

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.client.usage import Usage
    from graphrag.query.search_result import CountedSearchResult


_METHODS = [*(method.value for method in SearchMethod), *OWN_METHODS]
_QueryMethod = StrEnum("_QueryMethod", [(method.upper(), method) for method in _METHODS])
_TAKEN = {
    *("query", "root", "method", "verbose", "data", "community_level"),
    *("dynamic_community_selection", "response_type", "streaming"),
}
"""Parameters of the released command."""


def add_tog_to_query(app: typer.Typer) -> None:
    """Replace the released ``query`` by one that has gtog's methods, too, and calls it."""
    released = next((c for c in app.registered_commands if c.name == "query"), None)
    if released is None or released.callback is None:
        raise LookupError("the command line has no command query")
    if {*signature(released.callback).parameters} != _TAKEN:
        raise LookupError("the command query has other options than this project knows")
    app.registered_commands.remove(released)
    app.command("query")(_query_command(released.callback))


def _query_command(released: Callable[..., None]) -> Callable[..., None]:
    def query(connect: bool, **flags: Any) -> None:
        method: str = flags["method"].value
        if connect and method != "tog":
            msg = f"it belongs to --method tog, not {method}"
            raise typer.BadParameter(msg, param_hint="--connect")
        if connect:
            advice = "--method tog answers how two things are related by looking up both"
            say(f"Note: --connect is no longer used: {advice}.", stderr=True)
        is_own = method in OWN_METHODS
        if is_own or _is_of_older_form(method, flags["root"], flags["data"]):
            if not flags["query"].strip():
                raise typer.BadParameter("it is empty; write a question", param_hint="QUERY")
            refuse_if_unfit()
            with _shown_stdout():
                _run_own_query(method, flags)
            return
        # Not read from the settings: the release may have answered by what is refused here.
        with watch_offline() as models:
            _run_released(lambda: released(**{**flags, "method": SearchMethod(method)}), flags)
        embeds_elsewhere = not models["embedding"] and method != "global"
        _note_if_offline(
            Part(frozenset(models["completion"]), others=not models["completion"]),
            Part(frozenset(models["embedding"]), others=embeds_elsewhere),
        )

    full = signature(released)
    options = {
        name: param.replace(default=copy(param.default)) for name, param in full.parameters.items()
    }
    # The release's is the folder in which it was imported, which must be one to write into.
    options["root"].default.default, options["root"].default.writable = Path(), False
    options["method"] = options["method"].replace(annotation=_QueryMethod)
    options["verbose"].default.help = (
        "Verbose logging; with tog, ppr, bm25, hybrid and agentic, also what the query cost, and "
        "with tog and ppr the way to it."
    )
    connect = typer.Option(False, "--connect", hidden=True)
    last = Parameter("connect", Parameter.POSITIONAL_OR_KEYWORD, default=connect, annotation=bool)
    parameters = [*options.values(), last]
    vars(query)["__signature__"] = full.replace(parameters=parameters)
    query.__annotations__ = {param.name: param.annotation for param in parameters}
    query.__doc__ = released.__doc__
    return query


def _run_released(run: Callable[[], None], flags: Mapping[str, Any]) -> None:
    """Run the released command; a search that failed is a sentence, and a traceback if verbose.

    Its engines swallow errors of calls, and answer a fixed sentence, or nothing.
    """
    from graphrag.query.client.call_errors import name_remedy
    from graphrag.query.client.structured_output import context_budget
    from graphrag.query.client.usage import CallLog, measure_calls

    method, is_verbose = flags["method"].value, flags["verbose"]
    log, problem, code = CallLog(), "", 1
    with _libraries_quiet(is_verbose), _shown_stdout() as shown:
        try:
            with measure_calls(log):
                run()
        except Exception as error:
            problem, code = _explain_release(error, flags)
            if is_verbose:
                say(strip_controls(redact(traceback.format_exc())), stderr=True)
        gc.collect()  # tasks that it left behind warn now, unheard
        if log.failures:
            problem, code = name_remedy(log.failures[0], context_budget(method)), 1
        elif not problem and shown.is_blank:
            problem = "the model answered with an empty response"
    usage = log.usage()
    if n_cut := usage.cut_replies:
        say(_describe_cut(n_cut), stderr=True)
    for line in _describe_usage(usage) if is_verbose and log.attempts else ():
        say(line, stderr=True)
    if problem:
        say(f"Error: {'the search failed: ' if code == 1 else ''}{problem}", stderr=True)
        raise typer.Exit(code)


def _explain_release(error: Exception, flags: Mapping[str, Any]) -> tuple[str, int]:
    """Return the problem of a project that the release can't search, else the release's error."""
    import asyncio

    from graphrag.config.project_settings import read_settings
    from graphrag.config.settings_files import SettingsError
    from graphrag.config.table_files import IndexNotBuiltError
    from graphrag.query.client.call_errors import describe_error
    from graphrag.query.index.header import check_vectors
    from graphrag.query.index.tables import check_tables, open_tables

    root, methods = flags["root"], (flags["method"].value,)
    try:
        config = read_settings(root, flags["data"])
        check_tables(asyncio.run(open_tables(config)), config, root, methods)
        check_vectors(config, root, methods)
    except (SettingsError, IndexNotBuiltError) as problem:
        return str(problem), 2
    return f"{describe_error(error)}; run it with --verbose to see where", 1


def _libraries_quiet(is_verbose: bool) -> contextlib.AbstractContextManager[None]:
    """Leave out that libraries log each attempt with its traceback, which Python would print."""
    if is_verbose:
        return contextlib.nullcontext()
    return lines_to(logging.NullHandler(), logging.WARNING)


@contextlib.contextmanager
def _shown_stdout() -> Generator[ShownStream]:
    """Clean a printed answer of terminal controls, at once or as it arrives."""
    replace_unknown_characters()
    shown = ShownStream(sys.stdout)
    with contextlib.redirect_stdout(cast("IO[str]", shown)):
        yield shown


def _note_if_offline(answers: Part, embeddings: Part) -> None:
    """Print the roles in which embedded models were asked, if they were."""
    label = label_roles({ANSWERS: answers, EMBEDDINGS: embeddings})
    if label is not None:
        say(f"({label})", stderr=True)
    if f"offline/{HASHED}" in embeddings.models and has_no_wordllama():
        say(f"Warning: {STAND_IN}.", stderr=True)


def _is_of_older_form(method: str, root: Path, data: Path | None) -> bool:
    """Say whether an index has a form that the release can't read, and this project can.

    Ends with exit code 2 where no search can answer: a table or vectors that can't be read, or
    vectors of another embedded model than the settings name, near which the release would answer.
    The release reports other problems itself.
    """
    import asyncio

    from graphrag.config.project_settings import is_of_windows, older_note, read_settings
    from graphrag.config.settings_files import SettingsError
    from graphrag.config.table_files import (
        OLD_PREFIX,
        IndexNotBuiltError,
        UnreadableTableError,
    )
    from graphrag.query.index.header import check_vectors
    from graphrag.query.index.tables import check_tables, lacks_columns, open_tables
    from graphrag.query.index.vector_tables import VECTORS_OF, find_vectors, uses_lancedb

    try:
        config = read_settings(root, data)
        tables = asyncio.run(open_tables(config))
        try:
            check_tables(tables, config, root, (method,))
        except UnreadableTableError:
            raise
        except IndexNotBuiltError:
            return False
        check_vectors(config, root, (method,))
        schemas = config.vector_store.index_schema
        embeddings = VECTORS_OF.get(method, ()) if uses_lancedb(config) else ()
        has_other_names = any(
            find_vectors(config, name).schema.index_name != schemas[name].index_name
            for name in embeddings
        )
        has_old_tables = any(p.name.startswith(OLD_PREFIX) for p in tables.paths.values())
        is_older = older_note(root) is not None or is_of_windows(root)
        is_older = is_older or lacks_columns(tables, method)
        return has_other_names or has_old_tables or is_older
    except SettingsError:
        return False
    except IndexNotBuiltError as error:
        say(f"Error: {error}", stderr=True)
        raise typer.Exit(2) from None


def _run_own_query(method: str, flags: Mapping[str, Any]) -> None:
    """Answer by a method that the release lacks; exit code 1: it fails, 2: an unusable project."""
    import asyncio
    import os

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

    from graphrag.config.project_settings import unknown_settings
    from graphrag.config.settings_files import SettingsError
    from graphrag.config.table_files import IndexNotBuiltError
    from graphrag.query.client.usage import CallLog
    from graphrag.query.graph_index import GraphIndex, SearchError
    from graphrag.query.index.header import SearchOptions

    is_shown = False

    def show(piece: str) -> None:
        nonlocal is_shown
        is_shown = True
        sys.stdout.write(piece)
        sys.stdout.flush()

    streams, is_verbose = flags["streaming"], flags["verbose"]
    log = CallLog(live=streams)

    async def answer() -> "CountedSearchResult":
        options = SearchOptions(
            flags["community_level"], flags["response_type"], flags["dynamic_community_selection"]
        )
        root, data = flags["root"], flags["data"]
        index = await GraphIndex.open(root, data, options, vectors=False, detects_changes=False)
        on_text = show if streams else None
        return await index.search(method, flags["query"], on_text=on_text, log=log)

    try:
        with _libraries_quiet(is_verbose):
            result = asyncio.run(answer())
    except (SettingsError, IndexNotBuiltError) as error:
        say(f"Error: {error}", stderr=True)
        raise typer.Exit(2) from (error if is_verbose else None)
    except OSError as error:  # of a disk, not of a service
        say(f"Error: {error}", stderr=True)
        raise typer.Exit(1) from (error if is_verbose else None)
    except SearchError as error:
        if is_shown:  # or the sentence would go on where the answer broke off
            show("\n")
        say(f"Error: the search failed: {error}", stderr=True)
        for line in _describe_usage(log.usage()) if is_verbose and log.attempts else ():
            say(line, stderr=True)
        raise typer.Exit(1) from (error if is_verbose else None)
    show("\n" if streams else f"{result.response}\n")
    unused, section = unknown_settings(flags["root"]), f"{method}_search"
    if gone := [setting for setting in unused if setting.has_gone and setting.section == section]:
        say(f"Note: {'; '.join(map(str, gone))}.", stderr=True)
    _note_if_offline(
        Part(frozenset(result.usage.completion_models or ())),
        Part(frozenset(result.usage.embedding_models or ())),
    )
    if result.note:
        say(f"Note: {result.note}", stderr=True)
    if n_cut := result.usage.cut_replies:
        say(_describe_cut(n_cut), stderr=True)
    if is_verbose:
        _show_way(result)
        for line in _describe_usage(result.usage):
            say(line, stderr=True)
        say(f"time: {result.completion_time:.2f} s", stderr=True)


def _show_way(result: "CountedSearchResult") -> None:
    """Print how the search went; on stderr, as the response alone is what a pipe is given."""
    from graphrag.eval.metrics.citations import cited_sources
    from graphrag.text.search_trace import read_steps, way_tree

    console = open_console(stderr=True)
    for row in _read_frame(result, "searches"):
        parts = [f"search {row['round']}: {row['query']}"]
        parts += [f"{name}: {row[name]}" for name in ("missing", "note") if row[name]]
        console.print("; ".join(parts), soft_wrap=True)
    if steps := read_steps(_read_frame(result, "exploration")):
        console.print(way_tree(steps, cited_sources(str(result.response))))


def _read_frame(result: "CountedSearchResult", name: str) -> list[dict[str, Any]]:
    frames = cast("Mapping[str, pd.DataFrame]", result.context_data)
    return cast("list[dict[str, Any]]", frames[name].to_dict("records")) if name in frames else []


def _describe_cut(n_cut: int) -> str:
    cut = counted(n_cut, "reply was", "replies were")
    return f"Note: {cut} cut off at the length that the model may write."


def _describe_usage(usage: "Usage") -> list[str]:
    cost = "price not known" if usage.cost_usd is None else f"${usage.cost_usd:.6f}"
    lines = [
        f"models: {', '.join(usage.models)}",
        f"completions: {counted(usage.llm_calls, 'call')}, {usage.prompt_tokens} prompt tokens, "
        f"{usage.output_tokens} output tokens",
    ]
    for phase, n in usage.llm_calls_by_phase.items():
        prompt, output = usage.prompt_tokens_by_phase[phase], usage.output_tokens_by_phase[phase]
        calls = counted(n, "call")
        lines.append(f"  {phase}: {calls}, {prompt} prompt tokens, {output} output tokens")
    calls = counted(usage.embedding_calls, "call")
    lines.append(f"embeddings: {calls}, {usage.embedding_tokens} tokens")
    if usage.cached_prompt_tokens is not None:
        lines.append(
            f"prompt tokens from the provider's cache: {usage.cached_prompt_tokens}, as "
            f"{usage.calls_reporting_cached_tokens} calls report"
        )
    lines.append(f"failed calls: {usage.failed_calls}")
    if usage.tokens_counted_here:
        lines.append(f"calls whose tokens were counted here: {usage.tokens_counted_here}")
    return [*lines, f"cost: {cost}"]
