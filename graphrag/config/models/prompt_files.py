"""The prompt files that settings name: found from anywhere, and looked for when they are needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from graphrag.config.models.graph_rag_config import GraphRagConfig

# What `graphrag init` writes into the settings, though not into the folder; for want of the file
# the release takes its own prompt. Anyone else's missing file is a mistake.
_NEVER_WRITTEN = ("drift_search", "reduce_prompt", "prompts/drift_search_reduce_prompt.txt")
# The release reads it and, as no setting allows general knowledge, never uses it.
_NEVER_USED = {"knowledge_prompt"}


class SettingsError(ValueError):
    """A project's settings can't be used; the message says what, where and what to do."""


def resolve_prompts(values: dict[str, Any], folder: Path) -> None:
    """Make the paths of all prompt files in the sections absolute, whether there is such a file."""
    for name, section in values.items():
        if not isinstance(section, dict):
            continue
        options = cast("dict[str, Any]", section)
        for key, value in options.items():
            if not key.endswith("prompt") or not isinstance(value, str) or not value:
                continue
            path = (folder / value).resolve()
            unwritten = (name, key, value) == _NEVER_WRITTEN and not path.is_file()
            options[key] = None if unwritten else str(path)


def prompt_files(name: str, section: "BaseModel") -> dict[str, Path]:
    """Return the prompt files that a section needs: setting -> file; SettingsError if not there."""
    found: dict[str, Path] = {}
    for key, value in section:
        if not key.endswith("prompt") or not value or key in _NEVER_USED:
            continue
        found[key] = Path(value)
        if not found[key].is_file():
            msg = (
                f"{name}.{key}: the prompt file {value} does not exist; correct the path, or "
                "take the line out to use the built-in prompt."
            )
            raise SettingsError(msg)
    return found


def check_index_prompts(config: "GraphRagConfig") -> None:
    """Look for the prompt files that building an index by the standard method reads."""
    for name, section in _index_sections(config):
        prompt_files(name, section)


def _index_sections(config: "GraphRagConfig") -> "Iterator[tuple[str, BaseModel]]":
    yield "extract_graph", config.extract_graph
    yield "summarize_descriptions", config.summarize_descriptions
    if config.extract_claims.enabled:
        yield "extract_claims", config.extract_claims
    yield "community_reports", config.community_reports
