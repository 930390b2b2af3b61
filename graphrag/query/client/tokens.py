"""Counts a model's tokens as litellm does, and loads litellm only if it has to."""

from array import array
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from graphrag_llm.tokenizer.tokenizer import Tokenizer

from graphrag.query.delayed_imports import point_to_encodings

if TYPE_CHECKING:
    import tiktoken

_MOST_TOKENS = 2_000_000
_OWN_ENCODING = ("llama-2", "llama-3", "replicate")
"""Parts of the names of models whose tokenizer litellm takes from elsewhere."""


class ModelTokenizer(Tokenizer):
    """Counts and encodes the tokens of ``provider/model``; its encoding loads at the first use.

    Each text is encoded once, because the rows of an index come up in the contexts of many
    questions. It remembers at most two million tokens, some 20 MB, and then begins anew.
    """

    def __init__(self, model_id: str, **_: object) -> None:
        self._model_id = model_id
        self._known: dict[bytes, array[int]] = {}
        self._n_tokens = 0

    @cached_property
    def _inner(self) -> "tiktoken.Encoding | Tokenizer":
        provider, _, name = self._model_id.lower().partition("/")
        if provider in {"openai", "offline"} and not any(part in name for part in _OWN_ENCODING):
            return default_encoding()
        from graphrag_llm.tokenizer.lite_llm_tokenizer import LiteLLMTokenizer

        return LiteLLMTokenizer(model_id=self._model_id)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return self._tokens(text).tolist()

    def num_tokens(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._tokens(text))

    def decode(self, tokens: list[int]) -> str:
        """Return the text of tokens."""
        return self._inner.decode(tokens)

    def _tokens(self, text: str) -> "array[int]":
        # A digest instead of the text, because contexts are long.
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        tokens = self._known.get(key)
        if tokens is None:
            tokens = array("q", self._encode(text))
            if self._n_tokens + len(tokens) > _MOST_TOKENS:
                self._known, self._n_tokens = {}, 0
            self._known[key] = tokens
            self._n_tokens += len(tokens) + 16  # the key and the entry
        return tokens

    def _encode(self, text: str) -> list[int]:
        inner = self._inner
        if isinstance(inner, Tokenizer):
            return inner.encode(text)
        return inner.encode(text, disallowed_special=())


@cache
def default_encoding() -> "tiktoken.Encoding":
    """Return litellm's default encoding, read from litellm's own files without network."""
    point_to_encodings()
    import tiktoken

    return tiktoken.get_encoding("cl100k_base")
