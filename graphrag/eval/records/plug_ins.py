"""Parts that other packages bring: methods, metrics, measures, exporters, by their entry points.

They are read where a name is not built in, or where all are listed, and loaded one by one: one that
is broken is named by its package, and stops nothing that does not ask for it.
"""

import asyncio
from collections.abc import Callable, Container, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar, get_args

from graphrag.eval.errors import ConfigError

Kind = Literal["methods", "metrics", "measures", "exporters"]
KINDS: tuple[Kind, ...] = get_args(Kind)
T = TypeVar("T")


def import_part(load: Callable[[], T]) -> T:
    """Import what others wrote; ImportError for whatever it raises, but for Ctrl-C.

    What it raises may be made to pass all that catches errors: SystemExit, a panic of Rust's.
    """
    try:
        return load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ImportError(f"{type(error).__name__}: {error}".rstrip(": ")) from error


@contextmanager
def contained(what: str) -> Generator[None]:
    """Raise RuntimeError for what would end the process: sys.exit, or what is no Exception.

    ``what`` names the code of others that runs inside. Ctrl-C stays what it is, and so does the end
    of a task, unless that code brought it about.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError(f"{what} was canceled from within") from error
    except SystemExit as error:
        raise RuntimeError(f"{what} called sys.exit({error.code!r})") from error
    except BaseException as error:
        raise RuntimeError(f"{what} raised {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class PlugIn:
    """A part that a package brings; ``package`` is the distribution with its version."""

    kind: Kind
    name: str
    package: str
    entry: EntryPoint

    def load(self, part_type: type[T]) -> T:
        """Import the part; a ConfigError names the package if it can't be, or has another type."""
        try:
            part: object = import_part(self.entry.load)
        except ImportError as error:
            raise self.refuse(str(error)) from error
        if not isinstance(part, part_type):
            raise self.refuse(f"{self.entry.value} is no {part_type.__name__}")
        return part

    def load_named(self, part_type: type[T]) -> T:
        """Import a part that must have the name under which it is brought; as :meth:`load`."""
        part: Any = self.load(part_type)
        if part.name != self.name:
            raise self.refuse(f"it calls itself {part.name}")
        return part

    def load_function(self) -> Callable[..., object]:
        """Import a function; as :meth:`load`."""
        part = self.load(object)
        if not callable(part):
            raise self.refuse(f"{self.entry.value} is no function")
        return part

    def check(self, built_in: Container[str], part_types: tuple[type, ...]) -> None:
        """Raise ConfigError if the part can't be used; ``part_types``: () for functions."""
        if self.name in built_in:
            raise self.refuse("the name is built in, and keeps its meaning")
        find_plug_in(self.kind, self.name)
        if not part_types:
            self.load_function()
        elif not isinstance(self.load(object), part_types):
            names = " or ".join(part_type.__name__ for part_type in part_types)
            raise self.refuse(f"{self.entry.value} is no {names}")

    @contextmanager
    def guarded(self) -> Generator[None]:
        """Raise ConfigError, which names the package, for whatever the part raises."""
        try:
            with contained("it"):
                yield
        except Exception as error:
            from graphrag.query.calls import describe_error  # needed where something broke alone

            raise self.refuse(describe_error(error)) from error

    def refuse(self, why: str) -> ConfigError:
        """Return the error of a part that can't be used."""
        return ConfigError(
            f"{self.name} of {self.package} ({self.kind}) can't be used: {' '.join(why.split())}. "
            "Mend or remove that package, or leave the name out."
        )


@cache
def list_plug_ins(kind: Kind) -> tuple[PlugIn, ...]:
    """Return what the installed packages bring, by name; nothing is imported."""
    plug_ins = [
        PlugIn(kind, e.name, f"{e.dist.name} {e.dist.version}" if e.dist else "no package", e)
        for e in entry_points(group=f"gtog.{kind}")
    ]
    return tuple(sorted(plug_ins, key=lambda plug_in: (plug_in.name, plug_in.package)))


def find_plug_in(kind: Kind, name: object) -> PlugIn | None:
    """Return the part of a name that is not built in; ConfigError if two packages bring it."""
    matches = [plug_in for plug_in in list_plug_ins(kind) if plug_in.name == name]
    if len(matches) > 1:
        raise matches[0].refuse(f"{matches[1].package} brings one of the same name")
    return matches[0] if matches else None


class Registry(dict[str, T]):
    """Name -> part: the built-in ones, and those of packages that are asked for.

    ``guard``: gives a package's part in a form in which what it raises names the package.
    KeyError for a name that no installed package brings, ConfigError for one that can't be used.
    """

    def __init__(
        self,
        kind: Kind,
        part_type: type[T],
        built_in: Mapping[str, T],
        guard: Callable[[PlugIn, T], T] = lambda _, part: part,
    ) -> None:
        super().__init__(built_in)
        self._kind: Kind = kind
        self._part_type, self._guard = part_type, guard

    def __missing__(self, name: str) -> T:
        plug_in = find_plug_in(self._kind, name)
        if plug_in is None:
            raise KeyError(name)
        return self.setdefault(name, self._guard(plug_in, plug_in.load_named(self._part_type)))

    def find(self, name: str) -> T | None:
        """Return a part; None if no installed package brings it."""
        try:
            return self[name]
        except KeyError:
            return None
