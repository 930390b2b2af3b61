"""Reading long things: one document of 1 MB, 1,000 documents, 10,000 text units.

    python benchmarks/long_texts.py            all sizes; long, as the release's indexing takes most
    python benchmarks/long_texts.py --sizes "one document"
    python benchmarks/long_texts.py --quick    small ones, about two minutes

Writes made-up prose (long_prose.py) and questions with evidence quotes, indexes it with the
embedded models, validates the index, looks all quotes up, searches with each method, runs an
evaluation of 20 questions with all of them, writes its page again and opens it in Chromium, where
there is one; every step is a process of its own, imports included. Ratios are to indexing in the
same run; the last column is what each MB of text more than the smallest size's costs: where it
grows with the size, the work does more than keep pace with the text. Figures go to --json as they
are measured.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

METHODS = ("tog", "ppr", "bm25", "local", "basic")
N_ASKED = 20
KEY = "prose"
PAGE = "page.html"
SETTINGS = """\
completion_models:
  default_completion_model: {type: offline, model_provider: offline, model: rules}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 384}
vector_store: {vector_size: 384}
chunking: {type: tokens, size: 300, overlap: 50, encoding_model: o200k_base}
extract_graph: {entity_types: [person, place, organization, object, event], max_gleanings: 0}
"""
CONFIG = """\
dataset: {path: questions.json}
indexes: {prose: project}
methods: [tog, ppr, bm25, local, basic]
output: {dir: results}
"""


@dataclass(frozen=True, slots=True)
class Size:
    """A corpus: its name, documents, and characters of each."""

    name: str
    n_documents: int
    n_characters: int
    has_lines: bool = True


SIZES = (
    Size(name="smallest", n_documents=1, n_characters=100_000),
    Size(name="one document", n_documents=1, n_characters=1_000_000),
    Size(name="one line", n_documents=1, n_characters=1_000_000, has_lines=False),
    Size(name="1,000 documents", n_documents=1_000, n_characters=1_000),
    Size(name="10,000 text units", n_documents=10, n_characters=1_120_000),
)
QUICK = (
    Size(name="smallest", n_documents=1, n_characters=20_000),
    Size(name="one document", n_documents=1, n_characters=100_000),
    Size(name="one line", n_documents=1, n_characters=100_000, has_lines=False),
    Size(name="50 documents", n_documents=50, n_characters=1_000),
)


# The steps that are no command, each run in a process of its own ----------------------------


def step_write(folder: Path, size: Size) -> dict[str, float]:
    """Write the corpus, the project and the questions."""
    from long_prose import write_corpus

    corpus = write_corpus(size.n_documents, size.n_characters, lines=size.has_lines)
    texts = folder / "project" / "input"
    texts.mkdir(parents=True)
    for number, text in enumerate(corpus.documents):
        (texts / f"{number:05}.txt").write_text(text, encoding="utf-8")
    (folder / "project" / "settings.yaml").write_text(SETTINGS)
    (folder / "eval_config.yaml").write_text(CONFIG)
    every = max(1, len(corpus.facts) // N_ASKED)
    asked = corpus.facts[::every][:N_ASKED]
    rows = [
        {
            "id": f"q{number}",
            "imdb_key": KEY,
            "question": fact.question,
            "answer": fact.answer,
            "evidence": [fact.sentence],
        }
        for number, fact in enumerate(asked)
    ]
    (folder / "questions.json").write_text(json.dumps(rows, indent=1))
    return {"mb": sum(len(text) for text in corpus.documents) / 1e6, "questions": len(rows)}


def step_count(folder: Path, _: Size) -> dict[str, float]:
    """Count what the index holds."""
    import pyarrow.parquet as pq

    output = folder / "project" / "output"
    names = ("text_units", "entities", "relationships", "community_reports")
    return {name: pq.read_metadata(output / f"{name}.parquet").num_rows for name in names}


def step_trace(folder: Path, _: Size) -> dict[str, float]:
    """Look every question's evidence up in the index."""
    from graphrag.eval.metrics.index_view import IndexView
    from graphrag.query.index.header import read_header

    async def trace() -> dict[str, float]:
        view = await IndexView.open(await read_header(folder / "project"))
        found = [item for sample in _samples(folder) for item in view.evidence_of(sample)]
        return {"held": sum(item.is_matched for item in found) / len(found)}

    return asyncio.run(trace())


def step_search(folder: Path, method: str) -> dict[str, float]:
    """Ask every question: seconds of the first one, median of the others, evidence found."""
    from graphrag.eval.metrics.index_view import IndexView
    from graphrag.eval.metrics.retrieved_context import RetrievalReader
    from graphrag.query.graph_index import GraphIndex

    async def search() -> dict[str, float]:
        index = await GraphIndex.open(folder / "project")
        seconds: list[float] = []
        answers: list = []
        samples = _samples(folder)
        for sample in samples:
            began = time.perf_counter()
            answers.append(await index.search(method, sample.question))
            seconds.append(time.perf_counter() - began)
        view = await IndexView.open(index.header)
        reader = RetrievalReader(index.tables)
        n_found = 0
        for sample, answer in zip(samples, answers, strict=True):
            shown = set(reader.read(method, answer.context_data).shown_text_unit_ids)
            n_found += any(not item.unit_ids.isdisjoint(shown) for item in view.evidence_of(sample))
        return {
            "first_s": seconds[0],
            "further_s": median(seconds[1:]),
            "evidence_found": n_found / len(samples),
        }

    return asyncio.run(search())


def step_paint(folder: Path, _: Size) -> dict[str, float]:
    """Open the page: wall milliseconds to its first paint, and until its list can be used."""
    from playwright.sync_api import sync_playwright  # pyright: ignore

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        page.goto((folder / PAGE).as_uri(), wait_until="commit")
        page.wait_for_selector("html[data-listed=yes]", state="attached")
        listed_ms = 1000 * (time.perf_counter() - began)
        paints: list[dict[str, Any]] = page.evaluate(
            "performance.getEntriesByType('paint').map(e => ({name: e.name, at: e.startTime}))"
        )
        browser.close()
    painted = next(each["at"] for each in paints if each["name"] == "first-contentful-paint")
    return {"first_paint_ms": painted, "listed_ms": listed_ms}


def _samples(folder: Path) -> list:
    from graphrag.eval.dataset.dataset_reader import Sample

    rows = json.loads((folder / "questions.json").read_text())
    return [
        Sample(
            id=r["id"],
            imdb_key=KEY,
            question=r["question"],
            ground_truth=r["answer"],
            evidence=tuple(r["evidence"]),
        )
        for r in rows
    ]


def run_step(name: str, folder: Path, size: Size) -> dict[str, float]:
    """Run a step of this file by its name."""
    if name.startswith("search "):
        return step_search(folder, name.removeprefix("search "))
    steps = {"write": step_write, "count": step_count, "trace": step_trace, "paint": step_paint}
    return steps[name](folder, size)


# Measuring ----------------------------------------------------------------------------------


def run_process(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a command; wall and CPU seconds, peak MB, and what it printed.

    This process must stay small: Linux counts the peak of the process that starts another one
    as the other one's.
    """
    with (folder / "printed.txt").open("w+") as printed:
        began = time.perf_counter()
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        process = subprocess.Popen(
            command, cwd=folder, stdout=printed, stderr=subprocess.STDOUT, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - began
        printed.seek(0)
        said = printed.read()
    # 100: a check of the validation failed, which is a result too.
    if process.returncode not in (0, 100):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{said[-3000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "wall_s": wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss * unit / 1e6,
        "exit_code": process.returncode,
        "printed": said,
    }


def measure(size: Size, folder: Path) -> dict[str, dict[str, Any]]:
    """Do every step for one size and return step -> figures."""
    own = [sys.executable, str(Path(__file__).resolve()), "--folder", str(folder)]
    own += ["--size", size.name, "--documents", str(size.n_documents)]
    own += ["--characters", str(size.n_characters), *([] if size.has_lines else ["--one-line"])]
    tool = [sys.executable, "-m", "graphrag", "eval"]
    page = folder / PAGE
    commands = {
        "write": [*own, "--step", "write"],
        "index": [*tool, "--index", "--skip-judge", "--methods", "basic", "--limit", "1"],
        "count": [*own, "--step", "count"],
        "validate": [*tool, "validate", "--root", "project"],
        "trace": [*own, "--step", "trace"],
        **{f"search {m}": [*own, "--step", f"search {m}"] for m in METHODS},
        "eval": [*tool, "--limit", str(N_ASKED)],
        "page": [*tool, "show", "--html", str(page)],
    }
    if shutil.which("chromium") is not None and find_spec("playwright") is not None:
        commands["paint"] = [*own, "--step", "paint"]
    found: dict[str, dict[str, Any]] = {}
    for name, command in commands.items():
        found[name] = run_process(command, folder)
        said = found[name].pop("printed")
        if "--step" in command:
            found[name] |= json.loads(said.strip().splitlines()[-1])
        taken = {k: round(v, 2) for k, v in found[name].items()}
        print(f"{size.name}: {name}: {taken}", file=sys.stderr, flush=True)
    found["page"]["page_mb"] = page.stat().st_size / 1e6
    return found


def print_tables(results: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Print figures, and ratios to the smallest size and to indexing."""
    smallest = next(iter(results.values()))
    print(
        "| text | MB | text units | entities | relationships | reports | page MB | "
        "first paint ms | list usable ms |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, found in results.items():
        count = found["count"]
        names = ("text_units", "entities", "relationships", "community_reports")
        held = " | ".join(f"{count[each]:,}" for each in names)
        opened = found.get("paint")
        seen = "| |" if opened is None else "{first_paint_ms:.0f} | {listed_ms:.0f} |"
        print(
            f"| {name} | {found['write']['mb']:.2f} | {held} | {found['page']['page_mb']:.2f} | "
            + seen.format(**opened or {})
        )
    print("\n| step | text | wall s | CPU s | CPU to indexing | peak MB | CPU s a further MB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for step in ("index", "validate", "trace", *(f"search {m}" for m in METHODS), "eval", "page"):
        for name, found in results.items():
            one, base = found[step], smallest[step]
            share = one["cpu_s"] / found["index"]["cpu_s"]
            more_mb = found["write"]["mb"] - smallest["write"]["mb"]
            # Every step begins with seconds of imports, which a ratio for each MB would hide.
            grown = f"{(one['cpu_s'] - base['cpu_s']) / more_mb:.2f}" if more_mb else ""
            print(
                f"| {step} | {name} | {one['wall_s']:.1f} | {one['cpu_s']:.1f} | {share:.3f} | "
                f"{one['peak_mb']:.0f} | {grown} |"
            )
    print("\n| method | text | first search s | further ones, median s | evidence found |")
    print("|---|---|---:|---:|---:|")
    for method in METHODS:
        for name, found in results.items():
            one = found[f"search {method}"]
            print(
                f"| {method} | {name} | {one['first_s']:.2f} | {one['further_s']:.3f} | "
                f"{one['evidence_found']:.2f} |"
            )


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--sizes", nargs="+", help="names; the smallest is always measured")
    parser.add_argument("--keep", type=Path, help="folder for the projects, which then stay")
    parser.add_argument("--json", type=Path, help="file to write")
    for name in ("--step", "--size"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    for name in ("--documents", "--characters"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--one-line", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        size = Size(
            name=chosen.size,
            n_documents=chosen.documents,
            n_characters=chosen.characters,
            has_lines=not chosen.one_line,
        )
        print(json.dumps(run_step(chosen.step, chosen.folder, size)))
        return
    sizes = QUICK if chosen.quick else SIZES
    wanted = chosen.sizes or [size.name for size in sizes]
    results: dict[str, dict[str, dict[str, Any]]] = {}
    with TemporaryDirectory() as made:
        for size in sizes:
            if size is not sizes[0] and size.name not in wanted:
                continue
            folder = (chosen.keep or Path(made)).resolve() / size.name.replace(" ", "_")
            folder.mkdir(parents=True)
            results[size.name] = measure(size, folder)
            if chosen.json is not None:
                chosen.json.write_text(json.dumps(results, indent=2) + "\n")
    print_tables(results)


if __name__ == "__main__":
    main()
