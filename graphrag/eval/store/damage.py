"""What is damaged in a store: found, and named with what to do about it."""

import sqlite3
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from graphrag.eval.errors import StoreError

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Kept(Protocol):
    path: Path


_S = TypeVar("_S", bound=_Kept)
_READING = (
    "runs",
    "samples",
    "responses",
    "search_states",
    "verdicts",
    "judge_usage",
    "judgements",
    "forgotten_usage",
    "unclaimed_usage",
    "finished_calls",
)


def damage_error(path: Path, found: object) -> StoreError:
    """Return the error of a file whose pages are damaged."""
    mended = path.with_name("new.db")
    line = f"sqlite3 {quote(str(path))} .recover | sqlite3 {quote(str(mended))}"
    return StoreError(f"{_refusal(path, found)} Save what can be read with: {line}")


def row_error(path: Path, found: str) -> StoreError:
    """Return the error of a row that can't be read; its page is whole, so SQLite sees nothing."""
    return StoreError(
        f"{_refusal(path, found)} Restore an earlier copy of it, or choose another folder with "
        "--output."
    )


def _refusal(path: Path, found: object) -> str:
    return f"{path} can't be used ({found}); nothing of it is shown or continued."


def names_damage(store: type[_S]) -> type[_S]:
    """Let the reading methods of a store name a row whose content can't be read.

    No result is made of it, nor of the others.
    """
    for name in _READING:
        setattr(store, name, _named(getattr(store, name)))
    return store


def _named(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    @wraps(method)
    def read(self: _S, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = " ".join(str(error).split())[:150]
            found = f"a row of its {method.__name__} is damaged: {why}"
            raise row_error(self.path, found) from error

    return read


def check_pages(path: Path) -> None:
    """Refuse an eval.db whose pages don't fit together.

    Bytes that were changed within a text are not seen: SQLite keeps no checksums.

    Raises
    ------
    StoreError
        Naming what was found first.
    """
    if not path.is_file():
        return
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        found = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        raise damage_error(path, error) from error
    finally:
        db.close()
    if found != "ok":
        raise damage_error(path, " ".join(found.split()))
