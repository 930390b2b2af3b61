"""JSON written piece by piece, so that what it is made of need not be in memory together."""

import json
from collections.abc import Iterator, Mapping
from typing import cast


def json_pieces(
    values: Mapping[str, object],
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
) -> Iterator[str]:
    """Yield, in pieces, what ``json.dumps`` gives of a mapping.

    Parameters
    ----------
    values : mapping
        JSON-ready; each value that is an iterator is written as a list, an item a piece.
    indent, separators
        As of ``json.dumps``; other characters than ASCII are written as they are.

    Raises
    ------
    ValueError
        If a value is NaN or infinite.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )
    begin, end = "{", "{}"
    for name, value in values.items():
        yield f"{begin}{_line(indent, 1)}{encoder.encode(name)}{encoder.key_separator}"
        if isinstance(value, Iterator):
            yield from _items(cast("Iterator[object]", value), encoder, indent)
        else:
            yield _encode(value, encoder, indent, 1)
        begin, end = encoder.item_separator, f"{_line(indent, 0)}}}"
    yield end


def _items(
    values: Iterator[object], encoder: json.JSONEncoder, indent: int | None
) -> Iterator[str]:
    begin, end = "[", "[]"
    for value in values:
        yield f"{begin}{_line(indent, 2)}{_encode(value, encoder, indent, 2)}"
        begin, end = encoder.item_separator, f"{_line(indent, 1)}]"
    yield end


def _encode(value: object, encoder: json.JSONEncoder, indent: int | None, level: int) -> str:
    """Return a value's JSON; every line break in it is one between values, and indented."""
    return encoder.encode(value).replace("\n", _line(indent, level) or "\n")


def _line(indent: int | None, level: int) -> str:
    return "" if indent is None else "\n" + " " * indent * level
