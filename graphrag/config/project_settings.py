"""Reads a project's settings.yaml, with the sections that this project adds, in place."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Self, TypeGuard, cast, get_args

import yaml
from dotenv import dotenv_values
from pydantic import BaseModel, Field, StringConstraints, ValidationError, model_validator

from graphrag.config.defaults import graphrag_config_defaults
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.config.models.strict_section import explain_first, nearest
from graphrag.config.models.tog_search_config import (
    PPRSearchConfig,
    RankedSearchConfig,
    ToGSearchConfig,
    replaced_settings,
)
from graphrag.config.older_settings import OlderSettings, double_lone_dollars, read_older
from graphrag.config.settings_files import SettingsError, find_settings, read_yaml, resolve_prompts
from graphrag.config.table_files import resolve_path
from graphrag.installation import HASHED, WORDLLAMA, has_no_wordllama
from graphrag.text.message_phrases import join_names
from graphrag.text.redaction import know_settings, know_variables, redact

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

_DEFAULTS = graphrag_config_defaults
PROJECT_PATHS = {
    ("input_storage", "base_dir"): _DEFAULTS.input_storage.base_dir,
    ("output_storage", "base_dir"): _DEFAULTS.output_storage.base_dir,
    ("update_output_storage", "base_dir"): _DEFAULTS.update_output_storage.base_dir,
    ("reporting", "base_dir"): _DEFAULTS.reporting.base_dir,
    ("vector_store", "db_uri"): _DEFAULTS.vector_store.db_uri,
    ("cache", "storage", "base_dir"): _DEFAULTS.cache.storage.base_dir,
}
FILE_TYPES = {"file", "lancedb", None}


@dataclass(frozen=True, slots=True)
class UnusedSetting:
    """A key of a settings file that nothing reads; ``str()`` gives a line about it.

    - ``section``: the path of keys to it, "" at the top.
    - ``has_gone``: whether an earlier version read the key.
    - ``instead``: its replacement if it has gone, else a hint with the nearest known key.
    """

    section: str
    key: str
    instead: str
    has_gone: bool = False

    def __str__(self) -> str:
        use = "no longer used: " if self.has_gone else "not used"
        return f"{_join_path(self.section, self.key)} is {use}{self.instead}"


class ProjectConfig(GraphRagConfig):
    """The released configuration with the sections that this project adds.

    ``languages``: those of the texts, as ISO 639-1 codes, the most frequent first; None: they are
    detected in the texts.
    """

    languages: list[Annotated[str, StringConstraints(pattern="^[a-z]{2,3}$")]] | None = None
    basic_search: RankedSearchConfig = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=RankedSearchConfig
    )
    tog_search: ToGSearchConfig = Field(default_factory=ToGSearchConfig)
    ppr_search: PPRSearchConfig = Field(default_factory=PPRSearchConfig)

    @model_validator(mode="before")
    @classmethod
    def _know_secrets(cls, values: object) -> object:
        """Remember the secrets in the settings, so that no output ever shows them."""
        know_settings(values)
        return values

    @model_validator(mode="after")
    def _embed_by_what_is_here(self) -> Self:
        for name, model in self.embedding_models.items():
            if (model.type, model.model) == ("offline", WORDLLAMA) and has_no_wordllama():
                length = getattr(model, "dimensions", None) or self.vector_store.vector_size
                changes = {"model": HASHED, "dimensions": length}
                self.embedding_models[name] = model.model_copy(update=changes)
        return self

    def get_completion_model_config(self, model_id: str) -> "ModelConfig":
        """Return the completion model with a name; raise SettingsError if there is none."""
        return _find_model("completion_models", self.completion_models, model_id)

    def get_embedding_model_config(self, model_id: str) -> "ModelConfig":
        """Return the embedding model with a name; raise SettingsError if there is none."""
        return _find_model("embedding_models", self.embedding_models, model_id)


def _find_model(section: str, models: Mapping[str, "ModelConfig"], name: str) -> "ModelConfig":
    if name in models:
        return models[name]
    empty = "it is empty; see what graphrag init writes"
    content = f"it has {', '.join(models)}" if models else empty
    raise SettingsError(f"{section} has no {name}, which other settings name: {content}.")


def read_settings(
    root: Path | str, data_dir: Path | str | None = None, assume_set: bool = False
) -> ProjectConfig:
    """Read a project's settings without changing the working directory or the environment.

    - ``root``: the project folder. Relative paths, those of prompt files included, start at the
      settings file's folder. Prompt files are not looked for yet.
    - ``data_dir``: the folder of the tables, in place of ``output_storage.base_dir``.
    - ``assume_set``: ignore variables without a value, to look at an index without asking a model.

    Variables come from the environment, then from the project's own ``.env``. Settings of graphrag
    0.3 to 2 are converted, see :func:`older_note`. Raises SettingsError if the file is missing,
    unreadable or invalid, and UnsetVariableError if a variable has no value.
    """
    path = find_settings(root)
    values, _ = _parse(path, assume_set)
    if data_dir is not None:
        storage = cast("dict[str, object]", values.setdefault("output_storage", {}))
        storage["base_dir"] = str(Path(data_dir).resolve())
    _resolve_paths(values, path.parent)
    resolve_prompts(values, path.parent)
    try:
        return ProjectConfig.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"{path}: {redact(explain_first(error))}") from error


def unknown_settings(root: Path | str) -> list[UnusedSetting]:
    """List the keys of a settings file that the released configuration drops silently.

    The list is empty for settings of graphrag 0.3 to 2; :func:`older_note` describes their
    conversion.
    """
    values, older = _parse(find_settings(root))
    return [] if older is not None else list(_find_unknown(values, ProjectConfig, ""))


def is_of_windows(root: Path | str) -> bool:
    r"""Say whether settings have a folder with ``\``, which the release reads only on Windows."""
    text = find_settings(root).read_text(encoding="utf-8")
    return os.sep == "/" and re.search(r"(db_uri|base_dir)[\"']?\s*:.*\\", text) is not None


def older_note(root: Path | str) -> str | None:
    """Return a line about settings of graphrag 0.3 to 2; None for settings of graphrag 3."""
    older = _parse(find_settings(root), assume_set=True)[1]
    return None if older is None else older.note


def older_version(root: Path | str) -> int | None:
    """Return the version of graphrag, 1 or 2, that settings are written for; None if it is 3."""
    older = _parse(find_settings(root), assume_set=True)[1]
    return None if older is None else older.version


def _find_unknown(
    values: Mapping[str, object], model: type[BaseModel], section: str
) -> Iterator[UnusedSetting]:
    for key, value in values.items():
        field = model.model_fields.get(key)
        if field is None:
            if instead := replaced_settings(model).get(key):
                yield UnusedSetting(section=section, key=key, instead=instead, has_gone=True)
            elif model.model_config.get("extra") != "allow":
                yield UnusedSetting(
                    section=section, key=key, instead=nearest(key, model.model_fields)
                )
            continue
        inner = [t for t in (field.annotation, *get_args(field.annotation)) if _is_model(t)]
        is_mapping = getattr(field.annotation, "__origin__", None) is dict
        if inner and isinstance(value, Mapping) and not is_mapping:
            inside = cast("Mapping[str, object]", value)
            yield from _find_unknown(inside, inner[0], _join_path(section, key))


def _join_path(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _is_model(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


class UnsetVariableError(SettingsError):
    """Settings name environment variables that have no value."""


class _AllSet(dict[str, str]):
    """Variables in which a missing one has the value "<unset>"."""

    def __missing__(self, name: str) -> str:
        return _UNSET


_UNSET = "<unset>"


def _parse(path: Path, assume_set: bool = False) -> tuple[dict[str, object], OlderSettings | None]:
    """Return the settings in the form of graphrag 3, and the conversion if they were older.

    ``assume_set``: a variable without a value becomes "<unset>".
    """
    variables = {k: v for k, v in dotenv_values(path.parent / ".env").items() if v is not None}
    know_variables(variables)
    variables = {"timestamp": "${timestamp}", **variables, **os.environ}
    try:
        text = double_lone_dollars(path.read_text(encoding="utf-8"))
        template = Template(text)
        unset = [name for name in template.get_identifiers() if name not in variables]
        if unset and not assume_set:
            names = join_names([f"${{{name}}}" for name in unset])
            lines = join_names([f"{name}=..." for name in unset])
            verb = "is" if len(unset) == 1 else "are"
            msg = f"{path}: {names} {verb} not set; put {lines} into {path.parent / '.env'}."
            raise UnsetVariableError(msg)
        values = read_yaml(template.substitute(_AllSet(variables)))
    except SettingsError:
        raise
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} can't be read: it is not UTF-8; save it so.") from error
    except ValueError as error:
        raise SettingsError(f"{path}: a lone $ must be written $$ ({error}).") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is not valid YAML: {redact(str(error))}.") from error
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror}.") from error
    if values is None:
        return {}, None
    if not isinstance(values, dict):
        raise SettingsError(f"{path} must be a mapping of sections, not {type(values).__name__}.")
    settings = cast("dict[str, object]", values)
    older = read_older(settings, variables)
    return (settings, None) if older is None else (older.values, older)


def _resolve_paths(values: dict[str, object], folder: Path) -> None:
    for path, default in PROJECT_PATHS.items():
        section = values
        for name in path[:-1]:
            if section.get(name) is None:
                section[name] = {}
            part = section[name]
            if not isinstance(part, dict):
                return  # the model's own validation names the wrong type
            section = cast("dict[str, object]", part)
        if section.get("type") not in FILE_TYPES:
            continue
        location = cast("str", section.get(path[-1]) or default)
        section[path[-1]] = str(resolve_path(folder, location))
