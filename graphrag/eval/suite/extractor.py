"""Asking a project's own model for the entities and relationships of a text."""

import hashlib
from typing import TYPE_CHECKING

from graphrag.eval.scorers.entities import Extraction
from graphrag.eval.scorers.index_columns import texts_of
from graphrag.query.index_header import model_name, public_call_args
from graphrag.query.models import open_completion

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig


class ModelExtractor:
    """Reads a text as a project's indexing does: its prompt, entity types, gleanings and model.

    Parameters
    ----------
    config : GraphRagConfig
        The project's settings, prompt paths absolute.
    """

    def __init__(self, config: "GraphRagConfig") -> None:
        self._config = config
        self._model_config = config.get_completion_model_config(
            config.extract_graph.completion_model_id
        )
        self._prompt = config.extract_graph.resolved_prompts().extraction_prompt
        self._model = open_completion(self._model_config)

    def describe(self) -> dict[str, object]:
        """Return everything that changes what is extracted, JSON-ready, without secrets."""
        section = self._config.extract_graph
        return {
            "extraction": {
                "model": model_name(self._model_config),
                "call_args": public_call_args(self._model_config),
                "prompt": hashlib.blake2b(self._prompt.encode(), digest_size=16).hexdigest(),
                "entity_types": list(section.entity_types),
                "max_gleanings": section.max_gleanings,
            }
        }

    async def __call__(self, text: str, /) -> Extraction:
        """Return what the model finds, in the names that the index would hold.

        Raises
        ------
        Exception
            What the model's last call raised; a failed call is not an empty extraction.
        """
        from graphrag.index.operations.extract_graph.graph_extractor import GraphExtractor

        errors: list[BaseException] = []

        def keep(error: BaseException | None, _trace: str | None, _details: object) -> None:
            errors.append(error or RuntimeError("the extraction failed"))

        section = self._config.extract_graph
        extractor = GraphExtractor(self._model, self._prompt, section.max_gleanings, keep)
        entities, relationships = await extractor(text, section.entity_types, "text")
        if errors:
            raise errors[0]
        pairs = zip(
            texts_of(relationships, "source"), texts_of(relationships, "target"), strict=True
        )
        types = tuple(texts_of(entities, "type"))
        return Extraction(tuple(texts_of(entities, "title")), tuple(pairs), types)
