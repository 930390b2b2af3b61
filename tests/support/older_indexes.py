"""Makes of a built index what earlier versions of graphrag, and accidents, left of such a one.

Each function changes a copy of a project whose index graphrag 3 built; see ``make_form``.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pandas as pd
import pyarrow as pa

Frame = Any
FORMS = ("3", "2", "1", "0.5")
LENGTH = 96
"""Numbers in each vector of the made indexes; none of the settings name it."""
_NAMES = {
    "entity_description": "entity-description",
    "text_unit_text": "text_unit-text",
    "community_full_content": "community-full_content",
}
LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def make_form(project: Path, target: Path, form: str, base_url: str, length: int = LENGTH) -> Path:
    """Copy a built project and give tables, vectors and settings the form of a version.

    The vectors are those that the server at ``base_url`` gives at ``length``.
    """
    shutil.copytree(project, target, ignore=shutil.ignore_patterns("tog_graph", "*.db", "eval"))
    output = target / "output"
    for name in ("settings.yaml", "settings.yml"):
        (target / name).unlink(missing_ok=True)
    (target / "settings.yaml").write_text(SETTINGS[form].replace("BASE", base_url), "utf-8")
    (target / ".env").write_text("GRAPHRAG_API_KEY=test\n", encoding="utf-8")
    write_vectors(output, form, length)
    MAKE_TABLES[form](output)
    return target


def write_vectors(output: Path, form: str, length: int) -> None:
    """Write vectors of another length, in tables that are named as a version named them."""
    from support.openai_server import embed

    shutil.rmtree(output / "lancedb", ignore_errors=True)
    sources = {
        "entity_description": ("entities", lambda row: f"{row['title']}:{row['description']}"),
        "text_unit_text": ("text_units", lambda row: row["text"]),
        "community_full_content": ("community_reports", lambda row: row["full_content"]),
    }
    connection = lancedb.connect(str(output / "lancedb"))
    for embedding, (table, text_of) in sources.items():
        if form == "0.5" and embedding != "entity_description":
            continue
        frame = pd.read_parquet(output / f"{table}.parquet")
        name = {"3": embedding, "0.5": "entity_description_embeddings"}.get(
            form, f"default-{_NAMES[embedding]}"
        )
        texts = [text_of(row) for row in frame.to_dict("records")]
        vectors = np.array([embed(text, length) for text in texts], np.float32)
        columns: dict[str, Any] = {
            "id": frame["id"].tolist(),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), length),
        }
        if form != "3":
            columns |= {"text": texts, "attributes": ["{}"] * len(texts)}
        connection.create_table(name, data=pa.table(columns))


def _rewrite(output: Path, table: str, edit: Callable[[Frame], Frame], to: str = "") -> None:
    path = output / f"{table}.parquet"
    frame = edit(pd.read_parquet(path))
    path.unlink()
    frame.to_parquet(output / f"{to or table}.parquet")


def _tables_of_3(output: Path) -> None:
    del output


def _listed_documents(frame: Frame) -> Frame:
    ids = [[document] for document in frame["document_id"]]
    return frame.assign(document_ids=ids).drop(columns="document_id")


def _tables_of_2(output: Path) -> None:
    _rewrite(output, "text_units", _listed_documents)


def _nodes(output: Path) -> Frame:
    """Return the nodes of graphrag 0.3 to 1: an entity's community at each level, or none."""
    entities = pd.read_parquet(output / "entities.parquet")
    communities = pd.read_parquet(output / "communities.parquet").explode("entity_ids")
    joined = entities.merge(communities, how="left", left_on="id", right_on="entity_ids")
    return pd.DataFrame(
        {
            "id": joined["id_x"],
            "human_readable_id": joined["human_readable_id_x"],
            "title": joined["title_x"],
            "community": joined["community"].fillna(-1).astype(int),
            "level": joined["level"].fillna(0).astype(int),
            "degree": joined["degree"],
        }
    )


def _tables_of_1(output: Path) -> None:
    nodes = _nodes(output)
    without = ["parent", "children"]
    edits: dict[str, Callable[[Frame], Frame]] = {
        "entities": lambda f: f.drop(columns=["degree", "frequency"], errors="ignore"),
        "relationships": lambda f: f,
        "text_units": _listed_documents,
        "documents": lambda f: f,
        "communities": lambda f: f.drop(columns=without, errors="ignore"),
        "community_reports": lambda f: f.drop(columns=without, errors="ignore"),
    }
    for table, edit in edits.items():
        _rewrite(output, table, edit, f"create_final_{table}")
    nodes.to_parquet(output / "create_final_nodes.parquet")


def _tables_of_0_5(output: Path) -> None:
    """Write what 0.3 to 0.5 had: names for titles, texts for numbers, communities without members.

    The entities hold their vectors.
    """
    _tables_of_1(output)

    def entities(frame: Frame) -> Frame:
        return frame.rename(columns={"title": "name"})

    def relationships(frame: Frame) -> Frame:
        numbers = frame["human_readable_id"].astype(str)
        renamed = frame.rename(columns={"combined_degree": "rank"})
        return renamed.assign(human_readable_id=numbers)

    def communities(frame: Frame) -> Frame:
        kept = ["title", "level", "relationship_ids", "text_unit_ids"]
        return frame[kept].assign(id=frame["community"].astype(str))

    def reports(frame: Frame) -> Frame:
        gone = ["human_readable_id", "period", "size"]
        numbers = frame["community"].astype(str)
        return frame.drop(columns=gone, errors="ignore").assign(community=numbers)

    edits: dict[str, Callable[[Frame], Frame]] = {
        "entities": entities,
        "relationships": relationships,
        "text_units": lambda f: f.drop(columns="human_readable_id"),
        "documents": lambda f: f.drop(columns="human_readable_id").rename(
            columns={"text": "raw_content"}
        ),
        "communities": communities,
        "community_reports": reports,
    }
    for table, edit in edits.items():
        _rewrite(output, f"create_final_{table}", edit)
    path = output / "create_final_nodes.parquet"
    nodes = pd.read_parquet(path)
    none = nodes["community"] < 0
    nodes.assign(community=nodes["community"].astype(str).mask(none)).to_parquet(path)


MAKE_TABLES: dict[str, Callable[[Path], None]] = {
    "3": _tables_of_3,
    "2": _tables_of_2,
    "1": _tables_of_1,
    "0.5": _tables_of_0_5,
}
_OF_1 = r"""
encoding_model: cl100k_base
llm:
  api_key: ${GRAPHRAG_API_KEY}
  type: openai_chat
  model: gpt-4o-mini
  model_supports_json: true
  api_base: BASE
parallelization:
  stagger: 0.3
async_mode: threaded
embeddings:
  async_mode: threaded
  llm:
    api_key: ${GRAPHRAG_API_KEY}
    type: openai_embedding
    model: text-embedding-3-small
    api_base: BASE
input:
  type: file
  file_type: text
  base_dir: "input"
  file_encoding: utf-8
  file_pattern: ".*\\.txt$"
chunks:
  size: 1200
  overlap: 100
  group_by_columns: [id]
storage:
  type: file
  base_dir: "output"
entity_extraction:
  entity_types: [organization,person,geo,event]
  max_gleanings: 1
local_search:
global_search:
"""
SETTINGS = {
    "3": """
completion_models:
  default_completion_model:
    {model_provider: openai, model: gpt-4o-mini, api_key: test, api_base: BASE}
embedding_models:
  default_embedding_model:
    {model_provider: openai, model: text-embedding-3-small, api_key: test, api_base: BASE}
vector_store: {type: lancedb, db_uri: 'output\\lancedb'}
""",
    "2": """
models:
  default_chat_model:
    type: openai_chat
    auth_type: api_key
    api_key: ${GRAPHRAG_API_KEY}
    model: gpt-4o-mini
    api_base: BASE
    encoding_model: cl100k_base
    model_supports_json: true
    concurrent_requests: 25
    retry_strategy: native
    max_retries: 3
    tokens_per_minute: auto
    requests_per_minute: 0
  default_embedding_model:
    type: openai_embedding
    auth_type: api_key
    api_key: ${GRAPHRAG_API_KEY}
    model: text-embedding-3-small
    api_base: BASE
input:
  storage: {type: file, base_dir: "input"}
  file_type: text
chunks: {size: 1200, overlap: 100, group_by_columns: [id]}
output: {type: file, base_dir: "output"}
vector_store:
  default_vector_store:
    type: lancedb
    db_uri: output\\lancedb
    container_name: default
    overwrite: True
embed_text: {model_id: default_embedding_model, vector_store_id: default_vector_store}
extract_graph: {model_id: default_chat_model, entity_types: [person, geo], max_gleanings: 1}
local_search: {chat_model_id: default_chat_model, embedding_model_id: default_embedding_model}
basic_search: {chat_model_id: default_chat_model, embedding_model_id: default_embedding_model}
""",
    "1": _OF_1.replace(
        "  llm:\n    api_key",
        "  vector_store: {type: lancedb, db_uri: 'output/lancedb', container_name: default}\n"
        "  llm:\n    api_key",
    ),
    "0.5": _OF_1,
}
"""Form -> settings.yaml, whose models are at BASE; none says how long the vectors are."""
