"""How near text units are to a question by their vectors, where these say something."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from graphrag.installation import WORDLLAMA
from graphrag.query.calls import describe_error
from graphrag.query.models import CountedEmbedding
from graphrag.query.usage import NotAskedError, current_scope
from graphrag.query.vector_tables import (
    NoVectorsError,
    OtherLengthError,
    check_length,
    open_vectors,
)
from graphrag.text.terms import split_terms
from graphrag.text.words import stem

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_vectors import VectorStore

    from graphrag.config.models.graph_rag_config import GraphRagConfig

_log = logging.getLogger(__name__)

WORDS_ALONE = "words alone ranked the texts"
NEAREST = 300
"""Text units whose nearness is looked up."""
PROBED = 400
"""Text units whose vectors are held against their words."""
_NEIGHBOURS = 5
# A word is rare that stands in 2 of the probed text units, or in more, up to this share of them.
_RARE_PART = 0.02
_HASHED = 64
# The cosine from which two vectors are of one model; a long text's is the mean of its pieces.
_SAME = 0.5
# Fewer texts don't show which of their words go together.
_FEWEST = 100
_DIRECTIONS = 8
_LEAST_BEYOND = 0.1

_Floats = npt.NDArray[np.float32]
Probe = Callable[[int], Sequence[tuple[str, str]]]
"""Gives at most so many text units as (id, text), spread over the index."""


class OtherVectorsError(ValueError):
    """The vectors of an index were made by another model than embeds the questions."""


def open_text_vectors(config: "GraphRagConfig") -> "VectorStore":
    """Open the vectors of a project's text units, in whatever store its settings name.

    Raises NoVectorsError if there are none that can be read, and OtherVectorsError if an embedded
    model did not make them, by embedding a text unit again.
    Of other models, of tables that are no parquet files, and of a first text unit without a vector,
    nothing is known.
    """
    from graphrag.config.embeddings import text_unit_text_embedding

    store = open_vectors(config, text_unit_text_embedding)
    _check_maker(config, store)
    return store


def _check_maker(config: "GraphRagConfig", store: "VectorStore") -> None:
    model = config.embedding_models.get(config.embed_text.embedding_model_id)
    path = Path(config.output_storage.base_dir or "") / "text_units.parquet"
    if model is None or model.type != "offline" or not path.is_file():
        return
    from pyarrow import parquet

    from graphrag.offline.vectors import WORDLLAMA_LENGTHS, embed_texts

    batches = cast("Any", parquet).ParquetFile(path).iter_batches(1, columns=["id", "text"])
    rows = (row for batch in batches for row in batch.to_pylist())
    for row in islice(rows, 1):
        with suppress(IndexError, KeyError):
            stored = store.search_by_id(row["id"]).vector
            if stored is None:
                return
            vector = np.asarray(stored, np.float64)
            is_other = model.model == WORDLLAMA and len(vector) not in WORDLLAMA_LENGTHS
            texts = [row["text"] or ""]
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


def describe_noise(texts: Sequence[str], vectors: _Floats) -> str:
    """Say why the vectors of texts tell nothing that their words don't, or "" if they do.

    - They belong to other texts, or to none. Two texts have something in common if they share a
      rare word, one in at most a fiftieth of the texts. Of each text the five nearest by vectors
      are held against the five nearest by how often each word stands in them: beyond what any two
      texts share they must share half as often as those.
    - From 100 texts on: they know nothing of words that go together. Of each two texts, what
      their vectors' cosine says beyond the words that both have (three cosines of their counts)
      must go with what the eight main directions of all the texts' words, found by which of them
      stand together, say beyond those: the correlation of the two is at least 0.1.
    """
    counted = [Counter(map(stem, words)) for words in split_terms(texts)]
    number = {word: place for place, word in enumerate({w: None for c in counted for w in c})}
    weights = np.zeros((len(texts), len(number)), np.float32)
    for row, words in enumerate(counted):
        weights[row, [number[word] for word in words]] = 1 + np.log(list(words.values()))
    if not _vectors_fit(weights, vectors):
        return (
            "the vectors of the text units say nothing about them, as if they belonged to other "
            "texts; build the index again"
        )
    if len(texts) >= _FEWEST and _correlate_beyond_words(weights, vectors) < _LEAST_BEYOND:
        return "the vectors of the text units say no more about them than their words"
    return ""


def _vectors_fit(weights: _Floats, vectors: _Floats) -> bool:
    n_texts = len(weights)
    standing = (weights > 0).sum(axis=0)
    is_rare = (standing > 1) & (standing <= max(3, n_texts * _RARE_PART))
    rare = (weights[:, is_rare] > 0).astype(np.float32)
    shared = rare @ rare.T > 0
    by_vectors, by_words = (
        np.take_along_axis(shared, _nearest(rows), axis=1).mean() for rows in (vectors, weights)
    )
    by_chance = (shared.sum() - np.trace(shared)) / max(1, n_texts * (n_texts - 1))
    return bool(by_vectors >= (by_words + by_chance) / 2)


def _correlate_beyond_words(weights: _Floats, vectors: _Floats) -> float:
    pairs = np.triu_indices(len(weights), 1)

    def cosines(rows: _Floats) -> npt.NDArray[np.float64]:
        unit = _normalize_rows(rows)
        return (unit @ unit.T)[pairs].astype(np.float64)

    def centered(rows: _Floats) -> _Floats:
        unit = _normalize_rows(rows)
        return unit - unit.mean(axis=0)

    standing = (weights > 0).sum(axis=0)
    telling = weights * np.log(len(weights) / standing).astype(np.float32)
    left, sizes, _ = np.linalg.svd(_normalize_rows(telling)[:, standing > 1], full_matrices=False)
    words = [cosines(rows) for rows in (weights, telling, centered(weights))]
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(words[0])), *words]))
    word_part, vector_part = (
        rows - basis @ (basis.T @ rows)
        for rows in (
            cosines(left[:, :_DIRECTIONS] * sizes[:_DIRECTIONS]),
            cosines(centered(vectors)),
        )
    )
    length = float(np.linalg.norm(word_part) * np.linalg.norm(vector_part))
    return float(word_part @ vector_part) / length if length > 0 else 0.0


def _normalize_rows(vectors: _Floats) -> _Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.float32(1e-9))


def _nearest(vectors: _Floats) -> npt.NDArray[np.int64]:
    unit = _normalize_rows(vectors)
    near = unit @ unit.T
    np.fill_diagonal(near, -np.inf)
    return np.argsort(-near, axis=1, kind="stable")[:, :_NEIGHBOURS]


class TextMeaning:
    """The vectors of an index's text units and the model that embeds a question.

    Shared by the searches of an index. Where the vectors can't be read, tell nothing, or the
    question can't be embedded, it says why, once in the log and with each answer. ``kept`` is the
    folder where what was found out about the vectors is kept; None: nowhere.
    """

    def __init__(
        self, config: "GraphRagConfig", model: "ModelConfig", probe: Probe, kept: Path | None = None
    ) -> None:
        self._config, self._model = config, model
        self._embedding: CountedEmbedding | None = None
        self._probe, self._kept = probe, kept
        self._opening = asyncio.Lock()
        self._opened: tuple[VectorStore | None, str] | None = None
        self._noise = self._noted = False

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

    async def is_noise(self) -> bool:
        """Say whether the vectors can be read, and tell nothing."""
        await self._open_once()
        return self._noise

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
        try:
            if not self._probe(1):
                return None, ""
            store = open_text_vectors(self._config)
            if not store.count():
                return None, "the index has no vectors of its text units"
            noise = self._read_noise(store)
        except NoVectorsError as error:
            return None, str(error)
        except OtherVectorsError as error:
            return None, f"{error}; build the index again, or name the model that made them"
        except Exception as error:
            return None, f"the vectors of the text units can't be read: {_first_line(error)}"
        self._noise = bool(noise)
        return (None, noise) if noise else (store, "")

    def _read_noise(self, store: "VectorStore") -> str:
        key = hash_vectors(store)
        path = None if self._kept is None else self._kept / "vectors.json"
        if path is not None:
            with suppress(OSError, ValueError, KeyError):
                record = json.loads(path.read_bytes())
                if record["vectors"] == key:
                    return str(record["noise"])
        texts: list[str] = []
        vectors: list[Any] = []
        for name, text in self._probe(PROBED):
            with suppress(IndexError, KeyError):
                vectors.append(store.search_by_id(name).vector)
                texts.append(text)
        if not texts:
            raise LookupError("none of them is of a text unit of the index")
        noise = describe_noise(texts, np.array(vectors, np.float32))
        if path is not None:
            with suppress(OSError):
                path.write_text(json.dumps({"vectors": key, "noise": noise}), encoding="utf-8")
        return noise


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
