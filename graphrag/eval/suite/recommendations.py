"""What to look at in a suite's results, each with the cases and numbers that it rests on."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import fmean

from graphrag.eval.suite.cases import Thresholds
from graphrag.eval.suite.summary import CaseResult, Recommendation

MAX_CASES = 5
MAX_FINDINGS = 3


def recommend(results: Sequence[CaseResult], thresholds: Thresholds) -> tuple[Recommendation, ...]:
    """Return what the results give cause for, the most urgent first.

    What is looked at: cases without a score, each method's weakest part below the passing
    threshold, what is found in two cases or more, cases that every method fails, methods that pass
    different numbers of cases, and cases that pass with a warning.
    """
    methods: dict[str, list[CaseResult]] = {}
    for result in results:
        methods.setdefault(result.method, []).append(result)
    found: list[Recommendation] = list(_unscored(results))
    for method, given in methods.items():
        found += _weakest_part(method, given, thresholds)
        found += _repeated(method, given)
    found += _failed_by_all(methods, thresholds)
    found += _gaps(methods, thresholds)
    found += _narrow(results, thresholds)
    return tuple(found)


def _unscored(results: Sequence[CaseResult]) -> Iterator[Recommendation]:
    failed = [result for result in results if result.failure is not None]
    if failed:
        text = (
            f"{len(failed)} of {len(results)} evaluations have no score ({_ids(failed)}); mend the "
            f"cause and run again. The first: {failed[0].reason}"
        )
        yield _about(text, failed)


def _weakest_part(
    method: str, results: Sequence[CaseResult], thresholds: Thresholds
) -> Iterator[Recommendation]:
    parts: dict[str, list[tuple[float, CaseResult]]] = {}
    for result in results:
        for part, value in result.evaluated.parts.items() if result.evaluated else ():
            parts.setdefault(part, []).append((value, result))
    if not parts:
        return
    means = {part: fmean(value for value, _ in given) for part, given in parts.items()}
    part = min(means, key=lambda name: means[name])
    if means[part] >= thresholds.passing:
        return
    below = sorted(
        (each for each in parts[part] if each[0] < thresholds.passing), key=lambda each: each[0]
    )
    shown = ", ".join(f"{result.case_id} {value:.2f}" for value, result in below[:MAX_CASES])
    text = (
        f"{method}: look at {part} first: its mean is {means[part]:.2f} over {len(parts[part])} "
        f"cases, below {thresholds.passing:g} in {len(below)}; lowest: {shown}"
    )
    yield _about(text, [result for _, result in below])


def _repeated(method: str, results: Sequence[CaseResult]) -> Iterator[Recommendation]:
    where: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        for kind, names in result.evaluated.findings.items() if result.evaluated else ():
            for name in names:
                where.setdefault((kind, name), []).append(result)
    again = sorted(
        ((key, given) for key, given in where.items() if len(given) > 1),
        key=lambda each: -len(each[1]),
    )
    for (kind, name), given in again[:MAX_FINDINGS]:
        text = f"{method}: {kind}: {name!r} in {len(given)} cases ({_ids(given)})"
        yield _about(text, given)


def _failed_by_all(
    methods: dict[str, list[CaseResult]], thresholds: Thresholds
) -> Iterator[Recommendation]:
    if len(methods) < 2:
        return
    failed = [
        {r.case_id for r in given if r.score is not None and not thresholds.passes(r.score)}
        for given in methods.values()
    ]
    common = failed[0].intersection(*failed[1:])
    first = next(iter(methods.values()))
    lost = [result for result in first if result.case_id in common]
    if lost:
        text = (
            f"{len(lost)} of {len(first)} cases fail with each of {', '.join(methods)} "
            f"({_ids(lost)}): look at the index and the expected output before the methods"
        )
        yield _about(text, lost)


def _gaps(methods: dict[str, list[CaseResult]], thresholds: Thresholds) -> Iterator[Recommendation]:
    for a, b in combinations(methods, 2):
        passed = {name: _passed(methods[name], thresholds) for name in (a, b)}
        better, other = (a, b) if len(passed[a]) >= len(passed[b]) else (b, a)
        alone = [r for r in methods[better] if r.case_id in passed[better] - passed[other]]
        if len(passed[better]) == len(passed[other]):
            continue
        n_other = len(passed[other] - passed[better])
        text = (
            f"{better} passes {len(passed[better])} of {len(methods[better])} cases, {other} "
            f"{len(passed[other])}; compare their answers where {better} alone passes "
            f"({_ids(alone)}; {other} alone passes {n_other})"
        )
        yield _about(text, alone)


def _narrow(results: Sequence[CaseResult], thresholds: Thresholds) -> Iterator[Recommendation]:
    narrow = [result for result in results if result.status == "warning"]
    if narrow:
        shown = ", ".join(
            f"{result.case_id} ({result.method}) {result.score:.2f}"
            for result in narrow[:MAX_CASES]
        )
        more = len(narrow) - MAX_CASES
        how = (
            f"pass below {thresholds.warning:g}"
            if thresholds.passing <= thresholds.warning
            else f"reach {thresholds.warning:g} without passing"
        )
        text = (
            f"{len(narrow)} of {len(results)} evaluations {how}: "
            f"{shown}{f' and {more} more' if more > 0 else ''}"
        )
        yield _about(text, narrow)


def _passed(results: Sequence[CaseResult], thresholds: Thresholds) -> set[str]:
    return {result.case_id for result in results if thresholds.passes(result.score)}


def _ids(results: Sequence[CaseResult]) -> str:
    ids = list(dict.fromkeys(result.case_id for result in results))
    more = len(ids) - MAX_CASES
    return f"{', '.join(ids[:MAX_CASES])}{f' and {more} more' if more > 0 else ''}"


def _about(text: str, results: Sequence[CaseResult]) -> Recommendation:
    return Recommendation(text, tuple(dict.fromkeys(result.case_id for result in results)))
