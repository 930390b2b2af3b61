"""Think-on-Graph on graphs of 10,000 to 1,000,000 entities, without a model.

Writes synthetic power-law indexes (ten relationships an entity), and measures on each, every
step in a process of its own: building the graph store, opening it again, neighbour look-ups,
and whole searches whose model answers at once, ranking of texts included. A dict of lists and
a networkx graph of the same tables are measured beside it. ``--quick`` is 10,000 entities only.

Times are wall-clock; peak and resident memory are of the process, the interpreter and its
libraries included; mapped memory is shared between processes and given back under pressure.
"""

import argparse
import asyncio
import heapq
import itertools
import json
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from tog_tables import RELATIONSHIPS_PER_ENTITY, read_ends, sample_titles, write_index

CAP = 200
N_LOOK_UPS = 50_000
N_SEARCHES = 40
# What the plain structures took of memory for a relationship, to skip what does not fit.
BYTES_PER_RELATIONSHIP = {"dict of lists": 600, "networkx": 1100}


# The steps, each run in a process of its own ----------------------------------------------


def open_store(folder: Path) -> Any:
    """Open the graph store, building it if it is not there."""
    from graphrag.query.structured_search.tog_search import TableFiles, open_graph

    names = ("entities", "relationships", "text_units")
    return open_graph(TableFiles(*(folder / f"{name}.parquet" for name in names)))


def step_build(folder: Path) -> dict[str, float]:
    """Build the store from nothing."""
    import graphrag.query.structured_search.tog_search  # noqa: F401, so not timed

    shutil.rmtree(folder / "tog_graph", ignore_errors=True)
    began, cpu = time.perf_counter(), time.process_time()
    open_store(folder)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    sizes = {path.stem: path.stat().st_size for path in folder.glob("tog_graph/*/*.npy")}
    tables = sum(path.stat().st_size for path in folder.glob("tog_graph/*/*.arrow"))
    edges = sum(size for name, size in sizes.items() if name.startswith("edge_"))
    return {
        "build_s": seconds,
        "build_cpu_s": cpu,
        "arrays_mb": sum(sizes.values()) / 1e6,
        "edges_mb": edges / 1e6,
        "tables_mb": tables / 1e6,
        **peak(),
    }


def step_use(folder: Path) -> dict[str, float]:
    """Open the built store, look neighbours up and search."""
    open_store(folder)  # the first opening pays for imports
    opened = [timed(lambda: open_store(folder)) for _ in range(20)]
    before = memory()
    store = open_store(folder)
    titles = sample_titles(folder, N_LOOK_UPS)
    nodes = [store.graph.nodes_named_in(title)[0] for title in titles]
    look_ups = [timed(lambda node=node: store.graph.neighbours(node, CAP)) for node in nodes]
    searched = search(store, sample_titles(folder, 2 * N_SEARCHES + 2))
    after = memory()
    return {
        "reopen_ms": median(opened) * 1e3,
        **percentiles(look_ups),
        **searched,
        **{f"{name}_mb": after[name] - before[name] for name in after},
    }


def step_dict(folder: Path) -> dict[str, float]:
    """Build and use a dict of lists; the heaviest edges are chosen at each look-up."""
    began = time.perf_counter()
    titles, sources, targets, weights = read_ends(folder)
    known = set(titles)
    graph: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for row, (source, target, weight) in enumerate(zip(sources, targets, weights, strict=True)):
        if source in known and target in known and source != target:
            graph[source].append((weight, row, target))
            graph[target].append((weight, row, source))
    seconds = time.perf_counter() - began
    wanted = sample_titles(folder, N_LOOK_UPS)[:5000]
    look_ups = [timed(lambda title=title: heapq.nlargest(CAP, graph[title])) for title in wanted]
    return {"build_s": seconds, **percentiles(look_ups), **peak()}


def step_networkx(folder: Path) -> dict[str, float]:
    """Build and use a networkx graph; the heaviest edges are chosen at each look-up."""
    import networkx

    began = time.perf_counter()
    titles, sources, targets, weights = read_ends(folder)
    graph: Any = networkx.MultiGraph()
    graph.add_nodes_from(titles)
    for row, (source, target, weight) in enumerate(zip(sources, targets, weights, strict=True)):
        graph.add_edge(source, target, key=row, weight=weight)
    seconds = time.perf_counter() - began

    def heaviest(title: str) -> Any:
        edges = graph.edges(title, keys=True, data="weight")
        return heapq.nlargest(CAP, edges, key=lambda edge: edge[3])

    wanted = sample_titles(folder, N_LOOK_UPS)[:5000]
    look_ups = [timed(lambda title=title: heaviest(title)) for title in wanted]
    return {"build_s": seconds, **percentiles(look_ups), **peak()}


STEPS = {
    "write": lambda folder: write_index(folder, int(folder.name)) or {},
    "build": step_build,
    "use": step_use,
    "dict of lists": step_dict,
    "networkx": step_networkx,
}


# Searching without a model ----------------------------------------------------------------


class InstantModel:
    """Always wants to look further, and at the end cites the first relationship it is shown."""

    def __init__(self) -> None:
        from graphrag_llm.config import TokenizerConfig
        from graphrag_llm.tokenizer.tokenizer_factory import create_tokenizer

        self.tokenizer = create_tokenizer(TokenizerConfig(model_id="openai/gpt-4o"))

    async def completion_async(self, /, **kwargs: Any) -> Any:
        from graphrag.query.models import read_reply

        form = kwargs["response_format"]
        reply = (
            self._scores(kwargs["messages"][1]["content"])
            if "scores" in form.model_fields
            else self._answer(kwargs["messages"][0]["content"])
        )
        content = json.dumps(reply)
        return SimpleNamespace(content=content, formatted_response=read_reply(content, form))

    def _scores(self, shown: str) -> dict[str, Any]:
        numbers = re.findall(r"^(\d+)\|", shown, re.MULTILINE)
        return {"scores": [{"edge": int(number), "score": 0.5} for number in numbers]}

    def _answer(self, shown: str) -> dict[str, Any]:
        rows = shown.split("-----Relationships-----\n", 1)[-1].split("\n")
        cell = rows[1].split("|")[0] if len(rows) > 1 else ""
        final = "Final attempt: yes" in shown
        return {
            "sufficient": final,
            "answer": "It is so." if final else "",
            "relationships": [int(cell)] if final and cell.isdigit() else [],
            "sources": [],
            "missing": "more",
        }


def search(store: Any, titles: Sequence[str]) -> dict[str, float]:
    """Ask how pairs of entities are related; the first, which warms up, is not counted."""
    from graphrag.query.structured_search.tog_search import ToGSearch

    touched: list[int] = []
    neighbours = store.graph.neighbours

    def counted(node: int, cap: int) -> Any:
        found = neighbours(node, cap)
        touched[-1] += len(found.nodes)
        return found

    store.graph.neighbours = counted
    tog = ToGSearch(model=InstantModel(), graph=store.graph, text_units=store.text_units)
    times: list[float] = []
    calls: list[int] = []
    for first, second in zip(titles[::2], titles[1::2], strict=True):
        touched.append(0)
        began = time.perf_counter()
        asked = f"How did {first} come to the secret harbour of {second}?"
        result = asyncio.run(tog.search(asked))
        times.append(time.perf_counter() - began)
        calls.append(len(result.context_data["exploration"]) - 1)
    return {
        "search_ms": median(times[1:]) * 1e3,
        "search_p90_ms": float(np.percentile(times[1:], 90)) * 1e3,
        "edges": median(touched[1:]),
        "depth": median(calls[1:]),
    }


# Measuring and printing -------------------------------------------------------------------


def timed(do: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter_ns()
    do()
    return (time.perf_counter_ns() - began) / 1e9


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 99th percentile in microseconds."""
    p50, p99 = np.percentile(seconds, [50, 99]) * 1e6
    return {"look_up_p50_us": float(p50), "look_up_p99_us": float(p99)}


def peak() -> dict[str, float]:
    """Return the most memory that this process has taken."""
    try:
        import resource
    except ImportError:
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6}


def memory() -> dict[str, float]:
    """Return what this process holds for itself and of mapped files; empty where unknown."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    found = dict(line.split(":") for line in lines if line.startswith(("RssAnon", "RssFile")))
    return {name: int(value.split()[0]) * 1024 / 1e6 for name, value in found.items()}


def run_step(step: str, folder: Path) -> dict[str, float]:
    """Run a step in a process of its own and return what it measured."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def free_bytes() -> float:
    """Return the memory that is free, infinity where the system does not say."""
    path = Path("/proc/meminfo")
    if not path.exists():
        return float("inf")
    lines = dict(line.split(":") for line in path.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def measure(folder: Path) -> dict[str, dict[str, float]]:
    """Run all steps on one size; a plain structure that does not fit is left out."""
    run_step("write", folder)
    found = {"store": run_step("build", folder) | run_step("use", folder)}
    n_relationships = int(folder.name) * RELATIONSHIPS_PER_ENTITY
    for name, n_bytes in BYTES_PER_RELATIONSHIP.items():
        if n_bytes * n_relationships > 0.7 * free_bytes():
            print(f"{name}: skipped at {folder.name} entities, it would not fit into memory")
        else:
            found[name] = run_step(name, folder)
    return found


ROWS = (
    ("build, s", "build_s", "{:.2f}"),
    ("build, CPU s", "build_cpu_s", "{:.2f}"),
    ("peak memory of the build, MB", "peak_mb", "{:,.0f}"),
    ("arrays, MB", "arrays_mb", "{:,.1f}"),
    ("  of which edges, MB", "edges_mb", "{:,.1f}"),
    ("tables, MB", "tables_mb", "{:,.0f}"),
    ("opening again, ms", "reopen_ms", "{:.2f}"),
    ("own memory after searching, MB", "RssAnon_mb", "{:,.0f}"),
    ("mapped pages after searching, MB", "RssFile_mb", "{:,.0f}"),
    ("look-up at cap 200, median us", "look_up_p50_us", "{:,.2f}"),
    ("look-up at cap 200, p99 us", "look_up_p99_us", "{:,.2f}"),
    ("search without model, median ms", "search_ms", "{:.1f}"),
    ("search without model, p90 ms", "search_p90_ms", "{:.1f}"),
    ("edges touched by a search, median", "edges", "{:,.0f}"),
    ("depth reached, median", "depth", "{:.0f}"),
)


def print_tables(results: dict[int, dict[str, dict[str, float]]]) -> None:
    """Print one table a size, the plain structures as multiples of the store."""
    for size, found in results.items():
        n = size * RELATIONSHIPS_PER_ENTITY
        print(f"\n{size:,} entities, {n:,} relationships")
        print(f"{'':36}" + "".join(f"{name:>26}" for name in found))
        for label, key, form in ROWS:
            cells = [cell(key, form, found["store"], measured) for measured in found.values()]
            if any(cells):
                print(f"{label:36}" + "".join(f"{text:>26}" for text in cells))
    sizes = sorted(results)
    for small, large in itertools.pairwise(sizes):
        ratios = [
            f"{label} x{results[large]['store'][key] / results[small]['store'][key]:.2f}"
            for label, key in (
                ("build", "build_s"),
                ("opening", "reopen_ms"),
                ("look-up p99", "look_up_p99_us"),
                ("search", "search_ms"),
                ("edges touched", "edges"),
            )
        ]
        print(f"\nfrom {small:,} to {large:,} entities, the store: {', '.join(ratios)}")


def cell(key: str, form: str, store: dict[str, float], measured: dict[str, float]) -> str:
    """Write a figure, with its ratio to the store's where it is another structure's."""
    if key not in measured:
        return ""
    text = form.format(measured[key])
    return text if measured is store else f"{text} (x{measured[key] / store[key]:.1f})"


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="10,000 entities only")
    parser.add_argument("--entities", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](options.folder)))
        return
    sizes = [10_000] if options.quick else options.entities
    with TemporaryDirectory(dir=options.folder) as temporary:
        results: dict[int, dict[str, dict[str, float]]] = {}
        for size in sizes:
            folder = Path(temporary) / str(size)
            folder.mkdir()
            results[size] = measure(folder)
            shutil.rmtree(folder)
    print_tables(results)


if __name__ == "__main__":
    main()
