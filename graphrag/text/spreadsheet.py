"""Cells of CSV files that a spreadsheet shows as they are, and never runs."""

import re

# One more apostrophe each time, so that every text can be read back exactly.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED_FORMULA = re.compile(r"'+[=+\-@\t\r\n]")


def harmless_cell(text: str) -> str:
    """Return a text with an apostrophe before it where a spreadsheet would take it for a formula.

    A number must be written as a number, not as a text: -1 would get the apostrophe, too.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def read_cell(cell: str) -> str:
    """Return the text of which :func:`harmless_cell` made a cell."""
    return cell[1:] if _QUOTED_FORMULA.match(cell) else cell
