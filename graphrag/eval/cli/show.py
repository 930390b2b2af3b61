"""``graphrag eval show``: the runs of a store, or one of them and its questions."""

import json as json_
import sys
from dataclasses import replace
from typing import Annotated

import typer

from graphrag.eval.cli.command import Quiet, need_extra, option
from graphrag.eval.cli.flags import ShowFlags
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, starting, working
from graphrag.eval.errors import UsageError
from graphrag.eval.report.table import show as show_parts
from graphrag.text.command_lines import eval_line_here
from graphrag.text.console import open_console
from graphrag.text.controls import escape_controls
from graphrag.text.phrases import fold_line

_MOST_NAMED = 10  # questions that begin alike


def show(
    place: Place,
    flags: ShowFlags,
    run: Annotated[
        str | None, typer.Argument(help="Run id, its beginning, or latest. Without one: the list.")
    ] = None,
    json: Annotated[bool, option("Without a run: print the list as JSON.", "--json")] = False,
) -> int:
    """List the runs; or show one, its questions, its page.

    Showing a run writes its files again and asks no model. An option that needs a run takes the
    latest unless you name one.
    """
    if flags.method is not None and not flags.asks:
        raise UsageError("--method goes with --failed, --question or --changed; add one of them.")
    is_plain = not (flags.asks or flags.writes or flags.html)
    if flags.calls and flags.question is None:
        raise UsageError("--calls goes with --question; add the question's id.")
    if run is None and is_plain and not flags.full:
        return history(place, json, flags.quiet)
    run_id = place.find_run(run or "latest", quiet=flags.quiet)
    if flags.changed is not None:
        flags = replace(flags, changed=place.find_run(flags.changed, quiet=flags.quiet))
    if flags.question is not None:
        flags = replace(flags, question=_find_question(place, run_id, flags.question))
    if flags.asks and flags.writes:
        raise UsageError(
            "--question, --failed and --changed print questions and write no file; give --export, "
            "--mlflow or --to in a command without them."
        )
    if flags.html and (flags.writes or flags.question is not None or flags.failed):
        msg = "--html writes a page alone; give the other options in a command of their own."
        raise UsageError(msg)
    if flags.mlflow:
        need_extra("mlflow", "--mlflow")
    with starting(flags.quiet):
        from graphrag.eval.cli.show_run import show_run, write_page

    if flags.html is not None:
        return write_page(place, run_id, flags.changed, flags.html)
    return show_run(place, run_id, flags)


def history(
    place: Place,
    json: Annotated[bool, option("Print JSON: every mean of every run.", "--json")] = False,
    quiet: Quiet = False,
) -> int:
    """List the runs in the output folder."""
    store_path = place.store_path()
    with starting(quiet or json):
        from graphrag.eval.report.comparison import runs_table
        from graphrag.eval.results.runs import list_runs

    with working(open_console(stderr=True, quiet=quiet or json), "Reading the runs"):
        runs = list_runs(store_path)
    if json:
        listed = [run.to_dict() for run in runs]
        text = json_.dumps(listed, ensure_ascii=False, indent=2, allow_nan=False)
        sys.stdout.write(f"{escape_controls(text)}\n")
    else:
        show_parts(open_console(), [runs_table(runs)])
    return DONE


def _find_question(place: Place, run_id: str, question: str) -> str:
    """Return the id of the question that has this id, or whose text begins so."""
    from graphrag.config.models.strict_section import as_sentence, nearest
    from graphrag.eval.store.database import open_store

    with open_store(place.store_path()) as store:
        samples = store.samples(run_id)
    ids = [sample.id for sample in samples]
    start = fold_line(question)
    matches = [s for s in samples if start and fold_line(s.question).startswith(start)]
    if not ids or question in ids:
        return question
    if len(matches) == 1:
        return matches[0].id
    if matches:
        first = "; ".join(f"{s.id}: {s.question}" for s in matches[:_MOST_NAMED])
        more = f"; and {len(matches) - _MOST_NAMED:,} more" if len(matches) > _MOST_NAMED else ""
        msg = f"{len(matches):,} questions of run {run_id} begin with {question!r}"
        raise UsageError(f"{msg}; give more of the text, or an id: {first}{more}")
    msg = f"Run {run_id} holds no question {question!r}, by its id or the beginning of its text"
    listed = eval_line_here("show", run_id, "--export", "rows.csv")
    raise UsageError(f"{as_sentence(msg + nearest(question, ids))} List all with: {listed}")
