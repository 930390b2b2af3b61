"""Questions of a document that move together: CR2, its degrees of freedom, the sign-flip test.

CR2 and its degrees of freedom take arrays whose last axis are the documents, so that a simulation
draws many data sets at once through the very functions that a report uses.
"""

import sys
from collections.abc import Mapping

import numpy as np

from graphrag.eval.stats.libraries import Floats, scipy_special


def cr2_variance(totals: Floats, sizes: Floats) -> Floats:
    """Return the variance of the mean over all questions, documents taken as drawn.

    Parameters
    ----------
    totals, sizes : array of shape (..., documents)
        The sum of each document's values, and how many they are; two documents or more.

    Returns
    -------
    array of shape (...)
        In the squared unit of the values, >= 0.

    Notes
    -----
    CR2 of Bell and McCaffrey 2002 (Survey Methodology 28, 169-181) for a mean,
    ``sum_g s_g^2 / (1 - n_g / N) / N^2`` with s_g the sum of the residuals of document g.
    """
    n = sizes.sum(axis=-1, keepdims=True)
    residuals = totals - sizes * totals.sum(axis=-1, keepdims=True) / n
    scaled: Floats = residuals**2 / (1 - sizes / n)
    variance: Floats = scaled.sum(axis=-1) / n[..., 0] ** 2
    return variance


def degrees_of_freedom(sizes: Floats) -> Floats:
    """Return the degrees of freedom of ``cr2_variance``.

    Parameters
    ----------
    sizes : array of shape (..., documents)
        Questions on each; two documents or more.

    Returns
    -------
    array of shape (...)
        From 1 to the documents less one, which it is when all are of one size.

    Notes
    -----
    Satterthwaite's approximation of Bell and McCaffrey 2002 for independent values of one
    variance, in closed form for a mean: with p_g = n_g / N, ``1 / df = sum_g p_g^2 +
    sum_(g != h) p_g^2 p_h^2 / ((1 - p_g) (1 - p_h))``.
    """
    share = sizes / sizes.sum(axis=-1, keepdims=True)
    pulls = share**2 / (1 - share)
    crossed = pulls.sum(axis=-1) ** 2 - (pulls**2).sum(axis=-1)
    df: Floats = 1 / ((share**2).sum(axis=-1) + crossed)
    return df


def exact_sign_flip(totals: Mapping[int, int], *, lower: bool) -> float:
    """Return the exact p of flipping the signs of documents' whole-numbered sums.

    Parameters
    ----------
    totals : dict
        Sum of a - b over a document's questions -> documents with that sum.
    lower : bool
        Whether only sums as low as the one seen count, else those as far from 0.

    Returns
    -------
    float
        In (0, 1]; 1 when no sum differs from 0 and the test is two-sided.

    Notes
    -----
    Fisher's randomisation test on the documents' sums; with sums of -1, 0 and 1 it is the exact
    McNemar test. m documents of the absolute sum k add ``k (2 B - m)`` with B binomial(m, 1/2), and
    the distributions of the different k are convolved: nothing is resampled.
    """
    sizes: dict[int, int] = {}
    for total, times in totals.items():
        sizes[abs(total)] = sizes.get(abs(total), 0) + times
    special, chances = scipy_special(), np.ones(1)
    for step, times in sizes.items():
        if step:
            heads = np.arange(times + 1.0)
            half = np.diff(special.bdtr(heads, times, 0.5), prepend=0.0)
            spaced = np.zeros(step * times + 1)
            spaced[::step] = np.where(2 * heads > times, half[::-1], half)  # so that none is lost
            chances = np.convolve(chances, spaced)
    seen = sum(total * times for total, times in totals.items())
    most = len(chances) - 1  # the largest sum of all; place h stands for the sum 2 h - most
    extreme = seen if lower else -abs(seen)
    tail = float(chances[: (most + extreme) // 2 + 1].sum())
    p = tail if lower else 2 * tail
    return min(1.0, max(p, sys.float_info.min))  # a chance is never 0, if too small for a float
