"""Defines the exit codes, turns errors into them, and prints status lines on the terminal."""

import errno
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from graphrag.eval.cli.interrupts import (
    INTERRUPTED,
    explain_interrupt,
    handle_interrupts,
    is_interrupted,
)
from graphrag.eval.config.gone_keys import GoneKeyWarning
from graphrag.eval.errors import BuildInterruptedError, EvalError, UsageError
from graphrag.eval.report.progress import Pulse
from graphrag.text.console import open_console, say
from graphrag.text.input_files import InputFileError
from graphrag.text.library_logs import LIBRARIES, lines_to
from graphrag.text.redaction import redact
from graphrag.text.terminal_escape import strip_controls


def print_workflow_commands(commands: Iterable[str]) -> None:
    """Print workflow commands, which GitHub's runner obeys.

    In everything else that is printed, the runner finds no command.
    """
    for line in commands:
        sys.stdout.write(f"{strip_controls(redact(line))}\n")


def starting(quiet: bool = False) -> AbstractContextManager[object]:
    """Show a status line while libraries load, which takes seconds."""
    return working(open_console(stderr=True, quiet=quiet), "Starting")


@contextmanager
def log_to(path: Path, verbose: bool) -> Generator[None]:
    """Send the libraries' log lines to a file, so that the terminal stays readable."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    with lines_to(handler, logging.DEBUG if verbose else logging.WARNING, ("graphrag", *LIBRARIES)):
        yield


def is_live(console: Console) -> bool:
    """Return whether a console can overwrite a line."""
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def working(notes: Console, text: str, at_once: bool = True) -> Generator[Callable[[str], object]]:
    """Show a status while the block runs; a quiet console shows nothing.

    On a terminal it is a live line. In a pipe or a log it is a plain line, repeated if the block
    takes long. ``text``: a few words without a full stop. ``at_once``: whether a pipe gets the line
    now, or only if the block takes long. Yields a function that changes the words.
    """
    if notes.quiet:
        yield lambda _: None
    elif is_live(notes):
        with notes.status(text) as status:
            yield status.update
    else:
        with Pulse(partial(notes.print, soft_wrap=True), f"{text} ...", at_once=at_once) as pulse:
            yield lambda new: pulse.update(f"{new} ...")


@contextmanager
def warning_of_gone_keys(quiet: bool = False) -> Generator[None]:
    """Print, within the block, a warning for each removed key that a configuration sets."""
    notes, show = open_console(stderr=True, quiet=quiet), warnings.showwarning
    seen = set[str]()  # a command may read its configuration twice, and "once" forgets at a filter

    def warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, GoneKeyWarning):
            show(message, category, *where, **more)
        elif str(message) not in seen:
            seen.add(str(message))
            notes.print(f"Warning: {message}", style="yellow", soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", GoneKeyWarning)
        warnings.showwarning = warn
        yield


DONE = 0
ERROR = 1
USAGE = 2
INCOMPLETE = 3
FAILED = 100
_FULL = (errno.ENOSPC, errno.EDQUOT)
_OF_A_PATH = (errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS)


def explained(run: Callable[[], int], verbose: bool = False) -> int:
    """Run a command and return its exit code; print an error as one sentence on stderr.

    SIGTERM ends the command as Ctrl-C does. ``verbose``: whether tracebacks are printed.
    """
    with handle_interrupts():
        try:
            return run()
        except (BuildInterruptedError, KeyboardInterrupt) as error:
            say(str(error) or explain_interrupt(), stderr=True)
            return INTERRUPTED
        except Exception as error:
            return _explain(error, verbose)


def _explain(error: Exception, verbose: bool) -> int:
    from graphrag.config.settings_files import SettingsError

    if is_interrupted() and not isinstance(error, EvalError):  # a library made another error of it
        say(explain_interrupt(), stderr=True)
        return INTERRUPTED
    is_usage, text = isinstance(error, (UsageError, SettingsError)), str(error)
    if isinstance(error, OSError) and error.filename and error.errno in _OF_A_PATH:
        is_usage = True
        text = f"{error.filename} can't be used ({error.strerror}); name another file or folder."
    is_plain = is_usage or isinstance(error, (EvalError, InputFileError))
    if not is_plain and isinstance(error, OSError) and error.errno in _FULL:
        is_plain, text = True, f"a disk is full ({text}); make room on it, then run this again"
    if is_plain:
        say(f"Error: {text}", "red", stderr=True)
    elif not verbose:
        from graphrag.query.client.call_errors import describe_error

        text = f"Unexpected error: {describe_error(error)}. Run with --verbose to see where."
        say(text, "red", stderr=True)
    if verbose:
        say(traceback.format_exc(), stderr=True)
    return USAGE if is_usage else ERROR
