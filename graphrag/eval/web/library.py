"""The drawing library of the page: Vega, Vega-Lite and Vega-Embed, from their own package.

``vl-convert-python`` carries their sources and bundles them without a network. That takes seconds,
so the bundle is kept in the user's cache, under the package's version.
"""

import contextlib
import gzip
import zlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from platformdirs import user_cache_path

from graphrag.eval.errors import StoreError
from graphrag.eval.store.whole_files import write_file

_PACKAGE = "vl-convert-python"


@cache
def drawing_library() -> str:
    """Return the JavaScript that gives a page ``vegaEmbed``; takes seconds the first time.

    A cache that can't be read or written, or holds something else, costs time, and nothing else.
    Processes that find none at the same time each make one, and the last one stays.
    """
    kept = _kept()
    if kept is None:
        return _bundle()
    with contextlib.suppress(OSError, EOFError, zlib.error, UnicodeDecodeError):
        text = gzip.decompress(kept.read_bytes()).decode("utf-8")
        if text:  # an empty file unpacks, to nothing
            return text
    text = _bundle()
    with contextlib.suppress(StoreError):
        write_file(kept, gzip.compress(text.encode("utf-8"), mtime=0))
    return text


def page_style() -> str:
    """Return the style sheet of the page, for other pages that look alike."""
    return files("graphrag.eval.web").joinpath("report.css").read_text("utf-8")


def is_library_ready() -> bool:
    """Whether the bundle is in the cache, so that no page has to wait for it."""
    kept = _kept()
    return kept is not None and kept.is_file()


def _kept() -> Path | None:
    """Return where the bundle is kept; None where the user has no home."""
    try:
        folder = user_cache_path("gtog")
    except RuntimeError:
        return None
    # Earlier releases of platformdirs name a folder below where one happens to stand.
    return folder / f"vega-{version(_PACKAGE)}.js.gz" if folder.is_absolute() else None


def _bundle() -> str:
    import vl_convert

    # In a block of its own, so that its thousands of names do not become the page's.
    # Its stub takes the optional snippet for a required one.
    text: object = vl_convert.javascript_bundle()  # pyright: ignore
    return f"{{{text}}}"
