"""Start-up and evidence found of hashed n-grams and static words, by basic, bm25 and hybrid.

Run as ``python benchmarks/embeddings.py SCRIPT QUESTIONS [--budgets 2000 8000]``. SCRIPT is one
plain text; QUESTIONS a JSON list of rows with ``question`` and ``context``, quotations of that
text. The text is cut into text units of 300 tokens and embedded; no graph is made, and the answers,
of the embedded model, are not looked at. Measured is the share of questions of which a text unit
in the context holds a quotation, at equal budgets and as many text units as they hold; and what
a process pays for the first call of each model. Needs the extra ``static-words``.
"""

import argparse
import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import numpy as np
import pandas as pd
from graphrag_vectors import VectorStoreDocument

from graphrag.config.embeddings import text_unit_text_embedding
from graphrag.config.project_settings import read_settings
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.scorers.measures import Ranking, rank_sources
from graphrag.eval.scorers.retrieved import RetrievalReader
from graphrag.query.graph_index import GraphIndex
from graphrag.query.index_header import IndexHeader
from graphrag.query.index_tables import IndexTables
from graphrag.query.tokens import ModelTokenizer
from graphrag.text.ranking import WordIndex
from graphrag.utils.api import get_embedding_store

MODELS = {"hashed-ngrams": 384, "wordllama": 256}
METHODS = ("basic", "bm25", "hybrid")
SIZE, OVERLAP = 300, 50
MARK = re.compile(r"\[\d+\][\s,.]*")
SETTINGS = """\
completion_models:
  default_completion_model: {{type: offline, model_provider: offline, model: rules}}
embedding_models:
  default_embedding_model:
    {{type: offline, model_provider: offline, model: {model}, dimensions: {dimensions}}}
vector_store: {{vector_size: {dimensions}}}
"""
START = """
import sys, time
from pathlib import Path
from graphrag_llm.embedding import create_embedding
from graphrag_llm.config import ModelConfig
import graphrag.offline.models
given = {"type": "offline", "model_provider": "offline", "model": sys.argv[1]}
def resident():
    status = Path("/proc/self/status").read_text().split("VmRSS:")[1]
    return int(status.split()[0]) / 1024
given["dimensions"] = int(sys.argv[2])
model = create_embedding(ModelConfig.model_validate(given))
model.tokenizer.num_tokens("warm")
before, started = resident(), time.perf_counter()
model.embedding(input=["Who repaired the lamp?"])
first = time.perf_counter() - started
started = time.perf_counter()
model.embedding(input=["Who repaired the lamp?"])
print(first * 1000, (time.perf_counter() - started) * 1000, resident() - before)
"""


def start(model: str, rounds: int) -> tuple[float, float, float]:
    """Return the medians over processes: ms of the first call, of the second, MB of memory."""
    command = [sys.executable, "-c", START, model, str(MODELS[model])]
    told = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(rounds)
    ]
    first, second, memory = np.median(np.array(told, dtype=float), axis=0).tolist()
    return first, second, memory


def samples_of(questions: Path) -> list[Sample]:
    """Read the questions; a numbered mark such as [3] ends each of a row's quotations."""
    rows: list[dict[str, str]] = json.loads(questions.read_text(encoding="utf-8"))
    return [
        Sample(str(at), "text", row["question"], "", evidence=quotations)
        for at, row in enumerate(rows)
        if (quotations := tuple(filter(None, map(str.strip, MARK.split(row["context"])))))
    ]


def units_of(script: Path) -> pd.DataFrame:
    """Cut a text into overlapping text units, as graphrag does by tokens."""
    tokenizer = ModelTokenizer("openai/gpt-4o")
    tokens = tokenizer.encode(script.read_text(encoding="utf-8"))
    starts = range(0, len(tokens), SIZE - OVERLAP)
    pieces = [tokenizer.decode(tokens[at : at + SIZE]) for at in starts]
    return pd.DataFrame(
        {
            "id": [f"u{at}" for at in range(len(pieces))],
            "human_readable_id": range(len(pieces)),
            "text": pieces,
            "n_tokens": [len(tokenizer.encode(piece)) for piece in pieces],
            "document_id": "d1",
            "entity_ids": None,
            "relationship_ids": None,
            "covariate_ids": None,
        }
    )


def open_index(root: Path, model: str, units: pd.DataFrame) -> tuple[GraphIndex, float]:
    """Embed text units and return their index, and the seconds that it took to embed them."""
    settings = SETTINGS.format(model=model, dimensions=MODELS[model])
    root.mkdir()
    (root / "settings.yaml").write_text(settings, encoding="utf-8")
    config = read_settings(root)
    from graphrag_llm.embedding import create_embedding

    embedding = create_embedding(config.get_embedding_model_config("default_embedding_model"))
    started = time.perf_counter()
    vectors = embedding.embedding(input=units["text"].tolist()).embeddings
    seconds = time.perf_counter() - started
    store = get_embedding_store(config.vector_store, text_unit_text_embedding)
    store.create_index()
    store.load_documents(
        [
            VectorStoreDocument(id=name, vector=v)
            for name, v in zip(units["id"], vectors, strict=True)
        ]
    )
    return GraphIndex(IndexHeader(config), IndexTables(text_units=units)), seconds


async def found(
    index: GraphIndex, method: str, budget: int, samples: list[Sample]
) -> tuple[float, float, int, float]:
    """Return hit rate, mean reciprocal rank, the questions measured and the mean ms of a search."""
    varied = index.under(
        index.header.changed(method, {"k": budget // (SIZE + 10), "max_context_tokens": budget})
    )
    view, reader, spent = IndexView(index.tables), RetrievalReader(index.tables), 0.0
    scores: list[Ranking] = []
    await varied.search(method, samples[0].question)  # what is prepared once is not timed
    for sample in samples:
        started = time.perf_counter()
        result = await varied.search(method, sample.question)
        spent += time.perf_counter() - started
        shown = reader.read(method, result.context_data).text_unit_ids
        score = rank_sources(view.evidence_of(sample), shown)
        scores += [] if score is None else [score]
    hits, ranks = [each.hit_rate() for each in scores], [each.mrr() for each in scores]
    return float(np.mean(hits)), float(np.mean(ranks)), len(scores), spent / len(samples) * 1000


async def main(arguments: argparse.Namespace) -> None:
    logging.getLogger("graphrag").setLevel(logging.ERROR)  # it warns of every full context
    samples = samples_of(arguments.questions)
    units = units_of(arguments.script)
    print(f"{len(units)} text units of {SIZE} tokens, {len(samples)} questions\n")
    print("| model | length | first call ms | next ms | MB | text units embedded s |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        indexes: dict[str, GraphIndex] = {}
        for model, length in MODELS.items():
            indexes[model], seconds = open_index(Path(folder) / model, model, units)
            first, second, memory = start(model, arguments.processes)
            cells = f"{first:.1f} | {second:.2f} | {memory:.0f} | {seconds:.2f}"
            print(f"| {model} | {length} | {cells} |")
        print("\n| tokens | method | vectors | evidence found | MRR | questions | search ms |")
        print("|---:|---|---|---:|---:|---:|---:|")
        for budget in arguments.budgets:
            for method in METHODS:
                for model in MODELS if method != "bm25" else ("hashed-ngrams",):
                    hits, mrr, n, ms = await found(indexes[model], method, budget, samples)
                    cells = f"{'none' if method == 'bm25' else model} | {hits:.3f} | {mrr:.3f}"
                    print(f"| {budget:,} | {method} | {cells} | {n} | {ms:.0f} |")
    many = (units["text"].tolist() * (arguments.many // len(units) + 1))[: arguments.many]
    started = time.perf_counter()
    words = WordIndex(many)
    built = time.perf_counter() - started
    started = time.perf_counter()
    for sample in samples:
        words.rank(sample.question)
    each = (time.perf_counter() - started) / len(samples) * 1000
    print(
        f"\nwords of {len(many):,} text units: made in {built:.2f} s, a look-up takes {each:.2f} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--budgets", type=int, nargs="+", default=[2_000, 8_000])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--many", type=int, default=10_000)
    asyncio.run(main(parser.parse_args()))
