"""What is known of a built index without reading its tables: settings, models, fingerprint."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag.config.models.prompt_files import prompt_files
from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.query.index_tables import check_vectors, fingerprint_tables
from graphrag.query.methods import GRAPH_METHODS, embeds, section_name
from graphrag.query.model_facts import is_offline

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

    from graphrag.config.models.graph_rag_config import GraphRagConfig

_SECRET = re.compile(r"key|secret|password|header|authorization|ad_token", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What the released search functions take beside the settings, alike for all methods.

    ``community_level`` is the deepest that local, global and DRIFT read; None: all.
    """

    community_level: int | None = 2
    response_type: str = "Multiple Paragraphs"
    dynamic_community_selection: bool = False


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """An index's settings and the hash of its tables (None for tables that were handed over)."""

    config: "GraphRagConfig"
    options: SearchOptions = SearchOptions()
    fingerprint: str | None = None

    def section(self, method: str) -> Any:
        """Return a method's section of the settings."""
        config = self.config
        if method in GRAPH_METHODS and not isinstance(config, ProjectConfig):
            return ProjectConfig.model_fields[section_name(method)].get_default(
                call_default_factory=True
            )
        return getattr(config, section_name(method))

    def changed(self, method: str, changes: Mapping[str, Any]) -> "IndexHeader":
        """Return this header with other values in a method's section of the settings."""
        section = self.section(method).model_copy(update=changes)
        config: Any = self.config
        if method in GRAPH_METHODS and not isinstance(config, ProjectConfig):
            config = ProjectConfig.model_construct(**dict(config))
        config = config.model_copy(update={section_name(method): section})
        return replace(self, config=config)

    def model_configs(self, method: str) -> dict[str, "ModelConfig"]:
        """Return the models of a method: ``completion`` and, where it embeds, ``embedding``."""
        section = self.section(method)
        models = {
            "completion": self.config.get_completion_model_config(section.completion_model_id)
        }
        if embeds(method):
            models["embedding"] = self.config.get_embedding_model_config(section.embedding_model_id)
        return models

    def prompt_files(self, method: str) -> dict[str, Path]:
        """Return the prompt files that a method needs: setting -> file; SettingsError without."""
        return prompt_files(section_name(method), self.section(method))

    def models(self, method: str) -> list[str]:
        """Return the models of a method as ``provider/model``."""
        return [model_name(config) for config in self.model_configs(method).values()]

    @property
    def is_offline(self) -> bool:
        """Whether one of the embedded models is among the project's models."""
        configs = [*self.config.completion_models.values(), *self.config.embedding_models.values()]
        return any(is_offline(model_name(config)) for config in configs)

    def describe(self, method: str) -> dict[str, Any]:
        """Return everything that changes what a method answers, JSON-ready, without secrets.

        Prompt files are given by the hash of their content; SettingsError if one is not there.
        """
        self.prompt_files(method)
        section: dict[str, Any] = self.section(method).model_dump(mode="json")
        named = {key: Path(v) for key, v in section.items() if key.endswith("prompt") and v}
        prompts = {key: _file_hash(path) for key, path in named.items() if path.is_file()}
        return {
            "settings": {**section, **prompts},
            "options": asdict(self.options),
            "models": {
                role: {"model": model_name(config), "call_args": public_call_args(config)}
                for role, config in self.model_configs(method).items()
            },
            "index": self.fingerprint,
        }


async def read_header(
    root: Path | str,
    data_dir: Path | str | None = None,
    options: SearchOptions | None = None,
    vectors: bool = True,
) -> IndexHeader:
    """Read a project's settings and check that its index is complete; see ``GraphIndex.open``."""
    config = read_settings(root, data_dir)
    fingerprint = await fingerprint_tables(config, Path(root))
    if vectors:
        check_vectors(config, Path(root))
    return IndexHeader(config, options or SearchOptions(), fingerprint)


def public_call_args(config: "ModelConfig") -> dict[str, Any]:
    """Return a model's call arguments, with what may be a secret replaced by its hash."""
    return _public(config.call_args)


def _public(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _hash(repr(value).encode())
        if _SECRET.search(name)
        else _public(cast("Mapping[str, Any]", value))
        if isinstance(value, Mapping)
        else value
        for name, value in given.items()
    }


def model_name(config: "ModelConfig") -> str:
    """Return ``provider/model``."""
    return f"{config.model_provider}/{config.model}"


def _file_hash(path: Path) -> str:
    return _hash(path.read_bytes())


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
