"""What of a project's input files its index will lack."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphrag.config.project_settings import ProjectConfig, read_settings
from graphrag.eval.errors import ConfigError
from graphrag.text.phrases import counted

_NAMES: Mapping[str, str] = {
    "text": r".*\.txt$",
    "csv": r".*\.csv$",
    "json": r".*\.json$",
    "jsonl": r".*\.jsonl$",
}
"""Kind of input that is read as text -> the names of its files, unless the settings say others."""


@dataclass(slots=True)
class _Found:
    """Files that give nothing: name -> why it can't be read, and the names of empty ones."""

    n_files: int = 0
    n_characters: int = 0
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    empty: list[str] = field(default_factory=list[str])


async def list_input_warnings(key: str, root: Path) -> list[str]:
    """Name the files of a project's input that its index will lack, before it is built.

    The release leaves out a file that is not in the expected encoding, and makes no text unit of
    one without text. Input that is not in files of this machine, or is not text, is not looked at.

    Parameters
    ----------
    key : str
        What the index is called in the warnings.
    root : Path
        The project folder.

    Raises
    ------
    SettingsError
        If the settings can't be read.
    ConfigError
        If there is no file, or none with text: the release would begin, and say less.
    """
    config = read_settings(root)
    kind = str(config.input.type)
    if str(config.input_storage.type) != "file" or kind not in _NAMES:
        return []
    encoding = config.input.encoding or "utf-8"
    found = await asyncio.to_thread(_read_all, config, kind, encoding)
    folder, pattern = Path(str(config.input_storage.base_dir)), _pattern(config, kind)
    if not found.n_files:
        msg = (
            f"Index {key} can't be built: no file in {folder} matches {pattern}; put the texts "
            "there, or name others in input.file_pattern or input_storage.base_dir"
        )
        raise ConfigError(msg)
    if len(found.empty) == found.n_files:
        msg = (
            f"Index {key} can't be built: {counted(found.n_files, 'file')} in {folder} "
            f"{'has' if found.n_files == 1 else 'have'} no text"
        )
        raise ConfigError(msg)
    warnings: list[str] = []
    if found.unreadable:
        name, cause = next(iter(found.unreadable.items()))
        named, verb = _named(list(found.unreadable), "is", "are")
        warnings.append(
            f"{key}: {named} {verb} not {encoding} ({cause} of {name}) and left out of the index; "
            f"save as {encoding}, or name the encoding in input.encoding"
        )
    if found.empty:
        named, verb = _named(found.empty, "has", "have")
        warnings.append(f"{key}: {named} {verb} no text and can not be found by any search")
    return warnings


async def describe_unbuilt(key: str, root: Path) -> str:
    """Say of an index that is not built what is known of it, and what is not."""
    config = read_settings(root)
    kind = str(config.input.type)
    said = f"Index {key} is not built, and building it is not in these figures"
    if str(config.input_storage.type) == "file" and kind in _NAMES:
        found = await asyncio.to_thread(_read_all, config, kind, config.input.encoding or "utf-8")
        step = max(1, config.chunking.size - config.chunking.overlap)
        n_units = max(found.n_files, round(found.n_characters / 4 / step))
        said += (
            f": {counted(found.n_files, 'file')} of {found.n_characters:,} characters give about "
            f"{counted(n_units, 'text unit')}, each of which takes a call or more"
        )
    return (
        f"{said}. What is not known before: the calls for descriptions and reports, how full "
        "contexts get, and whether the questions fit the texts. --max-cost does not bound building."
    )


def _read_all(config: ProjectConfig, kind: str, encoding: str) -> _Found:
    """Read the files one by one; the texts are not kept, as all together may be large."""
    folder = Path(str(config.input_storage.base_dir))
    pattern = re.compile(_pattern(config, kind))
    found = _Found()
    for path in sorted(folder.rglob("*")):
        if not pattern.search(str(path)) or not path.is_file():
            continue
        found.n_files += 1
        name = path.relative_to(folder).as_posix()
        data = path.read_bytes()
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            found.unreadable[name] = f"byte {data[error.start]:#04x} at {error.start:,}"
        except LookupError:  # an encoding that Python does not know: the release says so
            return _Found(n_files=1)
        else:
            found.n_characters += len(text)
            if not text.strip():
                found.empty.append(name)
    return found


def _pattern(config: ProjectConfig, kind: str) -> str:
    return config.input.file_pattern or _NAMES[kind]


def _named(names: Sequence[str], one: str, many: str) -> tuple[str, str]:
    """Return the files as a subject, and the verb that goes with it."""
    if len(names) == 1:
        return f"the input file {names[0]}", one
    return f"{len(names)} input files, such as {names[0]},", many
