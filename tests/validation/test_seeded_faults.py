"""Every kind of fault, seeded into a copy of a built index, is found by its own check."""

from collections.abc import Callable

import pandas as pd
import pytest
from support.damaged_index import DamagedIndex, examples, failed, kinds

CHECKS = {
    "document_processing": [
        "document_not_empty",
        "chunks_created",
        "content_coverage",
        "no_empty_chunks",
        "metadata_enrichment",
    ],
    "entity_extraction": [
        "entities_extracted",
        "confidence_scores_valid",
        "entity_types_populated",
        "entity_names_valid",
        "entity_mentions_valid",
    ],
    "relationship_extraction": [
        "relationships_extracted",
        "relationship_confidence_valid",
        "relationship_types_populated",
        "relationship_entities_exist",
    ],
    "graph_construction": [
        "graph_not_empty",
        "entity_chunk_ratio_reasonable",
        "graph_connectivity",
    ],
    "vector_store": ["vectors_stored"],
}
APPENDIX = "The harbour master kept a second book, of which nobody on the isle ever spoke. " * 40


def test_a_sound_index_passes_with_every_check_named(index: DamagedIndex) -> None:
    report = index.validate()
    named = {phase.name: [check.name for check in phase.checks] for phase in report.phases}
    assert named == CHECKS
    assert report.overall_passed
    assert report.failed_phases() == []
    assert (report.total_checks, report.passed_checks) == (18, 16)
    assert (report.failed_checks, report.not_applicable_checks) == (0, 2)
    assert report.all_warnings() == []
    entities, units = index.read("entities"), index.read("text_units")
    expected = {
        "documents_count": 2,
        "chunks_count": len(units),
        "coverage_ratio": 1.0,
        "avg_chunk_size": units["text"].str.len().mean(),
        "avg_chunk_tokens": units["n_tokens"].mean(),
        "entities_count": len(entities),
        "avg_mentions_per_entity": entities["text_unit_ids"].map(len).mean(),
        "entities_per_chunk": len(entities) / len(units),
        "relationships_per_entity": len(index.read("relationships")) / len(entities),
        "entity_description_vectors": len(entities),
    }
    metrics = report.metrics()
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert metrics["avg_confidence"] is None


def lose_a_unit(index: DamagedIndex) -> str:
    """Drop the first text unit and every mention of it, as if it had never been cut."""
    gone = index.read("text_units")["id"].iloc[0]
    index.change("text_units", lambda frame: frame.iloc[1:])
    for table in ("documents", "entities", "relationships"):
        index.change(
            table,
            lambda frame: frame.assign(
                text_unit_ids=[[i for i in ids if i != gone] for ids in frame["text_unit_ids"]]
            ),
        )
    return str(index.read("documents")["id"].iloc[0])


def lengthen(index: DamagedIndex) -> str:
    text = index.read("documents")["text"].iloc[0]
    return index.set_cell("documents", 0, "text", text + APPENDIX)


def add_unit(index: DamagedIndex, **values: object) -> str:
    index.add_row("text_units", id="added", **values)
    return "added"


def add_entity(index: DamagedIndex, title: str) -> str:
    index.add_row("entities", id="added", title=title)
    return "added"


def keep_rows(index: DamagedIndex, table: str, count: int) -> None:
    index.change(table, lambda frame: frame.iloc[:count])


def join_to_itself(index: DamagedIndex) -> None:
    index.change("relationships", lambda frame: frame.assign(target=frame["source"]))


def add_units(index: DamagedIndex, count: int) -> None:
    index.change(
        "text_units",
        lambda frame: pd.concat([frame, *[frame.iloc[:1]] * count], ignore_index=True),
    )


Damage = Callable[[DamagedIndex], object]


def cell(table: str, row: int, column: str, value: object) -> Damage:
    return lambda index: index.set_cell(table, row, column, value)


FAULTS: dict[str, tuple[Damage, set[str]]] = {
    "empty document": (cell("documents", 0, "text", " \n"), {"document_not_empty"}),
    "chunk that was never created": (
        cell("documents", 0, "text_unit_ids", ["nowhere"]),
        {"chunks_created"},
    ),
    "document without chunks": (
        lambda index: index.add_row("documents", id="added", text=APPENDIX, text_unit_ids=[]),
        {"chunks_created", "content_coverage"},
    ),
    "no chunks": (
        lambda index: keep_rows(index, "text_units", 0),
        {"chunks_created", "entity_mentions_valid"},
    ),
    "lost chunk": (lose_a_unit, {"content_coverage"}),
    "text that no chunk holds": (lengthen, {"content_coverage"}),
    "empty chunk": (lambda index: add_unit(index, text=""), {"no_empty_chunks"}),
    "chunk of nothing known": (
        lambda index: add_unit(index, document_id=None, n_tokens=0, entity_ids=[]),
        {"metadata_enrichment"},
    ),
    "no entities": (
        lambda index: keep_rows(index, "entities", 0),
        {"entities_extracted", "relationship_entities_exist", "graph_not_empty"},
    ),
    "confidence of 1.7": (cell("entities", 1, "confidence", 1.7), {"confidence_scores_valid"}),
    "confidence below 0": (
        cell("relationships", 2, "confidence", -0.1),
        {"relationship_confidence_valid"},
    ),
    "confidence in words": (cell("entities", 0, "confidence", "high"), {"confidence_scores_valid"}),
    "entity without type": (cell("entities", 1, "type", " "), {"entity_types_populated"}),
    "entity with no type at all": (cell("entities", 1, "type", None), {"entity_types_populated"}),
    "blank name": (lambda index: add_entity(index, "  "), {"entity_names_valid"}),
    "name of dashes": (lambda index: add_entity(index, '"--"'), {"entity_names_valid"}),
    "orphaned mention": (
        cell("entities", 2, "text_unit_ids", ["nowhere"]),
        {"entity_mentions_valid"},
    ),
    "no relationships": (
        lambda index: keep_rows(index, "relationships", 0),
        {"relationships_extracted", "graph_not_empty", "graph_connectivity"},
    ),
    "relationship without description": (
        cell("relationships", 0, "description", ""),
        {"relationship_types_populated"},
    ),
    "unknown source": (
        cell("relationships", 0, "source", "NOBODY"),
        {"relationship_entities_exist"},
    ),
    "unknown target": (cell("relationships", 3, "target", None), {"relationship_entities_exist"}),
    "isolated entities": (
        lambda index: keep_rows(index, "relationships", 1),
        {"graph_connectivity"},
    ),
    "entities joined to themselves": (join_to_itself, {"graph_not_empty", "graph_connectivity"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_checks_and_no_other(index: DamagedIndex, fault: str) -> None:
    damage, expected = FAULTS[fault]
    changed = damage(index)
    report = index.validate()
    assert failed(report) == expected
    assert not report.overall_passed
    assert report.failed_phases() == [
        phase for phase, names in CHECKS.items() if expected & set(names)
    ]
    if isinstance(changed, str):
        for name in expected:
            assert examples(report, name) == (changed,)


def test_at_most_five_examples_are_given(index: DamagedIndex) -> None:
    index.change("entities", lambda frame: frame.assign(type=""))
    ids = list(index.read("entities")["id"])
    assert examples(index.validate(), "entity_types_populated") == tuple(ids[:5])


def make_low_metadata(index: DamagedIndex) -> None:
    index.change("text_units", lambda frame: frame.assign(entity_ids=[[]] * len(frame)))


def repeat_relationships(index: DamagedIndex) -> None:
    index.change("relationships", lambda frame: pd.concat([frame] * 9, ignore_index=True))


def split_graph(index: DamagedIndex) -> None:
    titles = list(index.read("entities")["title"])
    pairs = list(zip(titles[0:8:2], titles[1:8:2], strict=True))
    index.change(
        "relationships",
        lambda frame: frame.iloc[: len(pairs)].assign(
            source=[a for a, _ in pairs], target=[b for _, b in pairs]
        ),
    )


WARNINGS: dict[str, tuple[Damage, set[str]]] = {
    "low metadata": (make_low_metadata, {"Low metadata"}),
    "low confidence of entities": (
        lambda index: index.change("entities", lambda frame: frame.assign(confidence=0.2)),
        {"Low confidence"},
    ),
    "low confidence of relationships": (
        lambda index: index.change("relationships", lambda frame: frame.assign(confidence=0.4)),
        {"Low confidence"},
    ),
    "orphaned mention": (cell("entities", 2, "text_unit_ids", ["nowhere"]), {"Orphaned mentions"}),
    "relationship found nowhere": (
        cell("relationships", 2, "text_unit_ids", ["nowhere"]),
        {"Orphaned mentions"},
    ),
    "entity mentioned nowhere": (
        cell("entities", 2, "text_unit_ids", []),
        {"Unmentioned entities"},
    ),
    "orphaned relationship": (
        cell("relationships", 0, "source", "NOBODY"),
        {"Orphaned relationships"},
    ),
    "high density": (repeat_relationships, {"High density"}),
    "low density and sparse": (split_graph, {"Low connectivity", "Sparse graph"}),
    "duplicated entity": (
        lambda index: add_entity(index, "Quill, marta"),
        {"Near-duplicate entities", "Missing vectors"},
    ),
    "entity of the same name": (
        lambda index: add_entity(index, "MARTA QUILL"),
        {"Near-duplicate entities", "Missing vectors"},
    ),
    "run-together entity": (
        lambda index: add_entity(index, "MartaQuill"),
        {"Near-duplicate entities", "Missing vectors"},
    ),
    "few entities": (lambda index: add_units(index, 400), {"Few entities"}),
    "no documents table": (
        lambda index: (index.output / "documents.parquet").unlink(),
        {"No documents"},
    ),
}


@pytest.mark.parametrize("fault", WARNINGS)
def test_what_fails_no_search_is_warned_of(index: DamagedIndex, fault: str) -> None:
    damage, expected = WARNINGS[fault]
    damage(index)
    assert kinds(index.validate()) == expected


def test_metrics_describe_a_graph_in_parts(index: DamagedIndex) -> None:
    split_graph(index)
    report = index.validate()
    metrics = report.metrics()
    n_entities = len(index.read("entities"))
    assert metrics["largest_component"] == 2
    assert metrics["isolated_entities"] == n_entities - 8
    assert metrics["components"] == 4 + n_entities - 8
    assert metrics["connectivity"] == pytest.approx(4 / n_entities)
