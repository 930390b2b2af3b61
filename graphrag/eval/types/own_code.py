"""Loads code of the user's own, named ``module:object``: methods, metrics, judges and measures.

Loaded code is known by its own name from then on. Stored runs of earlier versions name entry points
that an installed package declares; these are loaded to read such runs.
"""

import asyncio
import hashlib
import inspect
import sys
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, cast

from graphrag.eval.errors import ConfigError

Kind = Literal["methods", "metrics", "measures"]
T = TypeVar("T")
_SIGNS: Mapping[Kind, tuple[str, ...]] = {
    "methods": ("__call__",),
    "metrics": ("grade", "instructions"),
    "measures": ("compute",),
}
"""Kind -> attributes; an object of the kind has at least one of them."""
_NOUNS: Mapping[Kind, str] = {
    "methods": "function",
    "metrics": "judge (a Scorer, such as graded makes, or a JudgedMetric)",
    "measures": "Measure",
}


@contextmanager
def contained(code: str) -> Generator[None]:
    """Raise RuntimeError for errors in the block that would end the process, such as sys.exit.

    ``code`` names the user's code in the block. Ctrl-C passes through, and so does the cancellation
    of the task, unless the code itself caused it.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError(f"{code} was canceled from within") from error
    except SystemExit as error:
        raise RuntimeError(f"{code} called sys.exit({error.code!r})") from error
    except BaseException as error:
        raise RuntimeError(f"{code} raised {type(error).__name__}: {error}") from error


def import_object(kind: Kind, spec: str, root: Path | None) -> object:
    """Import ``module:object``; the module may be in the folder ``root``, if given.

    Raises ConfigError, which lists what the module has, if the object can't be imported or is not
    of the kind.
    """
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise ConfigError(f"{kind}: {spec!r} names no {_NOUNS[kind]}; write it as module:object.")
    folder = None if root is None else str(root.resolve())
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit, or a panic in Rust code
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ConfigError(f"{spec}: {module_name} can't be imported ({why}).") from error
    try:
        part: object = reduce(getattr, name.split("."), cast("Any", module))
    except AttributeError as error:
        raise ConfigError(f"{spec}: {module_name} has no {name}; {_list(kind, module)}.") from error
    if not _is_of(kind, part):
        msg = f"{spec} is no {_NOUNS[kind]}; {_list(kind, module)}."
        raise ConfigError(msg)
    return part


def _is_of(kind: Kind, part: object) -> bool:
    return any(hasattr(part, sign) for sign in _SIGNS[kind]) and not (
        kind != "methods" and isinstance(part, type)
    )


def _list(kind: Kind, module: ModuleType) -> str:
    """Return which objects of a module are of a kind; only functions defined in it count."""
    names = [
        name
        for name, part in vars(module).items()
        if not name.startswith("_")
        and _is_of(kind, part)
        and (kind != "methods" or getattr(part, "__module__", "") == module.__name__)
        and not isinstance(part, type)
    ]
    return f"it has {', '.join(names)}" if names else "it has none"


def hash_source(part: object) -> str | None:
    """Return the hash of the source of an object's module; None if there is no source."""
    try:
        source = inspect.getsource(inspect.getmodule(part) or cast("type", part))
    except (OSError, TypeError):  # it was written at a prompt
        return None
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class OwnPart:
    """A judge or measure of the user's own.

    ``spec``: its path, as ``module:object``. ``is_declared``: whether it was loaded from an entry
    point that a package declares.
    """

    kind: Kind
    spec: str
    part: Any
    is_declared: bool = False

    @property
    def name(self) -> str:
        """The name that the part gives itself."""
        return self.part.name

    def of_type(self, part_type: type[T]) -> T:
        """Return the part; raise ConfigError if it is of another type."""
        if not isinstance(self.part, part_type):
            raise self.refuse(f"it is no {part_type.__name__}")
        return self.part

    def describe(self) -> dict[str, object]:
        """Return the identity of the part's code, as far as it is known from outside."""
        module = sys.modules.get(self.spec.partition(":")[0])
        return {"object": self.spec, "source": None if module is None else hash_source(module)}

    @contextmanager
    def guarded(self) -> Generator[None]:
        """Raise ConfigError, which names the part, for any error in the block."""
        try:
            with contained("it"):
                yield
        except Exception as error:
            from graphrag.query.client.call_errors import (
                describe_error,  # needed where something broke alone
            )

            raise self.refuse(describe_error(error)) from error

    def refuse(self, why: str) -> ConfigError:
        """Return the error that says why the part can't be used."""
        reason = " ".join(why.split()).rstrip(".")
        return ConfigError(f"{self.spec} can't be used: {reason}. Mend it, or leave it out.")


_known: dict[tuple[Kind, str], OwnPart] = {}


def load_part(
    kind: Kind,
    spec: str,
    root: Path | None,
    built_in: Container[str] = (),
    is_declared: bool = False,
) -> OwnPart:
    """Import a judge or measure, which is known by its own name from then on.

    Raises ConfigError like :func:`import_object`, and if the part has no name or a built-in name.
    """
    own = OwnPart(
        kind=kind, spec=spec, part=import_object(kind, spec, root), is_declared=is_declared
    )
    name = getattr(own.part, "name", None)
    if not isinstance(name, str) or not name:
        raise own.refuse("it has no name")
    if name in built_in:
        raise own.refuse(f"{name} is built in, so give it another name")
    _known[kind, name] = own
    for registry in _registries:
        if registry.kind == kind:
            registry.pop(name, None)
    return own


def load_parts(
    kind: Kind, names: Iterable[object], root: Path, built_in: Container[str] = ()
) -> list[object]:
    """Replace each ``module:object`` among names by the name of the part that it loads.

    Raises ConfigError like :func:`load_part` and :func:`is_declared`, and if two objects have the
    same name.
    """
    loaded: list[object] = []
    specs: dict[object, str] = {}
    for name in names:
        if not isinstance(name, str) or ":" not in name:
            own = _known.get((kind, str(name)))
            if (own is None or own.is_declared) and str(name) not in built_in:
                is_declared(kind, str(name))
            loaded.append(name)
            continue
        own_name = load_part(kind, name, root, built_in).name
        if specs.setdefault(own_name, name) != name:
            raise ConfigError(f"{specs[own_name]} and {name} are both called {own_name}.")
        loaded.append(own_name)
    return loaded


def list_specs(names: Container[str]) -> list[tuple[Kind, str]]:
    """Return kind and ``module:object`` of loaded parts by name, for another process to load."""
    return [(own.kind, own.spec) for own in _known.values() if own.name in names]


@cache
def list_declared(kind: Kind) -> dict[str, tuple[str, str]]:
    """Return name -> ("module:object", package) of the entry points of installed packages."""
    declared: dict[str, tuple[str, str]] = {}
    for entry in entry_points(group=f"gtog.{kind}"):
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "no package"
        declared[entry.name] = f"{entry.module}:{entry.attr}", package
    return declared


_takes_declared: ContextVar[bool] = ContextVar("takes_declared", default=False)


@contextmanager
def declared_taken() -> Generator[None]:
    """Accept names of entry points within the block, to read stored runs of earlier versions."""
    token = _takes_declared.set(True)
    try:
        yield
    finally:
        _takes_declared.reset(token)


def is_declared(kind: Kind, name: str) -> bool:
    """Return whether an installed package declares a name as an entry point.

    Raises ConfigError, with the line to write instead, outside of :func:`declared_taken`.
    """
    if name not in list_declared(kind):
        return False
    if _takes_declared.get():
        return True
    spec, package = list_declared(kind)[name]
    write = f"{{name: {name}, function: '{spec}'}}" if kind == "methods" else f"'{spec}'"
    raise ConfigError(
        f"{kind}: {name} of {package} is named by its path since version 2.0.0; write {write}."
    )


def find_part(kind: Kind, name: object) -> OwnPart | None:
    """Return the part with a name; None if none was loaded or can be loaded from an entry point."""
    if not isinstance(name, str):
        return None
    if (kind, name) not in _known and name in list_declared(kind):
        with suppress(ConfigError):
            load_part(kind, list_declared(kind)[name][0], None, is_declared=True)
    return _known.get((kind, name))


class Registry(dict[str, T]):
    """Name -> part: the built-in parts, and the user's own once they are asked for.

    ``guard``: wraps a part of the user's own, so that its errors name it. Raises KeyError for an
    unknown name, ConfigError for a part that can't be used.
    """

    def __init__(
        self,
        kind: Kind,
        part_type: type[T],
        built_in: Mapping[str, T],
        guard: Callable[[OwnPart, T], T] = lambda _, part: part,
    ) -> None:
        super().__init__(built_in)
        self.kind: Kind = kind
        self._part_type, self._guard = part_type, guard
        _registries.append(self)

    def __missing__(self, name: str) -> T:
        own = find_part(self.kind, name)
        if own is None:
            raise KeyError(name)
        return self.setdefault(name, self._guard(own, own.of_type(self._part_type)))

    def find(self, name: str) -> T | None:
        """Return a part; None if nothing has this name."""
        try:
            return self[name]
        except KeyError:
            return None


_registries: list[Registry[Any]] = []
