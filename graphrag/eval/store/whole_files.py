"""Files that are written whole or not at all, several of them together."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from graphrag.eval.errors import StoreError


def write_whole(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files into a folder, which is made when missing, and return their paths.

    A file is replaced only once all of them are on the disk, so that a full disk leaves the
    earlier ones as they were.

    Parameters
    ----------
    folder : Path
    texts : mapping
        Name -> content, written as UTF-8.

    Raises
    ------
    StoreError
        If the folder can't be written.
    """
    written: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            written.append((Path(temporary), folder / name))
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
        for temporary, path in written:
            temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        msg = f"The results can't be written to {folder}: {reason}; choose another folder."
        raise StoreError(msg) from error
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
    return [path for _, path in written]
