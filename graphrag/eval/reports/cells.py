"""Figures as text, the same in every table and sentence.

What is missing is "-" in a cell and "unknown" in a sentence. Two words stand in cells beside
them, as they say why a judge's figure is missing: "not judged" where no verdict was asked for, and
"unscored" where none that was asked for could be read. A share of exactly 1 is 100, without
decimals, so that it can be told from one that is rounded up to 100.0.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag.eval.statistics import Estimate, LatencyQuantile

MISSING = "-"
UNKNOWN = "unknown"
UNSCORED = "unscored"
NOT_JUDGED = "not judged"


def number(value: float | None, form: str = ".2f", missing: str = MISSING) -> str:
    """Return a figure in a format such as ``.3f``."""
    return missing if value is None else format(value, form)


def money(usd: float | None, sign: str = "", missing: str = MISSING) -> str:
    """Return US dollars, after ``sign`` where they are known."""
    return missing if usd is None else f"{sign}{usd:.4f}"


def seconds(quantile: "LatencyQuantile", form: str = ".2f", missing: str = MISSING) -> str:
    """Return a latency, or how long it is at least."""
    if quantile.value is None and quantile.at_least is not None:
        return f">= {number(quantile.at_least, form)}"
    return number(quantile.value, form, missing)


def points(value: float | None, missing: str = MISSING) -> str:
    """Return a difference of two shares in percentage points, with its sign."""
    return missing if value is None else f"{100 * value:+.1f}"


def share(value: float | None, sign: str = "", missing: str = MISSING) -> str:
    """Return a share in per cent, before ``sign`` where it is known."""
    if value is None:
        return missing
    return f"{'100' if value == 1 else f'{100 * value:.1f}'}{sign}"


def percent(estimate: "Estimate", missing: str = MISSING) -> str:
    """Return a mean in per cent and, where there are any, its limits."""
    return share(estimate.mean, missing=missing) + _limits(estimate, 100, ".0f")


def plain(
    estimate: "Estimate", form: str = ".2f", limits: str = ".2f", missing: str = MISSING
) -> str:
    """Return a mean in its own unit and, where there are any, its limits."""
    return number(estimate.mean, form, missing) + _limits(estimate, 1, limits)


def span(low: float | None, high: float | None, shown: Callable[[float], str] = points) -> str:
    """Return two limits, each as ``shown`` shows it."""
    return MISSING if low is None or high is None else f"{shown(low)} to {shown(high)}"


def _limits(estimate: "Estimate", scale: float, form: str) -> str:
    if estimate.mean is None or estimate.low is None or estimate.high is None:
        return ""
    return f" ({format(scale * estimate.low, form)}-{format(scale * estimate.high, form)})"
