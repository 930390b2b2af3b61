"""Whole units handed to workers: in this process, and once by Ray itself, where it is installed."""

import json
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from itertools import count
from os import kill
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import Evaluation, flat, wait_until
from support.commands import run_apart
from support.openai_server import Behaviour, Fault, offline_reply
from uv import find_uv_bin

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner import on_ray
from graphrag.eval.runner.on_ray import (
    RayWorker,
    Share,
    SharedLimit,
    WorkerDiedError,
    WorkerSetup,
    find_problem,
    open_executor,
)
from graphrag.eval.testing import ScriptedJudge
from graphrag.query.client.model_prices import model_price

CONCURRENCY = 4
MOST_CALLS = 4
"""Of one unit: its search, or its verdicts."""
METHODS = ["tog", "local", "basic"]
_TABLES = {
    "responses": "unit, sample_id, method, response, context_text, usage, failure, trial, "
    "retrieved, abstained",
    "verdicts": "unit, metric, score, reason, failure, repeats",
    "judge_usage": "unit, usage",
    "forgotten": "unit, usage",
    "calls": "scope, call",
    "runs": "status, setup",
}


def rows_of(evaluation: Evaluation) -> dict[str, list[tuple[object, ...]]]:
    """Return table -> its rows, sorted, but when and how fast they came."""
    told = [
        (*of, sorted(("".join(e["sent"][-1][1]), "".join(e["reply"] or ())) for e in exchanges))
        for of, exchanges in evaluation.calls().items()
    ]
    with sqlite3.connect(evaluation.store_path) as db:
        kept = {
            table: sorted(map(in_order, db.execute(f"SELECT {columns} FROM {table}")), key=repr)
            for table, columns in _TABLES.items()
        }
    return {**kept, "exchanges": sorted(told)}


def in_order(row: tuple[object, ...]) -> tuple[object, ...]:
    """Return a row whose JSON has its keys sorted: which metric's call ends first is chance."""
    return tuple(
        json.dumps(json.loads(value), sort_keys=True)
        if isinstance(value, str) and value.startswith("{")
        else value
        for value in row
    )


class Begun:
    """The workers that were begun; ``dies`` says of the nth item whether its worker dies."""

    def __init__(self) -> None:
        self.n = 0
        self.shares: list[Share] = []
        self.numbers = count(1)
        self.dies = lambda number: False

    async def hire(self, ray, payload, share, variables):
        self.n += 1
        self.shares.append(share)
        worker, begun, is_dead = RayWorker(), self, False
        problem = await worker.begin(payload, share, variables)
        if problem is not None:
            raise ConfigError(problem)

        class Line:
            async def work(self, *work: Any) -> bytes:
                nonlocal is_dead
                number = next(begun.numbers)
                reply = b"" if is_dead else await worker.work(*work)
                is_dead = is_dead or begun.dies(number)
                if is_dead:
                    raise WorkerDiedError("by signal 9")
                return reply

            def close(self) -> None:
                nonlocal is_dead
                is_dead = True

        return Line()


@pytest.fixture
def begun(monkeypatch):
    """Let workers be objects of this process."""
    own = Begun()
    ray = SimpleNamespace(is_initialized=lambda: True)
    monkeypatch.setattr(on_ray, "_import_ray", lambda: ray)
    command = import_module("graphrag.eval.cli.command")
    monkeypatch.setattr(command, "missing_requirements", lambda *_: [])
    monkeypatch.setattr(on_ray, "_hire", own.hire)
    # Else what a worker logs, and its owner once more, would be logged for ever.
    monkeypatch.setattr(on_ray, "lines_to", lambda *_: nullcontext())
    return own


def test_two_workers_give_what_one_process_gives_also_when_they_die(make_evaluation, begun):
    alone = make_evaluation(name="alone", methods=METHODS)
    alone.done("--quiet")
    shared = make_evaluation(name="shared", methods=METHODS)
    begun.dies = lambda number: number in (9, 20)
    shared.done("--quiet", "--workers", "2")
    assert begun.n == 4
    assert rows_of(shared) == rows_of(alone)
    assert shared.read_results() == alone.read_results()


def test_work_that_no_worker_outlives_ends_the_run(make_evaluation, begun):
    begun.dies = lambda number: True
    result = make_evaluation(methods=["basic"]).done("--workers", "2", code=1)
    assert "3 workers died at the same work, the last one by signal 9" in result.output
    assert "--resume" in result.output or "--retry-errors" in result.output


@pytest.mark.parametrize(
    ("status", "exit_code", "said"),
    [(401, 1, "refuses the requests"), (503, 3, "The server is overloaded")],
)
def test_a_service_that_refuses_or_is_down_stops_the_run(
    make_evaluation, begun, server, status, exit_code, said
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=4)
    server.behaviour = Behaviour(offline_reply(), faults=lambda n, request: Fault(status=status))
    result = evaluation.done("--quiet", "--workers", "2", code=exit_code)
    assert said in result.output
    server.behaviour = Behaviour(offline_reply())
    evaluation.done("--quiet", "--resume")


def test_what_may_be_spent_is_split_among_workers_and_their_successors(
    make_evaluation, begun, server
):
    evaluation = make_evaluation(server.base_url, methods=METHODS, concurrency=4)
    begun.dies = lambda number: number == 5
    cap, before = 0.04, len(server.records)
    evaluation.done("--quiet", "--workers", "2", "--max-cost", f"{cap}", code=3)
    first, second, successor = (share.most_usd for share in begun.shares)
    assert first == second == cap / 2
    assert 0 < successor < cap / 2, "what the dead one had spent is spent"
    price = model_price("openai/gpt-4o")
    assert price is not None
    bills = [
        record.prompt_tokens * price.prompt_usd + record.completion_tokens * price.output_usd
        for record in server.records[before:]
        if record.endpoint == "chat"
    ]
    # Of the dead worker's last units nobody knows what they cost.
    assert cap / 2 < sum(bills) <= cap + 4 * MOST_CALLS * max(bills)


def test_given_answers_are_judged_by_workers(make_evaluation, begun):
    evaluation = make_evaluation(methods=["basic"])
    evaluation.done("--quiet", "--skip-judge")
    evaluation.done("judge", "latest", "--workers", "2")
    assert begun.n == 2
    scores = [row[2] for row in rows_of(evaluation)["verdicts"]]
    assert len(scores) == 6 * 4
    assert None not in scores


async def test_what_cannot_be_handed_over_is_refused_in_one_sentence(tmp_path):
    config = EvaluationConfig(root=tmp_path, workers=2)
    judge = ScriptedJudge(lambda *_: None)
    with pytest.raises(ConfigError, match=r"The judge can't be handed to workers .*\.$"):
        async with open_executor(config, judge=judge):
            pass
    with pytest.raises(ConfigError, match="--address names a Ray cluster"):
        async with open_executor(EvaluationConfig(root=tmp_path), address="ray://host:1"):
            pass


def test_an_index_that_a_worker_does_not_find_is_named(tmp_path):
    setup = WorkerSetup(EvaluationConfig(root=tmp_path), {"clock": str(tmp_path / "gone")})
    assert "Index clock: " in (find_problem(setup) or "")
    other = WorkerSetup(EvaluationConfig(root=tmp_path), {}, releases={"gtog": "0.0"})
    assert "and the run 0.0; install the same release" in (find_problem(other) or "")


def test_more_workers_than_calls_at_once_are_refused(make_evaluation):
    result = make_evaluation(concurrency=2).done("--workers", "3", code=2)
    assert "3 workers share a concurrency of 2" in result.output


@given(whole=st.integers(1, 10**7), of=st.integers(1, 200))
def test_the_shares_add_up_to_what_is_configured(whole, of):
    parts = [Share(i, of, max(whole, of), 1.0).part(whole) for i in range(of)]
    assert sum(parts) == pytest.approx(whole, rel=1e-12)
    assert max(parts) - min(parts) <= 1
    if whole >= of:
        assert sum(parts) == whole
        assert all(part == int(part) for part in parts)


def test_a_successor_waits_a_period_of_a_rate():
    rate = SimpleNamespace(period_in_seconds=60, requests_per_period=6, tokens_per_period=None)
    fresh = SharedLimit(Share(0, 2, 4, 60.0)).queue("model", "model", rate)
    later = SharedLimit(Share(0, 2, 4, 60.0, None, True)).queue("model", "model", rate)
    now = time.monotonic()
    assert fresh.requests_rate.ready_at(1, now) == now
    assert later.requests_rate.ready_at(1, now) > now + 50


def test_without_ray_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r'needs Ray.*pip install .*"ray'):
        on_ray._import_ray()


def test_keys_and_what_settings_refer_to_are_handed_over_and_nothing_of_rays_own(tmp_path):
    (tmp_path / "settings.yaml").write_text("api_base: ${MY_BASE}\nmodel: $MODEL_NAME\n")
    environment = {
        "MY_BASE": "http://host",
        "MODEL_NAME": "m",
        "OPENAI_API_KEY": "k",
        "RAY_AUTH_TOKEN": "t",
        "HOME": "/home/user",
    }
    chosen = on_ray.choose_variables(environment, {"a": tmp_path, "gone": tmp_path / "gone"})
    assert sorted(chosen) == ["MODEL_NAME", "MY_BASE", "OPENAI_API_KEY"]


def ray_workers() -> set[int]:
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::RayWorker"):
                found.add(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.slow
def test_ray_gives_what_one_process_gives_whoever_is_killed(make_evaluation, server):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    config = {"methods": METHODS, "concurrency": CONCURRENCY}
    whole = make_evaluation(server.base_url, "whole", **config)
    before = len(server.records)
    whole.done("--quiet")
    asked_once = Counter(record.request_sha256 for record in server.records[before:])

    killed = make_evaluation(server.base_url, "killed", **config)
    server.behaviour = Behaviour(offline_reply(), latency_s=0.05)
    before, others = len(server.records), ray_workers()
    with killed.start("--workers", "2") as process:
        assert wait_until(lambda: len(server.records) >= before + 12, 200), process.output
        kill(min(ray_workers() - others), signal.SIGKILL)
        at_first = len(server.records)
        assert wait_until(lambda: len(server.records) >= at_first + 30, 200), process.output
        process.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert "RuntimeWarning" not in process.output
    assert wait_until(lambda: not ray_workers() - others, 60, 0.2)

    server.behaviour = Behaviour(offline_reply())
    killed.done("--resume", "--quiet", "--workers", "2")
    assert rows_of(killed) == rows_of(whole)
    again = Counter(record.request_sha256 for record in server.records[before:])
    again.subtract(asked_once)
    assert min(again.values()) == 0
    # Units are begun again whole: of the first kill those of one worker, half of the places.
    assert again.total() <= MOST_CALLS * (CONCURRENCY // 2 + CONCURRENCY)


_UNDER_UV = """
from graphrag.eval.runner import on_ray
ray = on_ray._import_ray()
on_ray._connect(ray, 1, None)
print(ray.get_runtime_context().runtime_env)
"""


@pytest.mark.slow
def test_under_uv_run_no_folder_is_copied_and_nothing_is_installed(tmp_path):
    """Ray would hand its workers a copy of the folder, and have uv install the project there."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    python = ("--no-project", "--python", sys.executable, "python", "-c", _UNDER_UV)
    assert run_apart(find_uv_bin(), "run", *python, cwd=tmp_path) == "{}\n"


@pytest.mark.slow
def test_without_an_address_ray_is_begun_where_another_cluster_runs_on_the_machine():
    pytest.importorskip("ray", reason="the extra ray is not installed")
    with tempfile.TemporaryDirectory() as folder:  # whose path is short enough for Ray's sockets
        named = Path(folder) / "ray" / "ray_current_cluster"  # what `ray start` writes
        named.parent.mkdir()
        named.write_text("127.0.0.1:9")
        assert run_apart(sys.executable, "-c", _UNDER_UV, RAY_TMPDIR=folder) == "{}\n"


HOLDING = """
import asyncio, time

async def fine(question):
    await asyncio.sleep(0.01)
    return "Idris Vane"

async def holding(question):
    time.sleep(3600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_whose_worker_is_held_up(make_evaluation, number):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    others = ray_workers()
    evaluation = make_evaluation()
    (evaluation.root / "held_worker.py").write_text(HOLDING, encoding="utf-8")
    names = ("fine", "holding")
    methods = [{"name": name, "function": f"held_worker:{name}"} for name in names]
    evaluation.configure(methods=methods, concurrency=2)
    with evaluation.start("--skip-judge", "--workers", "2") as process:
        assert wait_until(lambda: "/12" in process.output, 200), process.output
        assert wait_until(lambda: ray_workers() - others, 60)
        process.send(number)
        assert wait_until(lambda: "Finishing what is in flight" in process.output, 5)
        assert process.wait(30) == 130, process.output
        output = flat(process.output)
    assert "Traceback" not in output
    assert "Continue with: graphrag eval" in output
    assert wait_until(lambda: not ray_workers() - others, 30, 0.2)
