"""The ``tog_search:`` and ``ppr_search:`` sections of settings.yaml, and what is ours in others."""

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic import BaseModel, Field, model_validator

from graphrag.config.defaults import graphrag_config_defaults
from graphrag.config.models.basic_search_config import BasicSearchConfig
from graphrag.config.models.strict_section import StrictSection

_log = logging.getLogger(__name__)

PASSAGE_TOKENS: Any = Field(default=300, ge=50)


class RankedSearchConfig(BasicSearchConfig):
    """The released section ``basic_search``, with what bm25, hybrid and agentic read beside it.

    ``passage_tokens``: as that of ``ppr_search``.
    """

    passage_tokens: int | None = PASSAGE_TOKENS


class PPRSearchConfig(StrictSection):
    """How a search ranks text units by personalized PageRank, and answers from them.

    - ``completion_model_id``: key of ``completion_models``.
    - ``embedding_model_id``: key of ``embedding_models``, the model of the index's vectors; None to
      find texts by words alone.
    - ``max_context_tokens``: budget of the answering call's context in the model's tokens.
    - ``passage_tokens``: tokens of the passages in which text units of more than 400 are ranked and
      shown, >= 50; None: each is shown whole.
    - ``max_relations_per_entity``: edges of one entity that are looked at, the heaviest first, >=
      1.
    - ``max_answer_tokens``: tokens that the answer may have, >= 16. A model that is known to think
      before it answers gets 25,000 more for that; ``max_tokens`` in a model's ``call_args`` goes
      before.
    - ``reasoning_prompt``: path of a prompt file, relative to the settings file; None for the
      built-in prompt.

    Keys of version 1.0.0 that have gone are passed over, with one warning that names them.
    """

    replaced: ClassVar[Mapping[str, str]] = {
        "graph_share": "texts take the context, and relationships no more than they need"
    }
    """Keys that have gone, and what took their place."""

    completion_model_id: str = graphrag_config_defaults.local_search.completion_model_id
    embedding_model_id: str | None = graphrag_config_defaults.local_search.embedding_model_id
    max_context_tokens: int = Field(default=8000, ge=200)
    passage_tokens: int | None = PASSAGE_TOKENS
    max_relations_per_entity: int = Field(default=50, ge=1)
    max_answer_tokens: int = Field(default=2000, ge=16)
    reasoning_prompt: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _pass_over_replaced(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        section = cast("Mapping[str, object]", values)
        if gone := [key for key in section if key in cls.replaced]:
            said = "; ".join(f"{key}: {cls.replaced[key]}" for key in gone)
            _log.warning("Settings of graph searches that are no longer used: %s", said)
        return {key: value for key, value in section.items() if key not in cls.replaced}


class ToGSearchConfig(PPRSearchConfig):
    """How a Think-on-Graph search reads its way from text to text and answers.

    Beside the settings of ``ppr_search``:

    - ``width``: rows that a call may follow, and searches that it may ask for, >= 1.
    - ``depth``: calls that may go on before the last, which answers, >= 1.
    - ``max_rows``: rows that a call is shown below its texts, >= 0.
    - ``exploration_prompt``: as ``reasoning_prompt``, of the calls that may go on.
    """

    replaced: ClassVar[Mapping[str, str]] = {
        **PPRSearchConfig.replaced,
        "mode": "a question how two things are related is answered by look-ups of both",
        "max_hops": "a question how two things are related is answered by look-ups of both",
        "max_scored_edges": "edges are not scored, max_rows says how many rows a call is shown",
        "scoring_prompt": "edges are not scored, exploration_prompt is the prompt of a call that "
        "may go on",
    }

    width: int = Field(default=3, ge=1)
    depth: int = Field(default=2, ge=1)
    max_rows: int = Field(default=20, ge=0)
    exploration_prompt: str | None = None


def replaced_settings(section: type[BaseModel]) -> Mapping[str, str]:
    """Return the keys of 1.0.0 that a section passes over, and what took the place of each."""
    return section.replaced if issubclass(section, PPRSearchConfig) else {}
