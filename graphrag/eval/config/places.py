"""Where a file of settings may have results written."""

import os
from pathlib import Path

from graphrag.eval.errors import ConfigError


def check_below(folder: Path, root: Path, setting: str, allow: str) -> None:
    """Refuse a folder for results that a file of settings names outside of its root.

    It may be somebody else's file. By the path as it is written: where a link on this disk leads is
    its owner's affair.

    Parameters
    ----------
    folder, root : Path
    setting : str
        The file and the key that name the folder.
    allow : str
        The key that allows it.

    Raises
    ------
    ConfigError
        Naming both ways to have it written there all the same.
    """
    below = Path(os.path.abspath(folder))
    if not below.is_relative_to(os.path.abspath(root)):
        msg = (
            f"{setting}: {below} lies outside of {root.absolute()}; if results are to be written "
            f"there, set {allow}: true, or name it with --output."
        )
        raise ConfigError(msg)
