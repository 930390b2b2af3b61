"""What it takes to go on with a run.

Given answers are judged on four metrics directly, against the service of
``throughput.py``, each run in a process of its own:

- ``kept``: every item has its verdicts, and the run is read and counted.
- ``replayed``: every call is recorded, but no item has its verdicts, as if the process had been
  killed just before: each call is answered from the store.

The seconds are those from opening the store to the outcome. Beside them stand those of one item
in a process of its own, which is what start-up costs. No call may reach the service. What finished
items take of memory is measured by ``memory.py``.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from throughput import count_calls, environment, service
from throughput_client import CONTEXT, N_METRICS, configured, make_rows

from graphrag.eval.config.evaluation import EvaluationConfig

HERE = Path(__file__).parent


def open_runner(config: EvaluationConfig, folder: Path):
    """Return a runner of given answers, judged by the model of the project."""
    from graphrag.eval.runner.custom_methods import MethodAnswer
    from graphrag.eval.runner.evaluation_runner import EvaluationRunner

    async def given(question: str):
        return MethodAnswer(response="Jonas Feld.", contexts=(CONTEXT,))

    return EvaluationRunner(config, None, {"isle": folder}, {"given": given})


async def run(what: str, url: str, folder: Path, items: int) -> None:
    """Make, or go on with, one run; print its seconds and how many items it has."""
    from graphrag.eval.dataset.dataset_reader import as_samples
    from graphrag.eval.runner.run_setup import plan_run
    from graphrag.eval.runner.scheduler import Work
    from graphrag.eval.store.database import EvaluationStore
    from graphrag.eval.store.records import RunSetup
    from graphrag.eval.store.session import StoredSession

    class Unclaimed(StoredSession):
        """Keeps calls but no verdicts."""

        def keep_verdicts(self, *_: object, **__: object) -> None:
            pass

    config = configured(url, "direct", 32, folder)
    runner = open_runner(config, folder)
    units = plan_run(as_samples(make_rows(items), ["isle"]), ["given"], {"isle": {"given": {}}})
    started, before = time.perf_counter(), time.process_time()
    with EvaluationStore(folder / f"{what.removeprefix('resume-')}-{items}.db") as store:
        runs = store.runs()
        run_id = (runs[0] if runs else store.add_run(RunSetup({}))).run_id
        kind = Unclaimed if what == "replayed" else StoredSession
        outcome = await runner.run(Work(config, units, kind(store, run_id)))
    seconds, cpu = time.perf_counter() - started, time.process_time() - before
    print(json.dumps([seconds, cpu, len(outcome.results), outcome.stopped]))


def ask(what: str, url: str, folder: Path, items: int) -> tuple[float, float, int]:
    """Do that in a process of its own; return seconds, CPU seconds and new calls."""
    before, _ = count_calls(url)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, what, url, folder, str(items)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(folder),
    )
    seconds, cpu, n_results, stopped = json.loads(done.stdout.splitlines()[-1])
    assert (n_results, stopped) == (0 if what == "replayed" else items, None), done.stdout
    return seconds, cpu, count_calls(url)[0] - before


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--calls", type=int, default=5400)
    given = parser.parse_args()
    items = given.calls // N_METRICS
    with service(0.0) as url, TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-P", "-W", "ignore", HERE / "throughput_client.py", "build"]
        subprocess.run([*command, folder], check=True, capture_output=True)
        for number in (1, items):
            for what in ("kept", "replayed"):
                assert ask(what, url, folder, number)[2] == N_METRICS * number
        heads = f"{'':12}{'calls':>7}{'s':>8}{'one item s':>12}{'beyond s':>10}{'CPU s':>7}"
        print(f"{heads}{'asked anew':>12}")
        for what in ("kept", "replayed"):
            one, *_ = ask(f"resume-{what}", url, folder, 1)
            seconds, cpu, made = ask(f"resume-{what}", url, folder, items)
            print(
                f"{what:12}{N_METRICS * items:7}{seconds:8.2f}{one:12.2f}{seconds - one:10.2f}"
                f"{cpu:7.2f}{made:12}",
                flush=True,
            )


if __name__ == "__main__":
    if len(sys.argv) == 5:
        asyncio.run(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
    else:
        main()
