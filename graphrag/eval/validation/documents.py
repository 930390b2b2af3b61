"""Document processing: were the documents read, cut up and kept whole."""

from collections.abc import Iterator

import numpy as np

from graphrag.eval.validation.coverage import measure_coverage
from graphrag.eval.validation.mentions import count_mentions
from graphrag.eval.validation.metadata import MetadataCheck, check_columns
from graphrag.eval.validation.records import (
    DOCUMENTS,
    MAX_EXAMPLES,
    CheckResult,
    PhaseValidation,
    Thresholds,
    judge,
    ratio,
    skip,
)
from graphrag.eval.validation.tables import (
    Array,
    Offenders,
    Rows,
    Table,
    Tables,
    as_lists,
    as_numbers,
    as_text,
    compute,
    is_blank,
    to_numpy,
)

_DOCUMENTS_AT_ONCE = 64


def check_documents(
    tables: Tables, thresholds: Thresholds, check_metadata: MetadataCheck = check_columns
) -> PhaseValidation:
    """Check documents and their text units."""
    documents, units = tables.documents, tables.text_units
    coverage, coverage_ratio = _check_coverage(documents, units, thresholds)
    metadata = check_metadata(units, thresholds)
    warnings: list[str] = []
    if documents is None:
        warnings.append("No documents: there is no documents table to compare the text units with.")
    if coverage.status == "failed":
        warnings.append(f"Low coverage: {coverage.message}.")
    warnings += metadata.warnings
    characters, tokens = _sizes(units)
    checks = (
        _check_filled(documents),
        _check_created(documents, units),
        coverage,
        _check_chunks_filled(units),
        metadata.check,
    )
    metrics = {
        "documents_count": None if documents is None else documents.n_rows,
        "chunks_count": tables.count("text_units"),
        "coverage_ratio": coverage_ratio,
        "metadata_ratio": metadata.ratio,
        "avg_chunk_size": characters,
        "avg_chunk_tokens": tokens,
    }
    return PhaseValidation(DOCUMENTS, checks, metrics, tuple(warnings))


def _check_filled(documents: Table | None) -> CheckResult:
    name = "document_not_empty"
    if documents is None:
        return skip(name, "there is no documents table")
    if not documents.n_rows:
        return judge(name, False, "the documents table has no row")
    if "text" not in documents:
        return skip(name, "the documents table has no column text")
    empty = documents.blank_rows("text")
    message = f"{empty.count} of {documents.n_rows} documents have no text"
    return judge(name, not empty.count, message, documents.ids(empty))


def _check_created(documents: Table | None, units: Table | None) -> CheckResult:
    name = "chunks_created"
    if units is None:
        return judge(name, False, "there is no text_units table")
    if not units.n_rows:
        return judge(name, False, "there are no text units")
    if documents is None:
        return judge(name, True, f"{units.n_rows} text units; there is no documents table")
    without = _documents_without_units(documents, units)
    absent = _absent_units(documents, units)
    messages = [f"{units.n_rows} text units of {documents.n_rows} documents"]
    if without.count:
        messages.append(f"{without.count} documents with text have none")
    if absent.count:
        messages.append(f"{absent.count} documents list text units that do not exist")
    examples = dict.fromkeys((*documents.ids(without), *documents.ids(absent)))
    return judge(name, len(messages) == 1, "; ".join(messages), tuple(examples))


def _documents_without_units(documents: Table, units: Table) -> Offenders:
    found = Offenders()
    of_document = _units_of_documents(documents, units)
    if of_document is None:
        return found
    _, document_rows = of_document
    has_unit = np.bincount(document_rows, minlength=documents.n_rows) > 0
    if has_unit.all() or "text" not in documents:
        found.add(~has_unit)
        return found
    for offset, (texts,) in documents.batches("text", size=_DOCUMENTS_AT_ONCE):
        blank = is_blank(as_text(texts))
        found.add(~blank & ~has_unit[offset : offset + len(blank)], offset)
    return found


def _absent_units(documents: Table, units: Table) -> Offenders:
    if "text_unit_ids" in documents and "id" in units:
        return count_mentions(documents, units.text("id")).broken
    return Offenders()


def _check_coverage(
    documents: Table | None, units: Table | None, thresholds: Thresholds
) -> tuple[CheckResult, float | None]:
    name = "content_coverage"
    if documents is None or "text" not in documents:
        return skip(name, "there is no table with the documents' text"), None
    if units is None or "text" not in units or not units.n_rows:
        return skip(name, "there are no text units with text"), None
    of_document = _units_of_documents(documents, units)
    if of_document is None:
        return skip(name, "no column says which document a text unit comes from"), None
    low, shares, totals = Offenders(), list[float](), np.zeros(2, np.int64)
    for row, covered, length in _cover_documents(documents, units, of_document, thresholds):
        totals += (covered, length)
        if length and covered < thresholds.min_coverage * length:
            low.add(np.ones(1, np.bool_), row)
            shares.append(covered / length)
    overall = ratio(int(totals[0]), int(totals[1]))
    if overall is None:
        return skip(name, "no document has text"), None
    message = f"text units hold {overall:.1%} of the documents' text, overlap counted once"
    if low.count:
        listed = ", ".join(f"{share:.1%}" for share in shares[:MAX_EXAMPLES])
        message += (
            f"; {low.count} of {documents.n_rows} documents are below "
            f"{thresholds.min_coverage:.0%} ({listed})"
        )
    return judge(name, not low.count, message, documents.ids(low)), overall


def _cover_documents(
    documents: Table, units: Table, of_document: tuple[Rows, Rows], thresholds: Thresholds
) -> Iterator[tuple[int, int, int]]:
    """Yield row, characters covered and characters of each document with text."""
    unit_rows, document_rows = of_document
    order = np.argsort(document_rows, kind="stable")
    unit_rows = unit_rows[order]
    bounds = np.searchsorted(document_rows[order], np.arange(documents.n_rows + 1))
    texts = units.text("text")
    for offset, (column,) in documents.batches("text", size=_DOCUMENTS_AT_ONCE):
        for row, text in enumerate(as_text(column).to_pylist(), start=offset):
            mine = unit_rows[bounds[row] : bounds[row + 1]]
            if text:
                held = [str(texts[int(unit)].as_py() or "") for unit in mine]
                yield row, *measure_coverage(str(text), held, thresholds.min_coverage)


def _units_of_documents(documents: Table, units: Table) -> tuple[Rows, Rows] | None:
    """Return pairs of rows, text unit and document; None when no column relates them."""
    if "id" in documents and ("document_id" in units or "document_ids" in units):
        many = "document_id" not in units
        return _relate(units, "document_ids" if many else "document_id", documents.text("id"))
    if "text_unit_ids" in documents and "id" in units:
        document_rows, unit_rows = _relate(documents, "text_unit_ids", units.text("id"))
        return unit_rows, document_rows
    return None


def _relate(table: Table, column: str, ids: Array) -> tuple[Rows, Rows]:
    """Return pairs of rows: of the table, and of the first of the ids that its column names."""
    left: list[Rows] = []
    right: list[Rows] = []
    for offset, (values,) in table.batches(column):
        lengths, named = (
            as_lists(values)
            if column.endswith("s")
            else (np.ones(len(values), np.int64), as_text(values))
        )
        rows = np.repeat(np.arange(offset, offset + len(lengths)), lengths)
        at = to_numpy(compute.fill_null(compute.index_in(named, value_set=ids), -1))
        left.append(rows[at >= 0])
        right.append(at[at >= 0].astype(np.int64))
    if not left:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(left), np.concatenate(right)


def _check_chunks_filled(units: Table | None) -> CheckResult:
    name = "no_empty_chunks"
    if units is None or not units.n_rows:
        return skip(name, "there are no text units")
    if "text" not in units:
        return skip(name, "the text units have no text column")
    empty = units.blank_rows("text")
    message = f"{empty.count} of {units.n_rows} text units have no text"
    return judge(name, not empty.count, message, units.ids(empty))


def _sizes(units: Table | None) -> tuple[float | None, float | None]:
    """Return the mean characters and tokens of a text unit."""
    if units is None:
        return None, None
    characters, tokens, total = 0, 0, 0.0
    if "text" in units:
        for _, (texts,) in units.batches("text"):
            characters += int(compute.sum(compute.utf8_length(as_text(texts))).as_py() or 0)
    if "n_tokens" in units:
        for _, (counts,) in units.batches("n_tokens"):
            numbers = as_numbers(counts)
            tokens += int(np.isfinite(numbers).sum())
            total += float(numbers[np.isfinite(numbers)].sum())
    mean_size = ratio(characters, units.n_rows) if "text" in units else None
    return mean_size, ratio(total, tokens)
