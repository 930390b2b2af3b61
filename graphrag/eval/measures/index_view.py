"""What the measures without a model look at in an index: its documents, text units and graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_storage import create_storage
from graphrag_storage.tables.table_provider_factory import create_table_provider

from graphrag.data_model.data_reader import DataReader
from graphrag.eval.measures.evidence import SourceIndex
from graphrag.eval.measures.index_columns import texts_of
from graphrag.eval.measures.index_records import IndexRecords
from graphrag.eval.measures.loss import TracedIndex
from graphrag.eval.measures.response import MeasuredIndex
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
