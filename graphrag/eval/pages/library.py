"""The drawing library of the page: Vega, Vega-Lite and Vega-Embed, from their own package.

``vl-convert-python`` carries their sources and bundles them without a network. That takes seconds,
so the bundle is kept in the user's cache, under the package's version.
"""

import gzip
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

_PACKAGE = "vl-convert-python"


@cache
def drawing_library() -> str:
    """Return the JavaScript that gives a page ``vegaEmbed``; takes seconds the first time.

    A cache that can't be read or written costs time, and nothing else.
    """
    kept = _kept()
    if kept.is_file():
        return _read(kept)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(kept.with_suffix(".lock")):
            return _read(kept) if kept.is_file() else _keep(kept, _bundle())
    except OSError:  # a home that can't be written
        return _bundle()


def is_library_ready() -> bool:
    """Whether the bundle is in the cache, so that no page has to wait for it."""
    return _kept().is_file()


def _kept() -> Path:
    return user_cache_path("gtog") / f"vega-{version(_PACKAGE)}.js.gz"


def _read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8")


def _keep(path: Path, text: str) -> str:
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    beside.replace(path)
    return text


@cache
def _bundle() -> str:
    import vl_convert

    # In a block of its own, so that its thousands of names do not become the page's.
    # Its stub takes the optional snippet for a required one.
    text: object = vl_convert.javascript_bundle()  # pyright: ignore
    return f"{{{text}}}"
