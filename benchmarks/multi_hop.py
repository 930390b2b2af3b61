"""What each search method finds of questions whose evidence stands in several passages.

    python benchmarks/multi_hop.py FILE... [--methods tog bm25,k=5 ...] [--budgets 500 4000]

FILE is JSON: {"passages": ["title\\ntext", ...], "questions": [{"q": text, "gold": [places of
passages]}, ...]}. The passages of all files become one GraphRAG project of one document and one
text unit each; its index is built with the embedded models in a folder that is kept: delete it to
build it again. With --api-base the embedding model is the one that --embedding names there, behind
an OpenAI-compatible address (minilm.py serves one). Each file's questions have tables of their own.
A method may bring settings of its section, as in ``tog,depth=2``; ``max_context_tokens`` goes
before the budget of the table.

Recall@k is the mean share of a question's gold passages among the first k text units that were
shown at the largest budget, in the order of the context. Of all that were shown at a budget,
"any" is the share of questions with a gold passage among them, and "share" the mean share of
a question's gold passages. The released basic search shows its text units in the order of their
table: it gets as many as a budget holds on average, and its recall@k is that of a search for k.
Limits are at 95 %, by question (t); differences, to the first method named, are paired. Tokens are
prompt and output tokens of all completions, as the model counted them. The answers, of the embedded
model, are not looked at.
"""

import argparse
import asyncio
import json
import logging
import os
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import numpy as np
import yaml

from graphrag.eval.metrics.retrieved import RetrievalReader
from graphrag.eval.runner.index_building import build_index, is_built
from graphrag.eval.stats.intervals import t_estimate
from graphrag.query.graph_index import GraphIndex
from graphrag.query.methods import METHODS
from graphrag.query.usage import Usage

WITHOUT_BUDGET = ("global", "drift")
UNRANKED = "basic"
ALL_SHOWN = 10_000
"""Text units that bm25 and hybrid may show, so that the budget alone says how many."""
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
        asked.append(Asked(tuple(shown), str(result.context_text), result.usage, seconds))
    return asked


def points(values: Sequence[float], sign: str = "") -> str:
    """Return a mean in percent with its limits; those of a share lie within 0 and 100."""
    estimate = t_estimate(np.array(values), None if sign else (0.0, 1.0))
    mean = f"{100 * np.mean(values):{sign}.1f}"
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} ({100 * estimate.low:{sign}.1f} to {100 * estimate.high:{sign}.1f})"


def against(values: Sequence[float], reference: Sequence[float] | None) -> str:
    """Return the mean difference of the same questions in points, with its limits."""
    if reference is None:
        return ""
    return points([a - b for a, b in zip(values, reference, strict=True)], "+")


async def open_project(
    name: str, passages: Sequence[str], embedder: Embedder, work: Path
) -> GraphIndex:
    """Open the index of the passages; build it where it is missing."""
    root = work / f"{name}-{embedder.model.replace('/', '-')}"
    if not (root / "settings.yaml").is_file() or not is_built(root):
        write_project(root, passages, embedder)
        print(f"index built in {await build_index(root, lambda _: None):.0f} s", flush=True)
    print(f"index in {root}\n", flush=True)
    index = await GraphIndex.open(root)
    table = index.tables.columns("text_units", ("id",))
    if table is None or len(table) != len(passages):
        raise SystemExit(f"{root} is not the index of {name}; delete it to build it again.")
    return index


async def main(given: argparse.Namespace) -> None:
    """Build or open the index, ask, and print."""
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in given.files}
    passages = [text for data in files.values() for text in data["passages"]]
    embedder = Embedder(given.embedding, given.api_base)
    index = await open_project("+".join(files), passages, embedder, given.work)
    table = index.tables.columns("text_units", ("id", "document_id"))
    assert table is not None
    unit_at = dict(zip(map(int, table["document_id"]), table["id"], strict=True))
    before = 0
    for name, data in files.items():
        cases = [
            Case(row["q"], tuple(frozenset({unit_at[before + at]}) for at in row["gold"]))
            for row in data["questions"][: given.questions]
        ]
        before += len(data["passages"])
        print(f"{name}: {len(cases)} questions, {len(passages):,} passages\n", flush=True)
        await show(index, given.methods, sorted(given.budgets), cases)


async def show(
    index: GraphIndex, methods: Sequence[str], budgets: Sequence[int], cases: Sequence[Case]
) -> None:
    """Ask all methods at all budgets, and print both tables."""
    logging.getLogger("graphrag").setLevel(logging.ERROR)  # it warns of every full context
    asked_last = await show_ranks(index, methods, max(budgets), cases)
    first = methods[0]
    print(f"\n| context | method | any % | - {first} | share % | - {first}", end="")
    print(" | tokens | calls | at most | ms |\n|---:|---|---|---|---|---|---:|---:|---:|---:|")
    for budget in budgets:
        reference: tuple[list[float], list[float]] | None = None
        for spec in methods:
            last = budget == max(budgets)
            asked = asked_last[spec] if last else await ask(index, spec, budget, cases)
            shares = [case.recall(a) for case, a in zip(cases, asked, strict=True)]
            hits = [float(share > 0) for share in shares]
            tokens = [a.usage.prompt_tokens + a.usage.output_tokens for a in asked]
            calls = [a.usage.llm_calls for a in asked]
            ms = 1000 * np.mean([a.seconds for a in asked])
            any_from, share_from = reference or (None, None)
            print(
                f"| {budget:,} | {spec} | {points(hits)} | {against(hits, any_from)}"
                f" | {points(shares)} | {against(shares, share_from)}"
                f" | {np.mean(tokens):,.0f} | {np.mean(calls):.2f}"
                f" | {max(tokens):,} in {max(calls)} | {ms:.0f} |",
                flush=True,
            )
            reference = reference or (hits, shares)
    print()


async def show_ranks(
    index: GraphIndex, methods: Sequence[str], budget: int, cases: Sequence[Case]
) -> dict[str, list[Asked]]:
    """Print the recall of the first text units that each method shows; return what was asked."""
    asked: dict[str, list[Asked]] = {}
    print(f"| method, {budget:,} tokens | recall@2 % | recall@5 % | - {methods[0]} |")
    print("|---|---|---|---|")
    reference: list[float] | None = None
    for spec in methods:
        asked[spec] = await ask(index, spec, budget, cases)
        two, five = [await first_shown(index, spec, k, budget, cases, asked[spec]) for k in (2, 5)]
        print(
            f"| {spec} | {points(two)} | {points(five)} | {against(five, reference)} |", flush=True
        )
        reference = reference or five
    return asked


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


def add_methods(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what is asked, and at which budgets."""
    usual = sorted((name for name in METHODS if name not in WITHOUT_BUDGET), key="bm25".__ne__)
    parser.add_argument("--methods", nargs="+", default=usual, metavar="NAME[,setting=value]")
    parser.add_argument("--budgets", type=int, nargs="+", default=[500, 1000, 2000, 4000])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    add_methods(parser)
    parser.add_argument("--questions", type=int, help="the first so many of them only")
    parser.add_argument("--embedding", default="hashed-ngrams", metavar="MODEL")
    parser.add_argument("--api-base", metavar="ADDRESS", help="where MODEL is, as http://.../v1")
    kept = Path(tempfile.gettempdir()) / "gtog-multi-hop"
    parser.add_argument("--work", type=Path, default=kept, help=f"where indexes are kept: {kept}")
    options = parser.parse_args()
    if options.api_base is None and options.embedding not in DIMENSIONS:
        parser.error(f"--embedding is one of {', '.join(DIMENSIONS)}, or give --api-base")
    asyncio.run(main(options))
