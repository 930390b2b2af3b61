"""One small invented world, told in many languages, with the graph that a model would extract."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lancedb
import numpy as np
import pandas as pd
import pyarrow as pa

from graphrag.embedded.vectors import embed_texts
from graphrag.eval.metrics.retrieved_context import RetrievalReader
from graphrag.query.graph_index import GraphIndex

FOLDER = Path(__file__).parents[1] / "languages" / "worlds"
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))
NAMES = (
    *("miller", "keeper", "teacher", "daughter", "shipwright", "founder", "writer", "fishwife"),
    *("climber", "baker", "village", "town", "island", "river", "mountain", "ship", "workshop"),
    *("book", "festival"),
)
# The names that stand in each passage, in the order of the files.
NAMED = [
    names.split()
    for names in (
        *("miller village", "village river", "keeper island", "island", "teacher town", "town"),
        *("daughter miller", "fishwife keeper", "shipwright ship", "ship", "founder workshop"),
        *("workshop", "writer book", "book", "fishwife festival", "festival", "climber mountain"),
        *("mountain", "baker shipwright", "river", "miller", "keeper", "teacher", "founder"),
        *("writer", "fishwife", "climber", "baker", "daughter", "shipwright"),
    )
]
# What each question names, and the passages that answer it.
ASKED = [
    ("miller", [20]),
    ("island", [2]),
    ("teacher", [22]),
    ("writer", [24]),
    ("shipwright", [29]),
    ("festival", [15]),
    ("baker", [27]),
    ("workshop", [10]),
    ("miller", [0, 1]),
    ("keeper", [2, 3]),
    ("teacher", [4, 5]),
    ("shipwright", [8, 9]),
    ("founder", [10, 11]),
    ("writer", [12, 13]),
    ("climber", [16, 17]),
]
LENGTH = 384
_SETTINGS = f"""\
completion_models:
  default_completion_model: {{type: offline, model_provider: offline, model: rules}}
embedding_models:
  default_embedding_model: {{type: offline, model_provider: offline, model: hashed-ngrams}}
vector_store: {{vector_size: {LENGTH}}}
basic_search: {{k: 5}}
tog_search: {{embedding_model_id: null}}
ppr_search: {{embedding_model_id: null}}
"""


@dataclass(frozen=True, slots=True)
class World:
    """A world in one language; ``names`` are in their base forms, by what they are."""

    language: str
    names: Mapping[str, str]
    passages: Sequence[str]
    questions: Sequence[str]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of its index: titles in capitals, as graphrag writes them."""
        titles = {name: self.names[name].upper() for name in NAMES}
        units = [f"unit-{row}" for row in range(len(self.passages))]
        holding = {
            name: [unit for unit, names in zip(units, NAMED, strict=True) if name in names]
            for name in NAMES
        }
        joined = [(row, names) for row, names in enumerate(NAMED) if len(names) == 2]
        return {
            "text_units": pd.DataFrame(
                {
                    "id": units,
                    "human_readable_id": range(len(units)),
                    "text": list(self.passages),
                    "n_tokens": 30,
                    "document_id": [f"document-{row}" for row in range(len(units))],
                }
            ),
            "documents": pd.DataFrame(
                {
                    "id": [f"document-{row}" for row in range(len(units))],
                    "title": [f"{row}.txt" for row in range(len(units))],
                    "text": list(self.passages),
                }
            ),
            "entities": pd.DataFrame(
                {
                    "id": list(NAMES),
                    "human_readable_id": range(len(NAMES)),
                    "title": list(titles.values()),
                    "description": "",
                    "text_unit_ids": list(holding.values()),
                }
            ),
            "relationships": pd.DataFrame(
                {
                    "id": [f"edge-{row}" for row, _ in joined],
                    "human_readable_id": range(len(joined)),
                    "source": [titles[names[0]] for _, names in joined],
                    "target": [titles[names[1]] for _, names in joined],
                    "description": [self.passages[row] for row, _ in joined],
                    "weight": 1.0,
                    "text_unit_ids": [[units[row]] for row, _ in joined],
                }
            ),
        }

    def write(self, root: Path) -> Path:
        """Write a project with this index, and return its folder."""
        (root / "output").mkdir(parents=True)
        (root / "settings.yaml").write_text(_SETTINGS, encoding="utf-8")
        for name, table in self.tables().items():
            table.to_parquet(root / "output" / f"{name}.parquet")
        return root


def write_vectors(root: Path) -> None:
    """Write the vectors of the text units of a written world, as its settings' model gives them."""
    units = pd.read_parquet(root / "output" / "text_units.parquet", columns=["id", "text"])
    vectors = np.array(embed_texts("hashed-ngrams", units["text"].tolist(), LENGTH), np.float32)
    stored = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), LENGTH)
    table = pa.table({"id": units["id"].tolist(), "vector": stored})
    lancedb.connect(str(root / "output" / "lancedb")).create_table("text_unit_text", data=table)


def read_world(language: str) -> World:
    """Read the world of a language: its names, its passages, its questions."""
    text = (FOLDER / f"{language}.txt").read_text("utf-8")
    names, passages, questions = (part.splitlines() for part in text.split("\n\n"))
    by_kind = dict(zip(NAMES, (name.strip() for name in names[0].split("|")), strict=True))
    return World(language, by_kind, passages, questions)


def first_texts(root: Path, method: str, questions: Sequence[str], n: int) -> list[list[int]]:
    """Return of each question the rows of the first text units that a method shows."""

    async def ask() -> list[list[int]]:
        index = await GraphIndex.open(root, vectors=False)
        reader, found = RetrievalReader(index.tables), []
        for question in questions:
            result = await index.search(method, question)
            read = reader.read(method, result.context_data)
            shown = (read.text_unit_ids or ())[: read.n_sources]
            found.append([int(unit.removeprefix("unit-")) for unit in shown[:n]])
        return found

    return asyncio.run(ask())
