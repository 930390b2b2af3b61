"""Synthetic power-law indexes for the benchmark of Think-on-Graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RELATIONSHIPS_PER_ENTITY = 10
ENTITIES_PER_TEXT_UNIT = 10
# A hub of the largest graph has about 100,000 edges with this exponent.
EXPONENT = 3.0
WORDS = """
river castle bridge letter market garden harbour sailor captain winter lantern valley mountain
teacher soldier merchant painter secret promise journey battle treaty council village stranger
daughter brother uncle fortune debt stolen hidden ancient
"""


def write_index(folder: Path, n_entities: int) -> None:
    """Write the three tables in pieces of a million rows, as graphrag's columns are."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(n_entities)
    words = WORDS.split()
    n_units = max(1, n_entities // ENTITIES_PER_TEXT_UNIT)
    sentences = pa.array([" ".join(rng.choice(words, 12)).capitalize() + "." for _ in range(5000)])
    unit_ids = pa.array([f"{i:x}".rjust(128, "f") for i in range(n_units)])
    titles = pa.array(
        [f"{words[i % len(words)].upper()} {words[i % 29].upper()} {i}" for i in range(n_entities)]
    )

    def texts(n: int) -> Any:
        halves = [sentences.take(pa.array(rng.integers(0, 5000, n))) for _ in range(2)]
        return pa.compute.binary_join_element_wise(*halves, " ")

    def cited(n: int) -> Any:
        ends = np.concatenate([[0], np.cumsum(rng.integers(1, 3, n))]).astype(np.int32)
        chosen = unit_ids.take(pa.array(rng.integers(0, n_units, ends[-1])))
        return pa.ListArray.from_arrays(pa.array(ends), chosen)

    def write(name: str, n: int, columns: Callable[[int, int], dict[str, Any]]) -> None:
        writer = None
        for begin in range(0, n, 1_000_000):
            size = min(1_000_000, n - begin)
            numbers = np.arange(begin, begin + size)
            common = {
                "id": pa.array([f"{name}-{i:032x}" for i in numbers.tolist()]),
                "human_readable_id": pa.array(numbers),
            }
            table = pa.table(common | columns(begin, size))
            writer = writer or parquet.ParquetWriter(folder / f"{name}.parquet", table.schema)
            writer.write_table(table, row_group_size=1_000_000)
        assert writer is not None
        writer.close()

    def ends(size: int) -> Any:
        return titles.take(pa.array((n_entities * rng.random(size) ** EXPONENT).astype(np.int64)))

    write(
        "entities",
        n_entities,
        lambda begin, size: {
            "title": titles[begin : begin + size],
            "description": texts(size),
            "text_unit_ids": cited(size),
        },
    )
    write(
        "relationships",
        n_entities * RELATIONSHIPS_PER_ENTITY,
        lambda _, size: {
            "source": ends(size),
            "target": titles.take(pa.array(rng.integers(0, n_entities, size))),
            "description": texts(size),
            "weight": pa.array(rng.integers(1, 40, size) / 4),
            "text_unit_ids": cited(size),
        },
    )
    write(
        "text_units",
        n_units,
        lambda begin, size: {
            "id": unit_ids[begin : begin + size],
            "text": pa.compute.binary_join_element_wise(texts(size), texts(size), texts(size), " "),
        },
    )


def read_ends(folder: Path) -> tuple[list[str], list[str], list[str], list[float]]:
    """Read titles, sources, targets and weights as Python objects."""
    import pyarrow.parquet as parquet

    titles = parquet.read_table(folder / "entities.parquet", columns=["title"])
    rows = parquet.read_table(
        folder / "relationships.parquet", columns=["source", "target", "weight"]
    )
    return (
        titles.column("title").to_pylist(),
        rows.column("source").to_pylist(),
        rows.column("target").to_pylist(),
        rows.column("weight").to_pylist(),
    )


def sample_titles(folder: Path, n: int) -> list[str]:
    """Draw the sources of some relationships, so that a hub is drawn as often as it is met."""
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(folder / "relationships.parquet")
    rows = next(file.iter_batches(batch_size=n, columns=["source"]))
    return rows.column("source").to_pylist()
