"""A model's tokenizer, made when something is counted: litellm, which has it, loads slowly."""

from functools import cached_property
from typing import Any

from graphrag_llm.config import TokenizerConfig
from graphrag_llm.tokenizer.tokenizer import Tokenizer
from graphrag_llm.tokenizer.tokenizer_factory import create_tokenizer


class LaterTokenizer(Tokenizer):
    """The tokenizer of ``provider/model``."""

    def __init__(self, model_id: str, **kwargs: Any) -> None:
        self._model_id = model_id

    @cached_property
    def _made(self) -> Tokenizer:
        return create_tokenizer(TokenizerConfig(model_id=self._model_id))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return self._made.encode(text)

    def decode(self, tokens: list[int]) -> str:
        """Return the text of tokens."""
        return self._made.decode(tokens)
