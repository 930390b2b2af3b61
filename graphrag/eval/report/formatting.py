"""Formats figures as text, the same way in every table and sentence.

A missing figure is "-" in a cell and "unknown" in a sentence. Two more words in a cell show why a
judge's figure is missing: "not judged" if no verdict was asked for, "unscored" if no verdict that
was asked for could be read. A share of exactly 1 is 100, without decimals, so that it differs
from one that is rounded up to 100.0. Limits are rounded outwards, so that an interval is never
shown narrower than it is.
"""

from collections.abc import Callable
from math import ceil, copysign, floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag.eval.stats.intervals import Estimate
    from graphrag.eval.stats.latency import LatencyQuantile
    from graphrag.eval.stats.outcomes import Outcomes

MISSING = "-"
UNKNOWN = "unknown"
UNSCORED = "unscored"
NOT_JUDGED = "not judged"
EACH_ALONE = "Each interval is for its own figure, not corrected for how many there are."
"""The note of tables with several intervals."""
_LEAST_P = 0.001
_OWN_UNIT = ("latency_s", "median_latency_s", "combined_score", "tokens", "cost_usd")


def number(value: float | None, form: str = ".2f", missing: str = MISSING) -> str:
    """Return a figure in a format such as ``.3f``, or ``missing`` if it is None."""
    return missing if value is None else format(value, form)


def mean_cell(outcomes: "Outcomes") -> str:
    """Return the mean that tables show, in percent, or why there is none."""
    return percent(outcomes.mean, NOT_JUDGED if outcomes.coverage is None else UNSCORED)


def mean_and_n(outcomes: "Outcomes", failed_as_0: bool = False) -> str:
    """Return the mean in percent with its n.

    ``failed_as_0``: take the mean in which failed searches count 0, as ``by_method`` does.
    """
    estimate = outcomes.end_to_end if failed_as_0 else outcomes.mean
    return mean_with_n(estimate) if estimate.n else mean_cell(outcomes)


def mean_with_n(estimate: "Estimate") -> str:
    """Return a mean in percent, its limits and its n."""
    return f"{percent(estimate)} n {estimate.n:,}" if estimate.n else MISSING


def has_two_means(outcomes: "Outcomes") -> bool:
    """Return whether failed searches make the mean in ``by_method`` differ from that in tables."""
    # A question of which one search of several failed counts in both.
    differ = outcomes.n_search_failed > 0 and outcomes.end_to_end != outcomes.given_answer
    return differ and not outcomes.failed_search_is_zero


def in_brackets(label: str | None) -> str:
    """Return a label in parentheses, after a space; "" if there is none."""
    return f" ({label})" if label else ""


def money(usd: float | None, sign: str = "", missing: str = MISSING) -> str:
    """Return US dollars with four decimals, after ``sign``; ``missing`` if they are not known.

    The order in which amounts were added up makes no difference.
    """
    return missing if usd is None else f"{sign}{round(usd, 12):.4f}"


def plain_amount(value: float | None) -> str:
    """Return a figure of any size, with at least four digits and without an exponent."""
    return number(value, ",.0f" if value is None or abs(value) >= 1000 else ".4g")


def p_value(p: float | None) -> str:
    """Return "p = 0.016", "p < 0.001", or that p is unknown."""
    if p is None:
        return f"p {UNKNOWN}"
    return f"p < {_LEAST_P}" if p < _LEAST_P else f"p = {p:.3f}"


def seconds(quantile: "LatencyQuantile", form: str = ".2f", missing: str = MISSING) -> str:
    """Return a latency in seconds, or ">= " and its lower bound."""
    if quantile.value is None and quantile.at_least is not None:
        return f">= {number(quantile.at_least, form)}"
    return number(quantile.value, form, missing)


def unfinished(quantile: "LatencyQuantile") -> str:
    """Return the share of searches whose latency is only known to be longer; "" if none."""
    part = quantile.censored_share
    if not part:
        return ""
    return f" ({'<1' if part < 0.01 else f'{100 * part:.0f}'} % unfinished)"


def figure(name: str, value: float | None) -> str:
    """Return a figure as tables show it; ``name``: its name in the list of runs."""
    if name == "tokens":
        return number(value, ",.0f")
    if name == "cost_usd":
        return money(value)
    return share(value) if is_share(name) else number(value)


def is_share(name: str) -> bool:
    """Return whether :func:`figure` shows a figure in percent."""
    from graphrag.eval.metrics.scorer_registry import SCORERS  # numpy: help needs none

    kind, has_part, _ = name.partition(".")
    scorer = SCORERS.find(kind) if has_part else None
    return scorer is not None and scorer.in_percent if has_part else name not in _OWN_UNIT


def points(value: float | None, missing: str = MISSING) -> str:
    """Return a difference of two shares in percentage points, with its sign."""
    return missing if value is None else f"{100 * value:+.1f}"


def share(value: float | None, sign: str = "", missing: str = MISSING) -> str:
    """Return a share in percent, followed by ``sign``; ``missing`` if it is not known."""
    return missing if value is None else f"{'100' if value == 1 else f'{100 * value:.1f}'}{sign}"


def percent(estimate: "Estimate", missing: str = MISSING) -> str:
    """Return a mean in percent and, if there are any, its limits."""
    return share(estimate.mean, missing=missing) + _limits(estimate, 100, ".0f")


def plain(estimate: "Estimate", limits: str = ".2f", missing: str = MISSING) -> str:
    """Return a mean in its own unit and, if there are any, its limits."""
    return number(estimate.mean, missing=missing) + _limits(estimate, 1, limits)


def span(
    low: float | None,
    high: float | None,
    render: Callable[[float], str] = points,
    decimals: int = 3,
    missing: str = MISSING,
) -> str:
    """Return "LOW to HIGH" for two limits, rounded outwards to ``decimals`` decimals.

    ``render``: turns a limit into text.
    """
    if low is None or high is None:
        return missing
    return f"{render(_outwards(low, decimals, floor))} to {render(_outwards(high, decimals, ceil))}"


def _limits(estimate: "Estimate", scale: float, form: str) -> str:
    if estimate.mean is None or estimate.low is None or estimate.high is None:
        return ""
    decimals = int(form.strip(".f"))
    low = _outwards(scale * estimate.low, decimals, floor)
    high = _outwards(scale * estimate.high, decimals, ceil)
    return f" ({format(low, form)}-{format(high, form)})"


def _outwards(limit: float, decimals: int, towards: Callable[[float], int]) -> float:
    steps = limit * 10**decimals
    # 100 * 0.57 is 56.99999999999999: the loss by the arithmetic is put back first.
    rounded = towards(round(steps, 9))
    return copysign(rounded / 10**decimals, limit)


def round_up(value: float) -> int:
    """Return a number, at least 0, rounded up to two significant digits."""
    digits = 10 ** max(0, len(str(int(value))) - 2)
    return ceil(max(0, value) / digits) * digits
