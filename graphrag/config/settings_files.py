"""Where a project's settings are; apart from reading them, which imports the release's models."""

from pathlib import Path

from graphrag.command_lines import release_line
from graphrag.config.models.prompt_files import SettingsError

_SETTINGS_FILES = ("settings.yaml", "settings.yml", "settings.json")


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
