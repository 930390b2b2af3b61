"""Looking rows up by name through sorted hashes, which need no loading."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class NameIndex:
    """The rows of a table by the hash of a name in them.

    Different names may share a hash, so whoever looks one up compares what the rows say.

    Attributes
    ----------
    hashes : numpy.ndarray
        uint32, shape (n,), ascending.
    rows : numpy.ndarray
        int32, shape (n,): the row of each hash; among equal hashes ascending.
    """

    hashes: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.int32]

    def find(self, names: Sequence[str]) -> list[list[int]]:
        """Return for each name the rows that may hold it, in the table's order."""
        wanted = hash_names(names)
        begins = np.searchsorted(self.hashes, wanted, side="left").tolist()
        ends = np.searchsorted(self.hashes, wanted, side="right").tolist()
        return [
            self.rows[begin:end].tolist() if begin < end else []
            for begin, end in zip(begins, ends, strict=True)
        ]


def hash_names(names: Iterable[str]) -> npt.NDArray[np.uint32]:
    """Return the CRC-32 of each name, which is the same on every machine."""
    return np.fromiter(
        (zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names), dtype=np.uint32
    )


def index_names(hashes: npt.NDArray[np.uint32], rows: npt.NDArray[np.int32]) -> NameIndex:
    """Sort the hashes of the names in ascending rows."""
    order = np.argsort(hashes, kind="stable")
    return NameIndex(hashes[order], rows[order])
