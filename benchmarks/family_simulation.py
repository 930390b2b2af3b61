"""Whether what is said of three methods holds as often as it says: intervals, power.

Right answers are drawn from correlated normal variables; the arithmetic is that of the package,
written for many draws at once where it counts (``tests/stats`` hold the two together).
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import binom, norm

from graphrag.eval.stats.family import score_p
from graphrag.eval.stats.paired import bonett_price_limits
from graphrag.eval.stats.power import detectable_difference

ALPHA = 0.05
PAIRS = list(combinations(range(3), 2))
K = len(PAIRS)
RNG = np.random.default_rng(0)


class Family(NamedTuple):
    """Of each draw (row) and pair of methods (column)."""

    n: int
    n10: np.ndarray
    n01: np.ndarray
    p_holm: np.ndarray

    @property
    def difference(self) -> np.ndarray:
        return (self.n10 - self.n01) / self.n

    def limits(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        z = norm.ppf((1 + confidence) / 2)
        return bonett_price_limits(self.n10 / self.n, self.n01 / self.n, np.array(self.n), z)

    def agreeing(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """Limits whose ends are moved to 0 where Holm's test contradicts them."""
        (low, high), found = self.limits(confidence), self.p_holm <= ALPHA
        above, below = found & (self.difference > 0), found & (self.difference < 0)
        low = np.where(above, np.maximum(low, 0), np.where(below, low, np.minimum(low, 0)))
        high = np.where(below, np.minimum(high, 0), np.where(above, high, np.maximum(high, 0)))
        return low, high


def draw_right(draws: int, n: int, shares: tuple[float, ...], shared: float = 0.5) -> np.ndarray:
    """Draw who is right: draws x questions x methods."""
    own = RNG.standard_normal((draws, n, len(shares)))
    hardness = RNG.standard_normal((draws, n, 1))
    return hardness * np.sqrt(shared) + own * np.sqrt(1 - shared) < norm.ppf(shares)


def compare(right: np.ndarray) -> Family:
    n10 = np.stack([(right[..., a] & ~right[..., b]).sum(1) for a, b in PAIRS], 1)
    n01 = np.stack([(right[..., b] & ~right[..., a]).sum(1) for a, b in PAIRS], 1)
    p = np.minimum(1, 2 * binom.cdf(np.minimum(n10, n01), n10 + n01, 0.5))
    order = np.argsort(p, axis=1)
    raised = np.take_along_axis(p, order, 1) * (K - np.arange(K))
    corrected = np.empty_like(p)
    np.put_along_axis(corrected, order, np.minimum(1, np.maximum.accumulate(raised, 1)), 1)
    return Family(n=right.shape[1], n10=n10, n01=n01, p_holm=corrected)


def show_intervals(draws: int = 10_000) -> None:
    print("All three intervals hold, in %: alone at 95 %; together at 1 - 5 %/K and at")
    print("1 - 5 %/(2K - 1), both with ends moved to where Holm's test says")
    print("questions  shares right          alone   5 %/K   5 %/(2K-1)")
    for n in (120, 359, 1000):
        for shares in ((0.6, 0.6, 0.6), (0.6, 0.599, 0.75), (0.6, 0.598, 0.8), (0.6, 0.65, 0.7)):
            found = compare(draw_right(draws if n < 1000 else draws // 2, n, shares))
            true = np.array([shares[a] - shares[b] for a, b in PAIRS])
            held = [
                100 * ((low <= true) & (true <= high)).all(1).mean()
                for low, high in (
                    found.limits(1 - ALPHA),
                    found.agreeing(1 - ALPHA / K),
                    found.agreeing(1 - ALPHA / (2 * K - 1)),
                )
            ]
            print(f"{n:9d}  {shares!s:20}  {held[0]:5.1f}  {held[1]:6.1f}  {held[2]:11.1f}")


def show_equivalence(draws: int = 100_000, margin: float = 0.05) -> None:
    print(
        "\nA true difference of the margin, called equivalent as one of three pairs: at most 1.67 %"
    )
    print("questions  discordance  called equivalent, %")
    for n in (359, 1000, 4000):
        for discordance in (0.06, 0.1, 0.2, 0.4):
            shares = [(discordance + margin) / 2, (discordance - margin) / 2, 1 - discordance]
            n10, n01, _ = RNG.multinomial(n, shares, size=draws).T
            outcomes, times = np.unique(np.stack([n10, n01], 1), axis=0, return_counts=True)
            p = np.array(
                [
                    max(score_p(a, b, n, margin), score_p(b, a, n, margin))
                    for a, b in outcomes.tolist()
                ]
            )
            called = times[p <= ALPHA / K].sum() / draws
            print(f"{n:9d}  {discordance:11.0%}  {100 * called:20.2f}")


def show_power(draws: int = 20_000) -> None:
    print("\nHow often Holm finds, among three pairs, what 'would have been seen', in %")
    print("questions  discordance  at 5 %   at 5 %/K")
    for n in (120, 359, 1000):
        for discordance in (0.2, 0.4):
            said = []
            for alpha in (ALPHA, ALPHA / K):
                seen = detectable_difference(n, discordance, alpha=alpha)
                assert seen is not None
                shares = [(discordance + seen) / 2, (discordance - seen) / 2, 1 - discordance]
                n10, n01, _ = RNG.multinomial(n, shares, size=draws).T
                p = 2 * binom.cdf(np.minimum(n10, n01), n10 + n01, 0.5)
                said.append(100 * (K * p <= ALPHA).mean())  # the other two pairs show nothing
            print(f"{n:9d}  {discordance:11.0%}  {said[0]:6.1f}  {said[1]:9.1f}")


def main() -> None:
    show_intervals()
    show_equivalence()
    show_power()


if __name__ == "__main__":
    main()
