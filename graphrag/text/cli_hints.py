"""Makes the command lines that messages advise the user to run; they work from any folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Invocation:
    """Records the command that the user gave; paths in it are absolute.

    - ``words``: the subcommand, its arguments and flags.
    - ``paths``: the values of ``--root``, ``--config`` and ``--output``.
    - ``resumes``: whether the command takes ``--resume``.
    """

    program: tuple[str, ...]
    words: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict[str, str])
    resumes: bool = False


_PROGRAMS = ("graphrag", "gtog")
_PLAIN = Invocation(("graphrag", "eval"), resumes=True)
_PROGRAM, _HERE = "@graphrag-eval@", "@here@"
_END = f" {_HERE} {_HERE}"
_LINE = re.compile(f"{_PROGRAM}.*?(?:{_END}|$)")
_ANYWHERE = Invocation((_PROGRAM,), paths={_HERE: _HERE})
"""Placeholders for the program and the paths, made of words that a shell takes as they are."""
_INVOCATION: ContextVar[Invocation] = ContextVar("invocation", default=_PLAIN)


def remember(invocation: Invocation) -> None:
    """Keep the command that was given, for messages that advise how to go on."""
    _INVOCATION.set(invocation)


def current_command() -> Invocation:
    """Return the command that was given."""
    return _INVOCATION.get()


def say_instead(word: str, by: str) -> None:
    """Replace a word of the command that was given by another word.

    So a follow-up command means the run that ``latest`` or a file meant when the command was given.
    """
    command = current_command()
    remember(replace(command, words=tuple(by if w == word else w for w in command.words)))


def move_to(paths: Mapping[str, str]) -> None:
    """Replace the paths of the command that was given: its root, configuration and output."""
    remember(replace(current_command(), paths=paths))


@contextmanager
def anywhere() -> Generator[None]:
    """Make command lines with placeholders inside the ``with`` block.

    The lines can be stored; :func:`as_given_here` later fills in the program and the paths.
    """
    token = _INVOCATION.set(_ANYWHERE)
    try:
        yield
    finally:
        _INVOCATION.reset(token)


def as_given_here(text: str) -> str:
    """Return a text with its command lines filled in from the command that was given."""
    return complete_lines(text, current_command())


def complete_lines(text: str, command: Invocation) -> str:
    """Return a text with its command lines filled in from ``command``.

    The text was made inside :func:`anywhere`.
    """
    paths = _join(*chain(*_paths_of_others(command).items()))
    text = text.replace(_END, f" {paths}" if paths else "")
    return text.replace(_PROGRAM, _join(*command.program))


def find_lines(text: str) -> list[str]:
    """Return the command lines in a text that was made inside :func:`anywhere`."""
    return _LINE.findall(text)


def again(flag: str | None = None, instead: Mapping[str, str] | None = None, but: str = "") -> str:
    """Return the command that was given, as a line to run again, with ``flag`` added if named.

    ``instead`` maps flags to new values; ``but`` is a flag without a value that is left out.
    """
    command, new = current_command(), instead or {}
    before = ("", *command.words)
    words = [new.get(name, word) for name, word in zip(before, command.words, strict=False)]
    kept = [word for word in words if word != but]
    return eval_line(*kept, *chain(*command.paths.items()), *([flag] if flag else []))


def config_name() -> str:
    """Return the file name of the configuration that the given command reads."""
    return Path(current_command().paths.get("--config", "eval_config.yaml")).name


def eval_line(*words: str | Path) -> str:
    """Return a command line of ``graphrag eval``; a Path is made absolute."""
    return _join(*current_command().program, *words)


def eval_line_here(*words: str | Path) -> str:
    """Return a command line of ``graphrag eval`` with the paths of the command that was given.

    A file named by ``--output`` is left out, because other commands take only a folder.
    """
    return eval_line(*words, *chain(*_paths_of_others(current_command()).items()))


def _paths_of_others(command: Invocation) -> dict[str, str]:
    paths = dict(command.paths)
    output = paths.get("--output", "")
    if output.lower().endswith(".json") and not Path(output).is_dir():
        del paths["--output"]
    return paths


def eval_line_in(folder: Path, *words: str | Path) -> str:
    """Return a command line of ``graphrag eval`` on the results in a folder.

    It has the root and the configuration of the command that was given, so that it finds the same
    store, and ``--output`` with the folder, which is made absolute.
    """
    paths = {**current_command().paths, "--output": str(folder.absolute())}
    return eval_line(*words, *chain(*paths.items()))


def release_line(*words: str | Path) -> str:
    """Return a command line of the released ``graphrag``; a Path is made absolute."""
    sibling = Path(sys.executable).with_name("graphrag.exe" if os.name == "nt" else "graphrag")
    by_name = _finds("graphrag", sibling) or not sibling.exists()
    return _join("graphrag" if by_name else sibling, *words)


def runnable(program: str) -> tuple[str, ...]:
    """Return the words that start a program as the user started it.

    ``program`` is the name that a command line gives itself, e.g. ``graphrag eval`` or ``python -m
    graphrag.eval``.
    """
    first, *rest = program.split()
    if first == "python":
        return (first if _finds_python() else sys.executable, *rest)
    started = Path(sys.argv[0]).absolute()
    if started.stem != first:  # called from within another program, under whatever name
        return (first if first in _PROGRAMS else _PROGRAMS[0], *rest)
    return (str(started) if started.is_file() and not _finds(first, started) else first, *rest)


def _finds_python() -> bool:
    # Not by what a link leads to: the interpreters of all environments may be links to one.
    program = None if _is_path_lent() else shutil.which("python")
    return program is not None and Path(program).parent.resolve() == Path(sys.executable).parent


def _finds(name: str, path: Path) -> bool:
    """Say whether a shell finds this program by its name."""
    program = None if _is_path_lent() else shutil.which(name)
    return program is not None and Path(program).resolve() == path.resolve()


def _is_path_lent() -> bool:
    """Say whether ``uv run`` put the environment's programs on the path of this process alone."""
    return "UV_RUN_RECURSION_DEPTH" in os.environ


def _join(*words: str | Path) -> str:
    texts = [str(word.absolute()) if isinstance(word, Path) else word for word in words]
    return subprocess.list2cmdline(texts) if os.name == "nt" else shlex.join(texts)
