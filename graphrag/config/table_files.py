"""Finds the table files of an index, under the names that each version of graphrag uses."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

SEARCHED_TABLES = ("entities", "relationships", "text_units", "communities", "community_reports")
VALIDATED_TABLES = ("documents", "text_units", "entities", "relationships")
OLD_PREFIX = "create_final_"
"""Prefix of table names in graphrag 0.3 to 1."""
NODES = "nodes"
"""Table of graphrag 0.3 to 1 with the community of each entity."""
OLDER_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "entities": {"title": "name"},
    "relationships": {"combined_degree": "rank"},
    "documents": {"text": "raw_content"},
}
"""Table -> column of graphrag 3 -> name of that column in an earlier version."""
_TIMESTAMP = "${timestamp}"
_VERSIONED = ("text_units", "entities", "relationships")
"""Tables whose file names show the version of graphrag."""


def resolve_path(folder: Path, location: str) -> Path:
    r"""Return the absolute path of a location relative to the settings file's folder.

    In a path written on Windows, ``\`` separates the names. ``${timestamp}``, which names one
    folder per build in graphrag 0.3, becomes the newest of these folders.
    """
    if os.sep == "/" and "\\" in location and not (folder / location).exists():
        location = location.replace("\\", "/")
    if _TIMESTAMP in location:
        builds = sorted(path for path in folder.glob(location.replace(_TIMESTAMP, "*")))
        location = str(builds[-1]) if builds else location
    return (folder / location).resolve()


def old_names(names: Iterable[str], kind: str) -> bool:
    """Say whether file names are those of tables of graphrag 0.3 to 1."""
    there = set(names)
    return not any(f"{name}.{kind}" in there for name in _VERSIONED) and any(
        f"{OLD_PREFIX}{name}.{kind}" in there for name in _VERSIONED
    )


def find_table_files(folder: Path, names: Iterable[str], kind: str) -> dict[str, Path]:
    """Return table -> file for those of the named tables that are in a folder, of any version."""
    try:
        there = {path.name for path in folder.iterdir()}
    except OSError:
        return {}
    prefix = OLD_PREFIX if old_names(there, kind) else ""
    files = {name: f"{prefix}{name}.{kind}" for name in names if prefix or name != NODES}
    return {name: folder / file for name, file in files.items() if file in there}


class IndexNotBuiltError(ValueError):
    """A project has no index that a method can search; the message has the cause and the remedy.

    ``lack`` names only the missing or broken part.
    """

    def __init__(self, message: str, lack: str = "") -> None:
        super().__init__(message)
        self.lack = lack or message


class UnreadableTableError(IndexNotBuiltError):
    """A table of the index lacks a column or can't be read; the message names its file."""


LFS_HEAD = b"version https://git-lfs.github.com/spec/"
"""Beginning of the small pointer file that Git LFS keeps instead of a large file."""
_PARQUET = b"PAR1"


def is_lfs_pointer(path: Path) -> bool:
    """Say whether a file is a Git LFS pointer whose content was not fetched."""
    try:
        with path.open("rb") as file:
            return file.read(len(LFS_HEAD)) == LFS_HEAD
    except OSError:
        return False


def describe_unreadable(path: Path, error: Exception | None = None) -> str:
    """Return a sentence with the cause why a table's file can't be read, and the remedy."""
    if is_lfs_pointer(path):
        return f"{path} is a pointer of Git LFS, not the table; fetch the table with: git lfs pull"
    mend = "copy it again from where it was built, or build the index again"
    try:
        content = path.read_bytes() if path.suffix == ".parquet" else None
    except OSError as problem:
        return f"{path} can't be read ({problem.strerror})"
    if content is not None and not content:
        return f"{path} is empty, not a table; {mend}"
    if content is not None and not content.startswith(_PARQUET):
        return f"{path} is no Parquet file; {mend}"
    if content is not None and not content.endswith(_PARQUET):
        return f"{path} is cut short: the end of the file is missing; {mend}"
    cause = " ".join(str(error or "").split())[:200]
    return f"{path} can't be read{f' ({cause})' if cause else ''}; {mend}"


def is_unreadable(path: Path) -> bool:
    """Say whether a file is missing, cut short or not Parquet."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_PARQUET)) == _PARQUET
            file.seek(max(0, path.stat().st_size - len(_PARQUET)))
            return not begins or file.read() != _PARQUET
    except OSError:
        return True
