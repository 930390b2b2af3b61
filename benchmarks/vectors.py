"""Vector look-ups before and after optimising: times, and recall at 20 against an exact scan.

python benchmarks/vectors.py           20,000 and 200,000 vectors of length 768
python benchmarks/vectors.py --quick   5,000 of length 64, a few seconds

The vectors lie in overlapping clusters of a low-dimensional space, as embeddings of related texts
do; the questions are further draws from it. The table is written by graphrag's own store. Each
way of searching is compared with the scan that was timed just before in the same process:
as graphrag writes the table, after `graphrag eval validate --fix`, and with the index that LanceDB
makes when left to itself. The last column is how many of 100 ids a search limited to them finds.
Times are medians over the questions, wall-clock; JSON goes to --json.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from graphrag_vectors import F
from graphrag_vectors.lancedb import LanceDBVectorStore
from lancedb.index import IvfFlat
from synthetic_index import write_vectors

from graphrag.config.project_settings import read_settings
from graphrag.query.index.vector_index import optimise_vectors, vector_state

K = 20
N_IDS = 100
INNER_DIMENSIONS = 32
SETTINGS = """\
completion_models:
  default_completion_model: {type: offline, model_provider: offline, model: rules}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 384}
vector_store: {vector_size: LENGTH}
"""


@dataclass(frozen=True)
class Row:
    """One way of searching one table."""

    vectors: int
    length: int
    way: str
    built_s: float
    search_ms: float
    times_faster: float
    recall_at_20: float
    ids_found: int


def draw(count: int, length: int, chance: np.random.Generator, space: tuple) -> np.ndarray:
    """Draw vectors of length 1 from clusters whose width is their distance from each other."""
    axes, centres = space
    inner = centres[chance.integers(0, len(centres), count)]
    inner = inner + chance.standard_normal(inner.shape, dtype=np.float32)
    vectors = inner @ axes
    vectors += 0.5 / np.sqrt(length) * chance.standard_normal((count, length), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_space(count: int, length: int, chance: np.random.Generator) -> tuple:
    axes = chance.standard_normal((INNER_DIMENSIONS, length), dtype=np.float32) / np.sqrt(length)
    n_centres = max(16, int(count**0.5) // 4)
    return axes, chance.standard_normal((n_centres, INNER_DIMENSIONS), dtype=np.float32)


def timed(search: Callable[[np.ndarray], list[str]], questions: np.ndarray) -> tuple[float, list]:
    search(questions[0])  # opens the files
    times, found = [], []
    for question in questions:
        began = time.perf_counter()
        found.append(search(question))
        times.append(1000 * (time.perf_counter() - began))
    return median(times), found


def recall(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(found, exact, strict=True)]))


def measure(count: int, length: int, n_questions: int, folder: Path) -> list[Row]:
    chance = np.random.default_rng(7)
    space = make_space(count, length, chance)
    questions = draw(n_questions, length, chance, space)
    (folder / "settings.yaml").write_text(SETTINGS.replace("LENGTH", str(length)))
    config = read_settings(folder)
    place = str(config.vector_store.db_uri)
    store = LanceDBVectorStore(db_uri=place, index_name="entity_description", vector_size=length)
    store.connect()
    store.create_index()
    vectors = draw(count, length, chance, space)
    write_vectors(store, [str(at) for at in range(count)], vectors)
    ids = [str(at) for at in chance.choice(count, N_IDS, replace=False)]

    def search(question: np.ndarray) -> list[str]:
        return [str(hit.document.id) for hit in store.similarity_search_by_vector(question, k=K)]

    def scan(question: np.ndarray) -> list[str]:
        query: Any = store.document_collection.search(question, vector_column_name="vector")
        return [row["id"] for row in query.bypass_vector_index().limit(K).to_list()]

    def row(way: str, built_s: float) -> Row:
        scan_ms, exact = timed(scan, questions)
        search_ms, found = timed(search, questions)
        limited = store.similarity_search_by_vector(questions[0], k=N_IDS, filters=F.id.in_(ids))
        return Row(
            vectors=count,
            length=length,
            way=way,
            built_s=round(built_s, 2),
            search_ms=round(search_ms, 2),
            times_faster=round(scan_ms / search_ms, 2),
            recall_at_20=round(recall(found, exact), 4),
            ids_found=len(limited),
        )

    (state,) = vector_state(config)
    assert (state.rows, state.indexed_rows) == (count, 0)
    rows = [row("as graphrag writes it", 0.0)]
    began = time.perf_counter()
    optimise_vectors(config)
    seconds = time.perf_counter() - began
    store.connect()
    rows.append(row("optimised", seconds))
    began = time.perf_counter()
    store.document_collection.create_index("vector", config=IvfFlat(), replace=True)
    seconds = time.perf_counter() - began
    return [*rows, row("LanceDB's own choice", seconds)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--json", type=Path, help="file to write")
    chosen = parser.parse_args()
    sizes = [(5_000, 64, 10)] if chosen.quick else [(20_000, 768, 40), (200_000, 768, 20)]
    rows: list[Row] = []
    for count, length, n_questions in sizes:
        with TemporaryDirectory() as folder:
            rows += measure(count, length, n_questions, Path(folder))
    print(
        "| vectors | way | built s | search ms | times faster | recall at 20 | ids found of 100 |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|")
    for r in rows:
        print(
            f"| {r.vectors:,} | {r.way} | {r.built_s} | {r.search_ms} | {r.times_faster} "
            f"| {r.recall_at_20} | {r.ids_found} |"
        )
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(r) for r in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
