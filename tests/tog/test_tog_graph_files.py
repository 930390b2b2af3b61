"""The graph beside an index: built once, mapped afterwards, and never believed blindly."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.openai_server import Json
from support.tog_world import entities, graph_of, relationships, text_units

from graphrag.config.table_files import IndexNotBuiltError, UnreadableTableError
from graphrag.query.graph import GraphStore
from graphrag.query.graph.store import fingerprint_files, open_graph
from graphrag.query.graph_index import open_graph_of
from graphrag.query.index.tables import IndexTables
from graphrag.query.index.text_languages import FOLDER
from graphrag.text.tokenize import word_keys

TABLES = {"entities": entities, "relationships": relationships, "text_units": text_units}


def write_index(folder: Path, kind: str = "parquet", **frames: pd.DataFrame) -> dict[str, Path]:
    files = {name: folder / f"{name}.{kind}" for name in TABLES}
    for name, path in files.items():
        frame = frames.get(name, TABLES[name]())
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return files


def contents(graph: GraphStore) -> list[object]:
    nodes = range(graph.n_entities)
    return [
        [graph.entity_row(node) for node in nodes],
        [graph.relationship_row(edge) for edge in range(graph.n_relationships)],
        [graph.neighbours(node, 1000) for node in nodes],
        graph.arrays.edge_weights.tolist(),
        [graph.nodes_named_in(f"who is {graph.title(node)} there") for node in nodes],
    ]


def the_cache(files: dict[str, Path]) -> Path:
    home = files["entities"].parent / FOLDER
    (found,) = (path for path in home.iterdir() if "-" not in path.name)
    return found


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_mapped_graph_says_what_the_tables_say(tmp_path, kind):
    """Built, and opened again, from either kind of table."""
    files = write_index(tmp_path, kind)
    expected = contents(graph_of(entities(), relationships()))
    assert contents(open_graph(files).graph) == expected
    before = the_cache(files).stat()
    opened = open_graph(files)
    assert contents(opened.graph) == expected
    assert the_cache(files).stat() == before
    unit = opened.text_units.passage(*opened.text_units.best({6: 1.0}, 1, "")).unit
    assert (unit.id, unit.human_readable_id, unit.text[:2]) == ("t7", 7, "東京")


def test_tables_in_files_are_mapped_and_others_are_not(tmp_path):
    """An index of this machine is never read whole; tables that were handed over leave no file."""
    files = write_index(tmp_path)
    stored = IndexTables(files)
    handed = IndexTables(
        entities=entities(), relationships=relationships(), text_units=text_units()
    )
    expected = contents(open_graph_of(handed).graph)
    assert not (tmp_path / FOLDER).exists()
    assert contents(open_graph_of(stored).graph) == expected
    assert the_cache(files).is_dir()
    filled = pd.read_parquet(files["entities"]).assign(type="")
    pd.testing.assert_frame_equal(stored.table("entities"), filled)
    assert not stored.has("covariates")
    with pytest.raises(IndexNotBuiltError, match="no covariates table"):
        stored.table("covariates")


def test_changed_tables_are_noticed(tmp_path):
    """As ``graphrag update`` merges rows in: built again, and the old graph is removed."""
    files = write_index(tmp_path)
    open_graph(files)
    old = the_cache(files)
    people = pd.concat([entities(), entities().iloc[[0]].assign(id="new", title="NEW")])
    joins = pd.concat([relationships(), relationships().iloc[[0]].assign(source="NEW")])
    people.to_parquet(files["entities"])
    joins.to_parquet(files["relationships"])
    assert contents(open_graph(files).graph) == contents(graph_of(people, joins))
    assert the_cache(files) != old
    # The first and last bytes tell where a table keeps its length and time.
    fingerprints: list[str] = []
    for weight in (9.5, 9.25):
        joins.iloc[7, joins.columns.get_loc("weight")] = weight
        joins.to_parquet(files["relationships"], compression=None)
        os.utime(files["relationships"], ns=(0, 0))
        fingerprints.append(f"{files['relationships'].stat().st_size} {fingerprint_files(files)}")
    (size, first), (same_size, second) = (text.split() for text in fingerprints)
    assert size == same_size
    assert first != second


DAMAGE: Json = {
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize(
    ("damage", "name"), zip(DAMAGE, ["edge_nodes.npy", "relationships.arrow"] * 2, strict=True)
)
def test_a_damaged_graph_is_built_again(tmp_path, damage, name, caplog):
    """It is said once, and the next opening finds a whole graph."""
    files = write_index(tmp_path)
    expected = contents(open_graph(files).graph)
    DAMAGE[damage](the_cache(files) / name)
    for n_said in (1, 0):
        caplog.clear()
        assert contents(open_graph(files).graph) == expected
        assert sum("is built again" in record.message for record in caplog.records) == n_said


_OPEN = """
import json, sys
from pathlib import Path
from graphrag.query.graph.store import open_graph
print("ready", flush=True)
sys.stdin.readline()
graph = open_graph({Path(name).stem: Path(name) for name in sys.argv[1:]}).graph
print(json.dumps([graph.neighbours(node, 9) for node in range(graph.n_entities)]))
"""


@pytest.mark.slow
def test_processes_that_build_at_once_do_not_disturb_each_other(tmp_path):
    """Each gets a whole graph, and one is left."""
    files = write_index(tmp_path)
    pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", _OPEN, *map(str, files.values())]
    others = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for other in others:
        assert other.stdout.readline() == "ready\n"
    for other in others:
        other.stdin.write("go\n")
        other.stdin.flush()
    graph = open_graph(files).graph
    expected = [graph.neighbours(node, 9) for node in range(graph.n_entities)]
    for other in others:
        told, _ = other.communicate(timeout=60)
        assert [list(map(tuple, edges)) for edges in json.loads(told)] == expected
        assert other.returncode == 0
    the_cache(files)


def test_what_stopped_builds_left_is_removed_and_an_unwritable_folder_costs_a_line(
    tmp_path, caplog
):
    """But not what another process is building now."""
    files, home = write_index(tmp_path), tmp_path / FOLDER
    for name in ("building-old", "building-new"):
        (home / name).mkdir(parents=True)
    long_ago = time.time() - 24 * 3600
    os.utime(home / "building-old", (long_ago, long_ago))
    open_graph(files)
    assert {path.name for path in home.iterdir() if not path.name.startswith("texts-")} == {
        "building-new",
        the_cache(files).name,
    }

    # As on a read-only disk, and for root as well: a file has the folder's name.
    shutil.rmtree(home)
    home.write_text("in the way", encoding="utf-8")
    opened = open_graph(files)
    assert contents(opened.graph) == contents(graph_of(entities(), relationships()))
    assert opened.text_units.passage(6).unit_id == "t7"
    (warning,) = (r.message for r in caplog.records if r.levelno == logging.WARNING)
    assert "can't be kept next to the index" in warning


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_of_other_releases_are_read(tmp_path, kind):
    """Numbers as text or with gaps, other columns, none of the optional ones."""
    people = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "title": ["A", "B", "C"],
            "human_readable_id": [5.0, None, 7.0],
            "graph_embedding": [None, None, None],
        }
    )
    joins = pd.DataFrame(
        {"source": ["A", "B", "C"], "target": ["B", "C", "A"], "weight": [None, 2.0, 0.5]}
    )
    if kind == "csv":  # lists as text, in both forms that releases have written
        people["text_unit_ids"] = ["['t1', 't2']", "['t1'\n 't2']", "[]"]
    graph = open_graph(write_index(tmp_path, kind, entities=people, relationships=joins)).graph
    rows = [graph.entity_row(node) for node in range(3)]
    assert [row.human_readable_id for row in rows] == [5, 1, 7]
    assert [row.title for row in rows] == ["A", "B", "C"]
    units = ("t1", "t2") if kind == "csv" else ()
    assert [row.text_unit_ids for row in rows] == [units, units, ()]
    assert [graph.relationship_row(edge).weight for edge in range(3)] == [1.0, 2.0, 0.5]
    assert [node for node, _ in graph.neighbours(0, 9)] == [1, 2]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda joins: joins.drop(columns="target").iloc[:0], "has no column target"),
        (lambda joins: joins.assign(weight="heavy"), "can't be read"),
    ],
)
def test_a_table_that_lacks_or_spoils_a_column_is_refused(tmp_path, kind, spoil, said):
    """By its name, also when it has no rows, and nothing of the graph is left behind."""
    joins = spoil(relationships())
    with pytest.raises(UnreadableTableError, match=f"relationships table {said}"):
        open_graph(write_index(tmp_path, kind, relationships=joins))
    assert [path.name[:6] for path in (tmp_path / FOLDER).iterdir()] == ["texts-"]
    with pytest.raises(UnreadableTableError, match=f"relationships table {said}"):
        graph_of(entities(), joins)


def test_a_hub_costs_no_more_than_its_cap(tmp_path):
    """20,000 edges: the heaviest are in front, and a look-up reads no others."""
    n = 20_000
    names = [f"n{i}" for i in range(n + 1)]
    people = pd.DataFrame({"id": names, "title": names})
    weights = np.random.default_rng(5).permutation(n).astype(float)
    joins = pd.DataFrame({"source": "n0", "target": names[1:], "weight": weights})
    graph = open_graph(write_index(tmp_path, entities=people, relationships=joins)).graph
    assert graph.arrays.edge_weights[:n].tolist() == list(range(n - 1, -1, -1))
    heaviest = (np.argsort(-weights)[:50] + 1).tolist()
    assert graph.neighbours(0, 50) == list(zip(heaviest, heaviest, strict=True))
    assert len(graph.neighbours(0, 2 * n)) == n


NAMES = st.sampled_from(["A", "B", "北京", "القاهرة", "🎬 {x}", "a b c", ""])
TEXTS = st.one_of(st.none(), st.text(max_size=12))
UNITS = st.one_of(st.none(), st.lists(st.sampled_from(["u1", "u2", "", "٣"]), max_size=3))


def plain(value: object, otherwise: object) -> object:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return otherwise
    return value


@settings(max_examples=20)
@given(
    st.lists(st.tuples(NAMES, TEXTS, UNITS), max_size=8),
    st.lists(st.tuples(NAMES, NAMES, TEXTS, st.sampled_from([None, 0.5, 3.0]), UNITS), max_size=12),
)
def test_rows_read_back_as_they_were_written(people, joins):
    """Missing values, repeated titles, empty ones and any script, mapped or in memory."""
    import tempfile

    columns = ["title", "description", "text_unit_ids"]
    some = pd.DataFrame(people, columns=columns, dtype=object)
    some.insert(0, "id", [f"e{i}" for i in range(len(people))])
    columns = ["source", "target", "description", "weight", "text_unit_ids"]
    links = pd.DataFrame(joins, columns=columns, dtype=object).astype({"weight": float})
    first = {name: i for i, (name, _, _) in reversed(list(enumerate(people))) if name}
    with tempfile.TemporaryDirectory() as folder:
        files = write_index(Path(folder), entities=some, relationships=links)
        for graph in (graph_of(some, links), open_graph(files).graph):
            for i, (name, told, units) in enumerate(people):
                row = graph.entity_row(i)
                assert (row.id, row.title, row.human_readable_id) == (f"e{i}", name, i)
                assert row.description == plain(told, "")
                assert row.text_unit_ids == tuple(cast("Iterable[str]", plain(units, ())))
                key = word_keys([name])[0]
                same = {first[other] for other in first if word_keys([other])[0] == key}
                assert graph.nodes_named_in(name) == ([min(same)] if key else [])
            for i, (source, target, told, weight, units) in enumerate(joins):
                link = graph.relationship_row(i)
                assert (link.source, link.target) == (source, target)
                assert (link.description, link.weight) == (plain(told, ""), plain(weight, 1.0))
                assert link.text_unit_ids == tuple(cast("Iterable[str]", plain(units, ())))
            walked = {
                (node, other, edge)
                for node in range(len(people))
                for other, edge in graph.neighbours(node, 99)
            }
            assert walked == {
                step
                for i, (source, target, *_) in enumerate(joins, start=1)
                if source in first and target in first and source != target
                for a, b in [(first[source], first[target])]
                for step in ((a, b, i), (b, a, -i))
            }


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_opening_reads_the_header_only(tmp_path):
    """A mapped graph takes no memory of its own for its rows."""
    n = 20_000
    names = [f"n{i}" for i in range(n)]
    people = pd.DataFrame({"id": names, "title": names, "description": "x" * 500})
    joins = pd.DataFrame({"source": names, "target": names[::-1], "description": "y" * 500})
    files = write_index(tmp_path, entities=people, relationships=joins)
    open_graph(files)

    def own_kib() -> int:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

    before = own_kib()
    opened = open_graph(files)
    assert own_kib() - before < 4096
    assert opened.graph.relationship_row(n - 1).description == "y" * 500


def test_another_title_of_a_document_builds_the_graph_anew(tmp_path):
    """What a document is about is part of the graph, though an index may have no documents."""
    files = write_index(tmp_path)
    assert open_graph(files).graph.names_in("Kansas Prairie News") != []
    titled = {**files, "documents": tmp_path / "documents.parquet"}
    for title in ("Prairie News", "Desert News"):
        pd.DataFrame({"id": ["d"], "title": [title]}).to_parquet(titled["documents"])
        text_units().assign(document_id="d").to_parquet(files["text_units"])
        graph = open_graph(titled).graph
        assert [graph.names_in(name) for name in (title, "Weather News")] == [
            [graph.n_entities],
            [],
        ]
        assert graph.nodes_named_in(title) == []
