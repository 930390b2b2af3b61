"""The indexes that a run searched, as far as they are still the same."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from graphrag.eval.errors import ConfigError, IndexUnavailableError
from graphrag.eval.runner.headers import read_headers
from graphrag.eval.scorers.index_view import IndexView, read_index_views
from graphrag.eval.store.setup import RunSetup
from graphrag.query.index_header import IndexHeader


async def read_searched_views(roots: Mapping[str, Path], setup: RunSetup) -> dict[str, IndexView]:
    """Return key -> view of the indexes that are still as a run searched them.

    Parameters
    ----------
    roots : mapping
        Index key -> project folder, as it is configured now.
    setup : RunSetup
        The run's. An index that is gone or was built again since is
        left out, as what it says now is of no use.
    """
    same: dict[str, IndexHeader] = {}
    for key, described in setup.indexes.items():
        if key not in roots:
            continue
        searched = {each.get("index") for each in described.values()} - {None}
        try:
            found = (await read_headers({key: roots[key]}, vectors=False))[key]
        except (ConfigError, IndexUnavailableError):
            continue
        if searched <= {found.fingerprint}:
            same[key] = found
    return await read_index_views(same)


def describe_unmeasured(keys: Iterable[str]) -> list[str]:
    """Return a line for each index on which a run can't be measured any more."""
    return [
        f"index {key} is not the one that was searched any more, so that retrieval, "
        "paths and losses are not measured on it"
        for key in keys
    ]
