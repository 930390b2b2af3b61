"""Texts as vectors: the mean of word vectors that were learnt from large texts, of ``wordllama``.

Of the package only two files are read, the vectors and the tokenizer: its own loader looks for them
elsewhere and would download them, and importing it changes the logging of the process.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag.installation import extra_hint
from graphrag.offline.errors import OfflineModelError
from graphrag.offline.vectors import to_length_one

NAME = "wordllama"
"""What ``model`` in the settings of such an embedding is."""
LENGTHS = (64, 128, 256)
"""Lengths of vectors that there are: a shorter one is the beginning of the longest."""

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


def check_installed() -> None:
    """Refuse settings that name the model where its files are missing; reads none of them.

    Raises
    ------
    OfflineModelError
        With the command that installs them.
    """
    _files()


def embed_texts(texts: Sequence[str], dimensions: int) -> list[NDArray[np.float64]]:
    """Return the mean of the word vectors of each text, at length 1.

    Parameters
    ----------
    texts : sequence of str
        Of any length and script; an unknown character counts by its bytes.
    dimensions : int
        One of ``LENGTHS``.

    Returns
    -------
    list of NDArray[np.float64]
        Each of shape (dimensions,) and Euclidean norm 1. Texts without any word, the empty one
        among them, share a vector of their own.

    Raises
    ------
    OfflineModelError
        If the files of the package are missing.
    """
    vectors, tokenizer = _load()
    # One by one: a batch would be tokenized by threads of its own.
    return [
        _mean(vectors, tokenizer.encode(text, add_special_tokens=False).ids, dimensions)
        for text in texts
    ]


def _mean(vectors: NDArray[np.float16], ids: list[int], dimensions: int) -> NDArray[np.float64]:
    if not ids:
        return to_length_one(np.zeros(dimensions))
    return to_length_one(vectors[ids, :dimensions].mean(axis=0, dtype=np.float64))


@cache
def _load() -> tuple[NDArray[np.float16], Any]:
    weights, tokenizer = _files()
    safe_open: Any = import_module("safetensors").safe_open
    with safe_open(str(weights), framework="np") as file:
        vectors: NDArray[np.float16] = file.get_tensor("embedding.weight")
    return vectors, import_module("tokenizers").Tokenizer.from_file(str(tokenizer))


def _files() -> tuple[Path, Path]:
    found = find_spec(NAME)
    folder = None if found is None or found.origin is None else Path(found.origin).parent
    if folder is None or find_spec("safetensors") is None:
        raise OfflineModelError(
            f"The embedding model {NAME} needs a package that is not installed; run: "
            f"{extra_hint('static-words')}"
        )
    files = folder / _WEIGHTS, folder / _TOKENIZER
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise OfflineModelError(
            f"The installed {NAME} lacks {', '.join(missing)}; run: {extra_hint('static-words')}"
        )
    return files
