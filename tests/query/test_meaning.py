"""tog and ppr find texts by words and by meaning, and say so where words led alone."""

import json
import shutil

import lancedb
import pyarrow as pa
import pytest
from support.lighthouse import QUESTION
from support.openai_server import Fault

from graphrag.api.search import tog_search
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.header import read_header
from graphrag.query.index.meaning import HASHED, WORDS_ALONE
from graphrag.query.methods import GRAPH_METHODS, RANKED


def note_of(found) -> str:
    assert found.context_data["exploration"]["note"][0] == found.note
    return found.note


@pytest.mark.parametrize("method", ["tog", "ppr"])
async def test_a_question_without_a_word_of_the_texts_is_answered_by_meaning(method, remote):
    """One embedding a search; without an embedding model words are all there is."""
    asked = "Qui a réparé cela ?"
    found = await remote.search(method, asked)
    assert found.usage.embedding_calls == 1
    assert len(found.context_data["sources"]) > 0
    assert WORDS_ALONE not in note_of(found)
    alone = remote.under(remote.header.changed(method, {"embedding_model_id": None}))
    nothing = await alone.search(method, asked)
    assert (nothing.usage.embedding_calls, nothing.usage.llm_calls) == (0, 0)
    assert WORDS_ALONE not in note_of(nothing)


async def test_words_lead_alone_where_the_question_can_t_be_embedded(make_project, server, caplog):
    """It is said with each answer, in the log once, and the answer is that of words."""
    index = await GraphIndex.open(make_project(max_retries=2))
    plain = index.under(index.header.changed("ppr", {"embedding_model_id": None}))
    expected = await plain.search("ppr", QUESTION)
    server.behave(faults=lambda _, request: Fault(status=500) if "input" in request else None)
    for _ in range(2):
        found = await index.search("ppr", QUESTION)
        assert found.context_text == expected.context_text
        assert WORDS_ALONE in note_of(found)
        assert "could not be embedded" in note_of(found)
    assert caplog.text.count(WORDS_ALONE) == 1


@pytest.mark.parametrize("method", [*GRAPH_METHODS, *RANKED])
async def test_a_search_that_leaves_hashed_n_grams_unused_says_so(method, project):
    """bm25 asks for no vectors, and a search told to use none has nothing to explain."""
    index = await GraphIndex.open(project)
    found = await index.search(method, QUESTION)
    assert found.note == ("" if method == "bm25" else HASHED)
    if method in GRAPH_METHODS:
        assert note_of(found) == HASHED
        told = index.under(index.header.changed(method, {"embedding_model_id": None}))
        assert (await told.search(method, QUESTION)).note == ""


async def test_words_lead_alone_where_there_are_no_vectors(make_project):
    root = make_project()
    before = (await read_header(root)).describe("tog")
    shutil.rmtree(root / "output" / "lancedb")
    index = await GraphIndex.open(root, vectors=False)
    found = await index.search("tog", QUESTION)
    assert f"{WORDS_ALONE}: the index has no vector store" in note_of(found)
    assert found.usage.embedding_calls == 0
    assert index.header.describe("tog") != before


async def test_a_setup_reads_from_a_store_as_it_is_described(project):
    """Else no run could be resumed."""
    described = (await read_header(project)).describe("ppr")
    assert json.loads(json.dumps(described)) == described


async def test_without_texts_there_is_nothing_to_do_without(remote):
    tables = [remote.tables.table(name) for name in ("entities", "relationships")]
    found = await tog_search(remote.header.config, *tables, QUESTION)
    assert (found.note, found.usage.embedding_calls) == ("", 0)


async def test_other_vectors_are_another_setup(make_project):
    """The same tables under vectors of another model; with words alone nothing has changed."""
    root = make_project()
    before = await read_header(root)
    connection = lancedb.connect(str(root / "output" / "lancedb"))
    table = connection.open_table("text_unit_text").to_arrow()
    place = table.schema.get_field_index("vector")
    turned = [[-x for x in row] for row in table.column("vector").to_pylist()]
    column = pa.array(turned, table.schema.field(place).type)
    changed = table.set_column(place, table.schema.field(place), column)
    connection.create_table("text_unit_text", changed, mode="overwrite")
    after = await read_header(root)
    assert after.fingerprint == before.fingerprint
    for method in ("tog", "ppr", "basic"):
        assert after.describe(method) != before.describe(method)
    alone = {"embedding_model_id": None}
    assert after.changed("ppr", alone).describe("ppr") == before.changed("ppr", alone).describe(
        "ppr"
    )
