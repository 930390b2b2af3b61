"""What became of a transaction."""

from dataclasses import dataclass


@dataclass(slots=True)
class Outcome:
    """What became of a transaction that was broken off.

    Attributes
    ----------
    may_be_kept : bool
        Whether it is kept, or nobody knows; if not, nothing of it is.
    """

    may_be_kept: bool = False
