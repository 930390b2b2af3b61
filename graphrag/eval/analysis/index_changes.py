"""Which indexes changed between two runs: whole documents shift with them."""

from collections.abc import Iterable, Sequence

from graphrag.command_lines import eval_line_here
from graphrag.eval.analysis.pairing import MetricPairs
from graphrag.eval.analysis.rows import gate_score
from graphrag.eval.analysis.runs import RunMetadata, RunRows
from graphrag.eval.statistics import RebuildComparison, Score, compare_with_rebuilds

_SHOWN = 5  # indexes that are named


def fingerprints_of(told: RunMetadata, method: str) -> dict[str, str]:
    """Return document -> fingerprint of the index that a method searched there, where known."""
    if "indexes" not in told.setup.root:
        return {}
    found = told.setup.fingerprints([method])
    return {key: print_ for key, print_ in found.items() if print_ is not None}


def changed_indexes(
    new: RunMetadata, baseline: RunMetadata, method: str, documents: Iterable[str]
) -> list[str]:
    """Return the documents whose index is another now, sorted; one that one run knows is another.

    Parameters
    ----------
    documents : iterable of str
        Those that are compared; with "" among them, as documents are not known, all.
    """
    now, then = fingerprints_of(new, method), fingerprints_of(baseline, method)
    both = _documents_of(new) & _documents_of(baseline)  # a run of an old format names none
    compared = set(documents)
    keys = both if "" in compared else both & compared
    return sorted(key for key in keys if now.get(key) != then.get(key))


def _documents_of(told: RunMetadata) -> set[str]:
    return set(told.setup.indexes) if "indexes" in told.setup.root else set()


def indexes_of(told: RunMetadata, method: str, documents: Sequence[str]) -> list[str]:
    """Return the index of each document, so that documents of one index are rebuilt together."""
    known = fingerprints_of(told, method)
    return [known.get(document, document) for document in documents]


def hold_against_rebuilds(
    baseline: RunRows, method: str, metric: str, pairs: MetricPairs
) -> RebuildComparison | None:
    """Hold a run on changed indexes against the rebuilds in the baseline; None without any."""
    if not baseline.rebuilds:
        return None
    scores: list[list[Score]] = [[old for _, old in pairs.scores]]
    for run in baseline.rebuilds:
        known = {
            (row.document, row.question_id): gate_score(row, metric)
            for row in run.rows
            if row.method == method
        }
        keys = zip(pairs.documents, pairs.ids, strict=True)
        scores.append([known.get(key) for key in keys])
    indexes = indexes_of(baseline.metadata, method, pairs.documents)
    return compare_with_rebuilds([new for new, _ in pairs.scores], scores, indexes)


def why_undecided(changed: Sequence[str], rebuilds: RebuildComparison | None) -> str:
    """Say why a run on changed indexes is not decided, and what to do."""
    named = ", ".join(changed[:_SHOWN]) + (", ..." if len(changed) > _SHOWN else "")
    of = "index" if len(changed) == 1 else "indexes"
    said = (
        f"the {of} of {named} changed since the baseline, or is known of one run alone; a rebuilt "
        "one shifts whole documents by chance"
    )
    if rebuilds is not None:
        return (
            f"{said}, and the {rebuilds.n_runs} rebuilds in the baseline do not differ at all, so "
            "that the shift is not known; add rebuilds that do, or --accept-index-change"
        )
    return (
        f"{said}; add runs on rebuilds of the unchanged {of} "
        f"({eval_line_here('baseline', 'add', 'RUN')}), or take the questions as independent all "
        "the same (--accept-index-change)"
    )
