"""What a run takes in memory: by its items, and by how much each of them was shown.

    python benchmarks/memory.py [--items 500 2000 5000] [--characters 1000 10000 40000]

Answers of a function, each with a context of so many characters, are judged by a script on four
metrics and kept in eval.db. Each figure is the peak of a process of its own, in MB:

- ``run``: the run alone, its results in outline, as the commands ask for them.
- ``held``: the same with every context in its results, as a program gets them.
- ``show``: ``graphrag eval show``: the run read from its store, its figures, its files, its page.

Beside each stands its ratio to the least number of items with the same context. Lines of contexts
come back as rows of an index do: a tenth of each context is its own.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

WAYS = ("run", "held", "show")
METRICS = ("correctness", "faithfulness", "relevance", "completeness")
_LINE, _OWN = 200, 10


def context(number: int, characters: int) -> str:
    """Return a context: of ten lines one is its own, the others come back in later ones."""
    names = [
        f"own {number}.{i}" if i % _OWN == 0 else f"row {(7 * number + i) % 4000}"
        for i in range(characters // _LINE)
    ]
    return "\n".join((f"{name} tells of the tower clock. " * 9)[: _LINE - 1] for name in names)


def fill(folder: Path, items: int, characters: int, holds_contexts: bool) -> None:
    """Make a run."""
    from graphrag.eval.config.evaluation import EvaluationConfig
    from graphrag.eval.dataset.dataset_reader import as_samples
    from graphrag.eval.runner.run_setup import describe_setup, plan_run
    from graphrag.eval.runner.scheduler import Work
    from graphrag.eval.store.database import EvaluationStore
    from graphrag.eval.store.records import RunDetails
    from graphrag.eval.store.session import StoredSession
    from graphrag.eval.testing import ScriptedJudge, ScriptedRunner, grade_by_containment
    from graphrag.query.structured_search.base import SearchResult

    class Judge(ScriptedJudge):
        def _ask(self, metric: str, material: dict[str, str]):
            return grade_by_containment(metric, material)  # and remembers nothing of it

    def answer(method: str, question: str, key: str) -> SearchResult:
        number = int(question.split()[-1])
        shown = context(number, characters)
        return SearchResult(f"Keeper {number}", {}, shown, 0.1, 1, 100, 10)

    rows = [
        {"id": f"q{i}", "imdb_key": "a", "question": f"Who kept {i}", "answer": f"Keeper {i}"}
        for i in range(items)
    ]
    settings: dict[str, Any] = {
        "root": folder,
        "methods": ["local"],
        "metrics": METRICS,
        "output": {"dir": str(folder)},
    }
    config = EvaluationConfig(**settings)
    samples = as_samples(rows, ["a"])
    described = {"a": {"local": {"models": {}}}}
    setup = describe_setup(config, samples, described, {"model": "scripted"})
    units = plan_run(samples, ["local"], described)
    with EvaluationStore(folder / "eval.db") as store:
        run = store.add_run(
            setup, samples, RunDetails(origin="command", n_units=items, config=config.to_dict())
        )
        runner = ScriptedRunner(config, answer, Judge())
        session = StoredSession(store, run.run_id)
        outcome = asyncio.run(runner.run(Work(config, units, session)))
        results = outcome.results
        if holds_contexts:
            results = list(outcome.read_whole(results))
        assert len(results) == items
        store.finish_run(run.run_id)


def work(way: str, folder: Path, items: int, characters: int) -> None:
    """Do one thing and print the peak of this process in MB."""
    if way == "show":
        from typer.testing import CliRunner

        from graphrag.cli.main import app

        ended = CliRunner().invoke(app, ["eval", "show", "latest", "--output", str(folder)])
        assert ended.exit_code == 0, ended.output
    else:
        fill(folder, items, characters, holds_contexts=way == "held")
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}\n")


def measure(way: str, folder: Path, items: int, characters: int) -> float:
    """Do it in a process of its own; return megabytes."""
    command = [sys.executable, "-W", "ignore", __file__, "--way", way, "--folder", str(folder)]
    sizes = ["--items", str(items), "--characters", str(characters)]
    done = subprocess.run([*command, *sizes], check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[500, 2000, 5000])
    parser.add_argument("--characters", type=int, nargs="+", default=[1000, 10_000, 40_000])
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.way is not None:
        work(given.way, given.folder, given.items[0], given.characters[0])
        return
    print(f"{'characters':>10}{'items':>7}" + "".join(f"{way:>16}" for way in WAYS))
    for characters in given.characters:
        least: dict[str, float] = {}
        for items in given.items:
            cells = ""
            with TemporaryDirectory() as name:
                for way in WAYS:
                    folder = Path(name) / ("held" if way == "held" else "run")
                    peak = measure(way, folder, items, characters)
                    cells += f"{peak:9.1f} x{peak / least.setdefault(way, peak):5.2f}"
            print(f"{characters:10}{items:7}{cells}", flush=True)


if __name__ == "__main__":
    main()
