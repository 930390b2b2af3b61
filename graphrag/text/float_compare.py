"""Figures that are held to bounds."""

from math import isclose
from typing import Literal

_EDGE = 1e-9


def is_below(value: float, bound: float) -> bool:
    """Say whether a value is below a bound: thirds that add up to it are not."""
    return value < bound and not isclose(value, bound, rel_tol=_EDGE, abs_tol=_EDGE)


def number_beside(
    value: float, *bounds: float, digits: int = 3, kind: Literal["f", "g"] = "f"
) -> str:
    """Return a figure with so many digits, or with more if it takes those to tell it from bounds.

    ``kind``: digits after the point, "f", or all that say something, "g".
    """
    text = f"{value:.{digits}{kind}}"
    while digits < 15 and any(_side(float(text), b) != _side(value, b) for b in bounds):
        digits += 1
        text = f"{value:.{digits}{kind}}"
    return text


def _side(value: float, bound: float) -> int:
    return is_below(bound, value) - is_below(value, bound)
