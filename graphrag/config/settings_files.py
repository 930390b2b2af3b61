"""A project's settings, prompts and tables as files; reading them imports none of the release."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, cast

import yaml

from graphrag.config.older_settings import Values, read_older
from graphrag.config.table_files import (
    SEARCHED_TABLES,
    find_table_files,
    resolve_place,
)
from graphrag.text.cli_hints import release_line
from graphrag.text.phrases import join_names

if TYPE_CHECKING:
    from pydantic import BaseModel

    from graphrag.config.models.graph_rag_config import GraphRagConfig

Section = Mapping[str, object]
_MOST_BY_ALIASES = 100_000
"""Values that the aliases of one file may stand for, beside those that are written out."""


def read_yaml(text: str) -> object:
    """Return what a text holds: mappings, lists, texts, numbers, dates.

    Raises yaml.YAMLError, in one line with the place: if it is no YAML, has a tag of Python's, an
    alias of what it stands in, aliases that stand for more than 100,000 values, a number or date
    that there is not, or is nested too deeply.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        sizes: dict[int, int] = {}
        if _size(node, sizes) - len(sizes) > _MOST_BY_ALIASES:
            raise yaml.YAMLError(f"its aliases stand for more than {_MOST_BY_ALIASES:,} values")
        return cast("object", loader.construct_document(node))
    except yaml.MarkedYAMLError as error:
        marks = (error.problem_mark, error.context_mark)
        where, since = (m and f"line {m.line + 1}, column {m.column + 1}" for m in marks)
        context = f" ({error.context}, {since})" if since and error.context else ""
        raise yaml.YAMLError(f"{where}: {error.problem}{context}") from error
    except yaml.reader.ReaderError as error:
        place = f"line {text.count(chr(10), 0, error.position) + 1}"
        raise yaml.YAMLError(f"{place}: character U+{int(error.character):04X}") from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits, the 30th of February
        raise yaml.YAMLError(str(error)) from error


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    if (size := sizes.get(id(node))) is not None:
        if size == 0:
            raise yaml.YAMLError("an alias stands for what it is part of")
        return size
    sizes[id(node)] = 0
    parts: list[yaml.Node] = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]


# What `graphrag init` writes into the settings, though not into the folder; for want of the file
# the release takes its own prompt. Anyone else's missing file is a mistake.
_NEVER_WRITTEN = ("drift_search", "reduce_prompt", "prompts/drift_search_reduce_prompt.txt")
# The release reads it and, as no setting allows general knowledge, never uses it.
_NEVER_USED = {"knowledge_prompt"}
# Those of Think-on-Graph, whose own fields alone are replaced; all others are format strings.
_NEVER_FORMATTED = {"reasoning_prompt", "exploration_prompt"}


class SettingsError(ValueError):
    """A project's settings can't be used; the message says what, where and what to do."""


def resolve_prompts(values: dict[str, object], folder: Path) -> None:
    """Make the paths of prompt files in all sections absolute; the files need not exist."""
    for name, section in values.items():
        if not isinstance(section, dict):
            continue
        options = cast("dict[str, object]", section)
        for key, value in options.items():
            if not key.endswith("prompt") or not isinstance(value, str) or not value:
                continue
            path = (folder / value).resolve()
            unwritten = (name, key, value) == _NEVER_WRITTEN and not path.is_file()
            options[key] = None if unwritten else str(path)


def prompt_files(name: str, section: "BaseModel") -> dict[str, Path]:
    """Return the prompt files that a section needs: setting -> file.

    Raises SettingsError if one is not there, or its braces are no fields.
    """
    files: dict[str, Path] = {}
    for key, value in section:
        if not key.endswith("prompt") or not value or key in _NEVER_USED:
            continue
        files[key] = Path(value)
        if not files[key].is_file():
            raise SettingsError(
                f"{name}.{key}: the prompt file {value} does not exist; correct the path, or "
                "take the line out to use the built-in prompt."
            )
        if key not in _NEVER_FORMATTED and not _has_fields_alone(files[key]):
            raise SettingsError(
                f"{name}.{key}: in the prompt file {value} a brace begins or ends no field such as "
                "{context_data}; write each brace that is to stay one twice: {{ and }}."
            )
    return files


def _has_fields_alone(file: Path) -> bool:
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        return all(f is None or f.isidentifier() for _, f, _, _ in Formatter().parse(text))
    except ValueError:  # a single brace
        return False


def check_index_prompts(config: "GraphRagConfig") -> None:
    """Look for the prompt files that building an index by the standard method reads."""
    names = ["extract_graph", "summarize_descriptions", "community_reports"]
    if config.extract_claims.enabled:
        names.append("extract_claims")
    for name in names:
        prompt_files(name, getattr(config, name))


SETTINGS_FILES = ("settings.yaml", "settings.yml", "settings.json")


def is_project(root: Path | str) -> bool:
    """Say whether a folder holds a settings file."""
    return any((Path(root) / name).is_file() for name in SETTINGS_FILES)


def find_settings(root: Path | str) -> Path:
    """Return the settings file of a project folder.

    Raises SettingsError if the folder or the file is not there.
    """
    folder = Path(root)
    for name in SETTINGS_FILES:
        if (folder / name).is_file():
            return (folder / name).resolve()
    if not folder.is_dir():
        msg = f"The project folder {folder} does not exist; name an existing GraphRAG project."
        raise SettingsError(msg)
    init = release_line("init", "--root", folder)
    raise SettingsError(f"{folder} holds no settings.yaml; make a project with: {init}")


def describe_unbuilt(
    root: Path,
    missing: Sequence[str],
    folder: object,
    remedy: str = "build it with",
    methods: Sequence[str] = (),
) -> str:
    """Say that a project is not indexed, what is missing where, and what to run.

    ``methods``: those that need the missing tables, where there are others.
    """
    line = release_line("index", "--root", root)
    if not methods:
        return f"{root} is not indexed: {', '.join(missing)} missing in {folder}; {remedy}: {line}"
    verb = "needs" if len(methods) == 1 else "need"
    lack = f"{root} has no {name_tables(missing)} in {folder}"
    return f"{lack}, which {join_names(methods)} {verb}; ask other methods, or {remedy}: {line}"


def name_tables(names: Sequence[str]) -> str:
    """Return tables as they stand in a sentence."""
    return f"table{'s' * (len(names) > 1)} {join_names(names)}"


def find_unbuilt(
    root: Path,
    needs: Mapping[str, Sequence[str]] = {"": SEARCHED_TABLES},
    any_will_do: bool = False,
    remedy: str = "build it with",
) -> str | None:
    """Return the sentence of a project that is not indexed; None where it is, or can't be told.

    It can't where the tables are in no folder, or the settings leave to a variable where they are.
    ``needs``: method -> tables that it can't do without. With ``any_will_do`` one table is enough.
    Raises SettingsError without a project.
    """
    folder, suffix = _place_of_tables(find_settings(root)) or (None, "")
    if folder is None:
        return None
    names = list(dict.fromkeys(name for tables in needs.values() for name in tables))
    there = find_table_files(folder, (*names, *SEARCHED_TABLES), suffix)
    missing = [name for name in names if name not in there]
    if not missing or (any_will_do and len(missing) < len(names)):
        return None
    methods = [method for method, tables in needs.items() if method and {*missing} & {*tables}]
    return describe_unbuilt(root, missing, folder, remedy, methods if there else ())


def _place_of_tables(settings: Path) -> tuple[Path, str] | None:
    try:
        values = read_yaml(settings.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    older = read_older(cast("Values", values)) if isinstance(values, dict) else None
    settings_read = cast("object", values) if older is None else older.values
    storage, tables = (
        _section(settings_read, name) for name in ("output_storage", "table_provider")
    )
    if storage is None or tables is None or (storage.get("type") or "file") != "file":
        return None
    folder, suffix = storage.get("base_dir") or "output", tables.get("type") or "parquet"
    if not isinstance(folder, str) or not isinstance(suffix, str):
        return None
    place = resolve_place(settings.parent, folder)
    return None if "$" in f"{place}{suffix}" else (place, suffix)


def _section(values: object, name: str) -> Section | None:
    section = cast("Section", values).get(name) if isinstance(values, dict) else None
    return cast("Section", section or {}) if isinstance(section or {}, dict) else None
