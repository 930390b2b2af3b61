"""Which method to take: what the comparisons on the primary metric leave over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Best:
    """The methods that the comparisons leave over.

    Attributes
    ----------
    winner : str or None
        Shown to be better than every other method; None when none is, or there is only one.
    contenders : tuple of str
        Methods with a mean that no other is shown to be better than, the highest mean first.
    beaten : dict
        method -> the method with the highest mean that is shown to be better.
    """

    winner: str | None
    contenders: tuple[str, ...]
    beaten: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "winner": self.winner,
            "contenders": list(self.contenders),
            "beaten": dict(self.beaten),
        }


def find_best(means: Mapping[str, float | None], shown: Sequence[tuple[str, str]]) -> Best:
    """Return what is left over.

    Parameters
    ----------
    means : mapping
        method -> mean of the primary metric, or area under it; None without any.
    shown : sequence of (str, str)
        A method, and one that it is shown to be better than on that metric.
    """
    known = {method: mean for method, mean in means.items() if mean is not None}
    ranked = sorted(known, key=lambda method: -known[method])
    worse_than = {method: set[str]() for method in ranked}
    for better, worse in shown:
        worse_than[worse].add(better)
    contenders = tuple(method for method in ranked if not worse_than[method])
    others = len(means) - 1
    winners = [m for m in contenders if sum(m in w for w in worse_than.values()) == others > 0]
    return Best(
        winner=winners[0] if winners else None,
        contenders=contenders,
        beaten={m: min(w, key=ranked.index) for m, w in worse_than.items() if w},
    )
