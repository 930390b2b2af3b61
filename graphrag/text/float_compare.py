"""Compares figures with bounds despite rounding errors, and prints them next to bounds."""

from math import isclose
from typing import Literal

_EDGE = 1e-9


def is_below(value: float, bound: float) -> bool:
    """Say whether a value is below a bound by more than a rounding error.

    For example, 0.1 + 0.7 (0.7999999999999999) is not below 0.8.
    """
    return value < bound and not isclose(value, bound, rel_tol=_EDGE, abs_tol=_EDGE)


def number_beside(
    value: float, *bounds: float, digits: int = 3, kind: Literal["f", "g"] = "f"
) -> str:
    """Return a figure with ``digits`` digits, or as many more as distinguish it from the bounds.

    ``kind``: "f" for digits after the point, "g" for significant digits.
    """
    text = f"{value:.{digits}{kind}}"
    while digits < 15 and any(_side(float(text), b) != _side(value, b) for b in bounds):
        digits += 1
        text = f"{value:.{digits}{kind}}"
    return text


def _side(value: float, bound: float) -> int:
    return is_below(bound, value) - is_below(value, bound)
