"""The text units of an index, read one by one."""

from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from graphrag.query.structured_search.tog_search.columns import Columns, first_positions
from graphrag.query.structured_search.tog_search.words import split_terms

_N_CACHED_TERMS = 512


@dataclass(frozen=True, slots=True)
class TextUnit:
    """One text unit; ``human_readable_id`` is what is cited."""

    id: str
    human_readable_id: int
    text: str


class TextUnits:
    """Looks text units up by id.

    Parameters
    ----------
    table : pandas.DataFrame
        ``id`` and ``text``; optional ``human_readable_id`` (default: the row number).

    Raises
    ------
    ValueError
        If a needed column is missing.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._columns = Columns(table, "text units", ("id", "text"))
        self._row_of_id = first_positions(self._columns.texts("id"))
        self._terms = lru_cache(maxsize=_N_CACHED_TERMS)(self._split)

    def get(self, unit_id: str) -> TextUnit | None:
        """Return a text unit, None for an unknown id or one without text."""
        row = self._row_of_id.get(unit_id)
        if row is None or not self._columns.text("text", row).strip():
            return None
        text = self._columns.text("text", row)
        return TextUnit(unit_id, self._columns.whole("human_readable_id", row), text)

    def terms(self, unit: TextUnit) -> list[str]:
        """Return the comparable terms of a text unit's text."""
        return self._terms(unit.text)

    @staticmethod
    def _split(text: str) -> list[str]:
        return split_terms([text])[0]
