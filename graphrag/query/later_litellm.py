"""What asking a model need not load: litellm, for five names in annotations.

litellm takes seconds to import. graphrag_llm's types name five of its in the annotations of one
TypedDict, which nobody reads at run time, and everything of graphrag_llm imports its types. Here
that one module gets stand-ins; whoever asks litellm imports it then. What litellm's import does to
the environment is done all the same, as the release and its users count on it.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dotenv import load_dotenv

from graphrag.later_imports import import_without

_TYPES = "graphrag_llm.types.types"
_NAMES = {
    "AnthropicThinkingParam",
    "ChatCompletionAudioParam",
    "ChatCompletionModality",
    "ChatCompletionPredictionContentParam",
    "OpenAIWebSearchOptions",
}


def import_types() -> None:
    """Import graphrag_llm's types without litellm, unless either is loaded.

    Any other import of theirs is as ever, and so is what another thread imports meanwhile.
    """
    found = find_spec("litellm") if {"litellm", _TYPES}.isdisjoint(sys.modules) else None
    if found is None or found.origin is None:
        return
    _set_environment(Path(found.origin).parent)
    import_without(_TYPES, "litellm", dict.fromkeys(_NAMES, Any))


def _set_environment(litellm: Path) -> None:
    """Do to the environment what importing litellm does.

    It reads the .env above the folder that it is installed in, and has tiktoken take the
    encodings that it brings: without them there is no counting of tokens without a network.
    """
    if os.environ.get("LITELLM_MODE", "DEV") == "DEV":
        nearest = (folder / ".env" for folder in (litellm, *litellm.parents))
        if found := next((path for path in nearest if path.is_file()), None):
            load_dotenv(found)
    own = os.environ.get("CUSTOM_TIKTOKEN_CACHE_DIR")
    if own:
        Path(own).mkdir(parents=True, exist_ok=True)
    brought = str(litellm / "litellm_core_utils" / "tokenizers")
    os.environ["TIKTOKEN_CACHE_DIR"] = own or brought
