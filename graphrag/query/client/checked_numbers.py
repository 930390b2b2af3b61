"""Checks the counts, dollars and seconds that are read from replies and stored records."""

from collections.abc import Mapping
from numbers import Real
from typing import Annotated, Self, TypeAlias, cast

from pydantic import Field, ValidationError

from graphrag.text.json_records import Stored

MOST_COUNT, MOST_USD, MOST_SECONDS = 10**9, 10**6, 10**8
"""The most that an answer can cost: calls or tokens, US dollars, seconds."""
Count: TypeAlias = Annotated[int, Field(ge=0, le=MOST_COUNT)]
"""A number of calls or tokens, checked by pydantic."""
Dollars: TypeAlias = Annotated[float, Field(ge=0, le=MOST_USD, allow_inf_nan=False)]
"""An amount of US dollars, checked by pydantic."""
_OUT_OF_BOUNDS = {
    *("greater_than_equal", "less_than_equal", "finite_number"),
    *("int_from_float", "int_parsing_size"),
}


class ImpossibleFigureError(ValueError):
    """Raised for a figure that no answer can have; the message is a clause that quotes it."""


def read_figure(name: str, value: object, most: int) -> float:
    """Return a value as a number from 0 to ``most``.

    Raises ImpossibleFigureError if it is something else.
    """
    number = None if isinstance(value, bool) or not isinstance(value, Real) else value
    if number is not None and 0 <= cast("float", number) <= most:  # which NaN is not
        return float(number)
    raise _impossible(name, value, most)


def _impossible(name: str, value: object, most: int) -> ImpossibleFigureError:
    text = repr(value)
    text = text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"
    return ImpossibleFigureError(f"{name} is {text}, and can only be a number from 0 to {most:,}")


def read_count(name: str, value: object) -> int:
    """Return a value as a number of calls or tokens.

    Raises ImpossibleFigureError if it is something else.
    """
    number = read_figure(name, value, MOST_COUNT)
    if number != int(number):
        raise ImpossibleFigureError(f"{name} is {number!r}, and can only be a whole number")
    return int(number)


class StoredFigures(Stored):
    """Keeps a record of figures as JSON, and checks the figures when it is read."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Read a record from the values that :meth:`to_dict` returned.

        Raises ValueError if they are something else: an ImpossibleFigureError if a figure is out of
        bounds.
        """
        try:
            return super().from_dict(values)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] not in _OUT_OF_BOUNDS:
                raise
            name = ".".join(str(part) for part in first["loc"])
            most = MOST_USD if "usd" in name else MOST_COUNT
            raise _impossible(name, first["input"], most) from error
