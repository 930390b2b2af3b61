"""In which text units entities and relationships are said to be found."""

from dataclasses import dataclass, field

import numpy as np

from graphrag.eval.validation.tables import (
    Array,
    Mask,
    Offenders,
    Rows,
    Table,
    as_lists,
    compute,
    to_numpy,
)


@dataclass(slots=True)
class Mentions:
    """Counts over a table's ``text_unit_ids``.

    Attributes
    ----------
    total, orphaned : int
        Mentions, and those of them whose text unit does not exist.
    broken : Offenders
        Rows with an orphaned mention.
    unmentioned : Offenders
        Rows without any mention.
    """

    total: int = 0
    orphaned: int = 0
    broken: Offenders = field(default_factory=Offenders)
    unmentioned: Offenders = field(default_factory=Offenders)


def count_mentions(table: Table, unit_ids: Array) -> Mentions:
    """Compare a table's ``text_unit_ids`` with the ids of the text units that there are."""
    counted = Mentions()
    for offset, (lists,) in table.batches("text_unit_ids"):
        lengths, ids = as_lists(lists)
        unknown = ~to_numpy(compute.is_in(ids, value_set=unit_ids))
        counted.total += len(unknown)
        counted.orphaned += int(unknown.sum())
        counted.broken.add(any_of(lengths, unknown), offset)
        counted.unmentioned.add(lengths == 0, offset)
    return counted


def any_of(lengths: Rows, flags: Mask) -> Mask:
    """Say for each list, given by its length, whether one of its items is flagged."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    return np.bincount(owners[flags], minlength=len(lengths)) > 0
