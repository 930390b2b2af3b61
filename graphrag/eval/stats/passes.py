"""Whether questions that are asked over and over are answered worse than in the baseline's runs."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from graphrag.eval.stats.intervals import Floats, scipy_special, scipy_stats
from graphrag.eval.stats.power import ALPHA

LOOKS = tuple(2**n for n in range(8))
"""Passes after which a watch is looked at: 1, 2, 4, ..., 128."""
LOOK_LEVEL = ALPHA / len(LOOKS)
"""What each look may spend, so that all of them together spend 5 %."""
_MOST_DRAWS = 2_000_000


class Answers(NamedTuple):
    """What became of one question in the baseline's runs and in the passes.

    ``n`` verdicts of both together, ``right`` of them; ``n_baseline`` of the baseline's runs among
    them.
    """

    n: int
    right: int
    n_baseline: int
    right_baseline: int


def next_look(number: int) -> int | None:
    """Return the pass, from this one on, after which a watch is looked at; None past the last."""
    return next((look for look in LOOKS if look >= number), None)


def fall_p(questions: Iterable[Answers]) -> float | None:
    """Return the chance that the baseline's runs are as much the better by luck alone, in (0, 1].

    Each question may have been answered another number of times: what is missing is left out.
    Exact; None where no question has verdicts on both sides. ValueError if counts are impossible.

    While nothing changes, a question's answers in baseline and passes are exchangeable: given that
    T of n are right, those of the R baseline runs are any R of the n, so that their number is
    hypergeometric, whatever the question's difficulty and the baseline's luck. p is the upper tail
    of the sum over the questions, which are taken as independent. It is the exact conditional test
    of a common odds ratio (Mantel and Haenszel 1959; Gart 1970, doi:10.1093/biomet/57.3.471); with
    one run the sum is Poisson-binomial with chances T/n.
    """
    counts = Counter(questions)
    for answers in counts:
        is_possible = (
            0 <= answers.right_baseline <= answers.n_baseline <= answers.n
            and answers.right_baseline <= answers.right
            and answers.right - answers.right_baseline <= answers.n - answers.n_baseline
        )
        if not is_possible:
            raise ValueError(f"a question can't have these answers: {answers}")
    informative = Counter[tuple[int, int, int]]()
    seen = 0
    for answers, times in counts.items():
        if 0 < answers.n_baseline < answers.n:
            informative[answers.n, answers.right, answers.n_baseline] += times
            seen += times * answers.right_baseline
    if not informative:
        return None
    total: Floats = np.ones(1)
    for chances in sorted(_sums(informative), key=len):
        total = np.convolve(total, chances)
    return min(1.0, float(total[seen:].sum()))


def _sums(groups: Counter[tuple[int, int, int]]) -> Iterable[Floats]:
    """Yield the distribution of the sum over each group of equal questions."""
    n, right, n_baseline = np.array(list(groups)).T[:, :, None]
    most = np.arange(int(n_baseline.max()) + 1)
    alone: Floats = scipy_stats().hypergeom.pmf(most, n, right, n_baseline)
    for power, runs, times in zip(alone, n_baseline[:, 0], groups.values(), strict=True):
        yield _power(power[: runs + 1], times)


def _power(chances: Floats, times: int) -> Floats:
    """Return the distribution of a sum of so many (>= 1) values with these chances."""
    if times == 1:
        return chances
    half = _power(chances, times // 2)
    whole = np.convolve(half, half)
    return np.convolve(whole, chances) if times % 2 else whole


class Steadiness(NamedTuple):
    """How often answers are right, and how much they change when they are asked for again.

    ``mean``: share of right answers. ``within``: variance of a question's answers, in [0, mean (1 -
    mean)]: 0 where each comes out the same way every time.
    """

    mean: float
    within: float


def steadiness(runs: Iterable[tuple[int, int]]) -> Steadiness | None:
    """Estimate it from the verdicts and right ones of each question in the baseline's runs.

    With the largest variance there can be where no question has two verdicts, as nothing is known
    of it then; None without any verdict.
    """
    counts = [(n, right) for n, right in runs if n]
    if not counts:
        return None
    mean = sum(right / n for n, right in counts) / len(counts)
    variances = [right * (n - right) / (n * (n - 1)) for n, right in counts if n > 1]
    most = mean * (1 - mean)
    return Steadiness(mean, min(most, sum(variances) / len(variances)) if variances else most)


def watch_power(
    n_questions: int, n_runs: int, system: Steadiness, fall: float, *, n_tests: int = 1
) -> dict[int, float] | None:
    """Simulate how often a watch has seen a fall by each look: look -> share of the watches.

    ``fall``, in (0, 1): by how much the mean falls before the first pass: every question loses the
    same share of its right answers; None where it can't fall so far. ``n_tests``: methods times
    metrics that share the level; Holm's first step is taken for all.

    Chances of questions follow a beta distribution with the mean and the variance within questions.
    The tail of the test is the normal one with a continuity correction, which is what takes the
    place of exact sums here alone.
    """
    if fall > system.mean:
        return None
    n_watches = max(200, min(1_000, _MOST_DRAWS // n_questions))
    random = np.random.default_rng(0)
    chance = _draw_chances(random, (n_watches, n_questions), system)
    baseline = random.binomial(n_runs, chance)
    right = np.zeros_like(baseline)
    needed = float(scipy_special().ndtri(1 - LOOK_LEVEL / n_tests))
    seen = np.zeros(n_watches, dtype=np.bool_)
    power: dict[int, float] = {}
    done = 0
    for look in LOOKS:
        right += random.binomial(look - done, chance * (1 - fall / system.mean))
        done = look
        n = look + n_runs
        share = (baseline + right) / n
        spread = np.sqrt((share * (1 - share)).sum(axis=1) * n_runs * look / (n - 1))
        above = (baseline - n_runs * share).sum(axis=1) - 0.5
        seen |= above >= np.maximum(needed * spread, 1e-9)
        power[look] = float(seen.mean())
    return power


def _draw_chances(
    random: np.random.Generator, shape: tuple[int, int], system: Steadiness
) -> Floats:
    """Draw the chance that a question is answered rightly, for each question of each watch."""
    mean, most = system.mean, system.mean * (1 - system.mean)
    alike = 1.0 if most <= 0 else 1 - system.within / most
    if alike <= 1e-9:
        return np.full(shape, mean)
    if alike >= 1 - 1e-9:
        return (random.random(shape) < mean).astype(np.float64)
    size = 1 / alike - 1
    return random.beta(mean * size, (1 - mean) * size, shape)
