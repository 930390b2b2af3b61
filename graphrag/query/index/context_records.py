"""Reads only the records of an index that can enter a released search's context.

The released builders look through all records of an index for each question, and write into some.
Given new copies of the records around the question's hits, they make the same contexts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphrag.data_model.community_report import CommunityReport
from graphrag.data_model.entity import Entity
from graphrag.data_model.relationship import Relationship
from graphrag.data_model.text_unit import TextUnit
from graphrag.query.index.table_rows import Ints, Positions, TableRows
from graphrag.query.indexer_adapters import read_indexer_covariates, read_indexer_reports

if TYPE_CHECKING:
    from graphrag.data_model.covariate import Covariate
    from graphrag.query.index.tables import IndexTables

CLAIMS = "claims"
"""The release's name for the covariates of an index."""
_NONE = -1
"""The release's community number for an entity without community."""


class TextRecords:
    """Finds the text units of an index by id."""

    def __init__(self, tables: "IndexTables") -> None:
        self._rows = tables.rows("text_units")
        self._positions = Positions(self._rows.texts("id"))

    def around(self, ids: Iterable[str] | None) -> dict[str, list[TextUnit]]:
        """Return the records for the released builder of basic search, by its attributes' names."""
        return {"text_units": self.read(ids or ())}

    def read(self, ids: Iterable[str]) -> list[TextUnit]:
        """Return the text units with these ids, in the table's order."""
        return [
            TextUnit(
                id=str(row["id"]),
                short_id=str(row["human_readable_id"]),
                text=str(row["text"]),
                relationship_ids=row.get("relationship_ids"),
            )
            for row in self._rows.read(self._positions.find_all(ids))
        ]


class EntityRecords:
    """Finds the records around entities: relationships, texts, reports and claims.

    ``level`` is the deepest level of communities that is read; None for all.
    """

    def __init__(self, tables: "IndexTables", texts: TextRecords, level: int | None) -> None:
        self._texts = texts
        self._entities = tables.rows("entities")
        self._positions = Positions(self._entities.texts("id"))
        self._edges = _Edges(self._entities, tables.rows("relationships"))
        communities = tables.rows("communities")
        self._communities = _Communities(communities, level)
        self._reports = tables.rows("community_reports")
        self._reports_of = _find_reports(self._reports, communities, level)
        self._claims: list[Covariate] = []
        if tables.has("covariates"):
            self._claims = read_indexer_covariates(tables.table("covariates"))
        self._claims_on: dict[str, list[int]] = {}
        for number, claim in enumerate(self._claims):
            self._claims_on.setdefault(claim.subject_id, []).append(number)

    def around(self, ids: Iterable[str] | None) -> dict[str, Any]:
        """Return the records for the released builder of local search, by its attributes' names.

        ``ids``: entities' ids as the vectors have them; None for all entities.
        """
        if ids is None:
            positions = list(range(self._entities.n))
        else:
            # A vector may have a UUID with dashes, and its entity one without.
            names = (name for i in ids for name in (i, i.replace("-", "")))
            positions = self._positions.find_all(names)
        entities = self._read_entities(positions)
        texts = self._texts.read({unit for e in entities for unit in e.text_unit_ids or ()})
        return {
            "entities": {entity.id: entity for entity in entities},
            "relationships": {edge.id: edge for edge in self._edges.read(positions)},
            "text_units": {unit.id: unit for unit in texts},
            "community_reports": self._read_reports(entities),
            "covariates": {CLAIMS: self._claims_about(entities)},
        }

    def _read_entities(self, positions: Sequence[int]) -> list[Entity]:
        """Read the entities that have a community within the levels; of equal ids the first."""
        first = {str(row["id"]): row for row in reversed(self._entities.read(positions))}
        return [
            Entity(
                id=name,
                short_id=str(row["human_readable_id"]),
                title=str(row["title"]),
                description=row["description"],
                community_ids=communities,
                text_unit_ids=row["text_unit_ids"],
                rank=row.get("degree"),
            )
            for name, row in sorted(first.items())  # as the release has them
            if (communities := self._communities.of(name))
        ]

    def _read_reports(self, entities: Iterable[Entity]) -> dict[str, CommunityReport]:
        names = dict.fromkeys(name for entity in entities for name in entity.community_ids or ())
        positions = sorted({row for name in names for row in self._reports_of.get(name, ())})
        return {
            str(row["community"]): CommunityReport(
                id=str(row["id"]),
                short_id=str(row["community"]),
                title=str(row["title"]),
                community_id=str(row["community"]),
                summary=str(row["summary"]),
                full_content=str(row["full_content"]),
                rank=row["rank"],
            )
            for row in self._reports.read(positions)
        }

    def _claims_about(self, entities: Iterable[Entity]) -> "list[Covariate]":
        about = {number for e in entities for number in self._claims_on.get(e.title, ())}
        # The first claim names the columns, even if no claim is about these entities.
        return [self._claims[number] for number in sorted(about | {0})] if self._claims else []


class _Communities:
    """The communities of each entity, up to a level."""

    def __init__(self, communities: TableRows, level: int | None) -> None:
        rows, entities = communities.entries("entity_ids")
        self._numbers: Ints = communities.table.column("community").to_numpy()[rows]
        self._is_read = np.ones(len(rows), bool)
        if level is not None:
            self._is_read = communities.table.column("level").to_numpy()[rows] <= level
        self._positions, self._default = Positions(entities), [] if level is not None else [_NONE]

    def of(self, entity: str) -> list[str]:
        """Return the communities of an entity; none if it is in none within the level."""
        positions = self._positions.find(entity)
        if not positions:
            return [*map(str, self._default)]
        # In the order of a set, as in the release.
        return [*map(str, set(self._numbers[[p for p in positions if self._is_read[p]]].tolist()))]


class _Edges:
    """Finds the relationships of an index by their ends, in the table's order.

    If relationships share an id, the last one is read, at the position of the first.
    """

    def __init__(self, entities: TableRows, relationships: TableRows) -> None:
        self._rows = relationships
        ids = pd.factorize(relationships.texts("id").to_pandas())[0]
        self._row_of = np.zeros(int(ids.max(initial=-1)) + 1, np.int64)
        self._row_of[ids] = np.arange(len(ids))
        columns = [entities.texts("title"), *map(relationships.texts, ("source", "target"))]
        series = pd.concat([column.to_pandas() for column in columns], ignore_index=True)
        codes: npt.NDArray[np.int32] = pd.factorize(series)[0].astype(np.int32)
        self._title_of = codes[: entities.n]
        ends = codes[entities.n :].reshape(2, -1)[:, self._row_of].ravel()
        order: Ints = np.argsort(ends, kind="stable")
        self._edges = (order % max(1, len(self._row_of))).astype(np.int32)
        titles: Ints = np.arange(int(codes.max(initial=-1)) + 2)
        self._begins = np.searchsorted(ends[order], titles)

    def read(self, entities: Sequence[int]) -> list[Relationship]:
        """Return the relationships that have an end at these rows of entities."""
        edges = {
            edge
            for title in {*self._title_of[entities].tolist()}
            for edge in self._edges[self._begins[title] : self._begins[title + 1]].tolist()
        }
        return [
            Relationship(
                id=str(row["id"]),
                short_id=str(row["human_readable_id"]),
                source=str(row["source"]),
                target=str(row["target"]),
                description=row["description"],
                weight=row["weight"],
                text_unit_ids=row["text_unit_ids"],
                rank=row.get("combined_degree"),
            )
            for row in self._rows.read(self._row_of[sorted(edges)])
        ]


def _find_reports(
    reports: TableRows, communities: TableRows, level: int | None
) -> Mapping[str, list[int]]:
    """Return community -> rows of its reports, for the reports that the released reader keeps."""
    light = reports.table.select(["community", "level"]).to_pandas()
    light = light.assign(id=light.index, title="", summary="", full_content="")
    titles = communities.table.select(["community", "title", "level"]).to_pandas()
    kept: dict[str, list[int]] = {}
    for report in read_indexer_reports(light, titles.assign(entity_ids=None), level):
        kept.setdefault(report.community_id, []).append(int(report.id))
    return kept
