"""What a user's file holds: of regular files alone, and never more than any real one has."""

import errno
import stat
from pathlib import Path

MOST_BYTES = 1_000_000_000
"""Of a file with rows: the largest benchmark that ``import`` reads, 2WikiMultihopQA's 90,000
questions with ten passages each, has two thirds of it."""
MOST_WRITTEN_BYTES = 10_000_000
"""Of what a person writes: settings, a configuration, a suite."""


class InputFileError(OSError):
    """A file can't be read; ``strerror`` and the message are a clause and a next step."""

    def __str__(self) -> str:
        return str(self.strerror)


def read_input(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what a file holds; OSError if it is not a regular one, or has more bytes."""
    state = path.stat()
    if stat.S_ISDIR(state.st_mode):
        raise InputFileError(errno.EISDIR, "it is a folder; name a file")
    if not stat.S_ISREG(state.st_mode):  # a pipe may never end, nor /dev/zero
        msg = "it is a pipe or a device; write what it gives into a file, and name that"
        raise InputFileError(errno.EINVAL, msg)
    if state.st_size > most:
        msg = f"it has {state.st_size:,} bytes, where {most:,} are read; take a part of it"
        raise InputFileError(errno.EFBIG, msg)
    return path.read_bytes()
