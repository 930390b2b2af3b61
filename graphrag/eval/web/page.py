"""Renders pages from templates with shared styles, scripts and a content security policy."""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

NAV = Markup(
    '<nav aria-label="Pages"><a href="/" data-up>Runs</a> <a href="/audit">Labels</a></nav>'
)
NO_NAV = "<!--nav-->"
"""Replaces ``NAV`` in a page that is a file, from which no link leads back."""
_STYLES = ("style.css", "svg_chart.css")
_LEVEL = 7  # 9 takes twice as long, for 2 % less
_GZIP = 31  # the window's bits, and 16 for gzip's own header, without name and time


def render(name: str, scripts: Iterable[str] = (), asks: bool = False, **values: object) -> str:
    """Return a page as HTML; see :func:`stream`."""
    return "".join(stream(name, scripts, asks, **values))


def stream(
    name: str, scripts: Iterable[str] = (), asks: bool = False, **values: object
) -> Iterator[str]:
    """Yield a page, in pieces, as HTML that needs no network.

    ``name`` is the name of its template, which gets the ``values``. ``scripts`` are the files that
    make its script, in order. ``asks``: whether it may send forms and requests to its own server.
    """
    style = "".join(map(read, _STYLES))
    # In a function of its own, so that its names do not become the page's.
    parts = "\n".join(map(read, ("keys.js", *scripts)))
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    own = "'self'" if asks else "'none'"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        f"base-uri 'none'; form-action {own}; connect-src {own}"
    )
    about = {"style": Markup(style), "script": Markup(script), "policy": policy}
    yield from template(name).generate(**about, served=asks, nav=NAV, **values)


def template(name: str) -> Template:
    """Return the template in a file next to this one."""
    return _templates().get_template(name)


@cache
def _templates() -> Environment:
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(read),
    )


def read(name: str) -> str:
    """Return the text of a file next to this one."""
    text = files("graphrag.eval.web").joinpath(name).read_text("utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def pack(pieces: Iterable[str]) -> Iterator[str]:
    """Yield a text as base64 of gzip, so that it is never in memory as one."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    left = b""
    for piece in pieces:
        # A lone surrogate, which a model's reply may contain, has no UTF-8.
        left += packer.compress(piece.encode("utf-8", "replace"))
        n = len(left) - len(left) % 3  # so that base64 needs no padding
        if n:
            yield base64.b64encode(left[:n]).decode("ascii")
            left = left[n:]
    yield base64.b64encode(left + packer.flush()).decode("ascii")
