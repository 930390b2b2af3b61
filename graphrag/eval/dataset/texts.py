"""The texts of a folder, as a project's documents."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graphrag.eval.dataset.files import decode_text
from graphrag.eval.errors import DatasetError

_TEXT = ("", ".txt", ".text", ".md", ".markdown", ".rst", ".adoc", ".org")


@dataclass(frozen=True, slots=True)
class Texts:
    """What a folder holds: ``documents``, name below a project's input -> text.

    ``left_out``: file -> why it is no document. ``warnings`` are of how texts were read.
    """

    documents: Mapping[str, str]
    left_out: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def read_texts(folder: Path) -> Texts:
    """Read every file of text below a folder; hidden ones are passed over.

    A name that does not end in .txt gets that ending, as the release indexes no other. Raises
    DatasetError if there is no text in it; says what there is.
    """
    if not folder.is_dir():
        what = "is a file; name the folder that it is in" if folder.exists() else "does not exist"
        raise DatasetError(f"The folder {folder} {what}.")
    documents: dict[str, str] = {}
    left_out: dict[str, str] = {}
    warnings: list[str] = []
    for path in _list_files(folder):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() not in _TEXT:
            left_out[name] = f"{path.suffix} is not read as text"
            continue
        try:
            text, told = decode_text(path, path.read_bytes())
        except DatasetError:
            left_out[name] = "it is not text"
        except OSError as error:
            left_out[name] = error.strerror or type(error).__name__
        else:
            if text.strip():
                documents[name if path.suffix == ".txt" else f"{name}.txt"] = text
                warnings += told
            else:
                left_out[name] = "it is empty"
    if documents:
        return Texts(documents, left_out, tuple(warnings))
    if not left_out:
        raise DatasetError(f"The folder {folder} is empty; put your texts there, as .txt or .md.")
    name, why = next(iter(left_out.items()))
    n = f"none of its {len(left_out):,} files" if len(left_out) > 1 else "its only file is none"
    msg = f"The folder {folder} holds no text: {n}, as in {name} ({why})"
    raise DatasetError(f"{msg}; save what it holds as .txt or .md.")


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder in order; links to folders are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path
