"""How near text units are to a question by their vectors, where these can be used."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphrag.config.table_files import find_table_files
from graphrag.installation import WORDLLAMA
from graphrag.query.client.call_errors import describe_error
from graphrag.query.client.models import CountedEmbedding
from graphrag.query.client.usage import NotAskedError, current_scope
from graphrag.query.index.vector_tables import (
    NoVectorsError,
    OtherLengthError,
    check_length,
    open_vectors,
)

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_vectors import VectorStore

    from graphrag.config.models.graph_rag_config import GraphRagConfig

_log = logging.getLogger(__name__)

WORDS_ALONE = "words alone ranked the texts"
HASHED = f"{WORDS_ALONE}: vectors of hashed n-grams know less than words"
NEAREST = 300
"""Text units whose nearness is looked up."""
_HASHED = 64
# The cosine from which two vectors are of one model; a long text's is the mean of its pieces.
_SAME = 0.5


class OtherVectorsError(ValueError):
    """The vectors of an index were made by another model than embeds the questions."""


def open_text_vectors(config: "GraphRagConfig") -> "VectorStore":
    """Open the vectors of a project's text units, in whatever store its settings name.

    Raises NoVectorsError if there are none that can be read, and OtherVectorsError if an embedded
    model did not make them, by embedding a text unit again.
    Of other models, of tables that are no parquet files, and of a first text without a vector,
    nothing is known.
    """
    from graphrag.config.embeddings import text_unit_text_embedding

    store = open_vectors(config, text_unit_text_embedding)
    _check_maker(config, store)
    return store


def _check_maker(config: "GraphRagConfig", store: "VectorStore") -> None:
    model = config.embedding_models.get(config.embed_text.embedding_model_id)
    folder = Path(config.output_storage.base_dir or "")
    path = find_table_files(folder, ("text_units",), "parquet").get("text_units")
    if model is None or model.type != "offline" or path is None:
        return
    from pyarrow import parquet

    from graphrag.embedded.vectors import WORDLLAMA_LENGTHS, embed_texts

    batches = cast("Any", parquet).ParquetFile(path).iter_batches(1, columns=["id", "text"])
    rows = (row for batch in batches for row in batch.to_pylist() if row["text"])
    for row in islice(rows, 1):
        with suppress(IndexError, KeyError):
            stored = store.search_by_id(row["id"]).vector
            if stored is None:
                return
            vector = np.asarray(stored, np.float64)
            is_other = model.model == WORDLLAMA and len(vector) not in WORDLLAMA_LENGTHS
            texts = [row["text"]]
            if is_other or vector @ embed_texts(model.model, texts, len(vector))[0] < _SAME:
                raise OtherVectorsError(
                    f"{model.model_provider}/{model.model} embeds the questions, and another model "
                    "made the vectors of the texts"
                )


def hash_vectors(vectors: "VectorStore") -> str:
    """Return a hash that changes when an index's texts are embedded anew.

    It covers how many vectors there are, and the 64 that are nearest to a fixed one.
    """
    anchor = [1.0] * vectors.vector_size
    hits = vectors.similarity_search_by_vector(anchor, k=_HASHED)
    digest = blake2b(f"{vectors.count()}".encode(), digest_size=16)
    for name, vector in sorted((str(hit.document.id), hit.document.vector) for hit in hits):
        digest.update(name.encode() + np.asarray(vector, np.float32).tobytes())
    return digest.hexdigest()


class TextMeaning:
    """The vectors of an index's text units and the model that embeds a question.

    Shared by the searches of an index. Where the vectors can't be used, or the question can't be
    embedded, it says why, once in the log and with each answer. ``has_texts``: without text units
    there is nothing to do without.
    """

    def __init__(self, config: "GraphRagConfig", model: "ModelConfig", has_texts: bool) -> None:
        self._config, self._model = config, model
        self._embedding: CountedEmbedding | None = None
        self._has_texts = has_texts
        self._opening = asyncio.Lock()
        self._opened: tuple[VectorStore | None, str] | None = None
        self._noted = False

    async def near(self, question: str) -> tuple[Mapping[str, float], str]:
        """Return how near the nearest text units are by id, or none and why.

        In a run a service that is down holds the run up, or stops it, as it does for every method:
        NotAskedError passes through.
        """
        store, reason = await self._open_once()
        if store is None:
            return {}, reason and self._note(reason)
        scope = current_scope()
        n_failed = 0 if scope is None else len(scope.failures)
        try:
            self._embedding = self._embedding or CountedEmbedding(self._model)
            vector = await self._embedding.vector_of(question)
        except Exception as error:
            if scope is not None:
                if scope.limit is not None and isinstance(error, NotAskedError):
                    raise
                # The search goes on, so it has not failed.
                del scope.failures[n_failed:]
                scope.not_asked = None
            return {}, self._note(f"the question could not be embedded: {describe_error(error)}")
        try:
            check_length(vector, store, f"{self._model.model_provider}/{self._model.model}")
            hits = await asyncio.to_thread(
                store.similarity_search_by_vector, vector, k=NEAREST, include_vectors=False
            )
        except OtherLengthError as error:
            return {}, self._note(str(error))
        except Exception as error:
            return {}, self._note(f"the vector store could not be searched: {_first_line(error)}")
        return {str(hit.document.id): float(hit.score) for hit in hits}, ""

    async def _open_once(self) -> "tuple[VectorStore | None, str]":
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(self._open)
        return self._opened

    def _note(self, why: str) -> str:
        note = f"{WORDS_ALONE}: {why}"
        if not self._noted:
            _log.warning("In tog and ppr %s", note)
            self._noted = True
        return note

    def _open(self) -> "tuple[VectorStore | None, str]":
        """Open the store, or say why its vectors are of no use; "" where there are no texts."""
        if not self._has_texts:
            return None, ""
        try:
            store = open_text_vectors(self._config)
            if not store.count():
                return None, "the index has no vectors of its text units"
        except NoVectorsError as error:
            return None, str(error)
        except OtherVectorsError as error:
            return None, f"{error}; build the index again, or name the model that made them"
        except Exception as error:
            return None, f"the vectors of the text units can't be read: {_first_line(error)}"
        return store, ""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
