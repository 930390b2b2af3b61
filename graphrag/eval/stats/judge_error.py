"""What a judge's errors do to a difference, corrected by labels of both runs."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphrag.eval.stats.agreement import check_scores
from graphrag.eval.stats.correction import (
    MIN_LABELS,
    Corrected,
    Spread,
    cluster,
    corrected_difference,
    finish,
    refuse,
)
from graphrag.eval.stats.estimates import Estimate
from graphrag.eval.stats.paired import Pair
from graphrag.eval.stats.structure import Structure, choose_structure, name_interval

_KIND = "labels of both runs"
_SIDES = ("new run", "baseline")


def corrected_change(
    judge: Sequence[Pair],
    human: Sequence[Pair],
    strata: Sequence[tuple[Hashable, Hashable]],
    documents: Sequence[Hashable],
) -> Corrected:
    """Correct the difference between two runs by labels that were drawn in each by itself.

    Parameters
    ----------
    judge : sequence of (new, baseline)
        0, 1 or None (missing: the pair is left out), one a question.
    human : sequence of (new, baseline)
        The label of each response, or None; same length.
    strata : sequence of (new, baseline)
        The group within which each run's questions were drawn at random, which has one verdict;
        None where a score is known without a label, as of a failed search. Same length.
    documents : sequence
        Of the questions, same length; None where one is not known.

    Returns
    -------
    Corrected
        Of ``new - baseline``; ``n_labels`` are those of both runs together. Refused when a run
        has under 60 labels, or a group of one has none.

    Raises
    ------
    ValueError
        If a value is not 0, 1 or None, the lengths differ, or a group has two verdicts.
    UsageError
        If the packages of the extra ``audit`` are missing.

    Notes
    -----
    The mean of the judge's differences, less its bias in the new run, plus that in the baseline:
    a bias is the mean of verdict less label in each group, weighted by the group's share of the
    questions (Cochran 1977, Sampling Techniques, section 12.2, two-phase sampling for
    stratification). The variance, by the same section, is ``W_h^2 s_h^2 / n_h`` of each group of
    each run, and that of the differences which the verdicts let expect, over their number. Groups
    are labelled too thinly for figures of their own, and errors that were not seen may still be
    there: s_h^2, and the share of right answers to expect, are those of all labels at the same
    verdict of the same run, with one error and one right verdict added to them. There is no
    finite-population correction: without it the variance holds the within-group spread of new
    questions as well, as if the two answers to a question were right independently of one
    another once their verdicts are known. What is hard for both makes the limits a little wide.

    Documents as in ``corrected_difference``, which is called where 60 questions or more, one in
    each pair of groups, are labelled in both runs.
    """
    for pairs in (judge, human):
        check_scores([score for pair in pairs for score in pair], (0, 1))
    rows = list(zip(judge, human, strata, documents, strict=True))
    n_both = sum(None not in pair and None not in key for _, pair, key, _ in rows)
    if n_both >= MIN_LABELS:
        known = [_with_known(verdicts, pair, key) for verdicts, pair, key, _ in rows]
        paired = corrected_difference(judge, known, strata, documents)
        if paired.se is not None:
            used = [
                key
                for pair, key in zip(known, strata, strict=True)
                if None not in pair and key != (None, None)
            ]
            n_labels = sum(stratum is not None for key in used for stratum in key)
            return replace(paired, n_labels=n_labels)
    sides = [
        [
            _Response(_known(pair[side]), _label(labels[side]), key[side], document)
            for pair, labels, key, document in rows
            if None not in pair
        ]
        for side in (0, 1)
    ]
    n = len(sides[0])
    n_labels = [sum(r.label is not None and r.stratum is not None for r in s) for s in sides]
    plain = sum(a.verdict - b.verdict for a, b in zip(*sides, strict=True)) / n if n else None
    biases = [_bias(side) for side in sides]
    for name, found, labels in zip(_SIDES, biases, n_labels, strict=True):
        refused = refuse(labels, found.n_groups, found.n_unlabelled)
        if refused is not None:
            nothing = Estimate(None, n, None, None, _KIND)
            return Corrected(plain, nothing, sum(n_labels), f"{name}: {refused}")
    sizes = Counter(response.document for response in sides[0])
    totals = dict.fromkeys(sizes, 0.0)
    for a, b in zip(*sides, strict=True):
        totals[a.document] += a.verdict - b.verdict
    for sign, found in zip((-1, 1), biases, strict=True):
        for document, errors in found.by_document.items():
            totals[document] += sign * errors
    mean = sum(totals.values()) / n
    structure = choose_structure(sizes)
    if structure is Structure.CLUSTERED:
        spread, kind = cluster(totals, sizes), name_interval(_KIND, structure)
    else:
        new, old = (
            np.array([bias.expect(response) for response in side])
            for bias, side in zip(biases, sides, strict=True)
        )
        variance = float((new - old).var(ddof=1)) / n + sum(b.variance for b in biases) / n**2
        spread, kind = Spread(variance**0.5), _KIND
    return finish(plain, mean, n, sum(n_labels), spread, kind)


@dataclass(frozen=True, slots=True)
class _Response:
    verdict: int
    label: int | None
    stratum: Hashable
    document: Hashable


@dataclass(frozen=True, slots=True)
class _Bias:
    """Of the verdicts, as numbers of responses: the estimate by document, and its variance.

    ``chance`` is the share of wrong verdicts among those of 0, and of 1.
    """

    n_groups: int
    n_unlabelled: int
    by_document: dict[Hashable, float]
    variance: float
    chance: tuple[float, float]

    def expect(self, response: _Response) -> float:
        """Return the chance that a response is right, given its verdict."""
        if response.stratum is None:
            return response.verdict
        wrong = self.chance[response.verdict]
        return 1 - wrong if response.verdict else wrong


def _bias(side: Sequence[_Response]) -> _Bias:
    groups: dict[tuple[Hashable, Hashable], list[_Response]] = {}
    for response in side:
        if response.stratum is not None:
            groups.setdefault((response.document, response.stratum), []).append(response)
    labelled = {key: [r for r in found if r.label is not None] for key, found in groups.items()}
    if any(len({r.verdict for r in found}) > 1 for found in groups.values()):
        msg = "a group within which labels were drawn must have one verdict"
        raise ValueError(msg)
    wrong, seen = Counter[int](), Counter[int]()
    by_document: dict[Hashable, float] = {}
    for key, found in labelled.items():
        errors = [r.verdict - r.label for r in found if r.label is not None]
        if errors:
            times = len(groups[key]) / len(errors)
            by_document[key[0]] = by_document.get(key[0], 0.0) + times * sum(errors)
            wrong[found[0].verdict] += sum(map(abs, errors))
            seen[found[0].verdict] += len(errors)
    none, one = ((wrong[verdict] + 1) / (seen[verdict] + 2) for verdict in (0, 1))
    chance = (none, one)
    variance = sum(
        len(groups[key]) ** 2
        * chance[found[0].verdict]
        * (1 - chance[found[0].verdict])
        / len(found)
        for key, found in labelled.items()
        if found
    )
    return _Bias(len(groups), sum(not f for f in labelled.values()), by_document, variance, chance)


def _with_known(judge: Pair, human: Pair, strata: tuple[Hashable, Hashable]) -> Pair:
    a, b = (
        verdict if stratum is None else label
        for verdict, label, stratum in zip(judge, human, strata, strict=True)
    )
    return a, b


def _label(value: float | None) -> int | None:
    return None if value is None else int(value)


def _known(value: float | None) -> int:
    if value is None:
        msg = "a score is missing"
        raise ValueError(msg)
    return int(value)
