"""Texts packed as a page holds them, from pieces, so that they are never whole in memory."""

import base64
import zlib
from collections.abc import Iterable, Iterator

_GZIP = 31  # the window's bits, and 16 for gzip's own header, without name and time


def pack(pieces: Iterable[str | bytes]) -> Iterator[str]:
    """Yield a text, bytes of it in UTF-8, as base64 of gzip; equal texts give equal bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    left = b""
    for piece in pieces:
        left += packer.compress(_encode(piece))
        n = len(left) - len(left) % 3  # bytes of which base64 needs no padding
        if n:
            yield base64.b64encode(left[:n]).decode("ascii")
            left = left[n:]
    yield base64.b64encode(left + packer.flush()).decode("ascii")


class Aside:
    """A text that is put aside, compressed, until what comes before it is complete."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(1)
        self._held: list[bytes] = []

    def put(self, piece: str) -> None:
        """Add to the text."""
        self._held.append(self._packer.compress(_encode(piece)))

    def take(self) -> Iterator[bytes]:
        """Yield the text in UTF-8; nothing is put aside afterwards."""
        opened = zlib.decompressobj()
        for held in (*self._held, self._packer.flush()):
            yield opened.decompress(held)
        yield opened.flush()


def _encode(text: str | bytes) -> bytes:
    # A lone surrogate, which a model's reply may hold, has no UTF-8.
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")
