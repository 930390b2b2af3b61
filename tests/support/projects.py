"""Small projects: settings of the embedded models, or of models behind a server, and an index."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import yaml


def offline_settings(dimensions: int = 384) -> str:
    """Return a settings.yaml of the embedded models, whose last section is ``extract_graph``."""
    return f"""\
completion_models:
  default_completion_model: {{type: offline, model_provider: offline, model: rules}}
embedding_models:
  default_embedding_model:
    {{type: offline, model_provider: offline, model: hashed-ngrams, dimensions: {dimensions}}}
vector_store: {{vector_size: {dimensions}}}
chunking: {{type: tokens, size: 60, overlap: 10, encoding_model: o200k_base}}
extract_graph:
  entity_types: [person, place, organization, object, event]
  max_gleanings: 0
"""


OFFLINE_SETTINGS = offline_settings()


def build_project(root: Path, settings: str = OFFLINE_SETTINGS, **texts: str) -> Path:
    """Write a project with these texts, by the names of their files, and build its index."""
    from graphrag.eval.runner.index_building import build_index

    (root / "input").mkdir(parents=True)
    for name, text in texts.items():
        (root / "input" / f"{name}.txt").write_text(text, encoding="utf-8")
    (root / "settings.yaml").write_text(settings, encoding="utf-8")
    asyncio.run(build_index(root, lambda _: None))
    return root


def copy_project(project: Path, to: Path, **changes: Any) -> Path:
    """Copy a project without its index and cache, and change sections of its settings."""
    built = shutil.ignore_patterns("output*", "cache", "logs")
    shutil.copytree(project, to, ignore=built)
    settings = to / "settings.yaml"
    values = yaml.safe_load(settings.read_text(encoding="utf-8"))
    for name, change in changes.items():
        values[name] = {**values.get(name, {}), **change} if isinstance(change, dict) else change
    settings.write_text(yaml.safe_dump(values), encoding="utf-8")
    return to


def server_settings(
    base_url: str, model: str = "gpt-4o", max_retries: int = 2, model_extra: str = ""
) -> str:
    """Return a settings.yaml whose models are behind ``base_url``.

    ``model_extra`` are further lines of the completion model, indented by four blanks.
    """
    retry = f"{{type: immediate, max_retries: {max_retries}}}"
    return f"""\
completion_models:
  default_completion_model:
    model_provider: openai
    model: {model}
    api_base: {base_url}
    api_key: test
    retry: {retry}
{model_extra}
embedding_models:
  default_embedding_model:
    model_provider: openai
    model: text-embedding-3-small
    api_base: {base_url}
    api_key: test
    retry: {retry}
vector_store: {{vector_size: 384}}
"""
