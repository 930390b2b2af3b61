"""Writes an audit's CSV file for spreadsheets, keeps single labels in it, and reads it back."""

import csv
import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Literal, TypeAlias

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.errors import ChangedElsewhere, StoreError, UsageError
from graphrag.eval.store.atomic_files import write_file
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.input_files import read_input
from graphrag.text.message_phrases import counted
from graphrag.text.terminal_escape import harmless_cell, read_cell

COLUMNS = tuple(field.name for field in fields(AuditItem))
_SKIPPED = "skipped"
"""A column that is 1 if a person skipped the response; the import ignores it."""
_LABELS = {"": None, "0": 0, "1": 1}
_LONGEST_CELL = 2**31 - 1  # the context of a search is longer than what csv reads by itself
_WAIT_S = 5

_Row: TypeAlias = dict[str, str]  # column -> cell, as the file has it


class Mark(BaseModel):
    """A person's label of one response; ``label`` is "" if there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Literal["", "0", "1"] = ""
    skipped: bool = False
    comment: str = ""


class MarkChange(Mark):
    """A change of one mark; ``seen`` is the mark that the person saw when making it."""

    item: str
    seen: Mark


def write_sheet(path: Path, items: Sequence[AuditItem]) -> None:
    """Write items as UTF-8 CSV with a byte order mark, which spreadsheets need.

    Raises UsageError if the file exists and has labels, or is something else. Raises StoreError if
    it can't be written.
    """
    if path.exists():
        n_labels = sum(item.label is not None for item in read_sheet(path))
        if n_labels:
            line = eval_line_here("judge", "--labels", path)
            msg = f"{path} has {counted(n_labels, 'label')}"
            raise UsageError(f"{msg}; move the file away, or import it with: {line}")
    rows = [
        {k: harmless_cell("" if v is None else str(v)) for k, v in asdict(item).items()}
        for item in items
    ]
    _write_rows(path, rows)


def read_sheet(path: Path) -> list[AuditItem]:
    """Read a file that :func:`write_sheet` or the page wrote and a person filled in.

    Cells may be separated by commas or semicolons, and further columns are ignored, because
    spreadsheets change files in these ways. Raises UsageError, which names the row (the header is
    row 1), if the file can't be read, a column is missing, a label is neither blank nor 0 or 1, or
    the rows are of different runs or metrics.
    """
    return _items_of(_read_rows(path), path)


def read_marks(path: Path) -> tuple[list[AuditItem], dict[str, Mark]]:
    """Return the items of a sheet, and item -> its mark; raises as :func:`read_sheet` does."""
    rows = _read_rows(path)
    return _items_of(rows, path), {read_cell(row["item"]): _mark_of(row) for row in rows}


def keep_mark(path: Path, change: MarkChange) -> Mark:
    """Put one mark into a sheet and return it; the sheet is written in full or not at all.

    Everything else in the file stays, including what others have written meanwhile. Raises
    ChangedElsewhere if the mark is not the one that the person saw, UsageError if the sheet can't
    be read or has no such item, StoreError if it can't be written.
    """
    with locked(path):
        rows = _read_rows(path)
        _items_of(rows, path)
        row = next((row for row in rows if read_cell(row["item"]) == change.item), None)
        if row is None:
            msg = f"{path.name} has no item {change.item!r} any more; open the page again."
            raise UsageError(msg)
        current = _mark_of(row)
        mark = Mark(label=change.label, skipped=change.skipped, comment=change.comment)
        if current == mark:
            return current
        if current != change.seen:
            raise ChangedElsewhere(current)
        row["label"], row["comment"] = mark.label, harmless_cell(mark.comment)
        if mark.skipped or _SKIPPED in row:
            row[_SKIPPED] = "1" if mark.skipped else ""
        _write_rows(path, rows)
        return mark


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Lock a file for writing; StoreError if another process has it, or it is not possible."""
    try:
        with FileLock(f"{path.resolve()}.lock", timeout=_WAIT_S):  # links are followed
            yield
    except Timeout as error:
        raise StoreError(f"{path} is being written by another process.") from error
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}.") from error


def _mark_of(row: _Row) -> Mark:
    label = read_cell(row["label"]).strip()
    return Mark.model_validate(
        {
            "label": label if label in _LABELS else "",
            "skipped": not label and row.get(_SKIPPED) == "1",
            "comment": read_cell(row["comment"]),
        }
    )


def _write_rows(path: Path, rows: Sequence[_Row]) -> None:
    text = io.StringIO(newline="")
    columns = dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)])
    writer = csv.DictWriter(text, [*columns], restval="", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    write_file(path, text.getvalue().encode("utf-8-sig"))


def _read_rows(path: Path) -> list[_Row]:
    """Read the cells of a sheet as they are in the file, including further columns."""
    make_one = f"name the CSV that this wrote: {eval_line_here('view', '--labels', 'latest')}"
    try:
        text = read_input(path).decode("utf-8-sig")
        header = text.partition("\n")[0]
        separator = ";" if header.count(";") > header.count(",") else ","
        with _long_cells(), io.StringIO(text, newline="") as file:
            reader = csv.DictReader(file, delimiter=separator, strict=True, restval="")
            # Cells beyond the header have no name.
            rows = [{k: v for k, v in row.items() if isinstance(k, str)} for row in reader]
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist; {make_one}") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} can't be read as CSV in UTF-8: {error}.") from error
    if not rows:
        raise UsageError(f"{path} has no row; {make_one}")
    missing = [name for name in COLUMNS if name not in rows[0]]
    if missing:
        msg = f"{path} has no column {missing[0]}; leave the columns as they were exported."
        raise UsageError(msg)
    return rows


def _items_of(rows: Sequence[_Row], path: Path) -> list[AuditItem]:
    items: list[AuditItem] = []
    for number, row in enumerate(rows, 2):
        values = {name: read_cell(row[name]) for name in COLUMNS}
        label = values.pop("label").strip()
        if label not in _LABELS:
            raise UsageError(
                f"{path}, row {number}: the label is {label!r}; it is 0, 1, or blank where there "
                "is none."
            )
        items.append(AuditItem(**values, label=_LABELS[label]))
        if (items[-1].run, items[-1].metric) != (items[0].run, items[0].metric):
            msg = f"{path}, row {number} is of another run or metric than the rows before it."
            raise UsageError(msg)
    return items


@contextmanager
def _long_cells() -> Generator[None]:
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)
