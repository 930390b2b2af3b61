"""Defines the sections ``tog_search:``, ``ppr_search:`` and ``basic_search:`` of settings.yaml."""

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
    """The released section ``basic_search`` with one key more, for bm25, hybrid and agentic search.

    ``passage_tokens``: as in ``ppr_search``.
    """

    passage_tokens: int | None = PASSAGE_TOKENS


class PPRSearchConfig(StrictSection):
    """The section ``ppr_search``: ranks text units by personalized PageRank and answers from them.

    - ``completion_model_id``: key of ``completion_models``.
    - ``embedding_model_id``: key of ``embedding_models``, the model of the index's vectors; None to
      find texts by words alone.
    - ``max_context_tokens``: budget of the answering call's context, in the model's tokens.
    - ``passage_tokens``: tokens of the passages in which text units of more than 400 tokens are
      ranked and shown, >= 50; None: text units are shown in full.
    - ``max_relations_per_entity``: edges of one entity that are considered, the heaviest first, >=
      1.
    - ``max_answer_tokens``: most tokens of the answer, >= 16. A model that is known to think before
      it answers gets 25,000 more for that; ``max_tokens`` in a model's ``call_args`` takes
      precedence.
    - ``reasoning_prompt``: path of a prompt file, relative to the settings file; None for the
      built-in prompt.

    Keys of version 1.0.0 that no longer exist are ignored, with one warning that names them.
    """

    replaced: ClassVar[Mapping[str, str]] = {
        "graph_share": "texts take the context, and relationships no more than they need"
    }
    """Keys that no longer exist -> their replacements."""

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
            notes = "; ".join(f"{key}: {cls.replaced[key]}" for key in gone)
            _log.warning("Settings of graph searches that are no longer used: %s", notes)
        return {key: value for key, value in section.items() if key not in cls.replaced}


class ToGSearchConfig(PPRSearchConfig):
    """The section ``tog_search``: a model reads its way from text to text, and answers.

    It has the settings of ``ppr_search`` and these:

    - ``width``: most rows that a call may follow, and most searches that it may ask for, >= 1.
    - ``depth``: most calls before the last call, which answers, >= 1.
    - ``max_rows``: most rows that a call is shown below its texts, >= 0.
    - ``exploration_prompt``: like ``reasoning_prompt``, for all calls but the last.
    """

    replaced: ClassVar[Mapping[str, str]] = {
        **PPRSearchConfig.replaced,
        "mode": "a question how two things are related is answered by look-ups of both",
        "max_hops": "a question how two things are related is answered by look-ups of both",
        "max_scored_edges": "edges are not scored, max_rows sets how many rows a call is shown",
        "scoring_prompt": "edges are not scored, exploration_prompt is the prompt of a call that "
        "may go on",
    }

    width: int = Field(default=3, ge=1)
    depth: int = Field(default=2, ge=1)
    max_rows: int = Field(default=20, ge=0)
    exploration_prompt: str | None = None


def replaced_settings(section: type[BaseModel]) -> Mapping[str, str]:
    """Return key -> replacement for the keys of version 1.0.0 that a section ignores."""
    return section.replaced if issubclass(section, PPRSearchConfig) else {}
