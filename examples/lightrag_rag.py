"""LightRAG as a method of ``graphrag eval``: its own graph and search, the project's models.

Once the project is indexed, build LightRAG's index, which asks the model about every passage:

    pip install lightrag-hku==1.5.7
    python -m examples.lightrag_rag PROJECT
"""

import asyncio
import sys
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pandas as pd
from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc, Tokenizer

from graphrag.config.project_settings import read_settings
from graphrag.eval.runner import MethodAnswer
from graphrag.query.client.models import open_completion, open_embedding

_opened, _opening = dict[Path, LightRAG](), asyncio.Lock()


async def answer(question: str, project: Path) -> MethodAnswer:
    """Answer a question about the texts of a project."""
    async with _opening:
        if project not in _opened:
            _opened[project] = await open_rag(project)
    reply = await _opened[project].aquery_llm(question, QueryParam(mode="mix", enable_rerank=False))
    if reply["metadata"].get("failure_reason") == "no_results":
        return MethodAnswer(reply["llm_response"]["content"], (), abstained=True)
    if reply["status"] != "success":
        raise RuntimeError(reply["message"])
    found = reply["data"]
    contexts = [each["content"] for each in found["chunks"]]
    contexts += [each["description"] for each in found["entities"] + found["relationships"]]
    return MethodAnswer(reply["llm_response"]["content"], tuple(contexts))


async def open_rag(project: Path, build: bool = False) -> LightRAG:
    """Open LightRAG over a project's texts, or build its index; it asks local search's models."""
    settings = read_settings(project)
    local = settings.local_search
    model = open_completion(settings.get_completion_model_config(local.completion_model_id))
    embedding = open_embedding(settings.get_embedding_model_config(local.embedding_model_id))

    async def complete(prompt: str, system_prompt: str = "", **more: Any) -> str:
        asked = [{"role": "system", "content": system_prompt}] if system_prompt else []
        asked += [*(more.get("history_messages") or []), {"role": "user", "content": prompt}]
        return str((await model.completion_async(messages=asked)).content)

    async def embed(texts: list[str]) -> np.ndarray:
        return np.array((await embedding.embedding_async(input=texts)).embeddings)

    output = Path(settings.output_storage.base_dir)
    texts = pd.read_parquet(output / "documents.parquet")["text"].tolist()
    built_of = repr((texts, model.config.model, embedding.config.model)).encode()
    folder = output / f"lightrag-{blake2b(built_of, digest_size=8).hexdigest()}"
    if not build and not (folder / "built").exists():
        raise FileNotFoundError(f"first: python -m examples.lightrag_rag {project}")
    if build:  # anew, as it passes over texts that failed before
        rmtree(folder, ignore_errors=True)
    rag = LightRAG(
        str(folder),
        llm_model_func=complete,
        embedding_func=EmbeddingFunc(settings.vector_store.vector_size, embed),
        tokenizer=Tokenizer(model.config.model, model.tokenizer),
        enable_llm_cache=False,  # a repeated question would cost nothing
    )
    await rag.initialize_storages()
    if build:
        await rag.ainsert(texts)
        n_built = (await rag.get_processing_status()).get("processed", 0)
        if n_built < len({text.strip() for text in texts}):
            raise RuntimeError(f"LightRAG indexed {n_built} of {len(texts)} texts; build it again")
        (folder / "built").touch()
    return rag


if __name__ == "__main__":
    asyncio.run(open_rag(Path(sys.argv[1]).resolve(), build=True))
