"""Moves files and folders into place; tries again while another program has them open.

Windows refuses to replace, rename or delete a file that any program has open; a virus scanner keeps
it open only for a moment.
"""

import os
import time
from pathlib import Path

_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8)
_HOLDS_OPEN = os.name == "nt"
"""Whether this system can't move or replace an open file."""


def move(source: Path, target: Path) -> None:
    """Rename a file or folder; a file that has the new name is replaced.

    On Windows this is tried for a second and a half while a program has one of them open. Raises
    OSError if it can't be done.
    """
    for wait_s in _WAITS_S if _HOLDS_OPEN else ():
        try:
            source.replace(target)
        except PermissionError:
            time.sleep(wait_s)
        else:
            return
    source.replace(target)
