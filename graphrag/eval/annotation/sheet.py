"""The CSV file of an audit: written for spreadsheets, read back as it was."""

import csv
import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TypeAlias

from graphrag.command_lines import eval_line_here
from graphrag.eval.annotation.audit import AuditItem
from graphrag.eval.errors import UsageError
from graphrag.eval.store.whole_files import write_file
from graphrag.text.controls import harmless_cell, read_cell

COLUMNS = tuple(field.name for field in fields(AuditItem))

SheetRow: TypeAlias = dict[str, str]
"""Column -> cell, as the file has it."""

_LABELS = {"": None, "0": 0, "1": 1}
_LONGEST_CELL = 2**31 - 1  # the context of a search is longer than what csv reads by itself


def write_sheet(path: Path, items: Sequence[AuditItem]) -> None:
    """Write items as UTF-8 CSV with a byte order mark, which spreadsheets need.

    Raises
    ------
    UsageError
        If the file is there already and holds labels, or is something else.
    StoreError
        If it can't be written.
    """
    if path.exists():
        n_labels = sum(item.label is not None for item in read_sheet(path))
        if n_labels:
            msg = f"{path} holds {n_labels} labels; import or move it, or choose another --to."
            raise UsageError(msg)
    rows = [
        {name: _cell(getattr(item, name)) for name in COLUMNS}  # the order of the file
        for item in items
    ]
    write_sheet_rows(path, COLUMNS, rows)


def write_sheet_rows(path: Path, columns: Sequence[str], rows: Sequence[SheetRow]) -> None:
    """Write cells as they are; StoreError if they can't be written."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([row.get(name, "") for name in columns] for row in rows)
    write_file(path, text.getvalue().encode("utf-8-sig"), flag="--to")


def read_sheet(path: Path) -> list[AuditItem]:
    """Read a file that :func:`write_sheet` or the page wrote, and a person filled in.

    Commas or semicolons may separate the cells, and further columns are left alone: both is what
    a spreadsheet may do to it.

    Raises
    ------
    UsageError
        If the file can't be read, a column is missing, a label is neither blank nor 0 or 1, or
        the rows are of different runs or metrics; names the row, the header being row 1.
    """
    return items_of(read_sheet_rows(path), path)


def read_sheet_rows(path: Path) -> list[SheetRow]:
    """Read the cells of a sheet, further columns included, as they are in the file.

    Raises
    ------
    UsageError
        If the file can't be read, or a column is missing.
    """
    try:
        with _long_cells(), path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            separator = ";" if header.count(";") > header.count(",") else ","
            reader = csv.DictReader(file, delimiter=separator, strict=True, restval="")
            # Cells beyond the header have no name.
            rows = [{k: v for k, v in row.items() if isinstance(k, str)} for row in reader]
    except FileNotFoundError as error:
        msg = f"{path} does not exist; {_make_one()}"
        raise UsageError(msg) from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path} can't be read as CSV in UTF-8: {error}."
        raise UsageError(msg) from error
    if not rows:
        msg = f"{path} holds no row; {_make_one()}"
        raise UsageError(msg)
    missing = [name for name in COLUMNS if name not in rows[0]]
    if missing:
        msg = f"{path} has no column {missing[0]}; leave the columns as they were exported."
        raise UsageError(msg)
    return rows


def _make_one() -> str:
    return f"name the CSV that this wrote: {eval_line_here('audit', 'export', 'latest')}"


def items_of(rows: Sequence[SheetRow], path: Path) -> list[AuditItem]:
    """Return the items of a sheet's rows; raises UsageError as :func:`read_sheet` says."""
    items = [_read_item(row, f"{path}, row {number}") for number, row in enumerate(rows, 2)]
    for number, item in enumerate(items, 2):
        if (item.run, item.metric) != (items[0].run, items[0].metric):
            msg = f"{path}, row {number} is of another run or metric than the rows before it."
            raise UsageError(msg)
    return items


def _cell(value: object) -> str:
    return harmless_cell("" if value is None else str(value))


def _read_item(row: SheetRow, where: str) -> AuditItem:
    values = {name: read_cell(row[name]) for name in COLUMNS}
    label = values.pop("label").strip()
    if label not in _LABELS:
        msg = f"{where}: the label is {label!r}; it is 0, 1, or blank where there is none."
        raise UsageError(msg)
    return AuditItem(**values, label=_LABELS[label])


@contextmanager
def _long_cells() -> Generator[None]:
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)
