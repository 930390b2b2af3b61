"""The validators of records that are held in memory, as a client uses them."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from support.damaged_index import DamagedIndex, copy_index, failed, kinds

import graphrag.eval
import graphrag.eval.validation
from graphrag.eval import (
    DocumentProcessingValidator,
    EntityExtractionValidator,
    GraphConstructionValidator,
    PhaseValidation,
    PipelineValidationReport,
    RelationshipExtractionValidator,
)

TEXT = "Marta Quill keeps the lighthouse. Jonas Feld made its lens. Rufus Doyle sails the ferry."
HALF = len(TEXT) // 2
CHUNKS: list[dict[str, object]] = [
    {"id": "c1", "text": TEXT[: HALF + 10], "heading": "Isle"},
    {"id": "c2", "text": TEXT[HALF - 10 :], "metadata": {"keywords": ["ferry"]}},
]
ENTITIES: list[dict[str, object]] = [
    {
        "id": "e1",
        "name": "MARTA QUILL",
        "entity_type": "person",
        "confidence": 0.9,
        "mentions": [{"chunk_id": "c1"}],
    },
    {"id": "e2", "name": "JONAS FELD", "entity_type": "person", "confidence": 0.7, "mentions": []},
]
ENTITIES[1]["mentions"] = ["c1", "c2"]
EDGES: list[dict[str, object]] = [
    {"source": "e1", "target": "JONAS FELD", "relation_type": "knows", "confidence": 0.8}
]


@pytest.fixture
def index(built_project: Path, tmp_path: Path) -> DamagedIndex:
    return copy_index(built_project, tmp_path / "damaged")


def four(chunks: object = CHUNKS, entities=ENTITIES, edges=EDGES) -> list[PhaseValidation]:
    return [
        DocumentProcessingValidator.validate(TEXT, chunks),
        EntityExtractionValidator.validate(chunks, entities),
        RelationshipExtractionValidator.validate(entities, edges),
        GraphConstructionValidator.validate(1, len(chunks), len(entities), len(edges)),
    ]


def status(phase: PhaseValidation) -> dict[str, str]:
    return {check.name: check.status for check in phase.checks}


def changed(rows: list[dict[str, object]], **values: object) -> list[dict[str, object]]:
    return [{**rows[0], **values}, *rows[1:]]


def test_all_names_import_from_both_modules():
    phases = ("DocumentProcessing", "EntityExtraction", "RelationshipExtraction")
    validators = [f"{phase}Validator" for phase in (*phases, "GraphConstruction")]
    for name in (*validators, "PhaseValidation", "PipelineValidationReport"):
        assert getattr(graphrag.eval, name) is getattr(graphrag.eval.validation, name)


def test_four_sound_phases_pass_seventeen_checks():
    report = PipelineValidationReport.from_phases(four())
    assert report.overall_passed
    assert (report.total_checks, report.passed_checks) == (17, 17)
    assert "17/17" in report.summary
    assert report.failed_phases() == []
    assert report.all_warnings() == []
    assert [phase.name for phase in report.phases] == [
        "document_processing",
        "entity_extraction",
        "relationship_extraction",
        "graph_construction",
    ]
    for phase in report.phases:
        assert phase.passed
        assert all(check.passed is True and check.message for check in phase.checks)


def test_the_report_shows_phases_checks_metrics_and_warnings():
    phases = four(entities=changed(ENTITIES, confidence=1.5))
    report = PipelineValidationReport.from_phases(phases)
    assert not report.overall_passed
    assert "16/17" in report.summary
    assert report.failed_phases() == ["entity_extraction"]
    shown = report.detailed_report()
    for phase in phases:
        assert phase.name in shown
        assert all(check.name in shown and check.message in shown for check in phase.checks)
        assert all(name in shown for name in phase.metrics)
        assert all(warning in shown for warning in phase.warnings)


def test_the_figures_of_a_document():
    phase = DocumentProcessingValidator.validate(TEXT, CHUNKS)
    assert phase.metrics["coverage_ratio"] == 1.0
    assert repr(phase.metrics["metadata_ratio"]) == "1.0"  # of Python, as every figure
    assert phase.metrics["chunks_count"] == 2
    lengths = [len(chunk["text"]) for chunk in CHUNKS]
    assert phase.metrics["avg_chunk_size"] == sum(lengths) / 2


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_document_is_found(text):
    phase = DocumentProcessingValidator.validate({"id": "d", "content": text}, [])
    assert status(phase) == {
        "document_not_empty": "failed",
        "chunks_created": "failed",
        "content_coverage": "not applicable",
        "no_empty_chunks": "not applicable",
        "metadata_enrichment": "not applicable",
    }
    assert phase.metrics["coverage_ratio"] is None
    assert phase.metrics["metadata_ratio"] is None
    assert phase.metrics["avg_chunk_size"] is None


def test_lost_text_and_missing_metadata_are_warned_of():
    phase = DocumentProcessingValidator.validate(TEXT, [TEXT[:HALF], " "])
    found = status(phase)
    assert found["content_coverage"] == "failed"
    assert found["no_empty_chunks"] == "failed"
    assert found["metadata_enrichment"] == "failed"
    assert phase.metrics["coverage_ratio"] == pytest.approx(HALF / len(TEXT), abs=0.02)
    assert phase.metrics["metadata_ratio"] == 0
    assert len(phase.warnings) == 2
    assert not phase.passed


def test_one_enriched_chunk_in_three_passes_with_a_warning():
    chunks = [{"text": TEXT, "summary": "An isle."}, TEXT, {"text": TEXT, "keywords": []}]
    phase = DocumentProcessingValidator.validate(TEXT, chunks)
    assert phase.passed
    assert phase.metrics["metadata_ratio"] == pytest.approx(1 / 3)
    assert phase.metrics["coverage_ratio"] == 1.0
    assert [warning.startswith("Low metadata") for warning in phase.warnings] == [True]


def test_objects_are_read_as_mappings_are():
    @dataclass
    class Chunk:
        id: int
        content: str
        metadata: object

    chunks = [Chunk(1, TEXT, SimpleNamespace(heading="Isle"))]
    phase = DocumentProcessingValidator.validate(SimpleNamespace(id=7, text=TEXT), chunks)
    assert (phase.passed, phase.warnings) == (True, ())
    entities = [SimpleNamespace(title="MARTA", type="person", text_unit_ids=[1], confidence=None)]
    phase = EntityExtractionValidator.validate(chunks, entities)
    assert status(phase)["confidence_scores_valid"] == "not applicable"
    assert phase.metrics["avg_confidence"] is None
    assert phase.metrics["avg_mentions_per_entity"] == 1
    assert phase.passed


ENTITY, EDGE, GRAPH = (
    EntityExtractionValidator,
    RelationshipExtractionValidator,
    GraphConstructionValidator,
)
BAD_ENTITIES: list[tuple[dict[str, object], str]] = [
    ({"confidence": -0.1}, "confidence_scores_valid"),
    ({"confidence": "high"}, "confidence_scores_valid"),
    ({"confidence": math.nan}, "confidence_scores_valid"),
    ({"entity_type": " "}, "entity_types_populated"),
    ({"name": ""}, "entity_names_valid"),
    ({"mentions": ["gone"]}, "entity_mentions_valid: Orphaned mentions"),
]
BAD_EDGES: list[tuple[dict[str, object], str]] = [
    ({"confidence": 2}, "relationship_confidence_valid"),
    ({"relation_type": ""}, "relationship_types_populated"),
    ({"target": "NOBODY"}, "relationship_entities_exist: Orphaned relationships"),
]
FAULTS: list[tuple[object, tuple[object, ...], str]] = [
    *((ENTITY, (CHUNKS, changed(ENTITIES, **values)), found) for values, found in BAD_ENTITIES),
    *((EDGE, (ENTITIES, changed(EDGES, **values)), found) for values, found in BAD_EDGES),
    (ENTITY, (CHUNKS, []), "entities_extracted"),
    (ENTITY, ([], ENTITIES), "entity_mentions_valid: Orphaned mentions"),
    (EDGE, (ENTITIES, []), "relationships_extracted: No relationships"),
    (GRAPH, (0, 5, 0, 0), "graph_not_empty: Few entities"),
    (GRAPH, (1, 10, 101, 100), "entity_chunk_ratio_reasonable: Many entities"),
    (GRAPH, (1, 10, 20, 2), "graph_connectivity: Low connectivity"),
]


@pytest.mark.parametrize(("validator", "given", "found"), FAULTS)
def test_a_fault_fails_its_check_and_the_phase(validator, given, found):
    name, _, warning = found.partition(": ")
    phase = validator.validate(*given)
    assert not phase.passed
    (check,) = [check for check in phase.checks if check.name == name]
    assert (check.passed, check.status) == (False, "failed")
    assert not warning or warning in {each.partition(":")[0] for each in phase.warnings}


def test_entities_and_relationships_have_their_figures():
    phase = EntityExtractionValidator.validate(CHUNKS, ENTITIES)
    assert phase.metrics["entities_count"] == 2
    assert phase.metrics["avg_confidence"] == pytest.approx(0.8)
    assert phase.metrics["avg_mentions_per_entity"] == 1.5
    phase = RelationshipExtractionValidator.validate(ENTITIES, EDGES)
    assert phase.metrics["relationships_count"] == 1
    assert phase.metrics["relationships_per_entity"] == 0.5
    assert phase.metrics["avg_relationship_confidence"] == 0.8
    low = [{**each, "confidence": 0.4} for each in ENTITIES]
    phase = EntityExtractionValidator.validate(CHUNKS, low)
    assert phase.passed
    assert phase.metrics["avg_confidence"] == pytest.approx(0.4)
    assert [warning.partition(":")[0] for warning in phase.warnings] == ["Low confidence"]


def test_without_entities_relationships_are_not_asked_for():
    phase = RelationshipExtractionValidator.validate([], [])
    assert set(status(phase).values()) == {"not applicable"}
    assert (phase.passed, phase.warnings) == (True, ())
    assert phase.metrics["relationships_per_entity"] is None
    phase = RelationshipExtractionValidator.validate([], EDGES)
    assert status(phase)["relationships_extracted"] == "not applicable"
    assert status(phase)["relationship_entities_exist"] == "failed"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"description": "knows"}, "passed"),
        ({"description": " "}, "failed"),
        ({"type": "", "description": "knows"}, "failed"),
    ],
)
def test_a_relationship_without_type_needs_a_description(values, found):
    edge = {"source": "e1", "target": "e2", **values}
    phase = RelationshipExtractionValidator.validate(ENTITIES, [edge])
    assert status(phase)["relationship_types_populated"] == found
    assert phase.passed is (found == "passed")


@pytest.mark.parametrize(
    ("counts", "passed", "warned"),
    [
        ((1, 10, 10, 10), True, []),
        ((1, 10, 5, 5), True, []),
        ((1, 10, 50, 50), True, []),
        ((1, 10, 3, 3), True, ["Few entities"]),
        ((1, 10, 71, 71), True, ["Many entities"]),
        ((1, 10, 10, 3), True, ["Low connectivity"]),
        ((1, 10, 10, 1), False, ["Low connectivity"]),
    ],
)
def test_densities_out_of_the_common_are_warned_of(counts, passed, warned):
    phase = GraphConstructionValidator.validate(*counts)
    assert phase.passed is passed
    assert [warning.partition(":")[0] for warning in phase.warnings] == warned
    documents, chunks, entities, relationships = counts
    assert phase.metrics == {
        "documents": documents,
        "chunks": chunks,
        "entities": entities,
        "relationships": relationships,
        "entities_per_chunk": entities / chunks,
        "connectivity": relationships / entities,
    }


def test_a_share_that_is_rounded_up_to_its_bound_is_told_from_it():
    graph = GraphConstructionValidator.validate(1, 1_000, 1_000, 499)
    assert graph.warnings == (
        "Low connectivity: 0.499 relationships an entity; searches find few ways on.",
    )
    dense = GraphConstructionValidator.validate(1, 1_000, 10_001, 10_001)
    reasonable = next(c for c in dense.checks if c.name == "entity_chunk_ratio_reasonable")
    assert reasonable.message == "10.001 entities a text unit; 0.1 to 10 is reasonable"
    letters = "".join(chr(0x4E00 + n) for n in range(10_000))
    chunks = [{"text": letters[n : n + 1], "keywords": ["a"] * (n < 4_499)} for n in range(8_999)]
    phase = DocumentProcessingValidator.validate(letters, chunks)
    assert phase.warnings == (
        "Low coverage: text units contain 89.99% of the documents' text, overlap counted once; "
        "1 of 1 documents are below 90% (89.99%).",
        "Low metadata: 49.99% of the text units have a heading, keywords or a summary; below 50%.",
    )


def test_what_is_undefined_does_not_apply():
    phase = GraphConstructionValidator.validate(1, 0, 0, 0)
    assert status(phase) == {
        "graph_not_empty": "passed",
        "entity_chunk_ratio_reasonable": "not applicable",
        "graph_connectivity": "not applicable",
    }
    assert (phase.metrics["entities_per_chunk"], phase.metrics["connectivity"]) == (None, None)
    with pytest.raises(ValueError, match="chunks"):
        GraphConstructionValidator.validate(1, -1, 0, 0)


def test_a_nan_in_a_mapping_is_no_text():
    chunks = [{"id": "c1", "text": TEXT, "heading": math.nan}, {"id": "c2", "text": math.nan}]
    phase = DocumentProcessingValidator.validate(TEXT, chunks)
    assert status(phase)["no_empty_chunks"] == "failed"
    assert status(phase)["metadata_enrichment"] == "failed"
    assert phase.metrics["metadata_ratio"] == 0.0
    entity = {"id": "e1", "name": math.nan, "type": math.nan, "confidence": math.nan}
    found = status(EntityExtractionValidator.validate(CHUNKS, [entity]))
    assert found["entity_names_valid"] == "failed"
    assert found["entity_types_populated"] == "failed"
    assert found["confidence_scores_valid"] == "failed"


def test_what_is_no_record_and_no_count_is_refused():
    with pytest.raises(ValueError, match="entities"):
        EntityExtractionValidator.validate(CHUNKS, "MARTA")
    with pytest.raises(ValueError, match=r"chunk.*text"):
        DocumentProcessingValidator.validate(TEXT, [{"id": 3}])
    for count in (math.nan, 1.5, None, "1"):
        with pytest.raises(ValueError, match="entities"):
            GraphConstructionValidator.validate(1, 1, count, 1)
    with pytest.raises(ValueError, match="chunks"):
        GraphConstructionValidator.validate(1, -1, 0, 0)


def test_data_frames_of_an_index_stand_for_their_rows(index):
    units, entities = index.read("text_units"), index.read("entities")
    phase = EntityExtractionValidator.validate(units, entities)
    assert phase.passed
    assert phase.metrics["avg_mentions_per_entity"] == pytest.approx(
        entities["text_unit_ids"].map(len).mean()
    )
    assert RelationshipExtractionValidator.validate(entities, index.read("relationships")).passed
    documents = DocumentProcessingValidator.validate(index.read("documents"), units)
    assert documents.metrics["coverage_ratio"] == 1.0
    assert documents.metrics["chunks_count"] == len(units)
    entities = pd.DataFrame({"title": ["A"], "type": ["x"], "text_unit_ids": [["u1", "u2"]]})
    units = pd.DataFrame({"id": ["u1"], "text": ["A"]})
    found = status(EntityExtractionValidator.validate(units, entities))
    assert found["entity_mentions_valid"] == "failed"


def test_a_store_that_can_not_be_looked_at_is_said_so(index):
    settings = index.root / "settings.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(f"{text}\nembed_text: {{names: []}}\n", encoding="utf-8")
    (check,) = [each for each in index.validate().checks() if each.name == "vectors_stored"]
    assert (check.status, check.passed) == ("not applicable", False)
    assert "embed_text" in check.message


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_column_of_types_fails(index, empty):
    for table in ("entities", "relationships"):
        index.change(table, lambda frame: frame.assign(type=[empty] * len(frame)))
    checks = {"entity_types_populated", "relationship_types_populated"}
    assert failed(index.validate()) == checks


@pytest.mark.parametrize(
    ("column", "empty", "filled"),
    [
        ("heading", "", "Isle"),
        ("keywords", [], ["isle"]),
        ("summary", None, "Isle"),
        ("metadata", "{}", {"heading": "Isle"}),
    ],
)
def test_text_units_without_what_their_columns_promise_are_warned_of(index, column, empty, filled):
    n_units = len(index.read("text_units"))
    for value, warned in ((empty, {"Low metadata"}), (filled, set())):
        index.change("text_units", lambda f, v=value: f.assign(**{column: [v] * n_units}))
        report = index.validate()
        assert report.overall_passed
        assert kinds(report) == warned
