"""A tokenizer that remembers: the rows of one index's contexts come again in many questions."""

from array import array
from hashlib import blake2b
from typing import Any

from graphrag_llm.tokenizer.tokenizer import Tokenizer

_MOST_TOKENS = 2_000_000


class KnownTokens(Tokenizer):
    """Gives what another tokenizer gives, and encodes each text once.

    It remembers at most two million tokens, some 20 MB, and then begins anew.
    """

    def __init__(self, inner: Tokenizer, **_: Any) -> None:
        self._inner = inner
        self._known: dict[bytes, array[int]] = {}
        self._n_tokens = 0

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
        # A digest in place of the text: contexts are long, and so are what they are looked up by.
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            found = array("q", self._inner.encode(text))
            if self._n_tokens + len(found) > _MOST_TOKENS:
                self._known, self._n_tokens = {}, 0
            self._known[key] = found
            self._n_tokens += len(found) + 16  # the key and the entry
        return found
