"""What a measure is: its name, how it is averaged, where it is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from graphrag.eval.scorers.response import MeasureInput

Group: TypeAlias = Literal["ranking", "entities", "words", "traced", "combined"]
Kind: TypeAlias = Literal["binary", "share", "unbounded"]

GROUPS: tuple[Group, ...] = get_args(Group)
"""In the order of the files' keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure of a response that needs no model.

    Attributes
    ----------
    name : str
        As files and criteria call it.
    kind : "binary", "share" or "unbounded"
        0 or 1, with an interval stratified by document; in [0, 1]; or any value >= 0. The last
        two have a t interval within these limits.
    group : Group
        Beside which others it stands in files and tables; "combined" is in no table.
    source : str
        Where its formula is from.
    compute : callable
        From a :class:`MeasureInput` to the value, None where there is nothing to measure.
    compute_at : callable or None
        The same of the first k ranks, for each k of the settings: ``recall_at_5``.
    needs : tuple of str
        Fields or tags of a sample, or settings of ``measures:``, one of which must be given.
    needs_retrieved : bool
        Whether it is undefined, rather than 0, for a method that never says what it retrieved.
    heading : str or None
        Of its column; None for the name with blanks.
    column : int or None
        Place among its table's columns, equal ones as they are declared; None for no column.
    shows_cutoff : bool
        Whether the middle one of its forms at k has a column too.
    """

    name: str
    kind: Kind
    group: Group
    source: str
    compute: Callable[[MeasureInput], float | None]
    compute_at: Callable[[MeasureInput, int], float | None] | None = None
    needs: tuple[str, ...] = ()
    needs_retrieved: bool = False
    heading: str | None = None
    column: int | None = 0
    shows_cutoff: bool = False


@dataclass(frozen=True, slots=True)
class MeasureForm:
    """A measure over everything, or over the first ``k`` ranks."""

    measure: Measure
    k: int | None = None

    @property
    def name(self) -> str:
        """As files and criteria call it."""
        return self.measure.name if self.k is None else f"{self.measure.name}_at_{self.k}"

    @property
    def heading(self) -> str:
        """What stands above its column."""
        heading = self.measure.heading or self.measure.name.replace("_", " ")
        return heading if self.k is None else f"{heading} at {self.k}"

    def compute(self, given: MeasureInput) -> float | None:
        """Return the value of one response."""
        if self.measure.needs_retrieved and not given.is_told:
            return None
        if self.k is None or self.measure.compute_at is None:
            return self.measure.compute(given)
        return self.measure.compute_at(given, self.k)
