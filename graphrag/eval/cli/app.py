"""Registers the ``graphrag eval`` commands, and defines the run itself and ``draft``."""

from functools import partial
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from graphrag.eval.cli import compare, importing, init, judge, show, suite, validate, view
from graphrag.eval.cli.command import (
    DraftFlags,
    RunFlags,
    command,
    need_extra,
    option,
)
from graphrag.eval.cli.gone import Command, Group
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, starting, working
from graphrag.eval.errors import UsageError
from graphrag.text.console import open_console, say


def evaluate(
    paths: Paths,
    flags: RunFlags,
    version: Annotated[bool, option("Print the version.", "--version")] = False,
) -> int:
    """Ask every question by every method, judge the responses, and write the results.

    Exit codes: 0 done; 1 error; 2 wrong usage; 3 incomplete or inconclusive; 100 gate or
    threshold failed; 130 interrupted, with the work saved.
    """
    if version:
        say(f"gtog {version_of('gtog')}, over graphrag {version_of('graphrag')}")
        return DONE
    if flags.quiet and flags.verbose:
        raise UsageError("--quiet and --verbose exclude each other; leave one out.")
    notes = open_console(stderr=True, quiet=flags.quiet)
    with working(notes, "Reading the settings", at_once=False):
        from graphrag.eval.cli.load_run import read_input

        run_input = read_input(paths, flags)
    if flags.workers is not None and flags.workers > 1:
        need_extra("ray", "More than one worker")
    if flags.otel:
        need_extra("otel", "--otel")
        if run_input.config.workers > 1:
            raise UsageError("--otel sees the calls of this process alone; leave --workers out.")
    with starting(flags.quiet):
        from graphrag.eval.cli.evaluate import evaluate as run

    return run(flags, run_input)


def draft(paths: Paths, flags: DraftFlags) -> int:
    """Draft questions from a built index; keep those it can confirm.

    It writes a dataset, the drafts thrown away and why, and every call, so that you can continue
    after an interruption.

    With --assertions, it drafts what an answer to each question of a dataset must say, and keeps
    what the row's own answer and quotes support.

    Exit code 3: fewer questions than you asked for, or rows without assertions.
    """
    with starting(flags.quiet):
        from graphrag.eval.cli.draft_questions import draft_questions

    return draft_questions(paths, flags)


app = typer.Typer(
    add_completion=False,
    help="Ask every question by every method, judge the answers, and write the results. "
    "Exit codes: 0 done; 1 error; 2 usage; 3 incomplete; 100 failed; 130 stopped.",
    cls=Group,
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"auto_envvar_prefix": "GRAPHRAG_EVAL"},
)
app.callback()(command(evaluate, is_group=True))
# add(name)(function) registers a subcommand; without a name it takes the function's own.
add = partial(app.command, cls=Command)
add()(command(init.init, path_flags=("root",)))
add("import")(command(importing.import_, path_flags=("root",)))
add()(command(draft, file_help="Write to this FILE.json."))
add()(command(validate.validate, path_flags=("root", "config")))
add()(command(show.show))
add()(command(view.view))
add()(command(compare.compare))
add()(command(judge.judge))
add()(command(suite.suite, file_help="Folder of the results, or FILE.json of a report."))
add(hidden=True)(command(show.history))
add(hidden=True)(command(view.dashboard))
