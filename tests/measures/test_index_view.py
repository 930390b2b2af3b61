"""When a view reads the tables of an index, and what it makes of incomplete ones."""

import pandas as pd
import pytest

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.metrics.entities import Extraction
from graphrag.eval.metrics.index_view import IndexView
from graphrag.query.index_tables import IndexTables

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
        view.cited,
        view.extraction("End."),
    ]


def test_every_part_comes_from_one_reading_of_its_table(paths):
    view = IndexView(IndexTables(paths))
    before = all_parts(view)
    for path in paths.values():
        path.unlink()
    assert all_parts(view) == before
    assert view.cited["relationships"] == {"7": "r0"}
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


@pytest.mark.parametrize("lacking", ["text_units", "entities", "relationships", "documents"])
def test_a_table_without_a_column_that_is_looked_at_counts_as_empty(paths, lacking):
    write(paths[lacking], FRAMES[lacking].drop(columns=FRAMES[lacking].columns[0]))
    view = IndexView(IndexTables(paths))
    assert view.has_text == (lacking != "text_units")
    assert bool(view.entities) == (lacking != "entities")
    assert bool(view.edges) == (lacking != "relationships")
    (evidence,) = view.evidence_of(SAMPLE)
    assert evidence.is_held == (lacking != "documents")
