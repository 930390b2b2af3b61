"""The ``tog_search:`` and ``ppr_search:`` sections of settings.yaml."""

from typing import Literal

from pydantic import Field

from graphrag.config.defaults import graphrag_config_defaults
from graphrag.config.models.strict_section import StrictSection


class PPRSearchConfig(StrictSection):
    """How a search ranks text units by personalized PageRank, and answers from them.

    - ``completion_model_id``: key of ``completion_models``.
    - ``embedding_model_id``: key of ``embedding_models``, the model of the index's vectors; None to
      find texts by words alone.
    - ``max_context_tokens``: budget of the answering call's context in the model's tokens.
    - ``graph_share``: the part of it that paths, relationships and entities may take where text
      units are shown, in (0, 1); of ppr, of the room that text units leave.
    - ``max_relations_per_entity``: edges of one entity that are looked at, the heaviest first, >=
      1.
    - ``max_answer_tokens``: tokens that the answer may have, >= 16. A model that is known to think
      before it answers gets 25,000 more for that; ``max_tokens`` in a model's ``call_args`` goes
      before.
    - ``reasoning_prompt``: path of a prompt file, relative to the settings file; None for the
      built-in prompt.
    """

    completion_model_id: str = graphrag_config_defaults.local_search.completion_model_id
    embedding_model_id: str | None = graphrag_config_defaults.local_search.embedding_model_id
    max_context_tokens: int = Field(default=8000, ge=200)
    graph_share: float = Field(default=0.1, gt=0, lt=1)
    max_relations_per_entity: int = Field(default=50, ge=1)
    max_answer_tokens: int = Field(default=2000, ge=16)
    reasoning_prompt: str | None = None


class ToGSearchConfig(PPRSearchConfig):
    """How a Think-on-Graph search walks the graph and answers.

    Beside the settings of ``ppr_search``:

    - ``mode``: {"explore", "connect"}. Whether to walk from the question's entities, or to join
      them by paths, which answers how they are related. Connect asks the model once, for the
      answer; ``depth`` and what belongs to scoring are not used by it.
    - ``width``: paths kept after each depth, or for each two entities that are joined, >= 1.
    - ``depth``: edges a path may have, >= 1.
    - ``max_hops``: edges that a path between two entities may have in connect mode, >= 1.
    - ``max_scored_edges``: edges that the model is shown at a depth, the most promising, >= 1;
      fewer where they take more than a twentieth of ``max_context_tokens``.
    - ``scoring_prompt``: as ``reasoning_prompt``, of the calls that score edges.
    """

    mode: Literal["explore", "connect"] = "explore"
    width: int = Field(default=3, ge=1)
    depth: int = Field(default=3, ge=1)
    max_hops: int = Field(default=4, ge=1)
    max_scored_edges: int = Field(default=30, ge=1)
    scoring_prompt: str | None = None
