"""Which names stand in which text units: those extracted there, found there, and their titles."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Mentions:
    """Text units and what they name, both ways, as compressed sparse rows.

    A name is an entity's node, or, from the number of entities on, a title that no entity has.

    Attributes
    ----------
    unit_ptr : numpy.ndarray
        int64, shape (n_units + 1,): the names in text unit i are ``names[unit_ptr[i]:...]``.
    names : numpy.ndarray
        int32, ascending in each row.
    name_ptr : numpy.ndarray
        int64, shape (n_names + 1,): the text units with name i are ``units[name_ptr[i]:...]``.
    units : numpy.ndarray
        int32: rows of the text units table, ascending.
    topics : numpy.ndarray
        int32, shape (n_units,): the name that is the title of the text unit's document, -1
        without one.
    """

    unit_ptr: npt.NDArray[np.int64]
    names: _Ints
    name_ptr: npt.NDArray[np.int64]
    units: _Ints
    topics: _Ints

    @property
    def n_units(self) -> int:
        """Rows of the text units table."""
        return len(self.topics)

    def frequency(self, name: int) -> int:
        """Return the number of text units that name it."""
        return int(self.name_ptr[name + 1] - self.name_ptr[name])


def join_mentions(units: _Ints, names: _Ints, topics: _Ints, n_names: int) -> Mentions:
    """Make the rows of pairs of text unit and name, which may repeat, and of the titles.

    Parameters
    ----------
    units, names : numpy.ndarray
        int32, of the same length.
    topics : numpy.ndarray
        int32, shape (n_units,); see :class:`Mentions`.
    n_names : int
        Entities and further titles.
    """
    titled = np.flatnonzero(topics >= 0).astype(np.int32)
    key = np.concatenate([units, titled]).astype(np.int64) * max(1, n_names)
    key += np.concatenate([names, topics[titled]])
    key = np.unique(key)
    row, name = np.divmod(key, max(1, n_names))
    order = np.argsort(name, kind="stable")
    return Mentions(
        _pointers(row, len(topics)),
        name.astype(np.int32),
        _pointers(name, n_names),
        row[order].astype(np.int32),
        topics,
    )


def _pointers(rows: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    found = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=found[1:])
    return found
