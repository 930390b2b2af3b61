"""The ``tog_search:`` section of settings.yaml, and reading a project's settings in place."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any, Literal, cast, get_args

import yaml
from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphrag.command_lines import release_line
from graphrag.config.defaults import graphrag_config_defaults
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.config.models.prompt_files import SettingsError, resolve_prompts

_SETTINGS_FILES = ("settings.yaml", "settings.yml", "settings.json")
_PATHS = (
    ("input_storage", "base_dir"),
    ("output_storage", "base_dir"),
    ("update_output_storage", "base_dir"),
    ("reporting", "base_dir"),
    ("vector_store", "db_uri"),
    ("cache", "storage", "base_dir"),
)
_FILE_TYPES = {"file", "lancedb", None}


class StrictSection(BaseModel):
    """A section that refuses an unknown key and names the nearest known one."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _name_nearest_key(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key in cast("Mapping[str, Any]", values):
                if key not in cls.model_fields:
                    msg = f"unknown key {key!r}{nearest(str(key), cls.model_fields)}"
                    raise ValueError(msg)
        return cast("Any", values)


class ToGSearchConfig(StrictSection):
    """How a Think-on-Graph search walks the graph and answers.

    Attributes
    ----------
    completion_model_id, embedding_model_id : str
        Keys of ``completion_models`` and ``embedding_models``.
    mode : {"explore", "connect"}
        Whether to walk from the question's entities, or to join them by paths, which answers
        how they are related. Connect asks the completion model once, for the answer;
        ``depth``, ``num_retain_entity`` and what belongs to scoring are not used by it.
    width : int
        Paths kept after each depth, or for each two entities that are joined, >= 1.
    depth : int
        Edges a path may have, >= 1.
    max_hops : int
        Edges that a path between two entities may have in connect mode, >= 1.
    prune_strategy : {"llm", "semantic", "bm25"}
        Who scores the edges: the completion model, stored vectors, or word statistics. The
        last two rank text units too.
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
    mode: Literal["explore", "connect"] = "explore"
    width: int = Field(default=3, ge=1)
    depth: int = Field(default=3, ge=1)
    max_hops: int = Field(default=4, ge=1)
    prune_strategy: Literal["llm", "semantic", "bm25"] = "llm"
    scoring: Literal["combined", "per_entity"] | None = None
    num_retain_entity: int = Field(default=5, ge=1)
    temperature_exploration: float = Field(default=0.4, ge=0, le=2)
    temperature_reasoning: float = Field(default=0.0, ge=0, le=2)
    max_context_tokens: int = Field(default=8000, ge=200)
    # Left out of a run's setup at their defaults: runs from before they existed can be resumed.
    max_answer_tokens: int = Field(default=2000, ge=16, exclude_if=lambda value: value == 2000)
    max_tokens_per_scored_edge: int = Field(default=40, ge=8, exclude_if=lambda value: value == 40)
    max_exploration_paths: int = Field(default=10, ge=1)
    max_relations_per_entity: int = Field(default=50, ge=1)
    ground_text_units: bool = True
    relation_scoring_prompt: str | None = None
    entity_scoring_prompt: str | None = None
    reasoning_prompt: str | None = None

    @property
    def scores_per_entity(self) -> bool:
        """Whether each node of the frontier has a scoring call of its own."""
        return self.scoring == "per_entity" or bool(self.entity_scoring_prompt)

    @model_validator(mode="after")
    def _refuse_contradiction(self) -> "ToGSearchConfig":
        if self.scoring == "combined" and self.entity_scoring_prompt:
            msg = (
                "scoring: combined never reads entity_scoring_prompt; set scoring: per_entity, "
                "or put the prompt into relation_scoring_prompt."
            )
            raise ValueError(msg)
        return self


class ProjectConfig(GraphRagConfig):
    """The released configuration with the ``tog_search:`` section beside the others."""

    tog_search: ToGSearchConfig = Field(default_factory=ToGSearchConfig)


def nearest(word: str, known: Mapping[str, Any] | tuple[str, ...] | list[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known word nearest to a mistyped one, or ``""``."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def is_project(root: Path | str) -> bool:
    """Say whether a folder holds a settings file."""
    return any((Path(root) / name).is_file() for name in _SETTINGS_FILES)


def find_settings(root: Path | str) -> Path:
    """Return the settings file of a project folder.

    Raises
    ------
    SettingsError
        If the folder or the file is not there.
    """
    folder = Path(root)
    for name in _SETTINGS_FILES:
        if (folder / name).is_file():
            return (folder / name).resolve()
    if not folder.is_dir():
        msg = f"The project folder {folder} does not exist; name an existing GraphRAG project."
        raise SettingsError(msg)
    init = release_line("init", "--root", folder)
    msg = f"{folder} holds no settings.yaml; make a project with: {init}"
    raise SettingsError(msg)


def read_settings(root: Path | str, data_dir: Path | str | None = None) -> ProjectConfig:
    """Read a project's settings without changing the working directory or the environment.

    Relative paths, prompt files included, are taken from the settings file's folder. Whether a
    prompt file is there is asked when it is needed. Variables come from the environment and from
    that project's own ``.env``, the environment first.

    Parameters
    ----------
    root : Path or str
        The project folder.
    data_dir : Path or str or None
        Folder of the tables, in place of ``output_storage.base_dir``.

    Raises
    ------
    SettingsError
        If the file is missing, unreadable or not valid.
    """
    path = find_settings(root)
    values = _parse(path)
    if data_dir is not None:
        values.setdefault("output_storage", {})["base_dir"] = str(Path(data_dir).resolve())
    _resolve_paths(values, path.parent)
    resolve_prompts(values, path.parent)
    try:
        return ProjectConfig(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        msg = f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}"
        raise SettingsError(msg) from error


def unknown_settings(root: Path | str) -> list[str]:
    """List the keys of a settings file that the released configuration drops in silence.

    Each line names the key, its section and the nearest known key.
    """
    found: list[str] = []
    _collect_unknown(_parse(find_settings(root)), ProjectConfig, "", found)
    return found


def _collect_unknown(
    values: Mapping[str, Any], model: type[BaseModel], where: str, found: list[str]
) -> None:
    for key, value in values.items():
        field = model.model_fields.get(key)
        if field is None:
            if model.model_config.get("extra") != "allow":
                found.append(f"{where}{key} is not used{nearest(key, model.model_fields)}")
            continue
        inner = [t for t in (field.annotation, *get_args(field.annotation)) if _is_model(t)]
        if inner and isinstance(value, Mapping) and not _is_mapping(field.annotation):
            section = cast("Mapping[str, Any]", value)
            _collect_unknown(section, cast("type[BaseModel]", inner[0]), f"{where}{key}.", found)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_mapping(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is dict


def _parse(path: Path) -> dict[str, Any]:
    known = {k: v for k, v in dotenv_values(path.parent / ".env").items() if v is not None}
    try:
        text = Template(path.read_text(encoding="utf-8")).substitute({**known, **os.environ})
        values = yaml.safe_load(text)
    except KeyError as error:
        name = error.args[0]
        msg = f"{path}: ${{{name}}} is not set; put {name}=... into {path.parent / '.env'}."
        raise SettingsError(msg) from error
    except ValueError as error:
        msg = f"{path}: a lone $ must be written $$ ({error})."
        raise SettingsError(msg) from error
    except yaml.YAMLError as error:
        msg = f"{path} is not valid YAML: {' '.join(str(error).split())}"
        raise SettingsError(msg) from error
    except OSError as error:
        msg = f"{path} can't be read: {error.strerror}."
        raise SettingsError(msg) from error
    if values is None:
        values = {}
    if not isinstance(values, dict):
        msg = f"{path} must hold sections (a mapping), not {type(values).__name__}."
        raise SettingsError(msg)
    return cast("dict[str, Any]", values)


def _resolve_paths(values: dict[str, Any], folder: Path) -> None:
    defaults: Any = graphrag_config_defaults
    fallback = {
        "input_storage": defaults.input_storage.base_dir,
        "output_storage": defaults.output_storage.base_dir,
        "update_output_storage": defaults.update_output_storage.base_dir,
        "reporting": defaults.reporting.base_dir,
        "vector_store": defaults.vector_store.db_uri,
        "cache": defaults.cache.storage.base_dir,
    }
    for path in _PATHS:
        section: Any = values
        for name in path[:-1]:
            if section.get(name) is None:
                section[name] = {}
            section = section[name]
            if not isinstance(section, dict):
                return  # the model's own validation names the wrong type
            section = cast("dict[str, Any]", section)
        if section.get("type") not in _FILE_TYPES:
            continue
        section[path[-1]] = str((folder / (section.get(path[-1]) or fallback[path[0]])).resolve())
