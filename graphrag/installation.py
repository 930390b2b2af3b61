"""What this project needs from its environment, read from its own metadata.

The project is on no package index, so a hint can't say ``pip install gtog[...]``: it names the
missing libraries with the ranges that pyproject.toml gives them.
"""

import re
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires
from importlib.util import find_spec

WORDLLAMA, HASHED = "wordllama", "hashed-ngrams"
"""What ``model`` is in the settings of an embedding by learned word vectors, or hashed n-grams."""
STAND_IN = "hashed n-grams embed the texts here, as wordllama has no package for this platform"
"""What is said where they do in its place."""

_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def requirements(extra: str | None = None) -> list[str]:
    """List what the project needs always, or what an extra adds: distributions with their ranges.

    Empty if the project has no metadata, as in a frozen program.
    """
    return list(_read_requirements(extra))


def _read_requirements(extra: str | None) -> dict[str, str]:
    """Return distribution with its range -> the marker of where it is needed."""
    try:
        lines = requires("gtog") or []
    except PackageNotFoundError:
        return {}
    markers: dict[str, str] = {}
    for line in lines:
        requirement, _, marker = line.partition(";")
        line_extras = _EXTRA.findall(marker)
        if line_extras == ([] if extra is None else [extra]):
            markers[requirement.strip()] = marker.strip()
    return markers


def extras() -> list[str]:
    """List the extras that a user may want: not those that test or check the project."""
    try:
        names = metadata("gtog").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
    return [extra for extra in names if extra not in ("check", "real-model", "test")]


def missing_requirements(extra: str | None = None) -> list[str]:
    """List those requirements on this platform of which no version at all is installed."""
    return [
        line
        for line, marker in _read_requirements(extra).items()
        if not _is_installed(line) and _is_needed(marker, extra)
    ]


def has_no_wordllama() -> bool:
    """Say whether this platform has no package of learned word vectors: n-grams stand in."""
    if find_spec(WORDLLAMA) is not None:
        return False
    return not any(line.startswith(WORDLLAMA) for line in missing_requirements())


def pip_install(lines: Iterable[str]) -> str:
    """Return the command that installs these requirements, as every shell takes it."""
    return " ".join(["pip install", *(f'"{line}"' for line in lines)])


def extra_hint(extra: str) -> str:
    """Return the command that installs what an extra of this project still lacks.

    It names the whole extra where every distribution is there, and one of them is broken.
    """
    return pip_install(missing_requirements(extra) or requirements(extra))


_troubles = set[Callable[[], str | None]]()


def ask_overlay(trouble: Callable[[], str | None]) -> None:
    """Ask this too why the project can't run here: the overlay stands above, and says it down."""
    _troubles.add(trouble)


def problem() -> str | None:
    """Say in one sentence why the project's commands can't run here, or None if they can."""
    for cause in filter(None, (trouble() for trouble in _troubles)):
        return f"there is no gtog here: {cause}."
    missing = missing_requirements()
    if missing:
        return f"not installed: {', '.join(missing)}. Run: {pip_install(missing)}"
    return None


def _is_needed(marker: str, extra: str | None) -> bool:
    if not marker:
        return True
    from packaging.markers import Marker

    return Marker(marker).evaluate({"extra": extra or ""})


def _is_installed(line: str) -> bool:
    name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
