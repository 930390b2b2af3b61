"""What text units carry beside their text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from graphrag.eval.validation.records import CheckResult, Thresholds, judge, skip
from graphrag.eval.validation.tables import (
    Array,
    Mask,
    Offenders,
    Table,
    arrow,
    as_lists,
    as_numbers,
    as_text,
    compute,
    is_blank,
    to_numpy,
)

NAME = "metadata_enrichment"
ENRICHMENT = ("heading", "keywords", "summary")
"""What a pipeline may add to a text unit so that it can be found by more than its text."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The check, the share of text units that carry metadata (None when undefined), warnings."""

    check: CheckResult
    ratio: float | None = None
    warnings: tuple[str, ...] = ()


MetadataCheck = Callable[[Table | None, Thresholds], Metadata]


def check_columns(units: Table | None, thresholds: Thresholds) -> Metadata:
    """Check that each text unit of an index carries some metadata; the ratio is of those with all.

    What counts are the columns that the table has, of those that GraphRAG writes and of those
    that a pipeline of one's own may have added.
    """
    found = _count(units, _HAS_METADATA)
    if isinstance(found, CheckResult):
        return Metadata(found)
    share = found.n_full / found.n_units
    message = (
        f"{share:.1%} of the text units carry all of {', '.join(found.kinds)}; "
        f"{found.bare.count} of {found.n_units} carry none of it"
    )
    check = judge(NAME, not found.bare.count, message, found.examples)
    if share >= thresholds.low_metadata_ratio:
        return Metadata(check, share)
    warning = (
        f"Low metadata: {share:.1%} of the text units carry everything that their table has "
        f"columns for ({', '.join(found.kinds)}); below {thresholds.low_metadata_ratio:.0%}."
    )
    return Metadata(check, share, (warning,))


def check_enrichment(units: Table | None, thresholds: Thresholds) -> Metadata:
    """Check that some text unit has a heading, keywords or a summary; the ratio is of those."""
    found = _count(units, dict.fromkeys(ENRICHMENT, _has_text))
    if isinstance(found, CheckResult):
        return Metadata(found)
    n_enriched = found.n_units - found.bare.count
    share = n_enriched / found.n_units
    message = f"{n_enriched} of {found.n_units} text units have a heading, keywords or a summary"
    check = judge(NAME, n_enriched > 0, message, found.examples)
    if share >= thresholds.low_metadata_ratio:
        return Metadata(check, share)
    warning = (
        f"Low metadata: {share:.1%} of the text units have a heading, keywords or a summary; "
        f"below {thresholds.low_metadata_ratio:.0%}."
    )
    return Metadata(check, share, (warning,))


@dataclass(frozen=True, slots=True)
class _Counted:
    """Text units without any metadata, their first ids, and the number of those with all kinds."""

    kinds: tuple[str, ...]
    n_units: int
    bare: Offenders
    examples: tuple[str, ...]
    n_full: int


def _count(
    units: Table | None, known: Mapping[str, Callable[[Array], Mask]]
) -> _Counted | CheckResult:
    if units is None or not units.n_rows:
        return skip(NAME, "there are no text units")
    kinds = tuple(kind for kind in known if kind in units)
    if not kinds:
        return skip(NAME, f"the text units have no column of {', '.join(known)}")
    bare, n_full = Offenders(), 0
    for offset, columns in units.batches(*kinds):
        has = [known[kind](column) for kind, column in zip(kinds, columns, strict=True)]
        bare.add(~np.logical_or.reduce(has), offset)
        n_full += int(np.logical_and.reduce(has).sum())
    return _Counted(kinds, units.n_rows, bare, units.ids(bare), n_full)


def _has_text(values: Array) -> Mask:
    return ~is_blank(as_text(values))


def _has_items(values: Array) -> Mask:
    return as_lists(values)[0] > 0


def _is_positive(values: Array) -> Mask:
    return as_numbers(values) > 0


def _has_any(values: Array) -> Mask:
    """Say of each cell of any type whether there is something in it."""
    types = arrow.types
    if types.is_dictionary(values.type):
        return _has_any(values.dictionary_decode())
    if types.is_struct(values.type):
        fields = [_has_any(part) for part in values.flatten()]
        return np.logical_or.reduce([np.zeros(len(values), np.bool_), *fields])
    if types.is_nested(values.type):
        lengths = [len(cell) if cell else 0 for cell in values.to_pylist()]
        return np.array(lengths, dtype=np.int64) > 0
    texts = as_text(values)
    # Lists and mappings that were written as text.
    empty = compute.is_in(texts, value_set=arrow.array(["[]", "{}", "null"], texts.type))
    return ~is_blank(texts) & ~to_numpy(empty)


_HAS_METADATA: dict[str, Callable[[Array], Mask]] = {
    "document_id": _has_text,
    "document_ids": _has_items,
    "n_tokens": _is_positive,
    "entity_ids": _has_items,
    **dict.fromkeys((*ENRICHMENT, "metadata"), _has_any),
}
