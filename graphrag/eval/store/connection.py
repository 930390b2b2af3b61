"""The connection to a store, which no key or password of a service passes."""

import sqlite3
from typing import Any, cast

from graphrag.redaction import redact_data


class CleanConnection(sqlite3.Connection):
    """A connection that leaves out of every text what is known for a key."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement."""
        return super().execute(sql, _clean(parameters))

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """Run one statement for each of several rows."""
        return super().executemany(sql, [_clean(row) for row in parameters])


def _clean(values: Any) -> Any:
    if isinstance(values, dict):
        named = cast("dict[str, object]", values)
        return {name: _clean_value(value) for name, value in named.items()}
    return tuple(_clean_value(value) for value in values)


def _clean_value(value: object) -> object:
    return redact_data(value) if isinstance(value, str) else value
