"""Reads this project's requirements from its metadata, and says which are missing.

The project is on no package index, so a hint can't say ``pip install gtog[...]``: it names the
missing libraries with the version ranges of pyproject.toml.
"""

import re
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires
from importlib.util import find_spec

WORDLLAMA, HASHED = "wordllama", "hashed-ngrams"
"""The ``model`` in the settings of an embedding by learned word vectors, or by hashed n-grams."""
STAND_IN = "hashed n-grams embed the texts here, as wordllama has no package for this platform"
"""Shown if hashed n-grams replace the word vectors."""

_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def requirements(extra: str | None = None) -> list[str]:
    """Return the project's requirements, or those that an extra adds, with their version ranges.

    Empty if the project has no metadata, as in a frozen program.
    """
    return list(_read_requirements(extra))


def _read_requirements(extra: str | None) -> dict[str, str]:
    """Return each requirement with its range -> the marker that says where it is needed."""
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
    """Return the extras that a user may want, without those that test or check the project."""
    try:
        names = metadata("gtog").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
    return [extra for extra in names if extra not in ("check", "real-model", "test")]


def missing_requirements(extra: str | None = None) -> list[str]:
    """Return the requirements on this platform that are not installed in any version."""
    return [
        line
        for line, marker in _read_requirements(extra).items()
        if not _is_installed(line) and _is_needed(marker, extra)
    ]


def has_no_wordllama() -> bool:
    """Say whether this platform has no package of learned word vectors, so uses n-grams."""
    if find_spec(WORDLLAMA) is not None:
        return False
    return not any(line.startswith(WORDLLAMA) for line in missing_requirements())


def pip_install(lines: Iterable[str]) -> str:
    """Return the command that installs these requirements into this environment.

    An environment that uv made has no pip. The requirements are quoted for any shell.
    """
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    has_pip = find_spec("pip") is not None
    install = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return " ".join([install, *(f'"{line}"' for line in lines)])


def extra_hint(extra: str) -> str:
    """Return the command that installs what an extra of this project still lacks.

    If nothing is lacking, because one of its libraries is broken, it names the whole extra.
    """
    return pip_install(missing_requirements(extra) or requirements(extra))


_troubles = set[Callable[[], str | None]]()


def ask_overlay(trouble: Callable[[], str | None]) -> None:
    """Let :func:`problem` also ask this function why the project can't run here.

    The overlay passes its own, because this module does not import the overlay.
    """
    _troubles.add(trouble)


def problem() -> str | None:
    """Return one sentence on why the project's commands can't run here; None if they can."""
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
