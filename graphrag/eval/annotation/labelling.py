"""Labels that are kept one by one in an audit's sheet, while a person gives them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.annotation.sheet import (
    COLUMNS,
    SheetRow,
    items_of,
    read_sheet_rows,
    write_sheet_rows,
)
from graphrag.eval.errors import StoreError, UsageError
from graphrag.text.controls import harmless_cell, read_cell

_SKIPPED = "skipped"
"""A column that the import leaves alone: 1 where a person could not tell."""
_WAIT_S = 5


class Mark(BaseModel):
    """What a person said of one response; ``label`` is "" where there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Literal["", "0", "1"] = ""
    skipped: bool = False
    comment: str = ""


class MarkChange(Mark):
    """A change of one mark; ``seen`` is what stood there when it was made."""

    item: str
    seen: Mark

    @property
    def mark(self) -> Mark:
        """The mark alone."""
        return Mark(label=self.label, skipped=self.skipped, comment=self.comment)


class MarkConflict(UsageError):
    """Somebody else has changed the mark meanwhile; ``found`` is what stands there."""

    def __init__(self, found: Mark) -> None:
        super().__init__("This response was labelled elsewhere meanwhile.")
        self.found = found


def read_marks(path: Path) -> tuple[list[AuditItem], dict[str, Mark]]:
    """Return the items of a sheet, and item -> its mark.

    Raises
    ------
    UsageError
        As of ``read_sheet``.
    """
    rows = read_sheet_rows(path)
    return items_of(rows, path), {read_cell(row["item"]): _mark_of(row) for row in rows}


def keep_mark(path: Path, change: MarkChange) -> Mark:
    """Put one mark into a sheet, which is written whole or not at all, and return it.

    Everything else in the file stays, what others have put there meanwhile included.

    Raises
    ------
    MarkConflict
        If the mark is not what was seen when the change was made.
    UsageError
        If the sheet can't be read, or there is no such item.
    StoreError
        If it can't be written.
    """
    try:
        with FileLock(f"{path}.lock", timeout=_WAIT_S):
            return _keep(path, change)
    except Timeout as error:
        msg = f"{path} is being written by another process."
        raise StoreError(msg) from error
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror}."
        raise StoreError(msg) from error


def _keep(path: Path, change: MarkChange) -> Mark:
    rows = read_sheet_rows(path)
    items_of(rows, path)
    row = next((row for row in rows if read_cell(row["item"]) == change.item), None)
    if row is None:
        msg = f"{path.name} holds no item {change.item!r} any more; open the page again."
        raise UsageError(msg)
    found, wanted = _mark_of(row), change.mark
    if found == wanted:
        return found
    if found != change.seen:
        raise MarkConflict(found)
    row["label"], row["comment"] = wanted.label, harmless_cell(wanted.comment)
    if wanted.skipped or _SKIPPED in row:
        row[_SKIPPED] = "1" if wanted.skipped else ""
    write_sheet_rows(path, _columns(rows), rows)
    return wanted


def _mark_of(row: SheetRow) -> Mark:
    label = read_cell(row["label"]).strip()
    return Mark(
        label="1" if label == "1" else "0" if label == "0" else "",
        skipped=not label and row.get(_SKIPPED, "") == "1",
        comment=read_cell(row["comment"]),
    )


def _columns(rows: Sequence[SheetRow]) -> list[str]:
    return list(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)]))
