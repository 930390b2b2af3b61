"""A real server on a port of its own, over a store of a few runs."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.applications import Starlette

from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.view import app_of, draw_labels
from graphrag.eval.compare.compare import pin_baseline
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.results.runs import read_rows
from graphrag.eval.runner.run_setup import describe_setup
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunDetails, StoredResponse
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.eval.web.server import Listener, make_server
from graphrag.query.client.usage import Usage

METHODS = ("tog", "basic")
NASTY = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


@dataclass(frozen=True)
class Served:
    """A server and a client that has opened its address."""

    listener: Listener
    client: httpx.Client

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.listener.port}"


@contextmanager
def serving(folder: Path, port: int = 0, patience_s: float = 60) -> Generator[Served]:
    with serving_app(app_of(Paths(output=folder), patience_s), port) as served:
        yield served


@contextmanager
def serving_app(app: Starlette, port: int = 0) -> Generator[Served]:
    listener = Listener.on(port)
    server = make_server(app, listener)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.socket]})
    thread.start()
    try:
        origin = f"http://127.0.0.1:{listener.port}"
        with httpx.Client(base_url=origin, follow_redirects=True, timeout=30) as client:
            while not server.started:
                time.sleep(0.005)
            client.get(listener.address)
            yield Served(listener, client)
    finally:
        server.should_exit = True
        thread.join()
        listener.socket.close()


def keep_three(folder: Path, questions: int) -> list[str]:
    """Keep a pinned run, a worse one, and one that was interrupted; and a sheet for labels."""
    ids = [keep_run(folder, 0, 60), keep_run(folder, 40, 60), keep_run(folder, 3, 60, n_asked=7)]
    pin_baseline(read_rows(ids[0], folder / "eval.db"), folder / "eval.db")
    assert draw_labels(Paths(output=folder), ids[0], questions=questions) == 0
    return ids


def keep_run(
    folder: Path,
    wrong: int = 3,
    n: int = 12,
    n_asked: int | None = None,
    price: float | None = 0.5,
    model: str = "m",
    basic_wrong: int = 0,
) -> str:
    """Keep a run in which basic fails on the sixth question, and each is wrong on the first."""
    samples = [Sample(f"q{i}", f"film{i % 2}", f"Question {i}? {NASTY}", "Truth") for i in range(n)]
    config = EvaluationConfig(
        root=folder, methods=list(METHODS), metrics=("correctness",), output={"dir": str(folder)}
    )
    described = {key: {m: {"models": {}} for m in METHODS} for key in ("film0", "film1")}
    setup = describe_setup(config, samples, described, {"model": "openai/gpt-4o"})
    details = RunDetails("command", n * len(METHODS), config.to_dict(), command="graphrag eval")
    usage = Usage(llm_calls=2, prompt_tokens=100, output_tokens=10, cost_usd=price, models=(model,))
    with EvaluationStore(folder / "eval.db") as store:
        run = store.add_run(setup, samples, details)
        for i, sample in enumerate(samples[:n_asked]):
            time.sleep(0.001)  # at what pace it goes on is told by times in milliseconds
            for method in METHODS:
                unit = f"{sample.id} {method}"
                failed = Failure("search", "timeout", f"late {NASTY}") if i == 5 else None
                failed = failed if method == "basic" else None
                store.append_response(
                    run.run_id,
                    StoredResponse(
                        unit, sample.id, method, f"Said {NASTY}", "ctx", 1.0 + i, usage, failed
                    ),
                )
                if failed is None:
                    score = int(i >= (wrong if method == "tog" else basic_wrong))
                    verdicts = {"correctness": JudgeResult(score, "said")}
                    store.append_verdicts(run.run_id, unit, verdicts, usage)
        if n_asked is None:
            store.finish_run(run.run_id)
    return run.run_id
