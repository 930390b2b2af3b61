"""The ``tog_search:`` section of settings.yaml."""

from typing import Any, Literal

from pydantic import Field, model_validator

from graphrag.later_imports import import_without

# The release's defaults load it, and pandas takes half a second where nobody reads a table.
import_without("graphrag_storage.tables.table_provider", "pandas", {"DataFrame": Any})

from graphrag.config.defaults import graphrag_config_defaults
from graphrag.config.models.strict_section import StrictSection

StartRanking = Literal["descriptions", "texts", "words"]
"""Entities by their descriptions' vectors, by those of the text units that name them, by BM25."""

_PRESETS: dict[str, dict[str, Any]] = {
    "thrifty": {
        "prune_strategy": "pagerank",
        "check": "once",
        "graph_share": 0.1,
        "stop_when_unimproved": False,
    },
    "thorough": {
        "prune_strategy": "llm",
        "check": "each_depth",
        "graph_share": 0.4,
        "stop_when_unimproved": True,
    },
}


class ToGSearchConfig(StrictSection):
    """How a Think-on-Graph search walks the graph and answers.

    Attributes
    ----------
    completion_model_id, embedding_model_id : str
        Keys of ``completion_models`` and ``embedding_models``.
    preset : {"thrifty", "thorough"}
        What the settings are that are not given themselves. thrifty: ``prune_strategy``
        pagerank, ``check`` once, ``graph_share`` 0.1, ``stop_when_unimproved`` false. thorough,
        and always in connect mode: llm, each_depth, 0.4, true.
    mode : {"explore", "connect"}
        Whether to walk from the question's entities, or to join them by paths, which answers
        how they are related. Connect asks the completion model once, for the answer;
        ``depth``, ``num_retain_entity`` and what belongs to scoring are not used by it.
    start_ranking : list of {"descriptions", "texts", "words"}
        What chooses the entities to start from beside those whose title stands in the question,
        fused by reciprocal rank: the vectors of their descriptions; those of the ten nearest text
        units, each of which speaks for the entities that it names; BM25 over titles and
        descriptions, which counts the words of all entities at the first search. Each at most
        once.
    width : int
        Paths kept after each depth, or for each two entities that are joined, >= 1.
    depth : int
        Edges a path may have, >= 1.
    max_hops : int
        Edges that a path between two entities may have in connect mode, >= 1.
    prune_strategy : {"llm", "semantic", "bm25", "pagerank"}
        Who scores the edges: the completion model, stored vectors, word statistics, or those
        and the part of the question that reaches the neighbour by personalised PageRank.
    passage_ranking : {"pagerank", "paths"}
        How the text units of the context are chosen: of all, by personalised PageRank from the
        question's words, vectors and entities; or of those behind the paths, each path's best
        by word statistics (by vectors under ``prune_strategy`` semantic).
    check : {"once", "each_depth"}
        Whether the model is asked for the answer after the whole walk, or after each depth
        whether what was found suffices.
    stop_when_unimproved : bool
        Whether the walk ends before ``depth`` once ``max_exploration_paths`` are held and the last
        step found none that scores more than the least of them; no longer path could, as scores
        multiply.
    graph_share : float
        The part of ``max_context_tokens`` that paths, relationships and entities may take where
        there are text units, in (0, 1).
    scoring : {"combined", "per_entity"} or None
        Whether one call scores the edges of all frontier nodes together, or each node has a
        call of its own, concurrently; None is combined, or per_entity when there is an
        ``entity_scoring_prompt``. Strategy llm only.
    num_retain_entity : int
        Edges kept for each frontier node before the best ``width`` are chosen, >= 1.
    temperature_exploration, temperature_reasoning : float
        Sampling temperatures, 0 to 2.
    max_context_tokens : int
        Budget of the last call's context in the model's tokens.
    max_answer_tokens : int
        Tokens that the reply to a check-and-answer call may have, >= 16. A model that is known
        to think before it answers gets 25,000 more for that; ``max_tokens`` in a model's
        ``call_args`` is sent in place of this setting and of the next.
    max_tokens_per_scored_edge : int
        Tokens that the reply to a scoring call may have for each edge in it, >= 8.
    max_exploration_paths : int
        Paths shown to the model that answers, >= 1.
    max_scored_edges : int or None
        Edges that the model is shown at a depth under ``prune_strategy`` llm, the most promising
        by the same figures as pagerank, >= 1; None: all.
    max_relations_per_entity : int
        Edges of one node that are looked at, the rest cut off before pruning, >= 1.
    ground_text_units : bool
        Whether the text units behind the paths are part of the context.
    relation_scoring_prompt, entity_scoring_prompt, reasoning_prompt : str or None
        Path of a prompt file, relative to the settings file; None for the built-in prompt. Of
        the first two, ``entity_scoring_prompt`` words the calls of per_entity scoring, and
        ``relation_scoring_prompt`` those of combined scoring, and of per_entity without the
        other.
    """

    completion_model_id: str = graphrag_config_defaults.local_search.completion_model_id
    embedding_model_id: str = graphrag_config_defaults.local_search.embedding_model_id
    preset: Literal["thrifty", "thorough"] = "thrifty"
    mode: Literal["explore", "connect"] = "explore"
    # Left out of a run's setup at its default, as further down.
    start_ranking: list[StartRanking] = Field(
        default=["descriptions"],
        min_length=1,
        exclude_if=lambda value: value == ["descriptions"],
    )
    width: int = Field(default=3, ge=1)
    depth: int = Field(default=3, ge=1)
    max_hops: int = Field(default=4, ge=1)
    prune_strategy: Literal["llm", "semantic", "bm25", "pagerank"] = "pagerank"
    passage_ranking: Literal["pagerank", "paths"] = "pagerank"
    check: Literal["once", "each_depth"] = "once"
    # Runs from before it existed did not stop.
    stop_when_unimproved: bool = Field(default=False, exclude_if=lambda value: not value)
    graph_share: float = Field(default=0.1, gt=0, lt=1)
    scoring: Literal["combined", "per_entity"] | None = None
    num_retain_entity: int = Field(default=5, ge=1)
    temperature_exploration: float = Field(default=0.4, ge=0, le=2)
    temperature_reasoning: float = Field(default=0.0, ge=0, le=2)
    max_context_tokens: int = Field(default=8000, ge=200)
    # Left out of a run's setup at their defaults: runs from before they existed can be resumed.
    max_answer_tokens: int = Field(default=2000, ge=16, exclude_if=lambda value: value == 2000)
    max_tokens_per_scored_edge: int = Field(default=40, ge=8, exclude_if=lambda value: value == 40)
    max_exploration_paths: int = Field(default=10, ge=1)
    max_scored_edges: int | None = Field(default=30, ge=1)
    max_relations_per_entity: int = Field(default=50, ge=1)
    ground_text_units: bool = True
    relation_scoring_prompt: str | None = None
    entity_scoring_prompt: str | None = None
    reasoning_prompt: str | None = None

    @property
    def scores_per_entity(self) -> bool:
        """Whether each node of the frontier has a scoring call of its own."""
        return self.scoring == "per_entity" or bool(self.entity_scoring_prompt)

    @property
    def reads_text_unit_vectors(self) -> bool:
        """Whether a search asks the vectors of the text units."""
        return (
            self.prune_strategy == "semantic"
            or self.passage_ranking == "pagerank"
            or "texts" in self.start_ranking
        )

    @model_validator(mode="after")
    def _fill_in(self) -> "ToGSearchConfig":
        """Take the preset's values, which count as not given: a variant may change the preset."""
        preset = "thorough" if self.mode == "connect" else self.preset
        for name, value in _PRESETS[preset].items():
            if name not in self.model_fields_set:
                object.__setattr__(self, name, value)
        return self

    @model_validator(mode="after")
    def _refuse_contradiction(self) -> "ToGSearchConfig":
        if len(set(self.start_ranking)) < len(self.start_ranking):
            msg = f"start_ranking names a ranking twice: {', '.join(self.start_ranking)}."
            raise ValueError(msg)
        if self.scoring == "combined" and self.entity_scoring_prompt:
            msg = (
                "scoring: combined never reads entity_scoring_prompt; set scoring: per_entity, "
                "or put the prompt into relation_scoring_prompt."
            )
            raise ValueError(msg)
        return self
