"""Every kind of fault, seeded into a copy of a built index, is found by its own check."""

import re
import shutil
from collections.abc import Callable

import lancedb
import pandas as pd
import pyarrow as pa
import pytest
from support.damaged_index import DamagedIndex, examples, failed, kinds

from graphrag.eval.validation.report import Thresholds
from graphrag.eval.validation.validators import EntityExtractionValidator

CHECKS = {
    "document_processing": (
        "document_not_empty chunks_created content_coverage no_empty_chunks metadata_enrichment"
    ),
    "entity_extraction": (
        "entities_extracted confidence_scores_valid entity_types_populated entity_names_valid "
        "entity_mentions_valid"
    ),
    "relationship_extraction": (
        "relationships_extracted relationship_confidence_valid relationship_types_populated "
        "relationship_entities_exist"
    ),
    "graph_construction": "graph_not_empty entity_chunk_ratio_reasonable graph_connectivity",
    "vector_store": "vectors_stored",
}
APPENDIX = "The harbour master kept a second book, of which nobody on the isle ever spoke. " * 40


def test_a_sound_index_passes_with_every_check_named(index):
    report = index.validate()
    named = {phase.name: " ".join(check.name for check in phase.checks) for phase in report.phases}
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


Damage = Callable[[DamagedIndex], object]


def cell(table: str, row: int, column: str, value: object) -> Damage:
    return lambda index: index.set_cell(table, row, column, value)


def added(table: str, **values: object) -> Damage:
    def damage(index: DamagedIndex) -> str:
        index.add_row(table, id="added", **values)
        return "added"

    return damage


def changed(table: str, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> Damage:
    return lambda index: index.change(table, edit)


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


def split_graph(index: DamagedIndex) -> None:
    titles = list(index.read("entities")["title"])
    pairs = list(zip(titles[0:8:2], titles[1:8:2], strict=True))
    index.change(
        "relationships",
        lambda frame: frame.iloc[: len(pairs)].assign(
            source=[a for a, _ in pairs], target=[b for _, b in pairs]
        ),
    )


def store_of(index: DamagedIndex) -> lancedb.DBConnection:
    return lancedb.connect(index.output / "lancedb")


def rewrite_vectors(index: DamagedIndex, length: int, column: str = "vector") -> None:
    stored = store_of(index).open_table("text_unit_text").to_arrow()
    short = [vector[:length] for vector in stored.column("vector").to_pylist()]
    array = pa.array(short, pa.list_(pa.float32(), length))
    rows = pa.table({"id": stored.column("id"), column: array})
    store_of(index).create_table("text_unit_text", rows, mode="overwrite")


def empty_a_vector(index: DamagedIndex) -> None:
    unit = index.read("text_units")["id"].iloc[0]
    table = store_of(index).open_table("text_unit_text")
    table.update(where=f"id = '{unit}'", values={"vector": None})


def forget_a_row(index: DamagedIndex) -> None:
    entity = index.read("entities")["id"].iloc[3]
    store_of(index).open_table("entity_description").delete(f"id = '{entity}'")


def break_a_table(index: DamagedIndex) -> None:
    for file in (index.output / "lancedb" / "text_unit_text.lance" / "_versions").iterdir():
        file.write_bytes(b"nothing")


NO_VECTOR, TWIN = "Missing vectors", "Near-duplicate entities, Missing vectors"
SPARSE = "Low connectivity, Sparse graph"
FAULTS: dict[str, tuple[Damage, str, str]] = {
    # What was done: the checks that fail, and the warnings.
    "empty document": (cell("documents", 0, "text", " \n"), "document_not_empty", ""),
    "chunk that was never created": (
        cell("documents", 0, "text_unit_ids", ["nowhere"]),
        "chunks_created",
        "",
    ),
    "document without chunks": (
        added("documents", text=APPENDIX, text_unit_ids=[]),
        "chunks_created content_coverage",
        "Low coverage",
    ),
    "no chunks": (
        changed("text_units", lambda frame: frame[:0]),
        "chunks_created entity_mentions_valid",
        "Orphaned mentions",
    ),
    "lost chunk": (lose_a_unit, "content_coverage", "Low coverage, Unmentioned entities"),
    "text that no chunk holds": (lengthen, "content_coverage", "Low coverage"),
    "empty chunk": (added("text_units", text=""), "no_empty_chunks", NO_VECTOR),
    "chunk of nothing known": (
        added("text_units", document_id=None, n_tokens=0, entity_ids=[]),
        "metadata_enrichment",
        NO_VECTOR,
    ),
    "no entities": (
        changed("entities", lambda frame: frame[:0]),
        "entities_extracted relationship_entities_exist graph_not_empty",
        "Few entities, Orphaned relationships",
    ),
    "confidence of 1.7": (cell("entities", 1, "confidence", 1.7), "confidence_scores_valid", ""),
    "confidence below 0": (
        cell("relationships", 2, "confidence", -0.1),
        "relationship_confidence_valid",
        "",
    ),
    "confidence in words": (
        cell("entities", 0, "confidence", "high"),
        "confidence_scores_valid",
        "",
    ),
    "entity without type": (cell("entities", 1, "type", " "), "entity_types_populated", ""),
    "entity with no type": (cell("entities", 1, "type", None), "entity_types_populated", ""),
    "blank name": (added("entities", title="  "), "entity_names_valid", NO_VECTOR),
    "name of dashes": (added("entities", title='"--"'), "entity_names_valid", NO_VECTOR),
    "orphaned mention": (
        cell("entities", 2, "text_unit_ids", ["nowhere"]),
        "entity_mentions_valid",
        "Orphaned mentions",
    ),
    "no relationships": (
        changed("relationships", lambda frame: frame[:0]),
        "relationships_extracted graph_not_empty graph_connectivity",
        f"No relationships, {SPARSE}",
    ),
    "relationship without description": (
        cell("relationships", 0, "description", ""),
        "relationship_types_populated",
        "",
    ),
    "unknown source": (
        cell("relationships", 0, "source", "NOBODY"),
        "relationship_entities_exist",
        "Orphaned relationships",
    ),
    "unknown target": (
        cell("relationships", 3, "target", None),
        "relationship_entities_exist",
        "Orphaned relationships",
    ),
    "isolated entities": (
        changed("relationships", lambda frame: frame[:1]),
        "graph_connectivity",
        SPARSE,
    ),
    "entities joined to themselves": (
        changed("relationships", lambda frame: frame.assign(target=frame["source"])),
        "graph_not_empty graph_connectivity",
        SPARSE,
    ),
    "low metadata": (
        changed("text_units", lambda frame: frame.assign(entity_ids=[[]] * len(frame))),
        "",
        "Low metadata",
    ),
    "low confidence of entities": (
        changed("entities", lambda frame: frame.assign(confidence=0.2)),
        "",
        "Low confidence",
    ),
    "low confidence of relationships": (
        changed("relationships", lambda frame: frame.assign(confidence=0.4)),
        "",
        "Low confidence",
    ),
    "relationship found nowhere": (
        cell("relationships", 2, "text_unit_ids", ["nowhere"]),
        "",
        "Orphaned mentions",
    ),
    "entity mentioned nowhere": (
        cell("entities", 2, "text_unit_ids", []),
        "",
        "Unmentioned entities",
    ),
    "high density": (
        changed("relationships", lambda frame: pd.concat([frame] * 9, ignore_index=True)),
        "",
        "High density",
    ),
    "low density and sparse": (split_graph, "", SPARSE),
    "duplicated entity": (added("entities", title="Quill, marta"), "", TWIN),
    "entity of the same name": (added("entities", title="MARTA QUILL"), "", TWIN),
    "run-together entity": (added("entities", title="MartaQuill"), "", TWIN),
    "few entities": (
        changed("text_units", lambda f: pd.concat([f, *[f[:1]] * 400], ignore_index=True)),
        "",
        "Few entities",
    ),
    "no documents table": (
        lambda index: (index.output / "documents.parquet").unlink(),
        "",
        "No documents",
    ),
    # Vectors that can't be searched fail; rows without one are warned of.
    "dropped table": (
        lambda index: store_of(index).drop_table("community_full_content"),
        "vectors_stored: no vectors of its community reports: .* no table community_full_content",
        "",
    ),
    "no column of vectors": (
        lambda index: rewrite_vectors(index, 384, "values"),
        "vectors_stored: text_unit_text in .* has no column vector",
        "",
    ),
    "unreadable table": (
        break_a_table,
        "vectors_stored: the text units can't be read: .*text_unit_text",
        "",
    ),
    "no store": (
        lambda index: shutil.rmtree(index.output / "lancedb"),
        "vectors_stored: there is no vector store",
        "",
    ),
    "row without vector": (
        empty_a_vector,
        "",
        r"Missing vectors: 1 of \d+ text_units have none in text_unit_text, such as \w",
    ),
    "missing row": (
        forget_a_row,
        "",
        r"Missing vectors: 1 of \d+ entities have none in entity_description, such as \w",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_checks_and_no_other(index, fault):
    damage, checks, warned = FAULTS[fault]
    names, _, message = checks.partition(": ")
    expected = set(names.split())
    row = damage(index)
    report = index.validate()
    assert failed(report) == expected
    fatal = set(FATAL.get(fault, "").split())
    assert {check.name for check in report.checks() if check.status == "failed"} == fatal
    assert report.overall_passed is not bool(fatal)
    assert report.failed_phases() == [
        phase for phase, of_phase in CHECKS.items() if fatal & set(of_phase.split())
    ]
    for check in report.checks():
        if check.name in expected:
            assert re.search(message, check.message), check.message
            assert not isinstance(row, str) or check.examples == (row,)
    if ": " in warned:
        (warning,) = report.all_warnings()
        assert re.search(warned, warning), warning
    else:
        assert kinds(report) == set(warned.split(", ")) - {""}


FATAL = {
    "no chunks": "chunks_created entity_mentions_valid",
    "no entities": "entities_extracted graph_not_empty relationship_entities_exist",
    "no relationships": "relationships_extracted graph_not_empty",
    "entities joined to themselves": "graph_not_empty",
}
"""Faults that no search of the graph, or none at all, lives with; all others are warned of."""
DISTINCT = ["C", "C++", "C#", "कि", "का", "PORT MERROW", "PORT MARROW", "ROOM 12", "ROOM 1", "♥"]


def warnings_for(*titles: str) -> list[str]:
    entities = [{"name": title} for title in (*DISTINCT, *titles)]
    phase = EntityExtractionValidator.validate([], entities)
    return [each for each in phase.warnings if each.startswith("Near-duplicate")]


@pytest.mark.parametrize(
    "twin",
    [
        "Agnes Thorne",
        "AGNES  THORNE",
        "Thorne, Agnes",
        "AgnesThorne",
        "agnes-thorne",
        "\N{FULLWIDTH LATIN CAPITAL LETTER A}GNES Thorne",
    ],
)
def test_a_twin_is_named_and_different_names_are_left_alone(twin):
    (warning,) = warnings_for("AGNES THORNE", twin)
    assert "2 of 12" in warning
    assert f"'AGNES THORNE' = {twin!r}" in warning
    assert warnings_for("", "--", "...") == []


@pytest.mark.parametrize(
    ("name", "twin"), [("İSTANBUL", "ISTANBUL"), ("مُحَمَّد", "محمد"), ("ЁЛКА", "елка")]
)
def test_names_that_searches_take_for_one_are_twins(name, twin):
    assert len(warnings_for(name, twin)) == 1


def test_at_most_five_examples_are_given(index):
    index.change("entities", lambda frame: frame.assign(type=""))
    ids = list(index.read("entities")["id"])
    assert examples(index.validate(), "entity_types_populated") == tuple(ids[:5])


def test_metrics_describe_a_graph_in_parts(index):
    split_graph(index)
    metrics = index.validate().metrics()
    n_entities = len(index.read("entities"))
    assert metrics["largest_component"] == 2
    assert metrics["isolated_entities"] == n_entities - 8
    assert metrics["components"] == 4 + n_entities - 8
    assert metrics["connectivity"] == pytest.approx(4 / n_entities)


def test_many_vectors_outside_of_an_index_are_warned_of(index):
    n = len(index.read("entities"))
    assert index.validate(thresholds=Thresholds(max_unindexed_vectors=n)).all_warnings() == []
    below = Thresholds(max_unindexed_vectors=n - 1)
    (warning,) = index.validate(thresholds=below).all_warnings()
    assert warning.startswith(f"Unoptimized vectors: {n} of {n} in entity_description")
    store_of(index).open_table("entity_description").optimize()
    assert index.validate(thresholds=below).all_warnings() == []
