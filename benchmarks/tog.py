"""Think-on-Graph on graphs of 10,000 to 1,000,000 entities, without a model.

Writes synthetic power-law indexes (ten relationships an entity), and measures on each, every
step in a process of its own: building the graph store, opening it again, neighbour look-ups,
and whole searches whose model answers at once, ranking of texts included. ``--quick`` is 10,000
entities only.

Times are wall-clock; peak and resident memory are of the process, the interpreter and its
libraries included; mapped memory is shared between processes and given back under pressure.
"""

import argparse
import asyncio
import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

CAP = 200
N_LOOK_UPS = 50_000
N_SEARCHES = 40
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
    import pyarrow.compute
    import pyarrow.parquet as parquet

    join: Any = pyarrow.compute.binary_join_element_wise  # pyright: ignore
    rng = np.random.default_rng(n_entities)
    words = WORDS.split()
    n_units = max(1, n_entities // ENTITIES_PER_TEXT_UNIT)
    sentences = pa.array([" ".join(rng.choice(words, 12)).capitalize() + "." for _ in range(5000)])
    unit_ids = pa.array([f"{i:x}".rjust(128, "f") for i in range(n_units)])
    titles = pa.array(
        [f"{words[i % len(words)].upper()} {words[i % 29].upper()} {i}" for i in range(n_entities)]
    )

    def texts(n: int):
        halves = [sentences.take(pa.array(rng.integers(0, 5000, n))) for _ in range(2)]
        return join(*halves, " ")

    def cited(n: int):
        ends = np.concatenate([[0], np.cumsum(rng.integers(1, 3, n))]).astype(np.int32)
        chosen = unit_ids.take(pa.array(rng.integers(0, n_units, ends[-1])))
        return pa.ListArray.from_arrays(pa.array(ends), chosen)

    def write(name: str, n: int, columns: Callable[[int, int], dict[str, object]]) -> None:
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

    def ends(size: int):
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
            "text": join(texts(size), texts(size), texts(size), " "),
        },
    )


def sample_titles(folder: Path, n: int) -> list[str]:
    """Draw the sources of some relationships, so that a hub is drawn as often as it is met."""
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(folder / "relationships.parquet")
    rows = next(file.iter_batches(batch_size=n, columns=["source"]))
    return rows.column("source").to_pylist()


# The steps, each run in a process of its own ----------------------------------------------


def open_store(folder: Path):
    """Open the graph store, building it if it is not there."""
    from graphrag.query.structured_search.tog_search import open_graph

    names = ("entities", "relationships", "text_units")
    return open_graph({name: folder / f"{name}.parquet" for name in names})


def step_build(folder: Path) -> dict[str, float]:
    """Build the store from nothing."""
    import_module("graphrag.query.structured_search.tog_search")  # so not timed

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
    node_of = {title: store.graph.nodes_named_in(title)[0] for title in set(titles)}
    nodes = [node_of[title] for title in titles]
    look_ups = [timed(lambda node=node: store.graph.neighbours(node, CAP)) for node in nodes]
    searched = search(store, sample_titles(folder, 2 * N_SEARCHES + 2))
    after = memory()
    return {
        "reopen_ms": median(opened) * 1e3,
        **percentiles(look_ups),
        **searched,
        **{f"{name}_mb": after[name] - before[name] for name in after},
    }


STEPS = {
    "write": lambda folder: write_index(folder, int(folder.name)) or {},
    "build": step_build,
    "use": step_use,
}


# Searching without a model ----------------------------------------------------------------


class InstantModel:
    """Follows the first rows, looks up what it is shown there, and finds no answer."""

    def __init__(self) -> None:
        from graphrag_llm.config import TokenizerConfig
        from graphrag_llm.tokenizer.tokenizer_factory import create_tokenizer

        self.tokenizer = create_tokenizer(TokenizerConfig(model_id="openai/gpt-4o"))

    async def completion_async(self, /, **kwargs):
        from graphrag.query.replies import read_reply
        from graphrag.text.tables import read_context

        form = kwargs["response_format"]
        rows = [r for r in read_context(kwargs["messages"][0]["content"]) if r.table == "Rows"]
        reply = {"missing": "more", "keep": [], "follow": [int(row.id) for row in rows[:3]]}
        content = json.dumps({**reply, "look_up": [row.text for row in rows[:3]]})
        return SimpleNamespace(content=content, formatted_response=read_reply(content, form))


def search(store, titles: Sequence[str]) -> dict[str, float]:
    """Ask how pairs of entities are related; the first, which warms up, is not counted."""
    from graphrag.config.models.tog_search_config import ToGSearchConfig
    from graphrag.query.structured_search.tog_search import ToGSearch

    touched: list[int] = []
    neighbours = store.graph.neighbours

    def counted(node: int, cap: int):
        found = neighbours(node, cap)
        touched[-1] += len(found)
        return found

    store.graph.neighbours = counted
    given: dict[str, Any] = {
        "graph": store.graph,
        "text_units": store.text_units,
        "config": ToGSearchConfig(),
    }
    tog = ToGSearch(model=InstantModel(), **given)
    times: list[float] = []
    calls: list[int] = []
    for first, second in zip(titles[::2], titles[1::2], strict=True):
        touched.append(0)
        began = time.perf_counter()
        asked = f"How did {first} come to the secret harbour of {second}?"
        result = asyncio.run(tog.search(asked))
        times.append(time.perf_counter() - began)
        frames: Any = result.context_data
        calls.append(len(frames["exploration"]))
    return {
        "search_ms": median(times[1:]) * 1e3,
        "search_p90_ms": float(np.percentile(times[1:], 90)) * 1e3,
        "edges": median(touched[1:]),
        "calls": median(calls[1:]),
    }


# Measuring and printing -------------------------------------------------------------------


def timed(do: Callable[[], object]) -> float:
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


def measure(folder: Path) -> dict[str, float]:
    """Run all steps on one size."""
    run_step("write", folder)
    return run_step("build", folder) | run_step("use", folder)


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
    ("calls of a search, median", "calls", "{:.0f}"),
)


def print_tables(results: dict[int, dict[str, float]]) -> None:
    """Print one table a size, and how figures grow from one size to the next."""
    for size, measured in results.items():
        print(f"\n{size:,} entities, {size * RELATIONSHIPS_PER_ENTITY:,} relationships")
        for label, key, form in ROWS:
            if key in measured:
                print(f"{label:36}{form.format(measured[key]):>12}")
    for small, large in itertools.pairwise(sorted(results)):
        ratios = [
            f"{label} x{results[large][key] / results[small][key]:.2f}"
            for label, key in (
                ("build", "build_s"),
                ("opening", "reopen_ms"),
                ("look-up p99", "look_up_p99_us"),
                ("search", "search_ms"),
                ("edges touched", "edges"),
            )
        ]
        print(f"\nfrom {small:,} to {large:,} entities: {', '.join(ratios)}")


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
        results: dict[int, dict[str, float]] = {}
        for size in sizes:
            folder = Path(temporary) / str(size)
            folder.mkdir()
            results[size] = measure(folder)
            shutil.rmtree(folder)
    print_tables(results)


if __name__ == "__main__":
    main()
