"""What the measures without a model look at in an index: its documents, text units and graph."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_storage import create_storage
from graphrag_storage.tables.table_provider_factory import create_table_provider

from graphrag.data_model.data_reader import DataReader
from graphrag.eval.errors import ConfigError, IndexUnavailableError
from graphrag.eval.index_columns import texts_of
from graphrag.eval.loss import TracedIndex
from graphrag.eval.measures import MeasuredIndex
from graphrag.eval.metrics.index_records import IndexRecords
from graphrag.eval.preparation import read_headers
from graphrag.eval.source_matching import SourceIndex
from graphrag.query.index_header import IndexHeader
from graphrag.query.index_tables import IndexTables

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("documents", "text_units", "entities", "relationships")


@dataclass(frozen=True, slots=True)
class IndexView:
    """One index, read once; for measures, and to trace where an answer was lost."""

    measured: MeasuredIndex
    traced: TracedIndex


async def read_index_views(headers: Mapping[str, IndexHeader]) -> dict[str, IndexView]:
    """Return key -> view of each index that has text units; others can't be measured."""
    views = {key: await _read_view(header) for key, header in headers.items()}
    return {key: view for key, view in views.items() if view is not None}


async def read_searched_views(
    roots: Mapping[str, Path], setup: Mapping[str, Any]
) -> dict[str, IndexView]:
    """Return key -> view of the indexes that are still as a run searched them.

    Parameters
    ----------
    roots : mapping
        Index key -> project folder, as it is configured now.
    setup : mapping
        The run's, see ``plan.describe_setup``. An index that is gone or was built again since is
        left out, as what it says now is of no use.
    """
    same: dict[str, IndexHeader] = {}
    for key, described in setup["indexes"].items():
        if key not in roots:
            continue
        searched = {each.get("index") for each in described.values()} - {None}
        try:
            found = (await read_headers({key: roots[key]}))[key]
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


async def _read_view(header: IndexHeader) -> IndexView | None:
    storage = create_storage(header.config.output_storage)
    provider = create_table_provider(header.config.table_provider, storage=storage)
    reader: Any = DataReader(provider)
    frames: dict[str, pd.DataFrame] = {
        name: await getattr(reader, name)() for name in _NAMES if await provider.has(name)
    }
    if "text_units" not in frames:
        return None
    sources = SourceIndex(frames["text_units"], frames.get("documents"))
    entities = frames.get("entities")
    return IndexView(
        MeasuredIndex(
            sources,
            tuple(texts_of(entities, "title")),
            IndexRecords(
                IndexTables(
                    entities=entities,
                    relationships=frames.get("relationships"),
                    text_units=frames["text_units"],
                )
            ),
        ),
        TracedIndex(sources, entities, frames.get("relationships")),
    )
