"""Columns of an index's tables as plain lists: the border to pandas, which is not fully typed."""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import pandas as pd


def texts_of(table: "pd.DataFrame | None", column: str) -> list[str]:
    """Return a column of a data frame as strings; of None, an empty list."""
    return list(map(str, cells_of(table, column)))


def id_lists_of(table: "pd.DataFrame | None", column: str) -> list[tuple[str, ...]]:
    """Return a column of id lists as tuples, a missing list as an empty one.

    CSV files hold a list as text, which is read as the release reads it.
    """
    from graphrag.data_model.dfs import split_list_column

    lists = map(split_list_column, cells_of(table, column))
    return [tuple(map(str, ids)) if hasattr(ids, "__len__") else () for ids in lists]


def cells_of(table: "pd.DataFrame | None", column: str) -> list[object]:
    """Return a column of a data frame as its values; of None, an empty list."""
    return [] if table is None else cast("list[object]", table[column].tolist())
