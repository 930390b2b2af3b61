"""Writes JSON, at once or piece by piece, and reads and writes records that are kept as JSON."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Self, TypeVar, cast

from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


class Stored:
    """Keeps a dataclass as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, object]:
        """Return the record as JSON-ready values."""
        return _adapter(type(self)).dump_python(self, mode="json")

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Read a record from the values that :meth:`to_dict` returned.

        An earlier version may have written them. Unknown fields are left out.
        """
        return _adapter(cls).validate_python(values)


def fields_of(record: object, *names: str) -> Iterator[object]:
    """Yield the values of the named fields that a mapping or an object has."""
    for name in names:
        if isinstance(record, Mapping):
            fields = cast("Mapping[str, object]", record)
            if name in fields:
                yield fields[name]
        elif hasattr(record, name):
            yield getattr(record, name)


def whole_json(value: object, indent: int | None = 2) -> str:
    """Return a JSON-ready value as the content of a file.

    Raises ValueError if it contains a NaN.
    """
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False) + "\n"


def json_pieces(
    values: Mapping[str, object],
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
) -> Iterator[str]:
    """Yield the JSON of a mapping, as ``json.dumps`` writes it, in pieces.

    A value that is an iterator is written as a list, one item a piece. Characters beyond ASCII are
    written as they are. Raises ValueError if a value is NaN or infinite.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )

    def line(level: int) -> str:
        return "" if indent is None else "\n" + " " * indent * level

    def encode(value: object, level: int) -> str:
        # Line breaks inside strings are escaped, so each one is between values.
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
