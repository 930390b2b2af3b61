"""Turns texts into vectors: hashed words and n-grams, or means of ``wordllama``'s word vectors.

Only two files of the package ``wordllama`` are read: importing it would download files, and change
the process's logging.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from graphrag.embedded import OfflineModelError
from graphrag.installation import WORDLLAMA, pip_install, requirements
from graphrag.text.stems import terms
from graphrag.text.tokenize import fold, unspaced_characters

_WORD_WEIGHT, _PAIR_WEIGHT, _CHARACTER_WEIGHT, _GRAM_WEIGHT = 1.0, 0.5, 0.7, 0.2
_GRAM_SIZES = (3, 4, 5)
_PRIME = np.uint64(1_099_511_628_211)

WORDLLAMA_LENGTHS = (64, 128, 256)
"""Lengths of its vectors; a shorter vector is the beginning of the longest."""
_WORDLLAMA_FILES = (
    "weights/l2_supercat_256.safetensors",
    "tokenizers/l2_supercat_tokenizer_config.json",
)


def hash_text(text: str, dimensions: int) -> NDArray[np.float64]:
    """Hash a text's features into a vector of length 1.

    Features are stemmed content words (single characters and pairs in scripts without spaces),
    pairs of neighboring words, and character 3- to 5-grams of the case-folded NFKC text. A feature
    seen tf times counts ``1 + ln(tf)``; its hash decides its position and its sign (Weinberger et
    al., 2009), the same in every process and on every platform. Texts without features, such as
    "", share one vector.
    """
    words = terms(text)
    pairs = [f"{a} {b}" for a, b in pairwise(words)]
    flat = " ".join(fold(text).split())
    groups = [
        (_hash_strings(words), _WORD_WEIGHT),
        (_hash_strings(pairs), _PAIR_WEIGHT),
        (_hash_strings(unspaced_characters(flat)), _CHARACTER_WEIGHT),
    ]
    if flat:
        codes = np.frombuffer(f" {flat} ".encode("utf-32-le", "surrogatepass"), dtype="<u4")
        groups += [(_hash_grams(codes.astype(np.uint64), n), _GRAM_WEIGHT) for n in _GRAM_SIZES]
    vector = np.zeros(dimensions)
    for hashes, weight in groups:
        distinct, counts = np.unique(hashes, return_counts=True)
        sign = np.where(distinct >> np.uint64(63), 1.0, -1.0)
        position = ((distinct >> np.uint64(8)) % np.uint64(dimensions)).astype(np.int64)
        values = sign * weight * (1.0 + np.log(counts))
        vector += np.bincount(position, weights=values, minlength=dimensions)
    return _to_length_one(vector)


def _to_length_one(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide a vector by its Euclidean norm; a null vector becomes the first axis."""
    norm = float(np.linalg.norm(vector))
    return np.eye(1, len(vector))[0] if norm < 1e-9 else vector / norm


def _hash_strings(features: list[str]) -> NDArray[np.uint64]:
    raw = [crc32(feature.encode("utf-8", "surrogatepass")) for feature in features]
    return _mix(np.array(raw, dtype=np.uint64))


def _hash_grams(codes: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    count = len(codes) - size + 1
    if count < 1:
        return np.zeros(0, dtype=np.uint64)
    hashes = np.full(count, size, dtype=np.uint64)
    for offset in range(size):
        hashes = hashes * _PRIME + codes[offset : offset + count]
    return _mix(hashes)


def _mix(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits (the finalizer of SplitMix64; Steele et al., 2014)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def embed_texts(model: str, texts: Sequence[str], dimensions: int) -> list[NDArray[np.float64]]:
    """Return a vector for each text; ``model`` is the embedding model's name in the settings."""
    if model == WORDLLAMA:
        return average_words(texts, dimensions)
    return [hash_text(text, dimensions) for text in texts]


def average_words(texts: Sequence[str], dimensions: int) -> list[NDArray[np.float64]]:
    """Return, for each text, the mean of its learned word vectors, at length 1.

    An unknown character counts by its bytes. Texts without words, such as "", share one vector.
    ``dimensions`` is one of ``WORDLLAMA_LENGTHS``.
    """
    vectors, tokenizer = _load_wordllama()

    def mean(text: str) -> NDArray[np.float64]:
        # The tokenizer can't read half a surrogate pair.
        valid = text.encode("utf-8", "replace").decode()
        ids: list[int] = tokenizer.encode(valid, add_special_tokens=False).ids
        if not ids:
            return np.zeros(dimensions)
        return vectors[ids, :dimensions].mean(axis=0, dtype=np.float64)

    # One by one: for a batch the tokenizer would start threads.
    return [_to_length_one(mean(text)) for text in texts]


@cache
def _load_wordllama() -> tuple[NDArray[np.float16], Any]:
    weights, tokenizer = map(str, find_wordllama())
    safe_open: Any = import_module("safetensors").safe_open
    with safe_open(weights, framework="np") as file:
        vectors: NDArray[np.float16] = file.get_tensor("embedding.weight")
    return vectors, import_module("tokenizers").Tokenizer.from_file(tokenizer)


def find_wordllama() -> list[Path]:
    """Return the files of the learned vectors and of their tokenizer.

    Raises OfflineModelError, with the command that installs them, if they are missing.
    """
    spec = find_spec(WORDLLAMA)
    how = pip_install(line for line in requirements() if line.startswith(WORDLLAMA))
    if spec is None or spec.origin is None:
        msg = f"The embedding model {WORDLLAMA} needs a package that is not installed; run: {how}"
        raise OfflineModelError(msg)
    files = [Path(spec.origin).parent / name for name in _WORDLLAMA_FILES]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise OfflineModelError(
            f"The installed {WORDLLAMA} lacks {', '.join(missing)}; run: {how} --force-reinstall"
        )
    return files
