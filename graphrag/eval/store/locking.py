"""Locks a file, so that no other process writes it."""

from pathlib import Path
from typing import TYPE_CHECKING

from graphrag.eval.errors import StoreError

if TYPE_CHECKING:
    from filelock import FileLock


def lock_file(path: Path, activity: str) -> "FileLock":
    """Lock a file and return the lock; the file's folder is made if missing.

    ``activity``: of a process that holds the lock, for the error. Raises StoreError if another
    process holds it, or the folder can't be written.
    """
    from filelock import FileLock, Timeout  # every command loads this module

    lock = FileLock(f"{path}.lock", timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        msg = f"Another process {activity}; wait for it, or choose another --output."
        raise StoreError(msg) from error
    except OSError as error:
        msg = f"{path.parent} can't be written ({error.strerror}); choose another --output."
        raise StoreError(msg) from error
    return lock
