"""What words, vectors, and the mixtures of both find: recall of each set, in one table.

    python benchmarks/mixture.py FOLDER... [--vectors wordllama hashed-ngrams NAME=ADDRESS ...]

FOLDER holds sets. A set is either a file {"passages": ["title\\ntext", ...], "questions": [{"q":
text, "gold": [places of passages]}, ...]}, or a folder with texts in ``input`` and, beside it or
below it, JSON lists of rows with ``question`` and ``expected_sources`` (names of texts), or
``evidence`` or ``context`` (quotes of the texts; a context's end in marks such as [3]). Its texts
are cut into passages of 300 tokens, and a quote's gold passage is the one that has most of it.
Questions that can't be answered, or without gold passages, are left out.

The passages of a set become one GraphRAG project of one document and one text unit each; its index
is built by the embedded models in a folder that is kept: delete it to build it again. Vectors are
those of an embedded model, or of the model NAME behind an OpenAI-compatible ADDRESS (minilm.py
serves one).

Printed is the mean share of a question's gold passages among the first 5 and 10 text units that a
search shows, in the order of its context; ``vectors`` is the released basic search, which shows
them in the order of their table, so it is asked for 5 and for 10. ``behind`` is how far ``hybrid``
is behind the better of words and vectors at 5, in points. The answers are not looked at.
"""

import argparse
import asyncio
import json
import logging
import os
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import numpy as np
import yaml

from graphrag.eval.metrics.retrieved_context import RetrievalReader
from graphrag.eval.runner.index_building import build_index, is_built
from graphrag.eval.stats.intervals import t_estimate
from graphrag.query.client.tokens import default_encoding
from graphrag.query.client.usage import Usage
from graphrag.query.graph_index import GraphIndex

UNRANKED = "basic"
ALL_SHOWN = 10_000
"""Text units that bm25 and hybrid may show, so that the budget alone says how many."""
METHODS_MIXED = ("bm25", "basic", "hybrid", "ppr")
BUDGET, SIZE = 10_000, 300
"""Tokens of a context, so that ten text units fit, and of a passage of a long text."""
MARK = re.compile(r"\[\d+\][\s,.]*")
DIMENSIONS = {"hashed-ngrams": 384, "wordllama": 256}
SETTINGS = """\
completion_models:
  default_completion_model: {{type: offline, model_provider: offline, model: rules}}
embedding_models: {{default_embedding_model: {embedding}}}
vector_store: {{vector_size: {dimensions}}}
input: {{type: jsonl, id_column: id, title_column: title, text_column: text}}
chunking: {{type: tokens, size: 100000, overlap: 0, encoding_model: o200k_base}}
extract_graph: {{entity_types: [person, place, organization, object, event], max_gleanings: 0}}
"""


@dataclass(frozen=True, slots=True)
class Embedder:
    """An embedding model: an embedded one, or one behind an OpenAI-compatible address."""

    model: str
    api_base: str | None

    def settings(self) -> tuple[dict[str, object], int]:
        """Return the model's settings, and the length of its vectors."""
        if self.api_base is None:
            length = DIMENSIONS[self.model]
            given = {"type": "offline", "model_provider": "offline", "dimensions": length}
            return {**given, "model": self.model}, length
        service = {"model_provider": "openai", "api_base": self.api_base, "api_key": "none"}
        return {**service, "model": self.model}, self._length()

    def _length(self) -> int:
        asked = json.dumps({"model": self.model, "input": ["length"]}).encode()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
        request = urllib.request.Request(f"{self.api_base}/embeddings", asked, headers)
        with urllib.request.urlopen(request) as reply:
            return len(json.load(reply)["data"][0]["embedding"])


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's search: the text units shown, in their order, its context, and its cost."""

    shown: tuple[str, ...]
    context: str
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and of each piece of its evidence the text units that hold it."""

    question: str
    gold: tuple[frozenset[str], ...]

    def recall(self, asked: Asked, k: int | None = None) -> float:
        """Return the share of the pieces that the first k text units shown hold."""
        shown = set(asked.shown[:k])
        return sum(not shown.isdisjoint(units) for units in self.gold) / len(self.gold)


def write_project(root: Path, passages: Sequence[str], embedder: Embedder) -> None:
    """Write a project whose documents are named by the places of their passages."""
    folder = root / "input"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        json.dumps({"id": str(place), "title": text.partition("\n")[0], "text": text})
        for place, text in enumerate(passages)
    ]
    (folder / "passages.jsonl").write_text("\n".join(rows), encoding="utf-8")
    embedding, length = embedder.settings()
    settings = SETTINGS.format(embedding=json.dumps(embedding), dimensions=length)
    (root / "settings.yaml").write_text(settings, encoding="utf-8")


def varied(index: GraphIndex, spec: str, budget: int) -> tuple[str, GraphIndex]:
    """Return a method and the index under its settings, checked as those of a file are."""
    method, *given = spec.split(",")
    section = index.header.section(method)
    changes: dict[str, object] = {"max_context_tokens": budget}
    if method == UNRANKED:
        table = index.tables.columns("text_units", ("n_tokens",))
        assert table is not None
        changes["k"] = max(1, round(budget / table["n_tokens"].to_numpy().mean()))
    elif "k" in type(section).model_fields:
        changes["k"] = ALL_SHOWN
    changes |= {name: yaml.safe_load(v) for name, _, v in (each.partition("=") for each in given)}
    checked = type(section).model_validate({**section.model_dump(exclude_unset=True), **changes})
    return method, index.under(index.header.changed(method, dict(checked)))


async def ask(index: GraphIndex, spec: str, budget: int, cases: Sequence[Case]) -> list[Asked]:
    """Ask all questions, one after the other."""
    method, index = varied(index, spec, budget)
    reader = RetrievalReader(index.tables)
    await index.search(method, cases[0].question)  # what is prepared once is not timed
    asked: list[Asked] = []
    for case in cases:
        started = time.perf_counter()
        result = await index.search(method, case.question)
        seconds = time.perf_counter() - started
        read = reader.read(method, result.context_data)
        shown = (read.text_unit_ids or ())[: read.n_sources]
        asked.append(
            Asked(
                shown=tuple(shown),
                context=str(result.context_text),
                usage=result.usage,
                seconds=seconds,
            )
        )
    return asked


def points(values: Sequence[float], sign: str = "") -> str:
    """Return a mean in percent with its limits; those of a share lie within 0 and 100."""
    estimate = t_estimate(np.array(values), None if sign else (0.0, 1.0))
    mean = f"{100 * np.mean(values):{sign}.1f}"
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} ({100 * estimate.low:{sign}.1f} to {100 * estimate.high:{sign}.1f})"


async def open_project(
    name: str, passages: Sequence[str], embedder: Embedder, work: Path
) -> GraphIndex:
    """Open the index of the passages; build it where it is missing."""
    root = work / f"{name}-{embedder.model.replace('/', '-')}"
    if not (root / "settings.yaml").is_file() or not is_built(root):
        write_project(root, passages, embedder)
        seconds = await build_index(root, lambda _: None)
        print(f"index of {root} built in {seconds:.0f} s", file=sys.stderr, flush=True)
    index = await GraphIndex.open(root)
    table = index.tables.columns("text_units", ("id",))
    if table is None or len(table) != len(passages):
        raise SystemExit(f"{root} is not the index of {name}; delete it to build it again.")
    return index


async def first_shown(
    index: GraphIndex,
    spec: str,
    k: int,
    budget: int,
    cases: Sequence[Case],
    asked: Sequence[Asked],
) -> list[float]:
    """Return each question's recall@k."""
    if spec.partition(",")[0] == UNRANKED:
        asked = await ask(index, f"{spec},k={k}", budget, cases)
    return [case.recall(a, k) for case, a in zip(cases, asked, strict=True)]


@dataclass(frozen=True, slots=True)
class TextSet:
    """Passages, and questions with the places of the passages that each needs."""

    name: str
    passages: Sequence[str]
    questions: Sequence[tuple[str, Sequence[int]]]


def read_sets(folder: Path) -> list[TextSet]:
    """Read the sets of a folder, see above."""
    texts = sorted((folder / "input").glob("*.txt"))
    if texts:
        return read_texts(folder, texts)
    sets: list[TextSet] = []
    for path in sorted(folder.iterdir()):
        if (path / "input").is_dir():
            sets += read_sets(path)
        elif path.suffix == ".json":
            data = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(data, dict) and {"passages", "questions"} <= data.keys():
                asked = [(row["q"], row["gold"]) for row in data["questions"]]
                sets.append(TextSet(path.stem, data["passages"], asked))
    return sets


def read_texts(folder: Path, texts: Sequence[Path]) -> list[TextSet]:
    """Read the sets of one folder of texts, one for each list of questions."""
    encoding = default_encoding()
    passages: list[str] = []
    of_file: dict[str, list[int]] = {}
    for path in texts:
        tokens = encoding.encode(path.read_text(encoding="utf-8"), disallowed_special=())
        parts = [encoding.decode(tokens[at : at + SIZE]) for at in range(0, len(tokens), SIZE)]
        of_file[path.name] = list(range(len(passages), len(passages) + len(parts)))
        passages += parts
    runs = [runs_of(text) for text in passages]
    sets: list[TextSet] = []
    for path in sorted(folder.glob("*.json")):
        asked: list[tuple[str, Sequence[int]]] = []
        for row in json.loads(path.read_text(encoding="utf-8")):
            among = [at for name in row.get("expected_sources", ()) for at in of_file[name]]
            gold = [place_of(quote, runs, among) for quote in quotes_of(row)]
            whole = [at for at in among if len(among) == len(row["expected_sources"])]
            needed = dict.fromkeys(whole or [at for at in gold if at is not None])
            if needed and row.get("answerable", True) is not False:
                asked.append((row["question"], list(needed)))
        if asked:
            sets.append(TextSet(f"{folder.name}/{path.stem}", passages, asked))
    return sets


def quotes_of(row: Mapping[str, Any]) -> list[str]:
    """Return the quotes of a row."""
    if evidence := row.get("evidence"):
        return [evidence] if isinstance(evidence, str) else list(evidence)
    return [quote for quote in map(str.strip, MARK.split(row.get("context") or "")) if quote]


def runs_of(text: str) -> set[tuple[str, ...]]:
    """Return the runs of four words of a text."""
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[at : at + 4]) for at in range(len(words) - 3)}


def place_of(
    quote: str, passages: Sequence[set[tuple[str, ...]]], among: Sequence[int]
) -> int | None:
    """Return the passage that has most of a quote, None if none has a third of it."""
    quoted = runs_of(quote)
    best = max(among or range(len(passages)), key=lambda at: len(quoted & passages[at]))
    return best if quoted and len(quoted & passages[best]) * 3 >= len(quoted) else None


async def measure(text_set: TextSet, embedder: Embedder, work: Path) -> str:
    """Return the row of a set under the vectors of a model."""
    name = text_set.name.partition("/")[0]  # lists of one folder share their index
    index = await open_project(name, text_set.passages, embedder, work)
    table = index.tables.columns("text_units", ("id", "document_id"))
    assert table is not None
    unit_at = dict(zip(map(int, table["document_id"]), table["id"], strict=True))
    cases = [
        Case(question, tuple(frozenset({unit_at[at]}) for at in gold))
        for question, gold in text_set.questions
    ]
    found: dict[str, list[float]] = {}
    for method in METHODS_MIXED:
        asked = await ask(index, method, BUDGET, cases)
        ranks = [await first_shown(index, method, k, BUDGET, cases, asked) for k in (5, 10)]
        found[method] = [100 * float(np.mean(rank)) for rank in ranks]
    behind = max(0.0, max(found["bm25"][0], found["basic"][0]) - found["hybrid"][0])
    shown = " | ".join(f"{five:.1f} / {ten:.1f}" for five, ten in found.values())
    return f"| {text_set.name}, {embedder.model} | {len(cases)} | {shown} | {behind:.1f} |"


async def main(given: argparse.Namespace) -> None:
    """Print a row for each set and each kind of vectors."""
    logging.getLogger("graphrag").setLevel(logging.ERROR)  # it warns of every full context
    sets = [text_set for folder in given.folders for text_set in read_sets(folder)]
    if not sets:
        raise SystemExit("No sets in these folders.")
    print("| recall@5 / @10, % | questions | words: bm25 | vectors | hybrid | ppr | behind |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for text_set in sets:
        for vectors in given.vectors:
            name, _, address = vectors.partition("=")
            row = await measure(text_set, Embedder(name, address or None), given.work)
            print(row, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--vectors", nargs="+", default=["wordllama"], metavar="NAME[=ADDRESS]")
    kept = Path(tempfile.gettempdir()) / "gtog-mixture"
    parser.add_argument("--work", type=Path, default=kept, help=f"where indexes are kept: {kept}")
    options = parser.parse_args()
    for vectors in options.vectors:
        if "=" not in vectors and vectors not in DIMENSIONS:
            parser.error(f"--vectors: {', '.join(DIMENSIONS)}, or NAME=ADDRESS, not {vectors}")
    asyncio.run(main(options))
