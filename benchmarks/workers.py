"""What an item costs this process alone, and with Ray's workers.

An item is one question asked by one method, and its response judged on four metrics. A service on
this machine answers after a fixed time, from a process of its own. The same items are done in one
go after a first few that open indexes and models, so that imports are not part of the figures:

- ``alone``: in this process.
- ``2 workers``: where Ray is installed.

Of each: wall seconds, the CPU milliseconds of an item in the process that owns the store and in
the workers, the bytes that a call takes in the store's hands, and as the last line what the owner
can take at most: its CPU alone bounds the items an hour. At the end the store alone: how many
calls are noted, kept and dropped a second. Ratios are to ``alone`` in the same run.
"""

import argparse
import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from throughput import service
from throughput_client import build, settings

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
METHODS = ["local", "basic"]
WARM_UP = 8
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pids: Sequence[int]) -> float:
    """Return the CPU seconds of some processes so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def ray_workers() -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::RayWorker"):
            found.append(int(folder.name))
    return found


async def measure(way: str, url: str, folder: Path, concurrency: int, n_items: int):
    """Do the items and return what they took."""
    from graphrag.eval.config.evaluation import EvaluationConfig
    from graphrag.eval.dataset.dataset_reader import Sample
    from graphrag.eval.runner.evaluation_runner import EvaluationRunner
    from graphrag.eval.runner.on_ray import open_executor
    from graphrag.eval.runner.scheduler import Work
    from graphrag.eval.store.database import EvaluationStore
    from graphrag.eval.store.records import RunSetup, Unit
    from graphrag.eval.store.session import StoredSession

    (folder / "settings.yaml").write_text(
        settings("direct", url, (folder / "stock.yaml").read_text())
    )
    config = EvaluationConfig.model_validate(
        {"indexes": {"isle": str(folder)}, "methods": METHODS, "concurrency": concurrency}
    )
    samples = [
        Sample(
            id=f"q{n}",
            imdb_key="isle",
            question=f"Who repaired the lamp ({n})?",
            ground_truth="Jonas Feld",
        )
        for n in range((n_items + WARM_UP) // 2)
    ]
    units = [Unit(key=f"{s.id}-{m}", sample=s, method=m) for s in samples for m in METHODS]
    with EvaluationStore(folder / f"{way}.db") as store:
        run = store.add_run(RunSetup({"indexes": {}}), samples)
        session = StoredSession(store, run.run_id)
        workers = 1 if way == "alone" else 2
        config = config.model_copy(update={"workers": workers})
        async with open_executor(config) as crew:
            runner = EvaluationRunner(config, executor=crew)
            await runner.run(Work(config, units[:WARM_UP], session))
            pids = ray_workers()
            own, theirs, started = time.process_time(), cpu_of(pids), time.perf_counter()
            outcome = await runner.run(Work(config, units[WARM_UP:], session))
            wall = time.perf_counter() - started
            own, theirs = time.process_time() - own, cpu_of(pids) - theirs
    done = outcome.results
    assert len(done) == n_items, len(done)
    unscored = [r for r in done if r.failure or None in r.scores.to_dict().values()]
    assert not unscored, unscored[0]
    usages = [usage for r in done for usage in (r.usage, r.judge_usage) if usage is not None]
    calls = sum(usage.llm_calls + usage.embedding_calls for usage in usages)
    return {"wall": wall, "owner": own, "workers": theirs, "calls": calls}


def measure_store(folder: Path, n_items: int = 400) -> dict[str, float]:
    """Return what the store takes a second: whole items of 6 calls, and single commits."""
    from graphrag.eval.store.database import EvaluationStore
    from graphrag.eval.store.records import CallScope, RunSetup, StoredResponse
    from graphrag.eval.types.verdicts import JudgeResult
    from graphrag.query.client.usage import CallAttempt, RecordedCall, Usage

    attempt = CallAttempt(
        kind="completion",
        model="openai/m",
        phase="response",
        prompt_tokens=900,
        output_tokens=60,
        counted_by="provider",
        latency_s=0.2,
    )
    call = RecordedCall("word " * 200, (attempt,))
    usage, context = (
        Usage(llm_calls=2, prompt_tokens=1800, output_tokens=120, cost_usd=0.01),
        "context " * 2000,
    )
    with EvaluationStore(folder / "store.db") as store:
        run = store.add_run(RunSetup({})).run_id
        started = time.perf_counter()
        for n in range(n_items):
            for scope, n_calls in (
                (CallScope.of_search(f"u{n}"), 2),
                (CallScope.of_verdicts(f"u{n}"), 4),
            ):
                for each in range(n_calls):
                    store.write_call(run, scope, f"{each}", None)
                    store.write_call(run, scope, f"{each}", call)
                if scope.work == "search":
                    found = StoredResponse(
                        unit=f"u{n}",
                        sample_id=f"s{n}",
                        method="basic",
                        response="text",
                        context_text=context,
                        latency_s=1.0,
                        usage=usage,
                    )
                    store.append_response(run, found)
            verdicts = {m: JudgeResult(score=1, reason="because " * 20) for m in "abcd"}
            store.append_verdicts(run, f"u{n}", verdicts, usage)
        wall = time.perf_counter() - started
        size = sum(p.stat().st_size for p in folder.glob("store.db*"))
    return {"items": n_items / wall, "commits": n_items * 14 / wall, "bytes": size / n_items}


def child(way: str, url: str, folder: Path, concurrency: int, n_items: int) -> None:
    logging.disable(logging.INFO)
    if way == "store":
        print(json.dumps(measure_store(folder)))
        return
    print(json.dumps(asyncio.run(measure(way, url, folder, concurrency, n_items))))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency-s", type=float, default=0.2)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        way, url, folder = given.child
        child(way, url, Path(folder), given.concurrency, given.items)
        return
    ways = ["alone"]
    if find_spec("ray") is not None:
        ways.append("2 workers")
    else:
        print("Ray is not installed, so it is left out.")
    print(f"{given.items} items, C = {given.concurrency}, {given.latency_s * 1000:.0f} ms\n")
    print("| way | wall | /alone | items/h | owner's CPU | workers' CPU | owner's bound, items/h |")
    print("|---|---|---|---|---|---|---|")
    alone: dict[str, float] = {}
    with service(given.latency_s) as url, TemporaryDirectory() as built:
        index = Path(built) / "index"
        index.mkdir()
        asyncio.run(build(index))
        for way in [*ways, "store"]:
            with TemporaryDirectory() as folder:
                shutil.copytree(index, folder, dirs_exist_ok=True)
                arguments = ["--items", given.items, "--concurrency", given.concurrency]
                done = subprocess.run(
                    [sys.executable, __file__, *map(str, arguments), "--child", way, url, folder],
                    stdout=subprocess.PIPE,
                    check=True,
                )
                found = json.loads(done.stdout.splitlines()[-1])
            if way == "store":
                print(
                    f"\nThe store alone: {found['items']:,.0f} items of 6 calls a second, "
                    f"{found['commits']:,.0f} commits a second, {found['bytes']:,.0f} bytes an item"
                )
                continue
            alone = alone or found
            own, theirs = (1000 * found[part] / given.items for part in ("owner", "workers"))
            print(
                f"| {way} | {found['wall']:.1f} s | {found['wall'] / alone['wall']:.2f} "
                f"| {3600 * given.items / found['wall']:,.0f} | {own:.1f} ms | {theirs:.1f} ms "
                f"| {3600 * 1000 / own:,.0f} |",
                flush=True,
            )
        print(f"\n{alone['calls'] / given.items:.1f} calls an item")


if __name__ == "__main__":
    main()
