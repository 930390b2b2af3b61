"""Entity and relationship extraction: is what was extracted complete and well formed."""

from dataclasses import dataclass

import numpy as np

from graphrag.eval.validation.duplicates import warn_duplicates
from graphrag.eval.validation.edges import Edges
from graphrag.eval.validation.mentions import Mentions, count_mentions
from graphrag.eval.validation.records import (
    ENTITIES,
    RELATIONSHIPS,
    CheckResult,
    PhaseValidation,
    Thresholds,
    judge,
    ratio,
    skip,
)
from graphrag.eval.validation.tables import (
    Offenders,
    Table,
    Tables,
    as_numbers,
    as_text,
    compute,
    to_numpy,
)


def check_entities(tables: Tables, thresholds: Thresholds) -> PhaseValidation:
    """Check entities and their mentions."""
    table = tables.entities
    confidence = _check_confidence("confidence_scores_valid", table, "entities")
    mentions = _mentions(table, tables.text_units)
    checks = (
        _check_extracted("entities_extracted", table, "entities"),
        confidence.check,
        _check_filled("entity_types_populated", table, "entities", "type"),
        _check_names(table),
        _check_mentions(table, tables.text_units, mentions),
    )
    warnings = _warn_confidence(confidence, "entities", thresholds)
    if mentions is not None and mentions.unmentioned.count and table is not None:
        warnings.append(
            f"Unmentioned entities: {mentions.unmentioned.count} of {table.n_rows} are in no text "
            f"unit, such as {', '.join(table.ids(mentions.unmentioned))}."
        )
    warnings += _warn_orphans(mentions, "entities")
    warnings += warn_duplicates(table)
    n_entities = tables.count("entities")
    metrics = {
        "entities_count": n_entities,
        "avg_confidence": confidence.mean,
        "avg_mentions_per_entity": mentions and ratio(mentions.total, n_entities),
    }
    return PhaseValidation(ENTITIES, checks, metrics, tuple(warnings))


def check_relationships(
    tables: Tables, edges: Edges | None, thresholds: Thresholds
) -> PhaseValidation:
    """Check relationships; ``edges`` is None where they can't be followed."""
    table, n_entities = tables.relationships, tables.count("entities")
    confidence = _check_confidence("relationship_confidence_valid", table, "relationships")
    mentions = _mentions(table, tables.text_units)
    typed = "type" if table is not None and "type" in table else "description"
    checks = (
        _check_extracted("relationships_extracted", table, "relationships", n_entities),
        confidence.check,
        _check_filled("relationship_types_populated", table, "relationships", typed),
        _check_ends(table, edges),
    )
    warnings = _warn_confidence(confidence, "relationships", thresholds)
    n_relationships = tables.count("relationships")
    if n_entities and not n_relationships:
        warnings.append(
            f"No relationships: none was extracted in spite of {n_entities} entities; no search "
            "can go from one to another."
        )
    if edges is not None and edges.orphans.count:
        warnings.append(
            f"Orphaned relationships: {edges.orphans.count} of {edges.n_relationships} name an "
            "entity that does not exist; no search can follow them."
        )
    warnings += _warn_orphans(mentions, "relationships")
    density = ratio(n_relationships, n_entities)
    if density is not None and density > thresholds.high_density:
        warnings.append(
            f"High density: {density:.1f} relationships an entity; they may be indiscriminate."
        )
    metrics = {
        "relationships_count": n_relationships,
        "avg_relationship_confidence": confidence.mean,
        "relationships_per_entity": density,
    }
    return PhaseValidation(RELATIONSHIPS, checks, metrics, tuple(warnings))


@dataclass(frozen=True, slots=True)
class _Confidence:
    check: CheckResult
    mean: float | None = None


def _check_extracted(
    name: str, table: Table | None, kind: str, n_entities: int | None = None
) -> CheckResult:
    if n_entities == 0:
        return skip(name, "there are no entities that they could join")
    if table is None:
        return judge(name, False, f"there is no {kind} table")
    return judge(name, table.n_rows > 0, f"{table.n_rows} {kind}")


def _check_confidence(name: str, table: Table | None, kind: str) -> _Confidence:
    if table is None or not table.n_rows:
        return _Confidence(skip(name, f"there are no {kind}"))
    if "confidence" not in table:
        return _Confidence(skip(name, f"the {kind} have no confidence"))
    outside, given, total = Offenders(), 0, 0.0
    for offset, (values,) in table.batches("confidence"):
        numbers = as_numbers(values)
        texts = as_text(values)
        # A null or empty cell gives no confidence; a word, NaN or infinity gives a wrong one.
        present = to_numpy(compute.fill_null(compute.not_equal(texts, ""), False))
        valid = present & (numbers >= 0) & (numbers <= 1)
        outside.add(present & ~valid, offset)
        given += int(valid.sum())
        total += float(numbers[valid].sum())
    mean = ratio(total, given)
    if not given and not outside.count:
        return _Confidence(skip(name, f"none of the {kind} gives a confidence"))
    message = f"{outside.count} of {given + outside.count} confidences are not within 0 and 1"
    return _Confidence(judge(name, not outside.count, message, table.ids(outside)), mean)


def _check_filled(name: str, table: Table | None, kind: str, column: str) -> CheckResult:
    if table is None or not table.n_rows:
        return skip(name, f"there are no {kind}")
    if column not in table:
        return skip(name, f"the {kind} have no {column}")
    empty = table.blank_rows(column)
    message = f"{empty.count} of {table.n_rows} {kind} have no {column}"
    return judge(name, not empty.count, message, table.ids(empty))


def _check_names(table: Table | None) -> CheckResult:
    name = "entity_names_valid"
    if table is None or not table.n_rows:
        return skip(name, "there are no entities")
    if "title" not in table:
        return judge(name, False, "the entities have no name")
    invalid = Offenders()
    for offset, (titles,) in table.batches("title"):
        named = compute.match_substring_regex(as_text(titles), r"[\p{L}\p{N}\p{So}]")
        invalid.add(~to_numpy(compute.fill_null(named, False)), offset)
    message = (
        f"{invalid.count} of {table.n_rows} entities have a name without letter, digit, symbol"
    )
    return judge(name, not invalid.count, message, table.ids(invalid))


def _mentions(table: Table | None, units: Table | None) -> Mentions | None:
    if table is None or not table.n_rows or "text_unit_ids" not in table:
        return None
    if units is None or "id" not in units:
        return None
    return count_mentions(table, units.text("id"))


def _check_mentions(
    table: Table | None, units: Table | None, mentions: Mentions | None
) -> CheckResult:
    name = "entity_mentions_valid"
    if table is None or not table.n_rows:
        return skip(name, "there are no entities")
    if "text_unit_ids" not in table:
        return skip(name, "the entities do not name their text units")
    if units is None or mentions is None:
        return skip(name, "there are no text units with ids")
    message = (
        f"{mentions.orphaned} of {mentions.total} mentions are in text units that do not exist"
    )
    return judge(name, not mentions.orphaned, message, table.ids(mentions.broken))


def _check_ends(table: Table | None, edges: Edges | None) -> CheckResult:
    name = "relationship_entities_exist"
    if table is None or not table.n_rows:
        return skip(name, "there are no relationships")
    if edges is None:
        return skip(name, "no columns relate the relationships to a table of entities")
    orphans = edges.orphans
    message = f"{orphans.count} of {table.n_rows} relationships name an entity that does not exist"
    return judge(name, not orphans.count, message, table.ids(orphans))


def _warn_confidence(found: _Confidence, kind: str, thresholds: Thresholds) -> list[str]:
    if found.mean is None or np.isnan(found.mean) or found.mean >= thresholds.low_confidence:
        return []
    return [
        f"Low confidence: {found.mean:.2f} on average over the {kind}; "
        f"below {thresholds.low_confidence:g}."
    ]


def _warn_orphans(mentions: Mentions | None, kind: str) -> list[str]:
    if mentions is None or not mentions.orphaned:
        return []
    return [
        f"Orphaned mentions: {mentions.orphaned} of {mentions.total} mentions of {kind} are in "
        "text units that do not exist; searches lose the text behind them."
    ]
