"""LlamaIndex as a method of ``graphrag eval``: its splitter, its vector index, its retriever.

It asks the models of basic search for as many passages. Once the project is indexed, build:

    pip install "llama-index-core>=0.14.25,<0.15"
    python -m examples.llamaindex_rag PROJECT
"""

import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas as pd
from llama_index.core import Document, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter

from graphrag.config.project_settings import read_settings
from graphrag.eval.runner import MethodAnswer
from graphrag.query.client.models import open_completion, open_embedding

SYSTEM = """Answer in one paragraph from the sources alone, and cite them: [Data: Sources (ids)].
-----Sources-----
id|text
"""


class Vectors(BaseEmbedding):
    """The project's embedding model."""

    model: Any
    _get_query_embedding = _get_text_embedding = None  # nothing asks for them

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self.model.vector_of(query)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.model.embedding(input=texts).embeddings


async def answer(question: str, project: Path) -> MethodAnswer:
    """Answer a question about the texts of a project."""
    retriever, model = open_system(project)
    passages = [node.text for node in await retriever.aretrieve(question)]
    rows = [f"{n}|{' '.join(text.split())}" for n, text in enumerate(passages, start=1)]
    system = {"role": "system", "content": SYSTEM + "\n".join(rows)}
    reply = await model.completion_async(messages=[system, {"role": "user", "content": question}])
    return MethodAnswer(str(reply.content), tuple(passages))


@cache
def open_system(project: Path, build: bool = False) -> tuple[Any, Any]:
    """Open the index of a project's texts, or build it; return its retriever and the model."""
    settings = read_settings(project)
    search, chunking = settings.basic_search, settings.chunking
    model = open_completion(settings.get_completion_model_config(search.completion_model_id))
    vectors = settings.get_embedding_model_config(search.embedding_model_id)
    embedding = Vectors(model=open_embedding(vectors), model_name=vectors.model)
    output = Path(settings.output_storage.base_dir)
    texts = pd.read_parquet(output / "documents.parquet")["text"].tolist()
    built_of = blake2b(repr((texts, vectors.model, chunking)).encode(), digest_size=8)
    folder = output / f"llamaindex-{built_of.hexdigest()}"
    if build:
        size = {"chunk_size": chunking.size, "chunk_overlap": chunking.overlap}
        split = SentenceSplitter(**size, tokenizer=model.tokenizer.encode)
        nodes = split([Document(text=text) for text in texts])
        VectorStoreIndex(nodes, embed_model=embedding).storage_context.persist(folder)
    elif not folder.is_dir():
        msg = f"build LlamaIndex's index first: python -m examples.llamaindex_rag {project}"
        raise FileNotFoundError(msg)
    storage = StorageContext.from_defaults(persist_dir=str(folder))
    index = load_index_from_storage(storage, embed_model=embedding)
    return index.as_retriever(similarity_top_k=search.k), model


if __name__ == "__main__":
    open_system(Path(sys.argv[1]).resolve(), build=True)
