"""Names a run's files, and writes files completely or not at all, several of them together."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from graphrag.eval.errors import StoreError
from graphrag.text.held_files import move
from graphrag.text.redaction import StreamRedactor, redact_data

RUNS_FOLDER = "runs"
SUMMARY_FILE = "eval_results_summary.json"
DETAILED_FILE = "eval_results_detailed.json"
REPORT_FILE = "retrieval_results.json"
PAGE_FILE = "report.html"
Content: TypeAlias = str | bytes | Path | Iterable[str]
"""Content for a file: a text, also in pieces that are read once; bytes; or the content of the file
at a path, by a hard link to it if the disk allows that."""
_READABLE = 0o644
_WRITTEN_AT_ONCE = 1 << 20


def run_folder(output_dir: Path, run_id: str) -> Path:
    """Return the folder of a run's own files.

    Raises StoreError if the id, which may come from anybody's files, leads anywhere else.
    """
    if run_id in (".", "..") or {"/", "\\", "\0"} & {*run_id}:
        raise StoreError(f"{run_id!r} is no run's id: it leads out of {output_dir / RUNS_FOLDER}.")
    return output_dir / RUNS_FOLDER / run_id


def label_file(metric: str) -> str:
    """Return the name of the file, in a run's folder, with people's labels on a metric."""
    return f"audit_{metric}.json"


def write_whole(folder: Path, texts: Mapping[str, Content]) -> list[Path]:
    """Write files into a folder, which is made if missing, and return their paths.

    Files are replaced only once all of them are on the disk, so that a full disk leaves the earlier
    ones as they were. ``texts``: name -> content; text is written as UTF-8. Raises StoreError if
    one can't be written.
    """
    files = {folder / name: text for name, text in texts.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_files(files)
    except OSError as error:
        reason = error.strerror or str(error)
        msg = f"The results can't be written to {folder}: {reason}; choose another folder."
        raise StoreError(msg) from error
    return list(files)


def write_file(path: Path, content: Content, flag: str | None = None) -> None:
    """Write a file that a person named, into a folder that is made if missing.

    An existing file keeps its permissions, and a protected one stays as it is. A link, a pipe or a
    device (``/dev/stdout``) is written through. ``flag``: the flag that chooses another path, for
    the error. Raises StoreError if the file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with path.open("wb") as file:
                file.writelines(_encode_content(content))
        else:
            replace_files({path: content}, _mode(path))
    except OSError as error:
        reason = error.strerror
        why = f": {reason}." if flag is None else f" ({reason}); choose another {flag}."
        raise StoreError(f"{path} can't be written{why}") from error


def replace_files(files: Mapping[Path, Content], mode: int = _READABLE) -> None:
    """Replace files once all of them are on the disk; raises OSError if one can't be written."""
    written: list[tuple[Path, Path]] = []
    try:
        for path, content in files.items():
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written.append((Path(temporary), path))
            if isinstance(content, Path) and _link(content, Path(temporary)):
                os.close(handle)
                continue
            with os.fdopen(handle, "wb") as file:
                file.writelines(_encode_content(content))
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(mode)
        for temporary, path in written:
            move(temporary, path)
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


def _link(source: Path, name: Path) -> bool:
    """Make ``name`` a hard link to ``source``; return False, and leave it, if that fails."""
    other = name.with_name(f"{name.name}.link")
    try:
        os.link(source, other)
        other.replace(name)
    except OSError:
        return False
    return True


def _encode_content(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        with content.open("rb") as file:
            while read := file.read(_WRITTEN_AT_ONCE):
                yield read
    elif isinstance(content, str):
        yield _encode(redact_data(content))
    else:
        redactor = StreamRedactor()
        for text in _gather(content):
            yield _encode(redactor.feed(text))
        yield _encode(redactor.end())


def _gather(pieces: Iterable[str]) -> Iterator[str]:
    batch: list[str] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= _WRITTEN_AT_ONCE:
            yield "".join(batch)
            batch, size = [], 0
    yield "".join(batch)


def _encode(text: str) -> bytes:
    return text.replace("\n", os.linesep).encode()


def _mode(path: Path) -> int:
    if path.exists():
        with path.open("ab") as file:
            return os.fstat(file.fileno()).st_mode & 0o7777
    mask = os.umask(0o077)  # it can be read only by setting it
    os.umask(mask)
    return 0o666 & ~mask
