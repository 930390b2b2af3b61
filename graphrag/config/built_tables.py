"""Which tables a search reads, and whether a project has them, told from its files alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphrag.command_lines import release_line
from graphrag.config.safe_yaml import read_yaml
from graphrag.config.settings_files import find_settings

VALIDATED_TABLES = ("documents", "text_units", "entities", "relationships")
SEARCHED_TABLES = ("entities", "relationships", "text_units", "communities", "community_reports")


def describe_unbuilt(root: Path, missing: Sequence[str], folder: object) -> str:
    """Say that a project is not indexed, what is missing where, and what to run."""
    return (
        f"{root} is not indexed: {', '.join(missing)} missing in {folder}; build it with: "
        f"{release_line('index', '--root', root)}"
    )


def find_unbuilt(
    root: Path, names: Sequence[str] = SEARCHED_TABLES, any_will_do: bool = False
) -> str | None:
    """Return the sentence of a project that is not indexed; None where it is, or can't be told.

    It can't where the tables are in no folder, or the settings leave to a variable where they are.
    With ``any_will_do`` one of the named tables is enough. Raises SettingsError without a project.
    """
    path = find_settings(root)
    folder, suffix = _place_of_tables(path) or (None, "")
    if folder is None:
        return None
    missing = [name for name in names if not (folder / f"{name}.{suffix}").is_file()]
    is_built = len(missing) < len(names) if any_will_do else not missing
    return None if is_built else describe_unbuilt(root, missing, folder)


def _place_of_tables(settings: Path) -> tuple[Path, str] | None:
    """Return the folder of the tables and the ending of their files."""
    try:
        values = read_yaml(settings.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        return None
    storage, tables = (_section(values, name) for name in ("output_storage", "table_provider"))
    if storage is None or tables is None:
        return None
    kind = storage.get("type") or "file"
    folder, suffix = storage.get("base_dir") or "output", tables.get("type") or "parquet"
    if kind != "file" or not isinstance(folder, str) or not isinstance(suffix, str):
        return None
    return None if "$" in folder + suffix else ((settings.parent / folder).resolve(), suffix)


def _section(values: object, name: str) -> Mapping[str, Any] | None:
    """Return a section, empty where it is not given; None where it is none."""
    given: Any = cast("Mapping[str, Any]", values).get(name) if isinstance(values, dict) else None
    return cast("Mapping[str, Any]", given or {}) if isinstance(given or {}, dict) else None
