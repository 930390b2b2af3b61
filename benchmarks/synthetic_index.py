"""A project with a synthetic index of any size, as graphrag 3 writes one, made without a model.

    python benchmarks/synthetic_index.py FOLDER TEXT_UNITS DOCUMENTS

Texts are made-up words, as frequent as words of a language are, with the names of entities among
them; the embedded model embeds them. Entities and relationships name the texts that have their
names.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from graphrag_vectors.lancedb import LanceDBVectorStore

from graphrag.embedded.vectors import embed_texts

METHODS = ("tog", "ppr", "hybrid", "bm25", "local", "basic")
LENGTH = 256
BATCH = 10_000
TEXTS_A_QUESTION = 10
NAMES_A_TEXT, WORDS_A_TEXT = 10, 150
RELATIONSHIPS_AN_ENTITY = 3
ENTITIES_A_COMMUNITY = 50
FREQUENT = """the of and to in a was he that it his her with as had for she not at by be this have
from or which one would all there they were when who him been them will said out if then what into
more some could now time no man two upon before day house after again made never about"""
SYLLABLES = "ba ke li mo nu ra so ti ve zor dan fel gim hul jas kem lop mir nes pol"
SETTINGS = f"""\
completion_models:
  default_completion_model: {{type: offline, model_provider: offline, model: rules}}
embedding_models:
  default_embedding_model:
    {{type: offline, model_provider: offline, model: wordllama, dimensions: {LENGTH}}}
vector_store: {{vector_size: {LENGTH}}}
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The number of rows of each kind."""

    text_units: int
    documents: int

    @property
    def entities(self) -> int:
        return 5 * self.text_units

    @property
    def relationships(self) -> int:
        return RELATIONSHIPS_AN_ENTITY * self.entities


SIZES = {"S": Size(1_000, 50), "M": Size(20_000, 1_000), "L": Size(100_000, 100_000)}


def write_project(root: Path, size: Size) -> None:
    """Write a project with its index and a question for ten text units, where there is none.

    Example: ``write_project(Path("M"), SIZES["M"])``
    """
    if (root / "eval_config.yaml").exists():
        return
    output = root / "output"
    output.mkdir(parents=True)
    chance = np.random.default_rng(size.text_units)
    names = [f"{first} {second}".upper() for first, second in islice(_pairs(), size.entities)]
    named = chance.integers(0, size.entities, (size.text_units, NAMES_A_TEXT))
    # Each entity is in a text at least.
    named.flat[chance.permutation(named.size)[: size.entities]] = np.arange(size.entities)
    texts = list(_texts(named, names, chance))
    units = [f"{number:0128x}" for number in range(size.text_units)]
    _write_texts(output, size, texts, units, named)
    _write_graph(output, names, named, units, chance)
    (root / "settings.yaml").write_text(SETTINGS)
    for table, ids, embedded in (
        ("text_unit_text", units, texts),
        (
            "entity_description",
            _ids("entity", size.entities),
            [f"{name}:{_describe(name)}" for name in names],
        ),
    ):
        _write_vectors(output / "lancedb", table, ids, embedded)
    _write_questions(root, names, named, texts)


def _pairs() -> Iterator[tuple[str, str]]:
    syllables = SYLLABLES.split()
    first = ["".join(parts) for parts in product(syllables, repeat=3)]
    second = ["".join(parts) for parts in product(syllables, syllables[:5], syllables)]
    for shift in range(len(second)):
        for number, word in enumerate(first):
            yield word, second[(number + shift * 7) % len(second)]


def _texts(named: Any, names: list[str], chance: np.random.Generator) -> Iterator[str]:
    rare = ("".join(parts) for parts in product(SYLLABLES.split(), repeat=4))
    words = [*FREQUENT.split(), *islice(rare, 30_000)]
    share = 1 / np.arange(1, len(words) + 1)
    reached = np.cumsum(share / share.sum())
    rows: list[list[int]] = named.tolist()
    for row in rows:
        drawn = np.searchsorted(reached, chance.random(WORDS_A_TEXT))
        spelled = [words[min(word, len(words) - 1)] for word in drawn]
        step = WORDS_A_TEXT // NAMES_A_TEXT
        sentences = [
            f"{names[name].title()} {' '.join(spelled[at * step : (at + 1) * step])}."
            for at, name in enumerate(row)
        ]
        yield " ".join(sentences)


def _ids(kind: str, n: int) -> list[str]:
    return [f"{kind}-{number:032x}" for number in range(n)]


def _describe(name: str) -> str:
    return f"{name.title()} is known in the valley."


def _lists(rows: Sequence[Sequence[str]]) -> pa.Array:
    return pa.array(rows, pa.list_(pa.string()))


def _write(output: Path, name: str, ids: Sequence[str], **columns: object) -> None:
    numbers = pa.array(np.arange(len(ids)))
    table = pa.table({"id": pa.array(ids), "human_readable_id": numbers, **columns})
    pq.write_table(table, output / f"{name}.parquet")


def _write_texts(
    output: Path, size: Size, texts: Sequence[str], units: Sequence[str], named: Any
) -> None:
    documents = _ids("document", size.documents)
    each = size.text_units // size.documents
    entities = _ids("entity", size.entities)
    rows: list[list[int]] = named.tolist()
    _write(
        output,
        "text_units",
        units,
        text=pa.array(texts),
        n_tokens=pa.array([len(text) // 4 for text in texts]),
        document_id=pa.array(np.repeat(documents, each).tolist()),
        entity_ids=_lists([[entities[name] for name in sorted(set(row))] for row in rows]),
        relationship_ids=_lists([[]] * len(units)),
        covariate_ids=_lists([[]] * len(units)),
    )
    begins = range(0, size.text_units, each)
    _write(
        output,
        "documents",
        documents,
        title=pa.array([f"document-{number}.txt" for number in range(size.documents)]),
        text=pa.array(["\n".join(texts[begin : begin + each]) for begin in begins]),
        text_unit_ids=_lists([units[begin : begin + each] for begin in begins]),
        creation_date=pa.array(["2026-01-01"] * size.documents),
    )


def _write_graph(
    output: Path,
    names: list[str],
    named: Any,
    units: Sequence[str],
    chance: np.random.Generator,
) -> None:
    texts_of: list[list[str]] = [[] for _ in names]
    for unit, row in zip(units, named, strict=True):
        for name in set(row.tolist()):
            texts_of[name].append(unit)
    n = len(names) * RELATIONSHIPS_AN_ENTITY
    at = np.sort(chance.integers(0, len(units), n))
    drawn = chance.integers(0, NAMES_A_TEXT, (2, n))
    sources, targets = named[at, drawn[0]], named[at, drawn[1]]
    pairs: list[tuple[int, int]] = np.stack([sources, targets], axis=1).tolist()
    degrees = np.bincount(sources, minlength=len(names)) + np.bincount(
        targets, minlength=len(names)
    )
    entities, relationships = _ids("entity", len(names)), _ids("relationship", n)
    _write(
        output,
        "entities",
        entities,
        title=pa.array(names),
        type=pa.array(["PERSON"] * len(names)),
        description=pa.array([_describe(name) for name in names]),
        text_unit_ids=_lists(texts_of),
        frequency=pa.array([len(texts) for texts in texts_of]),
        degree=pa.array(degrees),
    )
    ends = [(names[source], names[target]) for source, target in pairs]
    _write(
        output,
        "relationships",
        relationships,
        source=pa.array([source for source, _ in ends]),
        target=pa.array([target for _, target in ends]),
        description=pa.array([f"{a.title()} wrote a letter to {b.title()}." for a, b in ends]),
        weight=pa.array(chance.integers(1, 10, n).astype(float)),
        combined_degree=pa.array(degrees[sources] + degrees[targets]),
        text_unit_ids=_lists([[units[int(unit)]] for unit in at]),
    )
    _write_communities(output, entities)


def _write_communities(output: Path, entities: Sequence[str]) -> None:
    n = len(entities) // ENTITIES_A_COMMUNITY
    shared = {
        "community": pa.array(np.arange(n)),
        "level": pa.array(np.zeros(n, int)),
        "parent": pa.array(np.full(n, -1)),
        "children": pa.array([[]] * n, pa.list_(pa.int64())),
        "title": pa.array([f"Community {number}" for number in range(n)]),
        "period": pa.array(["2026-01-01"] * n),
        "size": pa.array(np.full(n, ENTITIES_A_COMMUNITY)),
    }
    begins = range(0, n * ENTITIES_A_COMMUNITY, ENTITIES_A_COMMUNITY)
    members = [entities[begin : begin + ENTITIES_A_COMMUNITY] for begin in begins]
    _write(
        output,
        "communities",
        _ids("community", n),
        **shared,
        entity_ids=_lists(members),
        relationship_ids=_lists([[]] * n),
        text_unit_ids=_lists([[]] * n),
    )
    summaries = pa.array([f"Community {number} writes letters." for number in range(n)])
    _write(
        output,
        "community_reports",
        _ids("report", n),
        **shared,
        summary=summaries,
        full_content=summaries,
        rank=pa.array(np.full(n, 5.0)),
        rating_explanation=summaries,
        full_content_json=pa.array(["{}"] * n),
    )


def _write_vectors(folder: Path, name: str, ids: Sequence[str], texts: Sequence[str]) -> None:
    store = LanceDBVectorStore(db_uri=str(folder), index_name=name, vector_size=LENGTH)
    store.connect()
    store.create_index()
    for first in range(0, len(ids), BATCH):
        embedded = embed_texts("wordllama", texts[first : first + BATCH], LENGTH)
        write_vectors(store, ids[first : first + BATCH], np.array(embedded, np.float32))


def write_vectors(store: LanceDBVectorStore, ids: Sequence[str], vectors: Any) -> None:
    """Write a table of vectors in batches, as graphrag does for a large index."""
    table = store.document_collection
    for first in range(0, len(ids), BATCH):
        batch = vectors[first : first + BATCH]
        columns: dict[str, object] = {
            column: pa.nulls(len(batch), "string") for column in table.schema.names
        }
        columns["id"] = list(ids[first : first + BATCH])
        flat = pa.array(batch.ravel())
        columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, batch.shape[1])
        table.add(pa.table(columns))


def _write_questions(root: Path, names: list[str], named: Any, texts: Sequence[str]) -> None:
    rows: list[dict[str, object]] = []
    for number, unit in enumerate(range(0, len(texts), TEXTS_A_QUESTION)):
        ends: list[int] = named[unit, :2].tolist()
        first, second = (names[name].title() for name in ends)
        rows.append(
            {
                "id": f"q{number}",
                "question": f"What did {first} write about {second}?",
                "answer": texts[unit].split(". ")[0].split(maxsplit=2)[2],
                "expected_sources": [texts[unit].split(". ")[0] + "."],
                "expected_entities": [first, second] if number % 2 else [],
            }
        )
    (root / "questions.json").write_text(json.dumps(rows, indent=1))
    config = {"dataset": {"path": "questions.json"}, "indexes": {"made": "."}}
    (root / "eval_config.yaml").write_text(yaml.safe_dump({**config, "methods": list(METHODS)}))


if __name__ == "__main__":
    write_project(Path(sys.argv[1]), Size(int(sys.argv[2]), int(sys.argv[3])))
