"""Computes a digest of the code that figures depend on, so that outdated figures are noticed."""

import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ROOMS = ("eval", "query", "text")
_LIBRARIES = ("graphrag", "gtog", "numpy", "pandas", "scipy", "statsmodels")
_KINDS = {".py", ".css", ".j2", ".js"}


@cache
def digest_code() -> str:
    """Return a digest of the files and library releases that figures and pages depend on.

    The content of the files counts, because code under development keeps its version.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in (platform.python_version(), *map(_release, _LIBRARIES)):
        digest.update(f"{name}\n".encode())
    for name, path in _files():
        content = path.read_bytes()
        digest.update(f"{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def _release(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return library


def _files() -> Iterator[tuple[str, Path]]:
    package = Path(__file__).parents[2]
    for room in _ROOMS:
        paths = sorted(path for path in (package / room).rglob("*") if path.suffix in _KINDS)
        yield from ((path.relative_to(package).as_posix(), path) for path in paths)
