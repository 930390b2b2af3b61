"""Returns the languages of an index's texts: from its settings, else found in the texts."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from graphrag.text.languages import Languages, find_languages, sample
from graphrag.text.stems import has_stemmer

WORDS_VERSION = 4
"""Raised when words, stems or forms of names are compared in another way, because other texts may
then be found."""
FOLDER = "tog_graph"
"""The folder next to an index's tables, named after Think-on-Graph, for files that are made from
the tables once and then mapped."""
_KEPT = Path(FOLDER, "languages.json")
"""The file that keeps the languages found."""


def languages_of(
    named: Sequence[str] | None, path: Path | None, read_texts: Callable[[], Sequence[str]]
) -> Languages:
    """Return the languages of texts: those named, or else those found in the texts.

    ``path`` is the file of the texts' table, None if it is no file. The languages found are kept
    next to it until it changes.
    """
    if named:
        return Languages.named(named)
    if path is None:
        return _find(read_texts())
    status = path.stat()
    seen = [WORDS_VERSION, status.st_size, status.st_mtime_ns]
    kept = path.parent / _KEPT
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads(kept.read_bytes())
        if record["seen"] == seen:
            return Languages(record["languages"])
    languages = _find(read_texts())
    record = {"seen": seen, "languages": languages.by_script}
    with suppress(OSError):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(record), encoding="utf-8")
    return languages


def _find(texts: Sequence[str]) -> Languages:
    return find_languages([str(texts[row]) for row in sample(len(texts))])


def describe_languages(languages: Languages, are_named: bool) -> str:
    """Return a sentence on the languages in which words are compared, and how they are known."""
    if not languages.names:
        return "Languages: none was found in the texts; words are compared as they are."
    how = "named by languages in settings.yaml" if are_named else "found in the texts"
    text = f"Languages: {', '.join(languages.names)}, {how}."
    if plain := [name for name in languages.names if not has_stemmer(name)]:
        text += f" There are no stems of {', '.join(plain)}."
    return text
