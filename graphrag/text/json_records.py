"""Records that are kept as JSON, and the fields of records that others made."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Self, TypeVar, cast

from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


class Stored:
    """A dataclass that is kept as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values."""
        return _adapter(type(self)).dump_python(self, mode="json")

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Read what :meth:`to_dict` gave."""
        return _adapter(cls).validate_python(values)


def fields_of(record: object, *names: str) -> Iterator[object]:
    """Yield those of the named fields that a mapping or an object has."""
    for name in names:
        if isinstance(record, Mapping):
            fields = cast("Mapping[str, object]", record)
            if name in fields:
                yield fields[name]
        elif hasattr(record, name):
            yield getattr(record, name)
