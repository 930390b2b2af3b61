"""Vector look-ups before and after optimising: what is found, and what is left alone."""

import shutil
from pathlib import Path

import lancedb
import numpy as np
import pytest
from graphrag_vectors import F, VectorStoreDocument
from graphrag_vectors.lancedb import LanceDBVectorStore
from lancedb.index import IvfFlat
from support.commands import code_of
from support.projects import offline_settings

from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.validate import find_roots, index_vectors
from graphrag.eval.runner.index_building import build_index
from graphrag.eval.validation.vectors import list_vector_warnings
from graphrag.query.index.header import IndexHeader
from graphrag.query.index.vector_index import SMALL_TABLE, optimise_vectors, vector_state
from graphrag.query.index.vector_tables import VectorStoreError, uses_lancedb

LENGTH = 12
MANY = 12_000
SETTINGS = offline_settings(dimensions=LENGTH)


def random_vectors(count: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, LENGTH)).astype(np.float32)


def open_store(config: ProjectConfig, name: str = "entity_description") -> LanceDBVectorStore:
    store = LanceDBVectorStore(
        db_uri=str(config.vector_store.db_uri), index_name=name, vector_size=LENGTH
    )
    store.connect()
    return store


def write_vectors(config: ProjectConfig, name: str, count: int) -> None:
    """Write a table of vectors as graphrag does."""
    store = open_store(config, name)
    store.create_index()
    store.load_documents(documents(count))


def documents(count: int, first: int = 0) -> list[VectorStoreDocument]:
    return [
        VectorStoreDocument(id=f"it's {first + at}", vector=vector.tolist())
        for at, vector in enumerate(random_vectors(count, first + 3))
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vectors")
    (root / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    config = read_settings(root)
    write_vectors(config, "entity_description", MANY)
    write_vectors(config, "text_unit_text", SMALL_TABLE)
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def config(root: Path) -> ProjectConfig:
    return read_settings(root)


def table_of(config: ProjectConfig, name: str = "entity_description") -> lancedb.table.Table:
    return lancedb.connect(str(config.vector_store.db_uri)).open_table(name)


def search(config: ProjectConfig, question: np.ndarray, k: int = 20) -> list[str]:
    hits = open_store(config).similarity_search_by_vector(question.tolist(), k=k)
    return [str(hit.document.id) for hit in hits]


def test_large_tables_are_indexed_and_small_ones_left_and_a_run_is_warned(config):
    """Once the first lines fail, graphrag indexes its vectors itself."""
    entities, units = vector_state(config)
    assert (entities.name, entities.rows, entities.indexed_rows) == ("entity_description", MANY, 0)
    assert entities.is_complete
    assert entities.needs_optimising
    assert (units.name, units.needs_optimising) == ("text_unit_text", False)
    headers = {"ours": IndexHeader(config)}
    (warning,) = list_vector_warnings(headers)
    assert "ours: 12,000 of the 12,000 vectors of entity_description" in warning

    entities, units = optimise_vectors(config)
    assert entities.action == "indexed"
    assert (entities.before.indexed_rows, entities.after.indexed_rows) == (0, MANY)
    assert not entities.after.needs_optimising
    assert (units.action, units.after.indexed_rows) == ("left exact", 0)
    assert [again.action for again in optimise_vectors(config)] == ["already indexed", "left exact"]
    assert list_vector_warnings(headers) == []

    open_store(config).load_documents(documents(SMALL_TABLE, first=MANY))
    assert optimise_vectors(config)[0].action == "already indexed"
    open_store(config).load_documents(documents(1, first=MANY + SMALL_TABLE))
    (entities, _) = optimise_vectors(config)
    assert entities.action == "indexed"
    assert entities.before.unindexed_rows == SMALL_TABLE + 1
    assert entities.after.unindexed_rows == 0


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_the_same_vectors_are_found_as_before(metric, config):
    table = table_of(config)
    table.create_index(
        "vector", config=IvfFlat(num_partitions=1, distance_type=metric), replace=True
    )
    open_store(config).load_documents(documents(SMALL_TABLE + 1, first=MANY))
    questions = random_vectors(25, seed=77)
    before = [search(config, question) for question in questions]
    optimise_vectors(config)
    assert [search(config, question) for question in questions] == before
    assert len(search(config, questions[0], k=MANY)) == MANY
    (index,) = table_of(config).list_indices()
    assert table_of(config).index_stats(index.name).distance_type == metric


async def test_looking_up_ids_finds_all_of_them(config):
    table, ids = table_of(config), [f"plain-{at}" for at in range(200)]
    vectors = random_vectors(200, seed=9)
    open_store(config).load_documents(
        [VectorStoreDocument(id=i, vector=v.tolist()) for i, v in zip(ids, vectors, strict=True)]
    )
    question = random_vectors(1, seed=8)[0].tolist()

    def found() -> set[str]:
        store = open_store(config)
        wanted = getattr(F, store.id_field).in_(ids)
        hits = store.similarity_search_by_vector(question, k=len(ids), filters=wanted)
        return {str(hit.document.id) for hit in hits}

    table.checkout_latest()
    table.create_index("vector", config=IvfFlat(num_partitions=200), replace=True)
    assert len(found()) < 150
    (entities, _) = vector_state(config)
    assert entities.indexed_rows == entities.rows
    assert not entities.is_complete
    (warning,) = list_vector_warnings({"ours": IndexHeader(config)})
    assert "misses vectors" in warning
    (optimised, _) = optimise_vectors(config)
    assert optimised.action == "indexed"
    assert optimised.after.is_complete
    assert found() == set(ids)


def test_other_stores_and_missing_ones_are_named(config, tmp_path):
    def changed(**settings: object) -> ProjectConfig:
        store = config.vector_store.model_copy(update=settings)
        return config.model_copy(update={"vector_store": store})

    assert not uses_lancedb(changed(type="cosmosdb"))
    with pytest.raises(VectorStoreError, match=r"vector_store\.type is cosmosdb; only lancedb"):
        optimise_vectors(changed(type="cosmosdb"))
    missing = tmp_path / "nowhere"
    with pytest.raises(VectorStoreError, match=r"no vector store at .*nowhere; build"):
        vector_state(changed(db_uri=str(missing)))
    assert not missing.exists()


def test_the_command_names_a_project_without_vectors(root, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    folder = root.parent
    config = folder / "eval_config.yaml"
    config.write_text("indexes: {first: project, second: unbuilt}\n", encoding="utf-8")

    def refusal() -> str:
        assert code_of(lambda: index_vectors(find_roots(Paths(folder))) or 0) == 2
        printed = capsys.readouterr()
        return f"{printed.out}{printed.err}"

    said = refusal()
    assert "Index second: " in said
    assert "first" in said  # what was done before is said
    (folder / "unbuilt").mkdir()
    (folder / "unbuilt" / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    assert "Index second: there is no vector store" in refusal()
    config.write_text("indexs: {}\n", encoding="utf-8")
    assert "indexs" in refusal()


async def test_building_an_index_optimises_it(tmp_path):
    (tmp_path / "input").mkdir()
    text = "Idris Vane built the clock of Ashcombe. Petra Holm paid Idris Vane."
    (tmp_path / "input" / "clock.txt").write_text(text, encoding="utf-8")
    (tmp_path / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    config = read_settings(tmp_path)
    building = str(tmp_path / "output.building" / "lancedb")
    there = config.vector_store.model_copy(update={"db_uri": building})

    def fill(step: str) -> None:
        if step == "optimise_vectors":
            store = open_store(config.model_copy(update={"vector_store": there}))
            store.load_documents(documents(SMALL_TABLE + 1))

    shares: list[tuple[int, int]] = []
    await build_index(tmp_path, fill, lambda done, total: shares.append((done, total)))
    assert all(0 <= done <= total for done, total in shares)
    assert any(done == total for done, total in shares)
    (table,) = (each for each in vector_state(config) if each.name == "entity_description")
    assert table.rows == table.indexed_rows > SMALL_TABLE
