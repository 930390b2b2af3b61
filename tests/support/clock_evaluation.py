"""A small project, questions about it, and a folder in which they are evaluated."""

import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result
from typer.testing import CliRunner

from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, StoredResponse
from graphrag.eval.types.query_results import KeptExchange

TEXT = """\
The clockmaker Idris Vane lives in the town of Ashcombe. Idris Vane built the tower clock of
Ashcombe. The tower clock was paid for by Lady Petra Holm. Petra Holm owns the Ashcombe Bank.
Tobias Reed is the cashier of the Ashcombe Bank. Tobias Reed is the brother of Clara Reed. Clara
Reed teaches at the school of Ashcombe. Idris Vane is married to Clara Reed.

The tower clock stopped on the night of the flood. Tobias Reed stole the silver pendulum of the
tower clock. Tobias Reed sold the silver pendulum to Magnus Crowe. Magnus Crowe is a smuggler
from Port Ellery. Inspector Nadia Sorrel arrested Magnus Crowe in Port Ellery. Nadia Sorrel
found the silver pendulum on the ship Wren. The ship Wren belongs to Magnus Crowe. Nadia Sorrel
brought the silver pendulum back to Idris Vane. Idris Vane repaired the tower clock with Clara
Reed. Petra Holm dismissed Tobias Reed from the Ashcombe Bank. Tobias Reed left Ashcombe on the
ship Wren.
"""

ROWS = [
    {"id": "q1", "question": "Who built the tower clock of Ashcombe?", "answer": "Idris Vane"},
    {"id": "q2", "question": "Which bank does Petra Holm own?", "answer": "The Ashcombe Bank"},
    {"id": "q3", "question": "Who stole the silver pendulum?", "answer": "Tobias Reed"},
    {"id": "q4", "question": "Where was Magnus Crowe arrested?", "answer": "In Port Ellery"},
    {"id": "q5", "question": "Whom is Clara Reed married to?", "answer": "Idris Vane"},
    {"id": "q6", "question": "What did Nadia Sorrel find on the Wren?", "answer": "The pendulum"},
]


@dataclass(frozen=True)
class Evaluation:
    """A folder with eval_config.yaml, a dataset and the built project ``clock``."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "clock"

    @property
    def output(self) -> Path:
        return self.root / "eval" / "results"

    @property
    def store_path(self) -> Path:
        return self.output / "eval.db"

    @property
    def newest_folder(self) -> Path:
        """The folder of the newest run's own files."""
        return self.output / "runs" / self.runs()[0].run_id

    def count_calls(self) -> int:
        """Return the requests of the newest run, as its store counts them."""
        with EvaluationStore(self.store_path) as store:
            run_id = store.runs()[0].run_id
            usages = [found.usage for found in store.responses(run_id).values()]
            usages += [usage for each in store.judge_usage(run_id).values() for usage in each]
            usages += [*store.unclaimed_usage(run_id).values(), *store.forgotten_usage(run_id)]
            return sum(usage.llm_calls + usage.embedding_calls for usage in usages)

    def runs(self) -> list[Run]:
        """Return the runs of the store, the newest first."""
        with EvaluationStore(self.store_path) as store:
            return store.runs()

    def responses(self, run_id: str | None = None) -> list[StoredResponse]:
        """Return the responses of a run, which is the newest one unless it is named."""
        with EvaluationStore(self.store_path) as store:
            return list(store.responses(run_id or store.runs()[0].run_id).values())

    def calls(self, run_id: str | None = None) -> dict[tuple[str, str], list[KeptExchange]]:
        """Return (unit, work) -> what its models were told and said in a run."""
        with EvaluationStore(self.store_path) as store:
            run_id = run_id or store.runs()[0].run_id
            kept = store.exchanges(run_id, list(store.responses(run_id)))
        return {(u, c["work"]): [*c["exchanges"]] for u, calls in kept.items() for c in calls}

    def configure(self, **changes: Any) -> None:
        path = self.root / "eval_config.yaml"
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump({**config, **changes}), encoding="utf-8")

    def write_rows(self, rows: list[Any]) -> None:
        (self.root / "questions.json").write_text(json.dumps(rows), encoding="utf-8")

    def write_settings(self, text: str) -> None:
        (self.project / "settings.yaml").write_text(text, encoding="utf-8")

    def run(self, *flags: str, **variables: str) -> Result:
        """Run ``graphrag eval`` in this process."""
        return in_process("--root", str(self.root), *flags, **variables)

    def done(self, *flags: str, code: int = 0, **variables: str) -> Result:
        """Run ``graphrag eval``, which has to end with this exit code."""
        result = self.run(*flags, **variables)
        assert result.exit_code == code, result.output
        return result

    def start(self, *flags: str, prepare: Callable[[], None] | None = None) -> "WarmProcess":
        """Start ``graphrag eval`` as a process of its own, which does ``prepare`` first."""
        arguments = ("eval", "--root", str(self.root), *flags)
        return WarmProcess(self.root / "output.txt", *arguments, prepare=prepare)

    def read_json(self, name: str) -> Any:
        """Read a file of the output as it is."""
        return json.loads((self.output / name).read_text(encoding="utf-8"))

    def write_suite(self, name: str, values: object) -> Path:
        """Write a suite as the ending of its file's name says."""
        path = self.root / "eval" / "suites" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        dump = json.dumps if path.suffix == ".json" else yaml.safe_dump
        path.write_text(dump(values), encoding="utf-8")
        return path

    def read_results(self, name: str = "detailed", folder: Path | None = None) -> Any:
        """Read a results file without what differs between equal runs."""
        path = (folder or self.output) / f"eval_results_{name}.json"
        return without_circumstances(json.loads(path.read_text(encoding="utf-8")))


# What every run imports: three seconds of work. Without lancedb, whose threads no fork would have.
_IMPORTED = [
    *("graphrag.cli.main", "graphrag.eval.cli.evaluate", "openai", "pandas", "scipy.stats"),
    *("networkx", "lance_namespace_urllib3_client", "aiohttp", "Stemmer"),
    *("json_repair", "statsmodels.stats.multitest", "tiktoken", "pyarrow.dataset"),
    *("graphrag.embedded.models", "graphrag.query.engines", "graphrag.eval.web.run_report"),
    "graphrag.query.graph.search",
]


def warm_context() -> ForkServerContext:
    """Return what starts processes that have imported already what every run imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context


class WarmProcess:
    """``graphrag`` as a process of its own, forked from one that has imported it already."""

    def __init__(
        self, log: Path, *arguments: str, prepare: Callable[[], None] | None = None
    ) -> None:
        self._log = log
        self._process = warm_context().Process(target=_run_graphrag, args=(log, arguments, prepare))
        self._process.start()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self, timeout_s: float = 60) -> int | None:
        """Wait for the end and return the exit code; None when it still runs."""
        self._process.join(timeout_s)
        return self._process.exitcode

    def __enter__(self) -> "WarmProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()


def _run_graphrag(
    log: Path, arguments: tuple[str, ...], prepare: Callable[[], None] | None
) -> None:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["COLUMNS"] = "200"
    sys.argv = ["graphrag", *arguments]
    if prepare is not None:
        prepare()
    from graphrag.cli.main import app

    app()


def in_process(*words: str, **variables: str | None) -> Result:
    """Run ``graphrag eval`` with these words alone, in this process."""
    from graphrag.cli.main import app

    return CliRunner().invoke(app, ["eval", *words], env=variables)


def flat(text: str) -> str:
    """Return what was printed as one line."""
    return " ".join(text.split())


def wait_until(is_so: Callable[[], bool], timeout_s: float = 60, pause_s: float = 0.01) -> bool:
    """Wait until a condition holds, looked at after each pause, and return whether it did."""
    end = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(pause_s)
    return True


def without_circumstances(value: Any) -> Any:
    """Leave out timestamps, run ids, places, latencies and what follows from latencies."""
    latencies = ("latency", "avg_latency", "n_latency", "latency_median", "latency_p95")
    left_out = ("timestamp", "run_id", *latencies, "is_pareto")
    if isinstance(value, dict):
        return {k: without_circumstances(v) for k, v in value.items() if k not in left_out}
    if isinstance(value, str):
        return re.sub(r"(--root )\S+", r"\1...", value)
    return [without_circumstances(v) for v in value] if isinstance(value, list) else value


def judging(is_right: Callable[[int], object]) -> Callable[[dict[str, Any]], str]:
    """Return a reply that grades question i, "Who is number i?", by ``is_right(i)``."""

    def reply(request: dict[str, Any]) -> str:
        text = str(request["messages"])
        if "ground_truth" not in text:
            return "Idris [Data: Sources (0)]."
        number = int(text.split("Who is number ")[1].split("?")[0])
        return json.dumps({"reason": "said", "score": int(bool(is_right(number)))})

    return reply


MakeEvaluation = Callable[..., Evaluation]
