"""A vector store that can't be searched fails its check; rows without a vector are warned of."""

import re
import shutil
from collections.abc import Callable

import lancedb
import pyarrow as pa
import pytest
from support.damaged_index import DamagedIndex

from graphrag.eval.validation.report import Thresholds

Damage = Callable[[DamagedIndex], object]


def drop_table(index: DamagedIndex, name: str) -> None:
    lancedb.connect(index.output / "lancedb").drop_table(name)


def rewrite_vectors(index: DamagedIndex, length: int) -> None:
    store = lancedb.connect(index.output / "lancedb")
    stored = store.open_table("text_unit_text").to_arrow()
    short = [vector[:length] for vector in stored.column("vector").to_pylist()]
    array = pa.array(short, pa.list_(pa.float32(), length))
    rows = pa.table({"id": stored.column("id"), "vector": array})
    store.create_table("text_unit_text", rows, mode="overwrite")


def empty_a_vector(index: DamagedIndex) -> None:
    unit = index.read("text_units")["id"].iloc[0]
    table = lancedb.connect(index.output / "lancedb").open_table("text_unit_text")
    table.update(where=f"id = '{unit}'", values={"vector": None})


def forget_a_row(index: DamagedIndex) -> None:
    entity = index.read("entities")["id"].iloc[3]
    table = lancedb.connect(index.output / "lancedb").open_table("entity_description")
    table.delete(f"id = '{entity}'")


def rename_vectors(index: DamagedIndex) -> None:
    store = lancedb.connect(index.output / "lancedb")
    rows = store.open_table("text_unit_text").to_arrow().rename_columns({"vector": "values"})
    store.create_table("text_unit_text", rows, mode="overwrite")


def break_a_table(index: DamagedIndex) -> None:
    for file in (index.output / "lancedb" / "text_unit_text.lance" / "_versions").iterdir():
        file.write_bytes(b"nothing")


VECTOR_FAULTS: dict[str, tuple[Damage, str]] = {
    "dropped table": (
        lambda index: drop_table(index, "community_full_content"),
        "no table community_full_content",
    ),
    "other length": (
        lambda index: rewrite_vectors(index, 100),
        "text_unit_text have 100 .*vector_size is 384",
    ),
    "no column of vectors": (rename_vectors, "has no column id or vector"),
    "unreadable table": (break_a_table, "text_unit_text can't be read"),
    "no store": (
        lambda index: shutil.rmtree(index.output / "lancedb"),
        "there is no vector store",
    ),
}


@pytest.mark.parametrize("fault", VECTOR_FAULTS)
def test_vectors_that_can_not_be_searched_fail(index: DamagedIndex, fault: str) -> None:
    damage, expected = VECTOR_FAULTS[fault]
    damage(index)
    report = index.validate()
    (check,) = [each for each in report.checks() if each.status == "failed"]
    assert check.name == "vectors_stored"
    assert re.search(expected, check.message), check.message
    assert report.failed_phases() == ["vector_store"]
    assert report.all_warnings() == []


ROW_FAULTS: dict[str, tuple[Damage, str]] = {
    "row without vector": (
        empty_a_vector,
        r"Missing vectors: 1 of \d+ text_units have none in text_unit_text, such as \w",
    ),
    "missing row": (
        forget_a_row,
        r"Missing vectors: 1 of \d+ entities have none in entity_description, such as \w",
    ),
}


@pytest.mark.parametrize("fault", ROW_FAULTS)
def test_rows_without_a_vector_are_warned_of(index: DamagedIndex, fault: str) -> None:
    damage, expected = ROW_FAULTS[fault]
    damage(index)
    report = index.validate()
    assert report.overall_passed
    (warning,) = report.all_warnings()
    assert re.search(expected, warning), warning


def test_many_vectors_outside_of_an_index_are_warned_of(index: DamagedIndex) -> None:
    n_entities = len(index.read("entities"))
    at_limit = index.validate(thresholds=Thresholds(max_unindexed_vectors=n_entities))
    assert at_limit.all_warnings() == []
    report = index.validate(thresholds=Thresholds(max_unindexed_vectors=n_entities - 1))
    (warning,) = report.all_warnings()
    assert warning.startswith(
        f"Unoptimised vectors: {n_entities} of {n_entities} in entity_description"
    )
    table = lancedb.connect(index.output / "lancedb").open_table("entity_description")
    table.optimize()
    optimised = index.validate(thresholds=Thresholds(max_unindexed_vectors=n_entities - 1))
    assert optimised.all_warnings() == []
