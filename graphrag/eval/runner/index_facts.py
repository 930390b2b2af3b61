"""What an index is, in words that a person can compare: settings that shape it, and counts."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from graphrag.query.index_header import IndexHeader, model_name

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

IndexFacts: TypeAlias = Mapping[str, str | int | None]
"""Name of a setting or a count -> its value; what is not known is left out."""

EMBEDDING_MODEL = "embedding model"
_COUNTED = ("documents", "text_units", "entities", "relationships", "communities")


def read_index_facts(headers: Mapping[str, IndexHeader]) -> dict[str, IndexFacts]:
    """Return key -> what its index was built with, by its settings now, and how much it holds.

    Counts are those of tables that are parquet files; of other stores there are none. Blocks while
    the ends of the files are read.
    """
    return {key: _facts(header) for key, header in headers.items()}


def _facts(header: IndexHeader) -> IndexFacts:
    config = header.config
    extraction = config.completion_models.get(config.extract_graph.completion_model_id)
    embedding = config.embedding_models.get(config.embed_text.embedding_model_id)
    facts: dict[str, str | int | None] = {
        "chunk size": config.chunking.size,
        "chunk overlap": config.chunking.overlap,
        "entity types": ", ".join(config.extract_graph.entity_types),
    }
    if extraction is not None:
        facts["extraction model"] = model_name(extraction)
    if embedding is not None:
        facts[EMBEDDING_MODEL] = model_name(embedding)
    facts["prompts"] = _prompts_of(config)
    for name in _COUNTED:
        path = Path(config.output_storage.base_dir or "") / f"{name}.parquet"
        if config.output_storage.base_dir and path.is_file():
            facts[name.replace("_", " ")] = _count_rows(path)
    return facts


def _prompts_of(config: "GraphRagConfig") -> str:
    """Return a digest of the indexing prompts; a file that is not there is named by its path."""
    reports = config.community_reports
    files = {
        "extract_graph": config.extract_graph.prompt,
        "summarize_descriptions": config.summarize_descriptions.prompt,
        "graph_reports": reports.graph_prompt,
        "text_reports": reports.text_prompt,
    }
    digest = hashlib.blake2b(digest_size=4)
    for name, file in files.items():
        path = Path(file or "")
        text = path.read_bytes() if file and path.is_file() else (file or "the release's").encode()
        digest.update(f"{name}:{len(text)}:".encode())
        digest.update(text)
    return digest.hexdigest()


def _count_rows(path: Path) -> int:
    from pyarrow import parquet

    return int(cast("Any", parquet).read_metadata(path).num_rows)
