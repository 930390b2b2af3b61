"""Finds the text units whose vectors are nearest to a question, and checks the vectors' maker."""

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
"""Number of the nearest text units that are looked up."""
_HASHED = 64
# Cosine from which two vectors count as one model's; a long text's is the mean of its pieces'.
_SAME = 0.5


class OtherVectorsError(ValueError):
    """Raised when another model made the vectors of an index than embeds the questions."""


def open_text_vectors(config: "GraphRagConfig") -> "VectorStore":
    """Open the vectors of a project's text units, in the store that its settings name.

    Raises NoVectorsError if none can be read. Raises OtherVectorsError if the settings name an
    embedded model that did not make them, which embedding one text unit again shows. That is not
    checked for other models, for tables that are no Parquet files, or if the first text has no
    vector.
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

    It covers the number of vectors, and the 64 vectors that are nearest to a fixed one.
    """
    anchor = [1.0] * vectors.vector_size
    hits = vectors.similarity_search_by_vector(anchor, k=_HASHED)
    digest = blake2b(f"{vectors.count()}".encode(), digest_size=16)
    for name, vector in sorted((str(hit.document.id), hit.document.vector) for hit in hits):
        digest.update(name.encode() + np.asarray(vector, np.float32).tobytes())
    return digest.hexdigest()


class TextMeaning:
    """Ranks the text units of an index by their vectors' nearness to a question.

    All searches of an index share one. If the vectors can't be used, or the question can't be
    embedded, it says why, once in the log and with each answer. ``has_texts``: whether the index
    has text units; without any, missing vectors are no loss.
    """

    def __init__(self, config: "GraphRagConfig", model: "ModelConfig", has_texts: bool) -> None:
        self._config, self._model = config, model
        self._embedding: CountedEmbedding | None = None
        self._has_texts = has_texts
        self._opening = asyncio.Lock()
        self._opened: tuple[VectorStore | None, str] | None = None
        self._noted = False

    async def near(self, question: str) -> tuple[Mapping[str, float], str]:
        """Return the nearness of the nearest text units by id, or no text units and the reason.

        NotAskedError passes through in a run: a service that is down then delays or stops the
        run, as with every method.
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
        """Open the store, or say why its vectors can't be used; "" if there are no texts."""
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
