"""Single values out of a table, with what stands in for a missing one."""

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

# pandas is only partly typed; values leave this module with a type.
_pandas: Any = pd


class Columns:
    """Reads a table value by value, without converting it as a whole.

    Parameters
    ----------
    table : pandas.DataFrame
    name : str
        The table's name, for the error.
    needed : tuple of str
        Columns that must be there; another one that is missing reads as missing values.

    Raises
    ------
    ValueError
        If a needed column is missing.
    """

    def __init__(self, table: pd.DataFrame, name: str, needed: tuple[str, ...]) -> None:
        missing = [column for column in needed if column not in table.columns]
        if missing:
            msg = f"The {name} table has no column {', '.join(missing)}; build the index again."
            raise ValueError(msg)
        self.n_rows = len(table)
        frame: Any = table
        self._columns: dict[str, Any] = {str(key): frame[key].array for key in frame.columns}

    def texts(self, name: str) -> list[str]:
        """Return a whole column as text, a missing value as an empty one."""
        return cast(
            "list[str]", _pandas.Series(self._columns[name]).fillna("").astype(str).tolist()
        )

    def numbers(self, name: str, default: float) -> npt.NDArray[np.float32]:
        """Return a whole column as float32, shape (n_rows,)."""
        if name not in self._columns:
            return np.full(self.n_rows, default, dtype=np.float32)
        values = _pandas.to_numeric(_pandas.Series(self._columns[name])).fillna(default)
        return np.asarray(values, dtype=np.float32)

    def text(self, name: str, row: int) -> str:
        """Return a text, empty when missing."""
        value = self._value(name, row)
        return "" if value is None else str(value)

    def number(self, name: str, row: int, default: float) -> float:
        """Return a number, `default` when missing."""
        value = self._value(name, row)
        return default if value is None else float(value)

    def whole(self, name: str, row: int) -> int:
        """Return a whole number, the row's own when missing."""
        value = self._value(name, row)
        return row if value is None else int(value)

    def ids(self, name: str, row: int) -> tuple[str, ...]:
        """Return a list of ids, empty when missing."""
        value = self._value(name, row)
        if value is None or isinstance(value, str):
            return ()
        return tuple(str(item) for item in cast("Iterable[Any]", value))

    def _value(self, name: str, row: int) -> Any:
        column = self._columns.get(name)
        if column is None:
            return None
        value: Any = column[row]
        if isinstance(value, (list, tuple, np.ndarray)):
            return cast("Any", value)
        return None if _pandas.isna(value) else value


def first_positions(values: list[str]) -> dict[str, int]:
    """Map each text to the first place where it stands; the empty text is left out."""
    last = len(values) - 1
    positions = dict(zip(reversed(values), range(last, -1, -1), strict=True))
    positions.pop("", None)
    return positions
