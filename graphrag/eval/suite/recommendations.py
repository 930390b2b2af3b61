"""What to look at in a suite's results, each with the cases and numbers that it rests on."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from graphrag.eval.suite.cases import Thresholds
from graphrag.eval.suite.summary import CaseResult, Recommendation

MAX_CASES = 5
MAX_FINDINGS = 3

_Advice = Iterator[tuple[str, Sequence[CaseResult]]]
"""Sentences, each with the results that it is about."""


def recommend(results: Sequence[CaseResult], thresholds: Thresholds) -> tuple[Recommendation, ...]:
    """Return what the results give cause for, the most urgent first.

    What is looked at: cases without a score, each method's weakest part below the passing
    threshold, what is found in two cases or more, cases that every method fails, methods that pass
    different numbers of cases, and cases that pass with a warning.
    """
    return tuple(
        Recommendation(text, tuple(dict.fromkeys(result.case_id for result in about)))
        for text, about in _advise(results, thresholds)
    )


def _advise(results: Sequence[CaseResult], thresholds: Thresholds) -> _Advice:
    methods: dict[str, list[CaseResult]] = {}
    for result in results:
        methods.setdefault(result.method, []).append(result)
    failed = [result for result in results if result.failure is not None]
    if failed:
        text = (
            f"{len(failed)} of {len(results)} evaluations have no score ({_ids(failed)}); mend the "
            f"cause and run again. The first: {failed[0].reason}"
        )
        yield text, failed
    for method, given in methods.items():
        yield from _weakest_part(method, given, thresholds)
        yield from _repeated(method, given)
    yield from _between_methods(methods, thresholds)
    narrow = [result for result in results if result.status == "warning"]
    if narrow:
        shown = [f"{each.case_id} ({each.method}) {each.score:.2f}" for each in narrow]
        how = (
            f"pass below {thresholds.warning:g}"
            if thresholds.passing <= thresholds.warning
            else f"reach {thresholds.warning:g} without passing"
        )
        yield f"{len(narrow)} of {len(results)} evaluations {how}: {_first(shown)}", narrow


def _weakest_part(method: str, results: Sequence[CaseResult], thresholds: Thresholds) -> _Advice:
    parts: dict[str, list[tuple[float, CaseResult]]] = {}
    for result in results:
        for part, value in result.evaluated.parts.items() if result.evaluated else ():
            parts.setdefault(part, []).append((value, result))
    means = {part: fmean(value for value, _ in given) for part, given in parts.items()}
    part = min(means, key=lambda name: means[name], default="")
    if not part or means[part] >= thresholds.passing:
        return
    below = sorted(
        (each for each in parts[part] if each[0] < thresholds.passing), key=lambda each: each[0]
    )
    shown = ", ".join(f"{result.case_id} {value:.2f}" for value, result in below[:MAX_CASES])
    text = (
        f"{method}: look at {part} first: its mean is {means[part]:.2f} over {len(parts[part])} "
        f"cases, below {thresholds.passing:g} in {len(below)}; lowest: {shown}"
    )
    yield text, [result for _, result in below]


def _repeated(method: str, results: Sequence[CaseResult]) -> _Advice:
    where: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        for kind, names in result.evaluated.findings.items() if result.evaluated else ():
            for name in names:
                where.setdefault((kind, name), []).append(result)
    again = sorted(where.items(), key=lambda each: -len(each[1]))
    for (kind, name), given in again[:MAX_FINDINGS]:
        if len(given) > 1:
            yield f"{method}: {kind}: {name!r} in {len(given)} cases ({_ids(given)})", given


def _between_methods(
    methods: Mapping[str, Sequence[CaseResult]], thresholds: Thresholds
) -> _Advice:
    if len(methods) < 2:
        return
    scored = {
        name: {each.case_id: each.score for each in given if each.score is not None}
        for name, given in methods.items()
    }
    passed = {
        name: {case_id for case_id, score in scores.items() if thresholds.passes(score)}
        for name, scores in scored.items()
    }
    first = next(iter(methods.values()))
    lost = [r for r in first if all(r.case_id in scored[m].keys() - passed[m] for m in methods)]
    if lost:
        text = (
            f"{len(lost)} of {len(first)} cases fail with each of {', '.join(methods)} "
            f"({_ids(lost)}): look at the index and the expected output before the methods"
        )
        yield text, lost
    for pair in combinations(methods, 2):
        better, other = sorted(pair, key=lambda name: -len(passed[name]))
        alone = [r for r in methods[better] if r.case_id in passed[better] - passed[other]]
        if len(passed[better]) > len(passed[other]):
            text = (
                f"{better} passes {len(passed[better])} of {len(methods[better])} cases, {other} "
                f"{len(passed[other])}; compare their answers where {better} alone passes "
                f"({_ids(alone)}; {other} alone passes {len(passed[other] - passed[better])})"
            )
            yield text, alone


def _ids(results: Sequence[CaseResult]) -> str:
    return _first(list(dict.fromkeys(result.case_id for result in results)))


def _first(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_CASES
    return f"{', '.join(texts[:MAX_CASES])}{f' and {more} more' if more > 0 else ''}"
