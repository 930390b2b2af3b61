"""Finds and reads a project's settings, prompt and table files without importing the release."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, cast

import yaml

from graphrag.config.older_settings import Values, read_older
from graphrag.config.table_files import (
    SEARCHED_TABLES,
    find_table_files,
    resolve_path,
)
from graphrag.text.cli_hints import release_line
from graphrag.text.message_phrases import join_names

if TYPE_CHECKING:
    from pydantic import BaseModel

    from graphrag.config.models.graph_rag_config import GraphRagConfig

Section = Mapping[str, object]
_MOST_BY_ALIASES = 100_000
"""Most values that a file's aliases may expand to, in addition to the values written out."""


def read_yaml(text: str) -> object:
    """Parse a YAML text into mappings, lists, texts, numbers and dates.

    Raises yaml.YAMLError, in one line with the position, if the text is no YAML, has a Python tag,
    an alias inside its own anchor, aliases that expand to more than 100,000 values, an impossible
    number or date, or is nested too deeply.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        sizes: dict[int, int] = {}
        if _size(node, sizes) - len(sizes) > _MOST_BY_ALIASES:
            raise yaml.YAMLError(f"its aliases expand to more than {_MOST_BY_ALIASES:,} values")
        return cast("object", loader.construct_document(node))
    except yaml.MarkedYAMLError as error:
        marks = (error.problem_mark, error.context_mark)
        where, since = (m and f"line {m.line + 1}, column {m.column + 1}" for m in marks)
        context = f" ({error.context}, {since})" if since and error.context else ""
        raise yaml.YAMLError(f"{where}: {error.problem}{context}") from error
    except yaml.reader.ReaderError as error:
        position = f"line {text.count(chr(10), 0, error.position) + 1}"
        raise yaml.YAMLError(f"{position}: character U+{int(error.character):04X}") from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits, the 30th of February
        raise yaml.YAMLError(str(error)) from error


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    if (size := sizes.get(id(node))) is not None:
        if size == 0:
            raise yaml.YAMLError("an alias expands to a value that contains it")
        return size
    sizes[id(node)] = 0
    parts: list[yaml.Node] = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]


# `graphrag init` writes this path into the settings, but not the file; the release then uses its
# own prompt. Any other missing file is a mistake.
_NEVER_WRITTEN = ("drift_search", "reduce_prompt", "prompts/drift_search_reduce_prompt.txt")
# The release reads this prompt but never uses it, because no setting allows general knowledge.
_NEVER_USED = {"knowledge_prompt"}
# Prompts of Think-on-Graph: only their own fields are replaced. All others are format strings.
_NEVER_FORMATTED = {"reasoning_prompt", "exploration_prompt"}


class SettingsError(ValueError):
    """A project's settings can't be used; the message has the problem and the remedy."""


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
    """Return setting -> prompt file, for the prompt files that a section needs.

    Raises SettingsError if a file does not exist, or has braces that enclose no field.
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
    """Check that the prompt files for building an index by the standard method can be used.

    Raises SettingsError as :func:`prompt_files`.
    """
    names = ["extract_graph", "summarize_descriptions", "community_reports"]
    if config.extract_claims.enabled:
        names.append("extract_claims")
    for name in names:
        prompt_files(name, getattr(config, name))


SETTINGS_FILES = ("settings.yaml", "settings.yml", "settings.json")


def is_project(root: Path | str) -> bool:
    """Say whether a folder contains a settings file."""
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
    raise SettingsError(f"{folder} contains no settings.yaml; make a project with: {init}")


def describe_unbuilt(
    root: Path,
    missing: Sequence[str],
    folder: object,
    remedy: str = "build it with",
    methods: Sequence[str] = (),
) -> str:
    """Return a sentence: the project is not indexed, the missing tables, and the remedy.

    ``methods``: those that need the missing tables, if other methods can be asked.
    """
    line = release_line("index", "--root", root)
    if not methods:
        return f"{root} is not indexed: {', '.join(missing)} missing in {folder}; {remedy}: {line}"
    verb = "needs" if len(methods) == 1 else "need"
    lack = f"{root} has no {name_tables(missing)} in {folder}"
    return f"{lack}, which {join_names(methods)} {verb}; ask other methods, or {remedy}: {line}"


def name_tables(names: Sequence[str]) -> str:
    """Return table names as part of a sentence: "table a" or "tables a and b"."""
    return f"table{'s' * (len(names) > 1)} {join_names(names)}"


def find_unbuilt(
    root: Path,
    needs: Mapping[str, Sequence[str]] = {"": SEARCHED_TABLES},
    any_will_do: bool = False,
    remedy: str = "build it with",
) -> str | None:
    """Return a sentence if a project is not indexed; None if it is indexed or this is not known.

    It is not known if the tables are not in a folder, or if their folder depends on a variable.
    ``needs``: method -> tables that it can't do without. ``any_will_do``: one table is enough.
    Raises SettingsError if there is no project.
    """
    folder, suffix = _find_tables(find_settings(root)) or (None, "")
    if folder is None:
        return None
    names = list(dict.fromkeys(name for tables in needs.values() for name in tables))
    there = find_table_files(folder, (*names, *SEARCHED_TABLES), suffix)
    missing = [name for name in names if name not in there]
    if not missing or (any_will_do and len(missing) < len(names)):
        return None
    methods = [method for method, tables in needs.items() if method and {*missing} & {*tables}]
    return describe_unbuilt(root, missing, folder, remedy, methods if there else ())


def _find_tables(settings: Path) -> tuple[Path, str] | None:
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
    path = resolve_path(settings.parent, folder)
    return None if "$" in f"{path}{suffix}" else (path, suffix)


def _section(values: object, name: str) -> Section | None:
    section = cast("Section", values).get(name) if isinstance(values, dict) else None
    return cast("Section", section or {}) if isinstance(section or {}, dict) else None
