"""What a run needs before its first call: the headers of its indexes, and its judge."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from graphrag.config.models.prompt_files import SettingsError
from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import is_project
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import OutputSettings
from graphrag.eval.errors import ConfigError, IndexUnavailableError
from graphrag.eval.runner.methods import MethodSet
from graphrag.query.index_header import (
    IndexHeader,
    read_header,
)
from graphrag.query.index_tables import IndexNotBuiltError

if TYPE_CHECKING:
    pass


def read_settings_of(config: object) -> EvaluationConfig:
    """Return the settings that a runner's configuration stands for.

    Nothing is read of what is no EvaluationConfig: it stands for the defaults, without files.
    """
    if issubclass(type(config), EvaluationConfig):  # a stand-in may say that it is an instance
        return cast("EvaluationConfig", config)
    return EvaluationConfig(output=OutputSettings(save_intermediate=False))


def own_header(config: object) -> dict[str, IndexHeader]:
    """Return the header of a project's own configuration, by a key of no meaning; else nothing."""
    from graphrag.config.models.graph_rag_config import GraphRagConfig

    return (
        {"settings": IndexHeader(cast("GraphRagConfig", config))}
        if issubclass(type(config), GraphRagConfig)
        else {}
    )


def find_project(key: str, index_roots: Mapping[str, Path | str]) -> Path | None:
    """Return the project folder of an index key as an absolute path, None if there is none.

    For a key that is not among the given ones that is the folder of that name in the working
    directory, if it is a project.
    """
    if key in index_roots:
        return Path(index_roots[key]).absolute()
    is_name = bool(key) and Path(key).name == key  # no path that leads out of the folder
    return Path(key).absolute() if is_name and is_project(key) else None


async def read_headers(roots: Mapping[str, Path], vectors: bool = True) -> dict[str, IndexHeader]:
    """Read the header of every index, and look at its vectors where it is to be searched.

    Raises
    ------
    ConfigError
        If a project's settings can't be used.
    IndexUnavailableError
        If an index is missing, incomplete or of another embedding size.
    """
    headers: dict[str, IndexHeader] = {}
    for key, root in roots.items():
        try:
            headers[key] = await read_header(root, vectors=vectors)
        except SettingsError as error:
            raise ConfigError(f"Index {key}: {error}") from error
        except IndexNotBuiltError as error:
            raise IndexUnavailableError(f"Index {key}: {error}") from error
    return headers


def read_model_settings(roots: Mapping[str, Path]) -> dict[str, IndexHeader]:
    """Read only the settings of every project, for a judge that needs no index.

    Raises
    ------
    ConfigError
        If a project's settings can't be used.
    """
    headers: dict[str, IndexHeader] = {}
    for key, root in roots.items():
        try:
            headers[key] = IndexHeader(read_settings(root))
        except SettingsError as error:
            raise ConfigError(f"Index {key}: {error}") from error
    return headers


def describe_indexes(
    headers: Mapping[str, IndexHeader],
    methods: MethodSet,
    names: Sequence[str],
    keys: Iterable[str],
) -> dict[str, dict[str, Mapping[str, object]]]:
    """Return key -> method -> everything that changes what the method answers there."""
    return {key: {name: methods.describe(name, headers.get(key)) for name in names} for key in keys}
