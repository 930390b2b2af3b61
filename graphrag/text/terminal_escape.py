"""Makes characters harmless that control a terminal, GitHub's runner or a spreadsheet."""

import os
import re
from collections.abc import Iterable
from typing import IO

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 except newline and tab, DEL, C1, and what Unicode lists as Bidi_Control."""
_COMMAND = re.compile(r"(?m)(^[^\S\n]*:(?=:)|##(?=\[))")
"""The beginning of a workflow command: ``::`` at the start of a line, or ``##[`` anywhere."""

# One more apostrophe each time, so that every text can be read back exactly.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED_FORMULA = re.compile(r"'+[=+\-@\t\r\n]")


def mend_text(text: str) -> str:
    """Replace each lone surrogate by "?", because neither UTF-8 nor a database can store it."""
    return text.encode("utf-8", "replace").decode()


def harmless_cell(text: str) -> str:
    """Return a text, with an apostrophe in front if a spreadsheet would take it for a formula.

    A number must be written as a number, not as a text: the text -1 would get the apostrophe, too.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def read_cell(cell: str) -> str:
    """Return the text from which :func:`harmless_cell` made a cell."""
    return cell[1:] if _QUOTED_FORMULA.match(cell) else cell


def strip_controls(text: str) -> str:
    """Return a text without the characters that a terminal obeys."""
    return _CONTROLS.sub("", text)


def escape_controls(json_text: str) -> str:
    """Return JSON with the same meaning in which these characters are escaped."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


class ShownText:
    """Cleans a text that is shown piece by piece of terminal controls and runner commands.

    It remembers the end of the last piece, because a command may be split between two.
    """

    def __init__(self) -> None:
        self._is_workflow = os.environ.get("GITHUB_ACTIONS") == "true"
        self._line = ""
        """Represents the line that was begun: a command may come in two pieces."""

    def feed(self, piece: str) -> str:
        """Return the next piece as it may be shown."""
        piece = strip_controls(piece)
        if not self._is_workflow:
            return piece
        text = self._line + piece
        output = _COMMAND.sub(r"\1 ", text)[len(self._line) :]
        line = text.rpartition("\n")[2]
        self._line = line[-1:] if line.strip() in ("", ":") else f"x{line[-2:]}"
        return output


class ShownStream:
    """Writes to a stream, cleaning the text as :class:`ShownText` does.

    ``is_blank``: whether only blanks were written so far.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._text = ShownText()
        self.is_blank = True

    def write(self, text: str) -> int:
        """Write a text."""
        self._stream.write(self._text.feed(text))
        self.is_blank = self.is_blank and not text.strip()
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
