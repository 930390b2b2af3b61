"""Tables of older releases, of other providers, and tables that lack something."""

import pandas as pd
import pytest
from graphrag_storage import register_storage
from graphrag_storage.file_storage import FileStorage
from support.damaged_index import DamagedIndex, failed

from graphrag.eval.errors import IndexUnavailableError
from graphrag.eval.validation.report import PipelineValidationReport

TABLES = ("documents", "text_units", "entities", "relationships", "community_reports")


def outcome(report: PipelineValidationReport) -> dict[str, object]:
    """Return everything but the root."""
    return {**report.to_dict(), "root": ""}


def add_settings(index: DamagedIndex, text: str) -> None:
    path = index.root / "settings.yaml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.mark.parametrize("lists_of_python", [False, True])
def test_csv_tables_give_the_same_report(index, lists_of_python):
    expected = outcome(index.validate())
    for name in TABLES:
        frame = index.read(name)
        lists = [column for column in frame if column.endswith("_ids") or column == "children"]
        if lists_of_python:
            frame = frame.assign(**{c: [str(list(ids)) for ids in frame[c]] for c in lists})
        frame.to_csv(index.output / f"{name}.csv", index=False)
        (index.output / f"{name}.parquet").unlink()
    add_settings(index, "table_provider: {type: csv}\n")
    assert outcome(index.validate()) == expected


def test_tables_of_graphrag_2_give_the_same_report(index):
    expected = outcome(index.validate())
    index.change(
        "text_units",
        lambda frame: frame.assign(document_ids=[[i] for i in frame["document_id"]]).drop(
            columns="document_id"
        ),
    )
    index.change("documents", lambda frame: frame.assign(metadata=None).drop(columns="raw_data"))
    index.change("entities", lambda frame: frame.assign(x=0.0, y=0.0))
    report = index.validate()
    assert report.metrics() == index.validate().metrics()
    for phase, before in zip(outcome(report)["phases"], expected["phases"], strict=True):
        assert phase["metrics"] == before["metrics"]
        assert [c["status"] for c in phase["checks"]] == [c["status"] for c in before["checks"]]


def test_tables_in_several_row_groups_give_the_same_report(index):
    # pandas begins another group at row 1,048,577.
    expected = outcome(index.validate())
    for name in TABLES:
        frame = index.read(name)
        assert len(frame) > 1
        frame.to_parquet(index.output / f"{name}.parquet", row_group_size=len(frame) // 2)
    assert outcome(index.validate()) == expected


class StorageElsewhere(FileStorage):
    """Stands for a storage whose files only its own methods can reach."""

    def __init__(self, **kwargs: object) -> None:
        super().__init__(base_dir=kwargs["elsewhere"])


async def test_a_storage_that_is_no_folder_is_read_inside_a_running_loop(index):
    expected = outcome(index.validate())
    register_storage("elsewhere", StorageElsewhere)
    output = index.output.rename(index.root / "remote")
    (index.root / "output").mkdir()
    (output / "lancedb").rename(index.root / "output" / "lancedb")
    add_settings(index, f"output_storage: {{type: elsewhere, elsewhere: {str(output)!r}}}\n")
    assert outcome(index.validate()) == expected


OPTIONAL = {
    "documents": {"text": {"document_not_empty", "content_coverage"}},
    "text_units": {
        "text": {"content_coverage", "no_empty_chunks"},
        "id": {"entity_mentions_valid"},
    },
    "entities": {"type": {"entity_types_populated"}, "text_unit_ids": {"entity_mentions_valid"}},
    "relationships": {"description": {"relationship_types_populated"}},
}


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table, some in OPTIONAL.items() for column in some]
)
def test_a_missing_optional_column_makes_its_checks_not_applicable(index, table, column):
    index.change(table, lambda frame: frame.drop(columns=column))
    report = index.validate()
    skipped = {check.name for check in report.checks() if check.status == "not applicable"}
    assert skipped == OPTIONAL[table][column] | {
        "confidence_scores_valid",
        "relationship_confidence_valid",
    }
    assert all(check.message for check in report.checks())
    assert report.overall_passed


def test_without_ids_examples_are_rows_and_the_documents_list_is_used(index):
    index.change("text_units", lambda frame: frame.drop(columns="document_id"))
    report = index.validate()
    assert report.overall_passed
    assert report.metrics()["coverage_ratio"] == 1.0
    index.set_cell("relationships", 1, "description", "")
    index.change("relationships", lambda frame: frame.drop(columns="id"))
    report = index.validate()
    assert [c.examples for c in report.checks() if c.status == "warning"] == [("row 1",)]


def test_an_index_without_tables_rows_or_types_fails_where_it_stopped(index):
    stopped = {
        "relationships": {"relationships_extracted", "graph_not_empty"},
        "entities": {"entities_extracted", "graph_not_empty"},
        "text_units": {"chunks_created"},
    }
    for table, expected in stopped.items():
        content = index.read(table)
        (index.output / f"{table}.parquet").unlink()
        assert failed(index.validate()) == expected
        content.to_parquet(index.output / f"{table}.parquet")
    for name in TABLES:
        index.change(name, lambda frame: pd.DataFrame({column: [] for column in frame}))
    report = index.validate()
    empty = {"document_not_empty", "chunks_created", "entities_extracted", "graph_not_empty"}
    assert failed(report) == empty
    assert report.to_dict()["not_applicable_checks"] == 13
    assert report.metrics()["entities_per_chunk"] is None
    assert "NaN" not in report.to_json()


def remove_tables(index: DamagedIndex) -> None:
    for path in index.output.glob("*.parquet"):
        path.unlink()


def cut_inside(index: DamagedIndex) -> None:
    path = index.output / "entities.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(1996) + content[2000:])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_tables, r"is not indexed: .*graphrag index --root"),
        (
            lambda index: (index.output / "entities.parquet").write_bytes(b"PAR1 nothing PAR1"),
            r"entities\.parquet can't be read",
        ),
        (cut_inside, "can't be read"),
        (lambda index: (index.root / "settings.yaml").unlink(), r"settings\.yaml"),
        (lambda index: index.root.rename(index.root.with_name("moved")), "does not exist"),
    ],
)
def test_what_can_not_be_read_is_named(index, damage, message):
    damage(index)
    with pytest.raises(IndexUnavailableError, match=message):
        index.validate()
