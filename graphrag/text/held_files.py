"""Moves files and folders into place, also where somebody reads what is there.

Windows refuses to replace, rename or delete what any program has open; a virus scanner has it for a
moment only.
"""

import os
import time
from pathlib import Path

_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8)
_HOLDS_OPEN = os.name == "nt"
"""Whether a file that is open can't be moved or replaced."""


def move(source: Path, target: Path) -> None:
    """Give a file or folder another name, in place of a file of that name.

    On Windows it is tried for a second and a half while a program has one of them open. Raises
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
