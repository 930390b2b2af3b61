"""Contexts of the released searches, made from few records, are those made from all of them."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from graphrag.config.embeddings import entity_description_embedding, text_unit_text_embedding
from graphrag.query.factory import get_basic_search_engine, get_local_search_engine
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.header import SearchOptions
from graphrag.query.index.tables import open_tables, read_text_units
from graphrag.query.index.vector_tables import open_vectors
from graphrag.query.indexer_adapters import (
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_reports,
)

QUESTIONS = (
    "Who repaired the great lamp?",
    "What did the Merrow Glass Company make?",
    "Who is Jonas Feld?",
    "Where does Marta Quill live?",
    "Which ship ran aground?",
    "",
)


def _tangle(output: Path, has_known_subjects: bool) -> None:
    """Write into an index what graphs of other people hold."""
    edges = pd.read_parquet(output / "relationships.parquet")
    entities = pd.read_parquet(output / "entities.parquet")
    hub, lonely = entities["title"][0], entities["title"][1]
    edges = edges[(edges["source"] != lonely) & (edges["target"] != lonely)]
    parallel = edges.assign(id="p" + edges["id"], description="once more " + edges["description"])
    loop = edges.head(3).assign(id=["l0", "l1", "l2"], source=hub, target=hub)
    backward = edges.head(9).assign(source=edges["target"], target=edges["source"])
    nowhere = edges.head(2).assign(id=["n0", "n1"], target=["NOBODY AT ALL", None])
    edges = pd.concat([edges, parallel, loop, backward, nowhere], ignore_index=True)
    ties = [*range(len(edges) // 2), *[7] * (len(edges) - len(edges) // 2)]
    edges = edges.assign(combined_degree=ties, human_readable_id=range(len(edges)))
    edges["description"] = edges["description"].where(edges.index % 11 != 3)
    edges.to_parquet(output / "relationships.parquet", row_group_size=40)
    again = entities.head(2).assign(description="the same id once more")
    entities = pd.concat([entities, again], ignore_index=True)
    entities.to_parquet(output / "entities.parquet", row_group_size=17)
    units = pd.read_parquet(output / "text_units.parquet")
    ids = list(edges["id"][:20])
    units["relationship_ids"] = [ids if row % 2 else None for row in range(len(units))]
    units.to_parquet(output / "text_units.parquet", row_group_size=5)
    claims = {
        "id": [f"c{n}" for n in range(40)],
        "human_readable_id": range(40),
        "type": "CLAIM",
        "subject_id": [
            entities["title"][n % 9 + 2] if has_known_subjects else "NOBODY" for n in range(40)
        ],
        "object_id": "NONE",
        "status": ["TRUE", "SUSPECTED"] * 20,
        "start_date": [None if n % 3 else f"19{n:02}" for n in range(40)],
        "end_date": None,
        "description": [f"claim number {n}" for n in range(40)],
        "text_unit_id": units["id"][0],
    }
    pd.DataFrame(claims).to_parquet(output / "covariates.parquet")


@pytest.fixture(scope="module", params=["as built", "tangled", "tangled, as CSV"])
def root(
    request: pytest.FixtureRequest, lighthouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(lighthouse / "output", root / "output")
    settings = (lighthouse / "settings.yaml").read_text(encoding="utf-8")
    if request.param != "as built":
        _tangle(root / "output", has_known_subjects=not request.param.endswith("CSV"))
    if request.param.endswith("CSV"):
        settings += "\ntable_provider: {type: csv}\n"
        for path in (root / "output").glob("*.parquet"):
            frame = pd.read_parquet(path)
            for name in frame.columns[[str(name).endswith("_ids") for name in frame.columns]]:
                frame[name] = [str(list(ids)) if ids is not None else "" for ids in frame[name]]
            frame.to_csv(path.with_suffix(".csv"), index=False)
            path.unlink()
    (root / "settings.yaml").write_text(settings, encoding="utf-8")
    return root


async def _release(root: Path, level: int | None) -> dict[str, Any]:
    """Return the released engines, made as the release makes them from all records."""
    config = (await GraphIndex.open(root)).header.config
    tables = await open_tables(config)
    parts: dict[str, Any] = {"config": config, "response_type": "x"}
    parts["text_units"] = read_text_units(tables)
    texts = open_vectors(config, text_unit_text_embedding)
    has_claims = tables.has("covariates")
    claims = read_indexer_covariates(tables.table("covariates")) if has_claims else []
    local = get_local_search_engine(
        **parts,
        reports=read_indexer_reports(
            tables.table("community_reports"), tables.table("communities"), level
        ),
        entities=read_indexer_entities(
            tables.table("entities"), tables.table("communities"), level
        ),
        relationships=read_indexer_relationships(tables.table("relationships")),
        covariates={"claims": claims},
        description_embedding_store=open_vectors(config, entity_description_embedding),
    )
    basic = get_basic_search_engine(**parts, text_unit_embeddings=texts)
    return {"local": local, "basic": basic}


def _build(engine: Any, question: str) -> Any:
    for edge in getattr(engine.context_builder, "relationships", {}).values():
        edge.attributes = None  # the release writes into its records
    return engine.context_builder.build_context(query=question, **engine.context_builder_params)


@pytest.mark.parametrize("level", [None, 1])
async def test_contexts_are_those_of_the_release(root, level):
    released = await _release(root, level)
    index = await GraphIndex.open(root, options=SearchOptions(community_level=level))
    for method, engine in released.items():
        shown = 0
        for question in QUESTIONS:
            expected = _build(engine, question)
            if not question:  # an answer without a context is none
                ours = await index._find_engine(method)
                vector = await ours._embedding.vector_of(question)
                params = ours._engine.context_builder_params
                context = await ours._contexts.make(question, vector, **params)
                assert context.context_chunks == expected.context_chunks
                continue
            found = await index.search(method, question)
            assert found.context_text == expected.context_chunks, (method, question)
            assert [*found.context_data] == [*expected.context_records]
            for name, frame in expected.context_records.items():
                assert found.context_data[name].equals(frame), (method, question, name)
                shown += len(frame)
        assert shown > 20


async def test_a_context_is_the_same_whatever_was_asked_before_or_beside_it(root):
    asked = [question for question in QUESTIONS if question]
    alone = [
        (await (await GraphIndex.open(root)).search("local", question)).context_text
        for question in asked
    ]
    index = await GraphIndex.open(root)
    for questions in (asked, asked[::-1]):
        found = await asyncio.gather(*(index.search("local", question) for question in questions))
        told = dict(zip(questions, (each.context_text for each in found), strict=True))
        assert [told[question] for question in asked] == alone


async def test_a_search_that_is_stopped_while_its_context_is_made_leaves_the_others_as_they_are(
    root,
):
    index = await GraphIndex.open(root)
    expected = (await index.search("local", QUESTIONS[0])).context_text
    tasks = [asyncio.ensure_future(index.search("local", question)) for question in QUESTIONS[1:4]]
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    stopped = await asyncio.gather(*tasks, return_exceptions=True)
    assert any(isinstance(each, asyncio.CancelledError) for each in stopped)
    assert (await index.search("local", QUESTIONS[0])).context_text == expected
