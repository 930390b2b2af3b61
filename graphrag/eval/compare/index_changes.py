"""Which indexes changed between two runs: whole documents shift with them."""

from collections.abc import Iterable, Sequence

from graphrag.eval.results.runs import RunMetadata
from graphrag.eval.runner.headers import EMBEDDING_MODEL

_SHOWN = 5  # indexes that are named


def changed_indexes(
    new: RunMetadata, baseline: RunMetadata, method: str, documents: Iterable[str]
) -> list[str]:
    """Return the documents whose index is another now, sorted; one that one run knows is another.

    The fingerprint is of the tables, in which a rebuild gives every row another id. It does not
    see the vectors, so that another embedding model makes another index as well.

    Parameters
    ----------
    documents : iterable of str
        Those that are compared; with "" among them, as documents are not known, all.
    """
    now, then = (_fingerprints(told, method) for told in (new, baseline))
    compared = set(documents)
    keys = now.keys() | then.keys()
    return sorted(
        key
        for key in (keys if "" in compared else keys & compared)
        if now.get(key) != then.get(key) or _is_embedded_anew(new, baseline, key)
    )


def _fingerprints(told: RunMetadata, method: str) -> dict[str, str | None]:
    """Return document -> fingerprint of the index that a method searched there."""
    return told.setup.fingerprints([method]) if "indexes" in told.setup.root else {}


def _is_embedded_anew(new: RunMetadata, baseline: RunMetadata, key: str) -> bool:
    models = {told.indexes.get(key, {}).get(EMBEDDING_MODEL) for told in (new, baseline)}
    return len(models - {None}) > 1


def why_undecided(changed: Sequence[str]) -> str:
    """Say why a run on changed indexes is not decided, and what to do."""
    return (
        f"{_named(changed)} changed since the baseline, or is known of one run alone; a rebuilt "
        "index shifts whole documents by chance, which no number of questions shows (to decide all "
        "the same, as if each question changed on its own: --accept-index-change)"
    )


def what_is_assumed(changed: Sequence[str]) -> str:
    """Say what a decision on changed indexes that were accepted takes for granted."""
    return (
        f"{_named(changed)} changed, and as you accepted it this takes each question to change on "
        "its own: an index that shifts whole documents is wrongly failed or passed more often"
    )


def _named(changed: Sequence[str]) -> str:
    shown = ", ".join(changed[:_SHOWN]) + (", ..." if len(changed) > _SHOWN else "")
    return f"the index of {shown}"
