"""Columns of an index's tables as plain lists: the border to pandas, which is not fully typed."""

from typing import Any


def texts_of(table: Any, column: str) -> list[str]:
    """Return a column of a data frame as strings; of None, an empty list."""
    values: list[Any] = [] if table is None else table[column].tolist()
    return [str(value) for value in values]


def id_lists_of(table: Any, column: str) -> list[tuple[str, ...]]:
    """Return a column of id lists as tuples, a missing list as an empty one.

    CSV files hold a list as text, which is read as the release reads it.
    """
    from graphrag.data_model.dfs import split_list_column

    values: list[Any] = [] if table is None else table[column].tolist()
    lists = [split_list_column(value) for value in values]
    return [tuple(str(v) for v in ids) if hasattr(ids, "__len__") else () for ids in lists]


def counts_of(table: Any, column: str) -> list[int] | None:
    """Return a column of a data frame as whole numbers, None if one is missing."""
    values: list[Any] = table[column].tolist()
    if any(value is None or value != value for value in values):
        return None
    return [int(value) for value in values]
