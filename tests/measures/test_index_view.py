"""When a view reads the tables of an index, and what it makes of incomplete ones."""

import pandas as pd
import pytest

from graphrag.config.table_files import UnreadableTableError
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.entities import Extraction
from graphrag.eval.metrics.index_view import IndexView
from graphrag.query.index.tables import IndexTables

FRAMES = {
    "documents": pd.DataFrame({"id": ["d1"], "title": ["Isle.txt"], "text": ["Ada met Ben. End."]}),
    "text_units": pd.DataFrame(
        {
            "id": ["u0", "u1"],
            "human_readable_id": [0, 1],
            "text": ["Ada met Ben.", "End."],
            "document_id": ["d1", "d1"],
            "n_tokens": [4, 2],
        }
    ),
    "entities": pd.DataFrame(
        {
            "title": ["ADA", "BEN"],
            "human_readable_id": [0, 1],
            "text_unit_ids": [["u0"], ["u0", "u1"]],
        }
    ),
    "relationships": pd.DataFrame(
        {
            "id": ["r0"],
            "source": ["ADA"],
            "target": ["BEN"],
            "human_readable_id": [7],
            "text_unit_ids": [["u0"]],
        }
    ),
}
SAMPLE = Sample("s", "isle", "Whom?", "Ben", expected_sources=("Isle.txt",))


@pytest.fixture(params=["parquet", "csv"])
def paths(request, tmp_path):
    """Return the files of an index's tables."""
    found = {name: tmp_path / f"{name}.{request.param}" for name in FRAMES}
    for name, path in found.items():
        write(path, FRAMES[name])
    return found


def write(path, frame):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)


def all_parts(view):
    return [
        view.has_text,
        view.evidence_of(SAMPLE),
        view.texts,
        view.entities,
        view.edges,
        view.graph.linked,
        [[ids.get(number) for number in "07"] for ids in view.cited.values()],
        view.extraction("End."),
    ]


def test_every_part_comes_from_one_reading_of_its_table(paths):
    view = IndexView(IndexTables(paths))
    before = all_parts(view)
    for path in paths.values():
        path.unlink()
    assert all_parts(view) == before
    ids = {name: [ids.get(number) for number in "07"] for name, ids in view.cited.items()}
    assert ids["relationships"] == [None, "r0"]
    assert "7" in view.cited["relationships"]
    assert "07" not in view.cited["relationships"]
    assert view.extraction("End.") == Extraction(("BEN",), ())
    assert view.extraction(document="Isle.txt") == Extraction(("ADA", "BEN"), (("ADA", "BEN"),))


def test_a_table_is_read_only_when_a_part_needs_it(paths):
    view = IndexView(IndexTables(paths))
    for name in ("documents", "text_units", "relationships"):
        paths[name].write_bytes(b"")
    assert [entity.title for entity in view.entities] == ["ADA", "BEN"]
    write(paths["text_units"], FRAMES["text_units"][:1])
    assert view.token_counts() == [4]
    assert view.texts == {"u0": "Ada met Ben."}


@pytest.mark.parametrize(
    ("lacking", "column"),
    [("text_units", "id"), ("entities", "title"), ("relationships", "source"), ("documents", "id")],
)
def test_a_table_without_a_column_that_is_looked_at_counts_as_empty(paths, lacking, column):
    write(paths[lacking], FRAMES[lacking].drop(columns=column))
    view = IndexView(IndexTables(paths))
    assert view.has_text == (lacking != "text_units")
    assert bool(view.entities) == (lacking != "entities")
    assert bool(view.edges) == (lacking != "relationships")
    (evidence,) = view.evidence_of(SAMPLE)
    assert evidence.is_matched == (lacking != "documents")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_are_found_by_their_numbers_whatever_the_order(tmp_path, kind):
    """Of rows that share a number an id is the last one's; no other way to write it is a number."""
    numbers = [9, 2, -1, 9]
    frame = FRAMES["relationships"].iloc[[0] * 4]
    frame = frame.assign(human_readable_id=numbers, id=["a", "b", "c", "d"])
    path = tmp_path / f"relationships.{kind}"
    write(path, frame)
    for tables in (IndexTables({"relationships": path}), IndexTables(relationships=frame)):
        ids = IndexView(tables).cited["relationships"]
        assert [ids.get(n) for n in ("9", "2", "-1")] == ["d", "b", "c"]
        others = ("", "09", " 9", "9.0", "٩", "3", "9" * 30, "--1", "-0")
        assert [n for n in others if n in ids or ids.get(n)] == []
        assert "1" not in IndexView(tables).cited["sources"]


def test_only_what_is_cited_and_asked_for_is_read(paths):
    view = IndexView(IndexTables(paths))
    for name in ("entities", "relationships", "documents"):
        paths[name].write_bytes(b"")
    assert view.cited["sources"].get("1") == "u1"
    write(paths["entities"], FRAMES["entities"])
    assert view.graph.taken_from(["u1"]) == {1}
    with pytest.raises(UnreadableTableError):
        assert view.graph.linked
