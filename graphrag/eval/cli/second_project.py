"""``graphrag eval init --like``: a second project of the same documents, with other settings."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import yaml
from pydantic import BaseModel

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.config.project_settings import (
    FILE_TYPES,
    PROJECT_PATHS,
    ProjectConfig,
    read_settings,
    unknown_settings,
)
from graphrag.config.settings_files import SettingsError, find_settings, is_project, read_yaml
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE
from graphrag.eval.errors import StoreError, UsageError
from graphrag.text.command_lines import eval_line
from graphrag.text.console import say

_Values = dict[str, object]
INPUT = ("input_storage", "base_dir")
FAST, STANDARD = "fast", "standard"


def make_second(
    place: Place, first: Path, folder: Path, changes: Sequence[str], method: str | None, quiet: bool
) -> int:
    """Write the settings of a project that reads another one's documents, prompts and .env.

    What it writes goes into its own folder. ``changes``: such as ``chunking.size=600``; ``method``:
    how the graph is made, "fast" or "standard". SettingsError if graphrag would not take the
    settings; nothing is left then.
    """
    if is_project(folder):
        raise UsageError(f"{folder} is a project; name another folder for the second one.")
    if method not in (None, FAST, STANDARD):
        raise UsageError(f"--method {method}: graphrag builds an index by {STANDARD} or {FAST}.")
    source, config = find_settings(first), read_settings(first)
    unknown = unknown_settings(first)
    if place.config is None and not place.has_config() and Place(first).has_config():
        place = Place(first)  # whose configuration will name the second one
    values = cast("_Values", read_yaml(source.read_text(encoding="utf-8")) or {})
    settings = dict(map(_read_change, changes))
    for keys in settings:
        _check_known(keys)
    _keep_apart(values, folder, settings)
    if str(config.input_storage.type) in FILE_TYPES:
        documents = Path(str(config.input_storage.base_dir))
        _set_value(values, INPUT, _relative_path(folder, documents))
    _refer_to_prompts(values, source.parent, folder)
    if method is not None:
        values.pop("workflows", None)
    if method == FAST:
        from graphrag.index.workflows.factory import PipelineFactory  # seconds, the first time

        values["workflows"] = list(PipelineFactory.pipelines[FAST])
    for keys, value in settings.items():
        _set_value(values, keys, value)
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    head = f"# Made by: graphrag eval init --like {_relative_path(folder, first.resolve())}\n"
    written = _write(folder, head + text, source.parent / ".env")
    try:
        read_settings(folder)
        if others := [line for line in unknown_settings(folder) if line not in unknown]:
            raise SettingsError(f"{others[0]}; nothing is written.")
    except SettingsError:
        for path in reversed(written):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        raise
    folders = place.read_config().project_folders() if place.has_config() else {}
    keys = (key for key, at in folders.items() if at.resolve() == source.parent)
    key = next(keys, source.parent.name)
    at = _relative_path(place.root.resolve(), folder.resolve())
    name = folder.resolve().name.removeprefix(f"{source.parent.name}-")
    entry = f"- {{name: local-{name}, method: local, index: {{{key}: {at}}}}}"
    for line in (
        f"Wrote {folder / 'settings.yaml'}; it reads the documents of {source.parent}.",
        f"Next: put this under methods of {place.config_path}: {entry}",
        f"Then build and ask it with: {eval_line('--root', place.root, '--index')}",
    ):
        say(line, quiet=quiet)
    return DONE


def _check_known(keys: Sequence[str]) -> None:
    """Refuse a setting that graphrag has not, which it would drop, or keep and never read."""
    kind: object = ProjectConfig
    for n, key in enumerate(keys):
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return
        field = kind.model_fields.get(key)
        is_of_model = keys[0].endswith("_models")  # whose providers have settings of their own
        if field is None and not is_of_model:
            where = ".".join(keys[:n]) or "graphrag"
            msg = f"--set {'.'.join(keys)}: {where} has no setting {key!r}"
            raise UsageError(as_sentence(f"{msg}{nearest(key, kind.model_fields)}"))
        kind = None if field is None else field.annotation


def _read_change(change: str) -> tuple[tuple[str, ...], object]:
    name, equals, value = change.partition("=")
    keys = tuple(name.strip().split("."))
    try:
        if equals and all(keys):
            return keys, read_yaml(value)
    except yaml.YAMLError:
        pass
    raise UsageError(f"--set {change}: write a setting and its value, such as chunking.size=600.")


def _keep_apart(values: _Values, folder: Path, settings: Mapping[tuple[str, ...], object]) -> None:
    """Give the second project places of its own for what it writes.

    UsageError where the first one writes elsewhere than into files, unless a change says where.
    """
    for path, default in PROJECT_PATHS.items():
        if path == INPUT:
            continue
        own, name = _section(values, path[:-1]), ".".join(path[:-1])
        if own is None:
            continue
        if own.get("type") not in FILE_TYPES:
            if not any(keys[: len(path) - 1] == path[:-1] for keys in settings):
                raise UsageError(
                    f"The first project's {name} is of type {own['type']}, where the second would "
                    f"write over it; give it a place of its own with --set {name}.KEY=VALUE."
                )
            continue
        at = str(own.get(path[-1]) or default)
        if "$" in at or not (folder / at).resolve().is_relative_to(folder.resolve()):
            own[path[-1]] = default


def _section(values: _Values, keys: Sequence[str]) -> _Values | None:
    for key in keys:
        inner = values.get(key)
        if not isinstance(inner, dict):
            return None
        values = cast("_Values", inner)
    return values


def _refer_to_prompts(values: _Values, first: Path, folder: Path) -> None:
    for section in values.values():
        if not isinstance(section, dict):
            continue
        options = cast("_Values", section)
        for key, value in options.items():
            is_file = key.endswith("prompt") and isinstance(value, str) and value
            if is_file and (first / str(value)).is_file():
                options[key] = _relative_path(folder, (first / str(value)).resolve())


def _set_value(values: _Values, keys: Sequence[str], value: object) -> None:
    for n, key in enumerate(keys[:-1], 1):
        inner = values[key] = {} if values.get(key) is None else values[key]
        if not isinstance(inner, dict):
            msg = f"--set {'.'.join(keys)}: {'.'.join(keys[:n])} is a value and holds no settings"
            raise UsageError(f"{msg}.")
        values = cast("_Values", inner)
    values[keys[-1]] = value


def _relative_path(folder: Path, path: Path) -> str:
    return Path(os.path.relpath(path, folder.resolve())).as_posix()


def _write(folder: Path, text: str, env: Path) -> list[Path]:
    """Write the settings, and refer to the variables of the first project; return what was made."""
    made: list[Path] = []
    try:
        for directory in reversed([folder, *folder.parents]):
            if not directory.exists():
                directory.mkdir()
                made.append(directory)
        settings = folder / "settings.yaml"
        settings.write_text(text, encoding="utf-8")
        made.append(settings)
        if env.is_file() and not (folder / ".env").exists():
            (folder / ".env").symlink_to(_relative_path(folder, env.resolve()))
            made.append(folder / ".env")
    except OSError as error:
        raise StoreError(f"{folder} can't be written: {error.strerror}.") from error
    return made
