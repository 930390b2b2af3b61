"""JSON written piece by piece, so that what it is made of need not be in memory together."""

import json
from collections.abc import Iterator, Mapping
from typing import cast


def whole_json(value: object, indent: int | None = 2) -> str:
    """Return a JSON-ready value as the content of a file; ValueError if it holds a NaN."""
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False) + "\n"


def json_pieces(
    values: Mapping[str, object],
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
) -> Iterator[str]:
    """Yield, in pieces, what ``json.dumps`` gives of a JSON-ready mapping.

    Each value that is an iterator is written as a list, an item a piece. Other characters than
    ASCII are written as they are; a value that is NaN or infinite raises ValueError.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )

    def line(level: int) -> str:
        return "" if indent is None else "\n" + " " * indent * level

    def encode(value: object, level: int) -> str:
        # Every line break in it is one between values, and indented.
        return encoder.encode(value).replace("\n", line(level) or "\n")

    comma, begin, end = encoder.item_separator, "{", "{}"
    for name, value in values.items():
        yield f"{begin}{line(1)}{encoder.encode(name)}{encoder.key_separator}"
        begin, end = comma, line(0) + "}"
        if not isinstance(value, Iterator):
            yield encode(value, 1)
            continue
        opening, closing = "[", "[]"
        for item in cast("Iterator[object]", value):
            yield f"{opening}{line(2)}{encode(item, 2)}"
            opening, closing = comma, line(1) + "]"
        yield closing
    yield end
