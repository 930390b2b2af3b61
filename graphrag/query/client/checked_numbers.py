"""The figures that an answer can take: calls, tokens, dollars, seconds."""

from collections.abc import Mapping
from numbers import Real
from typing import Annotated, Self, TypeAlias, cast

from pydantic import Field, ValidationError

from graphrag.text.json_records import Stored

MOST_COUNT, MOST_USD, MOST_SECONDS = 10**9, 10**6, 10**8
"""What no answer can take more of: calls or tokens, US dollars, seconds."""
Count: TypeAlias = Annotated[int, Field(ge=0, le=MOST_COUNT)]
Dollars: TypeAlias = Annotated[float, Field(ge=0, le=MOST_USD, allow_inf_nan=False)]
_OUT_OF_BOUNDS = {
    *("greater_than_equal", "less_than_equal", "finite_number"),
    *("int_from_float", "int_parsing_size"),
}


class ImpossibleFigureError(ValueError):
    """A figure is none that an answer can take; the message is a clause that says what it was."""


def read_figure(name: str, value: object, most: int) -> float:
    """Return a number from 0 to ``most``; ImpossibleFigureError if it is something else."""
    number = None if isinstance(value, bool) or not isinstance(value, Real) else value
    if number is not None and 0 <= cast("float", number) <= most:  # which NaN is not
        return float(number)
    raise _impossible(name, value, most)


def _impossible(name: str, value: object, most: int) -> ImpossibleFigureError:
    text = repr(value)
    text = text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"
    return ImpossibleFigureError(f"{name} is {text}, and can only be a number from 0 to {most:,}")


def read_count(name: str, value: object) -> int:
    """Return a number of calls or tokens; ImpossibleFigureError if it is something else."""
    number = read_figure(name, value, MOST_COUNT)
    if number != int(number):
        raise ImpossibleFigureError(f"{name} is {number!r}, and can only be a whole number")
    return int(number)


class StoredFigures(Stored):
    """A record of figures that is kept as JSON."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Read what :meth:`to_dict` gave; ValueError if it is something else.

        It is an ImpossibleFigureError if a figure is outside of what an answer can take.
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
