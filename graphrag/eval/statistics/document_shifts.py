"""Whether differences vary between documents by more than chance, and by how much."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from graphrag.eval.statistics.estimates import Floats, Score, scipy_stats

MIN_PAIRS = 5
"""Pairs that a document needs to be looked at."""
N_TABLES = 9_999


@dataclass(frozen=True, slots=True)
class DocumentShifts:
    """How much paired differences vary between documents.

    Attributes
    ----------
    n_documents, n_pairs : int
        Documents with at least ``MIN_PAIRS`` pairs, and the pairs in them.
    p : float
        That they vary no more than chance: permutations of the pairs over the documents.
        Exploratory, in no family.
    sd : float
        Of a shift that a whole document shares, by the method of moments; 0 where the documents
        vary less than chance.
    """

    n_documents: int
    n_pairs: int
    p: float
    sd: float


def document_shifts(
    counts: Mapping[tuple[Score, Score, Hashable], int], seed: int = 0
) -> DocumentShifts | None:
    """Test whether paired differences vary between documents.

    Parameters
    ----------
    counts : dict
        (a, b, document) -> pairs, each score 0, 1 or None (missing).
    seed : int
        Of the permutations.

    Returns
    -------
    DocumentShifts or None
        None under two documents with enough pairs, and where no pair differs.

    Notes
    -----
    The statistic is the sum of squares between documents, ``sum_g n_g (d_g - d)^2``. Which
    differences fall to which document under permutation is a random table with fixed margins:
    ``scipy.stats.random_table`` (Patefield 1981, doi:10.2307/2346669), 9,999 of them with
    ``(b + 1) / (B + 1)``. The variance of the shifts is that of a one-way layout, mean square
    between less within over ``(N - sum n_g^2 / N) / (G - 1)``, cut at 0 (Searle, Casella and
    McCulloch 1992, Variance Components, section 3.6).
    """
    sums: dict[Hashable, list[int]] = {}
    for (a, b, document), times in counts.items():
        if a is not None and b is not None:
            sums.setdefault(document, [0, 0, 0])[int(a) - int(b) + 1] += times
    table = np.array([row for row in sums.values() if sum(row) >= MIN_PAIRS])
    if len(table) < 2 or table[:, [0, 2]].sum() == 0:
        return None
    sizes = table.sum(axis=1)
    n, groups = int(sizes.sum()), len(sizes)
    columns = table.sum(axis=0)
    kept = columns > 0
    values = np.array([-1.0, 0.0, 1.0])
    random = scipy_stats().random_table(sizes, columns[kept], seed=np.random.default_rng(seed))
    drawn = random.rvs(N_TABLES, method="patefield")
    statistic = _between(table, values, sizes)
    as_large = _between(drawn, values[kept], sizes) >= statistic - 1e-9 * max(1.0, statistic)
    total = float(np.sum(columns * values**2)) - float(columns @ values) ** 2 / n
    size = (n - float(np.sum(sizes.astype(float) ** 2)) / n) / (groups - 1)
    within = (total - statistic) / (n - groups) if n > groups else 0.0
    variance = (statistic / (groups - 1) - within) / size
    return DocumentShifts(
        n_documents=groups,
        n_pairs=n,
        p=(float(np.sum(as_large)) + 1) / (N_TABLES + 1),
        sd=sqrt(max(0.0, variance)),
    )


def _between(tables: Floats, values: Floats, sizes: Floats) -> Floats:
    """Return the sum of squares between documents, of one table or of many."""
    sums: Floats = tables @ values
    return (sums**2 / sizes).sum(axis=-1) - sums.sum(axis=-1) ** 2 / sizes.sum()
