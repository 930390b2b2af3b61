"""Checks the documents, text units, entities and relationships in the tables of an index.

The checks of the graph are in graph.py, those of the vectors in vectors.py.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd

from graphrag.eval.validation.graph import Edges, warn
from graphrag.eval.validation.report import (
    MAX_EXAMPLES,
    CheckResult,
    PhaseValidation,
    Thresholds,
    judge,
    ratio,
    skip,
)
from graphrag.eval.validation.table_access import (
    Array,
    Frame,
    Mask,
    Rows,
    Tables,
    arrow,
    as_array,
    as_lists,
    as_numbers,
    as_text,
    compute,
    count,
    find,
    first_ids,
    is_blank,
    relate,
    to_numpy,
)
from graphrag.text.float_compare import is_below, number_beside
from graphrag.text.tokenize import fold

ENRICHMENT: tuple[str, ...] = ("heading", "keywords", "summary")
"""What a pipeline may add to a text unit so that it can be found by more than its text."""
# C, C++ and C# differ by more than punctuation.
_ASCII_WORD = re.compile(r"[a-z0-9+#]+")
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_MAX_PREFIX_LINES = 20
_MAX_DISTANT_MISSES = 50


def _is_nameless(values: Array) -> Mask:
    named = compute.match_substring_regex(as_text(values), r"[\p{L}\p{N}\p{So}]")
    return ~to_numpy(compute.fill_null(named, False))


def _check_rows(
    name: str,
    frame: Frame | None,
    rows: str,
    column: str,
    limits: Thresholds,
    problem: str = "",
    is_broken: Callable[[Array], Mask] = is_blank,
) -> CheckResult:
    """Check that no row of a table is broken in a column; by default, that none is blank."""
    if frame is None or not len(frame):
        return skip(name, f"there are no {rows}")
    if column not in frame:
        return skip(name, f"the {rows} have no {column}")
    broken = is_broken(frame[column])
    message = f"{broken.sum()} of {len(frame)} {rows} {problem or f'have no {column}'}"
    otherwise = limits.status_of(int(broken.sum()), len(frame))
    return judge(name, not broken.any(), message, first_ids(frame, broken), otherwise)


def check_documents(
    tables: Tables, limits: Thresholds, any_enrichment: bool = False
) -> PhaseValidation:
    """Check that documents were read, cut into text units, and kept in full.

    With ``any_enrichment``, it is enough if some text unit has a heading, keywords or a summary;
    otherwise every text unit must have some metadata.
    """
    documents, units = tables.documents, tables.text_units
    coverage, covered = _check_coverage(documents, units, limits)
    metadata, enriched, warning = _check_metadata(units, limits, any_enrichment)
    warnings: list[str] = []
    if documents is None:
        warnings.append("No documents: there is no documents table to compare the text units with.")
    if coverage.status in ("failed", "warning"):
        warnings.append(f"Low coverage: {coverage.message}.")
    least = 100 * limits.low_metadata_ratio
    if enriched is not None and is_below(100 * enriched, least):
        share = number_beside(100 * enriched, least, digits=1)
        warnings.append(f"Low metadata: {share}% of the text units {warning}; below {least:g}%.")
    filled = _check_rows("document_not_empty", documents, "documents", "text", limits)
    if documents is not None and not len(documents):
        filled = judge(filled.name, False, "the documents table has no row")
    characters = tokens = None
    if units is not None and "text" in units:
        total = compute.sum(compute.utf8_length(as_text(units["text"]))).as_py() or 0
        characters = ratio(int(total), len(units))
    if units is not None and "n_tokens" in units:
        counts = as_numbers(units["n_tokens"])
        counts = counts[np.isfinite(counts)]
        tokens = ratio(float(counts.sum()), len(counts))
    return PhaseValidation(
        name="document_processing",
        checks=(
            filled,
            _check_created(documents, units, limits),
            coverage,
            _check_rows("no_empty_chunks", units, "text units", "text", limits),
            metadata,
        ),
        metrics={
            "documents_count": None if documents is None else len(documents),
            "chunks_count": count(units),
            "coverage_ratio": covered,
            "metadata_ratio": enriched,
            "avg_chunk_size": characters,
            "avg_chunk_tokens": tokens,
        },
        warnings=tuple(warnings),
    )


def _check_created(documents: Frame | None, units: Frame | None, limits: Thresholds) -> CheckResult:
    name = "chunks_created"
    if units is None:
        return judge(name, False, "there is no text_units table")
    if not len(units):
        return judge(name, False, "there are no text units")
    if documents is None:
        return judge(name, True, f"{len(units)} text units; there is no documents table")
    without = absent = np.zeros(len(documents), np.bool_)
    owned = _units_of_documents(documents, units)
    if owned is not None:
        without = np.bincount(owned[1], minlength=len(documents)) == 0
        if without.any() and "text" in documents:
            without &= ~is_blank(documents["text"])
        without &= without[_first_of_same(documents)]
    mentions = _count_mentions(documents, units)
    if mentions is not None:
        absent = mentions.broken
    messages = [f"{len(units)} text units of {len(documents)} documents"]
    if without.any():
        messages.append(f"{without.sum()} documents with text have none")
    if absent.any():
        messages.append(f"{absent.sum()} documents list text units that do not exist")
    examples = dict.fromkeys((*first_ids(documents, without), *first_ids(documents, absent)))
    otherwise = limits.status_of(int((without | absent).sum()), len(documents))
    found = tuple(examples)[:MAX_EXAMPLES]
    return judge(name, len(messages) == 1, "; ".join(messages), found, otherwise)


def _first_of_same(documents: Frame) -> Rows:
    """Return for each document the row of the first one with the same id, or else the same text.

    graphrag gives files of the same text one id, and gives text units only to the first of them.
    """
    first: Rows = np.arange(len(documents))
    for column in ("text", "id"):
        if column in documents:
            values = as_text(documents[column])
            at = find(values, compute.drop_null(compute.unique(values)))
            rows = np.flatnonzero(at >= 0)
            _, begins = np.unique(at[rows], return_index=True)
            first[rows] = np.minimum(first[rows], first[rows[begins][at[rows]]])
    return first


def _units_of_documents(documents: Frame, units: Frame) -> tuple[Rows, Rows] | None:
    """Return pairs of rows, (text unit, document); None if no column relates them."""
    if "id" in documents and ("document_id" in units or "document_ids" in units):
        column = "document_id" if "document_id" in units else "document_ids"
        return relate(units, column, as_text(documents["id"]))
    if "text_unit_ids" in documents and "id" in units:
        document_rows, unit_rows = relate(documents, "text_unit_ids", as_text(units["id"]))
        return unit_rows, document_rows
    return None


def _check_coverage(
    documents: Frame | None, units: Frame | None, limits: Thresholds
) -> tuple[CheckResult, float | None]:
    name = "content_coverage"
    if documents is None or "text" not in documents:
        return skip(name, "there is no table with the documents' text"), None
    if units is None or "text" not in units or not len(units):
        return skip(name, "there are no text units with text"), None
    owned = _units_of_documents(documents, units)
    if owned is None:
        return skip(name, "no column says which document a text unit comes from"), None
    unit_rows, document_rows = owned
    order = np.argsort(document_rows, kind="stable")
    bounds = np.searchsorted(document_rows[order], np.arange(len(documents) + 1))
    texts, first = as_text(units["text"]), _first_of_same(documents)
    low, shares = np.zeros(len(documents), np.bool_), list[float]()
    covered = length = 0
    least = 100 * limits.min_coverage
    for row, document in enumerate(as_text(documents["text"])):
        text = document.as_py()
        if not text:
            continue
        owner = int(first[row]) if bounds[row] == bounds[row + 1] else row
        own = unit_rows[order[bounds[owner] : bounds[owner + 1]]]
        pieces = [str(texts[int(unit)].as_py() or "") for unit in own]
        part, whole = measure_coverage(str(text), pieces, limits.min_coverage)
        covered, length = covered + part, length + whole
        if whole and is_below(100 * part / whole, least):
            low[row] = True
            shares.append(100 * part / whole)
    overall = ratio(covered, length)
    if overall is None:
        return skip(name, "no document has text"), None
    share = number_beside(100 * overall, least, digits=1)
    message = f"text units contain {share}% of the documents' text, overlap counted once"
    if shares:
        listed = (f"{number_beside(each, least, digits=1)}%" for each in shares[:MAX_EXAMPLES])
        message += (
            f"; {len(shares)} of {len(documents)} documents are below {least:g}% "
            f"({', '.join(listed)})"
        )
    otherwise = limits.status_of(len(shares), len(documents))
    return judge(name, not shares, message, first_ids(documents, low), otherwise), overall


def _has_text(values: Array) -> Mask:
    return ~is_blank(values)


def _has_items(values: Array) -> Mask:
    return as_lists(values)[0] > 0


def _has_any(values: Array) -> Mask:
    """Return for each cell, of any type, whether it has any content."""
    array, types = as_array(values), arrow.types
    if types.is_dictionary(array.type):
        array = compute.cast(array, array.type.value_type)
    if types.is_nested(array.type):
        return np.array([_is_filled(cell) for cell in array.to_pylist()], np.bool_)
    # Lists and mappings that were written as text.
    texts = as_text(array)
    empty = compute.is_in(texts, value_set=arrow.array(["[]", "{}", "null"], texts.type))
    return ~is_blank(texts) & ~to_numpy(empty)


def _is_filled(cell: object) -> bool:
    """Return whether a cell has any content: a list an item, a mapping a value with content."""
    if isinstance(cell, dict):
        return any(map(_is_filled, cast("dict[str, object]", cell).values()))
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None and cell != []


_METADATA: dict[str, Callable[[Array], Mask]] = {
    "document_id": _has_text,
    "document_ids": _has_items,
    "n_tokens": lambda values: as_numbers(values) > 0,
    "entity_ids": _has_items,
    **dict.fromkeys((*ENRICHMENT, "metadata"), _has_any),
}


def _check_metadata(
    units: Frame | None, limits: Thresholds, any_enrichment: bool
) -> tuple[CheckResult, float | None, str]:
    """Return the check, the share of text units with metadata, and a warning's words about it.

    In an index, each text unit must have some of the metadata columns that the table has, written
    by GraphRAG or added by another pipeline; the share is of the text units that have all of them.
    With ``any_enrichment``, one text unit with any is enough, and the share counts such text units.
    """
    name = "metadata_enrichment"
    predicates = dict.fromkeys(ENRICHMENT, _has_text) if any_enrichment else _METADATA
    if units is None or not len(units):
        return skip(name, "there are no text units"), None, ""
    kinds = [kind for kind in predicates if kind in units]
    if not kinds:
        return skip(name, f"the text units have no column of {', '.join(predicates)}"), None, ""
    masks = [predicates[kind](units[kind]) for kind in kinds]
    bare, full = ~np.logical_or.reduce(masks), np.logical_and.reduce(masks)
    examples = first_ids(units, bare)
    if any_enrichment:
        finding, share = "have a heading, keywords or a summary", float((~bare).mean())
        message = f"{(~bare).sum()} of {len(units)} text units {finding}"
        return judge(name, not bare.all(), message, examples), share, finding
    listed, share = ", ".join(kinds), full.sum() / len(units)
    message = (
        f"{share:.1%} of the text units carry all of {listed}; "
        f"{bare.sum()} of {len(units)} carry none of it"
    )
    finding = f"carry everything that their table has columns for ({listed})"
    check = judge(name, not bare.any(), message, examples, limits.of_some_rows)
    return check, float(share), finding


@dataclass(frozen=True, slots=True)
class _Mentions:
    """A column of text unit ids: ids in all, ids of no text unit, and the rows with such ids."""

    total: int
    orphaned: int
    broken: Mask
    unmentioned: Mask

    def warn(self, kind: str) -> list[str]:
        if not self.orphaned:
            return []
        return [
            f"Orphaned mentions: {self.orphaned} of {self.total} mentions of {kind} are in "
            "text units that do not exist; searches lose the text behind them."
        ]


def _count_mentions(frame: Frame | None, units: Frame | None) -> _Mentions | None:
    """Count the ids of text units in a table; None if there are no rows, or no ids, to compare."""
    if frame is None or not len(frame) or "text_unit_ids" not in frame:
        return None
    if units is None or "id" not in units:
        return None
    lengths, ids = as_lists(frame["text_unit_ids"])
    unknown = ~to_numpy(compute.is_in(ids, value_set=as_text(units["id"])))
    owners = np.repeat(np.arange(len(lengths)), lengths)[unknown]
    broken = np.bincount(owners, minlength=len(lengths)) > 0
    return _Mentions(
        total=len(unknown), orphaned=len(owners), broken=broken, unmentioned=lengths == 0
    )


def _check_extracted(
    name: str, frame: Frame | None, kind: str, n_entities: int | None = None
) -> CheckResult:
    if n_entities == 0:
        return skip(name, "there are no entities that they could join")
    if frame is None:
        return judge(name, False, f"there is no {kind} table")
    return judge(name, len(frame) > 0, f"{len(frame)} {kind}")


def _check_confidence(
    name: str, frame: Frame | None, kind: str, limits: Thresholds
) -> tuple[CheckResult, float | None, list[str]]:
    """Return the check, the mean confidence, and a warning if the mean is low."""
    if frame is None or not len(frame):
        return skip(name, f"there are no {kind}"), None, []
    if "confidence" not in frame:
        return skip(name, f"the {kind} have no confidence"), None, []
    values = cast("Array", frame["confidence"])
    numbers = as_numbers(values)
    # A null or empty cell gives no confidence; a word, NaN or infinity gives a wrong one.
    has_value = to_numpy(compute.fill_null(compute.not_equal(as_text(values), ""), False))
    if not has_value.any():
        return skip(name, f"none of the {kind} gives a confidence"), None, []
    valid = has_value & (numbers >= 0) & (numbers <= 1)
    wrong = has_value & ~valid
    message = f"{wrong.sum()} of {has_value.sum()} confidences are not within 0 and 1"
    otherwise = limits.status_of(int(wrong.sum()), len(frame) + 1)
    check = judge(name, not wrong.any(), message, first_ids(frame, wrong), otherwise)
    mean = ratio(float(numbers[valid].sum()), int(valid.sum()))
    limit = limits.low_confidence
    low = f"Low confidence: {{}} on average over the {kind}; below {limit:g}."
    return check, mean, warn(mean, low, low=limit)


def check_entities(tables: Tables, limits: Thresholds) -> PhaseValidation:
    """Check entities and the text units in which they are mentioned."""
    frame, units, kind = tables.entities, tables.text_units, "entities"
    confidence, mean, warnings = _check_confidence("confidence_scores_valid", frame, kind, limits)
    problem = "have a name without letter, digit, symbol"
    names = _check_rows("entity_names_valid", frame, kind, "title", limits, problem, _is_nameless)
    mentioned = skip("entity_mentions_valid", "there are no entities")
    mentions = _count_mentions(frame, units)
    if frame is not None and len(frame):
        if "title" not in frame:
            names = judge(names.name, False, "the entities have no name")
        if "text_unit_ids" not in frame:
            mentioned = skip(mentioned.name, "the entities do not name their text units")
        elif mentions is None:
            mentioned = skip(mentioned.name, "there are no text units with ids")
        else:
            message = (
                f"{mentions.orphaned} of {mentions.total} mentions are in text units that do not "
                "exist"
            )
            broken = first_ids(frame, mentions.broken)
            otherwise = limits.status_of(mentions.orphaned, mentions.total)
            mentioned = judge(mentioned.name, not mentions.orphaned, message, broken, otherwise)
            if mentions.unmentioned.any():
                warnings.append(
                    f"Unmentioned entities: {mentions.unmentioned.sum()} of {len(frame)} are in no "
                    f"text unit, such as {', '.join(first_ids(frame, mentions.unmentioned))}."
                )
            warnings += mentions.warn(kind)
        warnings += _warn_duplicates(frame)
    return PhaseValidation(
        name="entity_extraction",
        checks=(
            _check_extracted("entities_extracted", frame, kind),
            confidence,
            _check_rows("entity_types_populated", frame, kind, "type", limits),
            names,
            mentioned,
        ),
        metrics={
            "entities_count": count(frame),
            "avg_confidence": mean,
            "avg_mentions_per_entity": mentions and ratio(mentions.total, count(frame)),
        },
        warnings=tuple(warnings),
    )


def _warn_duplicates(entities: Frame) -> list[str]:
    """Warn about entities that seem to be the same one under two names, or twice under one.

    Names are compared by two hashes of 64 bits, of the words run together and of the sorted words;
    0 for a name without a word. Among a million names, the chance that any two different ones
    collide is below one in ten million.
    """
    if "title" not in entities:
        return []
    titles = as_text(entities["title"])
    words = [_words(title.as_py() or "") for title in titles]
    spellings = (map("".join, words), (" ".join(sorted(name)) for name in words))
    keys = np.array([[hash(key) if key else 0 for key in row] for row in spellings], np.int64)
    twice = [pd.Series(key).duplicated(keep=False).to_numpy() for key in keys]
    repeated: Mask = (twice[0] | twice[1]) & (keys[0] != 0)
    groups: list[str] = []
    seen: set[int] = set()
    for row in np.flatnonzero(repeated)[: 10 * MAX_EXAMPLES]:
        if int(row) not in seen and len(groups) < MAX_EXAMPLES:
            same = np.flatnonzero((keys == keys[:, [row]]).any(axis=0))
            seen.update(same.tolist())
            groups.append(" = ".join(repr(titles[int(other)].as_py()) for other in same[:3]))
    if not groups:
        return []
    return [
        f"Near-duplicate entities: {repeated.sum()} of {len(entities)} have a name that another "
        f"one has too, except for case, spacing, punctuation or word order, such as "
        f"{'; '.join(groups)}."
    ]


def _words(title: str) -> list[str]:
    if title.isascii():
        return _ASCII_WORD.findall(title.lower())
    kept = (c if unicodedata.category(c)[0] in "LMNS" else " " for c in fold(title))
    return "".join(kept).split()


def check_relationships(tables: Tables, edges: Edges | None, limits: Thresholds) -> PhaseValidation:
    """Check relationships; ``edges`` is None if the table can't be joined to entities."""
    frame, n_entities, kind = tables.relationships, count(tables.entities), "relationships"
    confidence, mean, warnings = _check_confidence(
        "relationship_confidence_valid", frame, kind, limits
    )
    typed = "type" if frame is not None and "type" in frame else "description"
    ends = skip("relationship_entities_exist", "there are no relationships")
    if n_entities and not count(frame):
        warnings.append(
            f"No relationships: none was extracted in spite of {n_entities} entities; no search "
            "can go from one to another."
        )
    if frame is not None and len(frame):
        ends = skip(ends.name, "no columns relate the relationships to a table of entities")
        if edges is not None:
            n_orphans = edges.orphans.sum()
            message = (
                f"{n_orphans} of {len(frame)} relationships name an entity that does not exist"
            )
            otherwise = limits.status_of(int(n_orphans), len(frame))
            orphans = first_ids(frame, edges.orphans)
            ends = judge(ends.name, not n_orphans, message, orphans, otherwise)
            if n_orphans:
                warnings.append(
                    f"Orphaned relationships: {n_orphans} of {len(frame)} name an "
                    "entity that does not exist; no search can follow them."
                )
    mentions = _count_mentions(frame, tables.text_units)
    warnings += mentions.warn(kind) if mentions else []
    density = ratio(count(frame), n_entities)
    many = "High density: {} relationships an entity; they may be indiscriminate."
    warnings += warn(density, many, high=limits.high_density)
    return PhaseValidation(
        name="relationship_extraction",
        checks=(
            _check_extracted("relationships_extracted", frame, kind, n_entities),
            confidence,
            _check_rows("relationship_types_populated", frame, kind, typed, limits),
            ends,
        ),
        metrics={
            "relationships_count": count(frame),
            "avg_relationship_confidence": mean,
            "relationships_per_entity": density,
        },
        warnings=tuple(warnings),
    )


def measure_coverage(document: str, units: Sequence[str], enough: float) -> tuple[int, int]:
    """Return the number of a document's characters that are in a text unit, and of all.

    Each text unit, in order, is searched in the document; overlap counts once. If not all are found
    as they are, white space is left out of the text and of the counts, up to 20 lines of metadata
    before a text unit's text are ignored, and so are broken characters at its ends, which appear if
    a token ends inside a character. ``enough``, in [0, 1]: the share from which the first, quicker
    reading is trusted.
    """
    covered = _cover(document, units)
    if covered is not None and covered >= enough * len(document):
        return covered, len(document)
    squeezed = _squeeze(document)
    return _Placer(squeezed).cover(units), len(squeezed)


def _cover(text: str, units: Sequence[str]) -> int | None:
    """Return the number of characters covered; None once a unit is not found after the last one."""
    covered = start = end = 0
    for unit in units:
        start = _find_near(text, unit, start, end)
        if start < 0:
            return None
        covered += max(0, start + len(unit) - max(start, end))
        end = max(end, start + len(unit))
    return covered


def _find_near(text: str, unit: str, start: int, end: int) -> int:
    # The last of several places: in a text that repeats itself, units would seem to overlap.
    place = text.rfind(unit, start, end + len(unit))
    return place if place >= 0 else text.find(unit, end)


def _squeeze(text: str) -> str:
    return "".join(text.split())


class _Placer:
    """Finds units in a text without white space, and remembers how long their prefixes are."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = 0
        self._prefix_lines = 0
        self._misses = 0

    def cover(self, units: Sequence[str]) -> int:
        spans = [span for unit in units if (span := self._place(unit))]
        covered = reached = 0
        for start, end in sorted(spans):
            covered += max(0, end - max(start, reached))
            reached = max(reached, end)
        return covered

    def _place(self, unit: str) -> tuple[int, int] | None:
        lines = unit.splitlines()
        last = min(_MAX_PREFIX_LINES, len(lines) - 1)
        dropped = [self._prefix_lines, *(n for n in range(last + 1) if n != self._prefix_lines)]
        for n_lines in dropped:
            text = _squeeze(" ".join(lines[n_lines:])).strip(_BROKEN)
            at = self._find(text) if text else -1
            if at >= 0:
                self._prefix_lines = n_lines
                self._start, self._end = at, at + len(text)
                return self._start, self._end
        self._misses += 1
        return None

    def _find(self, unit: str) -> int:
        if self._misses >= _MAX_DISTANT_MISSES:
            # It is another text: searching everywhere for each unit would take quadratic time.
            return self._text.rfind(unit, self._start, self._end + 2 * len(unit))
        place = _find_near(self._text, unit, self._start, self._end)
        return place if place >= 0 else self._text.find(unit)
