"""Reads a user's file if it is a regular file of limited size."""

import errno
import stat
from pathlib import Path

MOST_BYTES = 1_000_000_000
"""Size limit of a file with rows: the largest benchmark that ``import`` reads, 2WikiMultihopQA's
90,000 questions with ten passages each, has two thirds of it."""
MOST_WRITTEN_BYTES = 10_000_000
"""Size limit of a file that a person writes: settings, a configuration, a suite."""


class InputFileError(OSError):
    """Raised when a file can't be read; the message is a clause and a next step.

    ``strerror`` is the same text.
    """

    def __str__(self) -> str:
        return str(self.strerror)


def read_input(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises OSError if it is something else, can't be read, or has more than ``most`` bytes.
    """
    state = path.stat()
    if stat.S_ISDIR(state.st_mode):
        raise InputFileError(errno.EISDIR, "it is a folder; name a file")
    if not stat.S_ISREG(state.st_mode):  # a pipe may never end, nor /dev/zero
        msg = "it is a pipe or a device; save its output in a file, and name that"
        raise InputFileError(errno.EINVAL, msg)
    if state.st_size > most:
        msg = f"it has {state.st_size:,} bytes, where {most:,} are read; take a part of it"
        raise InputFileError(errno.EFBIG, msg)
    return path.read_bytes()
