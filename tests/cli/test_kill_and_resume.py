"""Real processes, killed at many points, against a server that counts."""

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support.clock_evaluation import ROWS, Evaluation, flat, wait_until
from support.openai_server import Behaviour, LocalServer, Record, offline_reply
from support.projects import copy_project

from graphrag.eval.store.database import EvaluationStore

pytestmark = pytest.mark.slow

METHODS = [{"name": "tog-full", "method": "tog", "depth": 3}, "local", "basic"]
LATENCY_S = 0.03
# Killed when the n-th request of the process has arrived, this many seconds later: while the
# request waits, while its answer is on its way, and while the answer is being kept. Kills at
# every write of the store are in tests/store.
KILLS = [(n, (n % 4) * 0.012) for n in (2, 9, 11, 13)]
# An answer that the server finished this long before a kill may not have been kept: on a busy
# machine a process gets no processor for seconds.
NOT_YET_KEPT_S = 20.0
# What a killed process had sent may be read by the server after the kill; the next process takes
# longer than this before it asks.
READ_LATE_S = 1.0


@dataclass(frozen=True)
class Kill:
    """What was there when a process was killed."""

    at_s: float
    in_flight: int
    responses: int
    judged: int


def arrivals(server: LocalServer, after: int) -> list[Record]:
    return [record for record in server.records if record.sequence > after]


def kill_after(
    evaluation: Evaluation, server: LocalServer, n_requests: int, delay_s: float, *flags: str
) -> tuple[Kill | None, str]:
    """Start a process and kill it; return what was there then (None: it ended before)."""
    before = len(server.records)
    with evaluation.start(*flags) as process:
        wait_until(
            lambda: not process.is_alive or len(server.records) >= before + n_requests,
            pause_s=0.001,
        )
        time.sleep(delay_s)
        if not process.is_alive:
            assert process.wait() == 0, process.output
            return None, process.output
        process.send(signal.SIGKILL)
        at_s = time.monotonic()
        assert process.wait() == -signal.SIGKILL
        output = process.output
    with EvaluationStore(evaluation.store_path) as store:
        run = store.runs()[0]
        assert run.status == "unfinished"
        kill = Kill(
            at_s,
            store.calls_in_flight(run.run_id),
            len(store.responses(run.run_id)),
            len(store.verdicts(run.run_id)),
        )
    return kill, output


def test_killed_many_times_a_run_gives_what_an_uninterrupted_one_gives(make_evaluation, server):
    server.behaviour = Behaviour(offline_reply(), latency_s=LATENCY_S)
    config = {"methods": METHODS, "concurrency": 4}
    whole = make_evaluation(server.base_url, "whole", **config)
    before = len(server.records)
    whole.done("--quiet")
    asked_once = Counter(record.request_sha256 for record in arrivals(server, before))

    killed = make_evaluation(server.base_url, "killed", **config)
    before = len(server.records)
    kills: list[Kill] = []
    for n_requests, delay_s in KILLS:
        flags = ["--resume"] if kills else []
        kill, output = kill_after(killed, server, n_requests, delay_s, *flags)
        if kills:
            reported = re.search(r"(\d+) of (\d+) responses are there.*; (\d+) calls? w", output)
            assert reported is not None, output
            last = kills[-1]
            assert [int(n) for n in reported.groups()] == [last.responses, 18, last.in_flight]
        assert kill is not None, "the run was done before its last kill"
        kills.append(kill)
    killed.done("--resume", "--quiet")

    assert killed.read_results("detailed") == whole.read_results("detailed")
    assert killed.read_results("summary") == whole.read_results("summary")

    asked = arrivals(server, before)
    again = Counter(record.request_sha256 for record in asked)
    again.subtract(asked_once)
    assert min(again.values()) == 0
    assert again.total() <= sum(kill.in_flight for kill in kills)
    for sha, n_again in again.items():
        of_body = [record for record in asked if record.request_sha256 == sha]
        assert n_again <= sum(was_unkept(record, kill) for record in of_body for kill in kills)
    # Some kills came between a response and its verdicts, so keeping responses was tested.
    assert any(kill.responses > kill.judged for kill in kills)


def test_a_build_that_is_killed_is_no_index_and_nothing_is_paid_for_twice(make_evaluation, server):
    """Killed while a variant's index is built, then while questions are asked."""
    server.behaviour = Behaviour(offline_reply(), latency_s=LATENCY_S)
    variant = {"name": "local-30", "method": "local", "index": {"clock": "clock-30"}}
    methods = ["bm25", variant]
    evaluation = make_evaluation(server.base_url, methods=methods, metrics=[], concurrency=1)
    project = copy_project(
        evaluation.project,
        evaluation.root / "clock-30",
        chunking={"size": 80, "overlap": 5},
        concurrent_requests=1,
        extract_graph={"max_gleanings": 0},
    )
    before = len(server.records)

    def kill(has_come: Callable[[], bool]) -> None:
        with evaluation.start("--index") as process:
            assert wait_until(lambda: has_come() or not process.is_alive, 300), process.output
            process.send(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, process.output

    kill(lambda: len(server.records) >= before + 3)
    assert (project / "output.building").is_dir()
    assert not (project / "output").exists()
    assert "clock-30 is not indexed" in flat(evaluation.done(code=2).output)
    n_killed = len(arrivals(server, before))
    third = ROWS[2]["question"]
    kill(lambda: any(third in str(record.messages) for record in arrivals(server, before)))
    with EvaluationStore(evaluation.store_path) as store:
        n_in_flight = store.calls_in_flight(store.runs()[0].run_id)
    evaluation.done("--resume", "--quiet")

    records = arrivals(server, before)
    asked = Counter(record.request_sha256 for record in records)
    assert asked.total() - len(asked) <= 1 + n_in_flight
    cost = json.loads((project / "output" / "index_cost.json").read_text(encoding="utf-8"))
    n_replies = sum(step["replies"] for step in cost["steps"])
    assert n_killed - 1 <= sum(step["n_cached"] for step in cost["steps"]) < n_replies
    # An answer and its question's embedding for local, an answer for bm25; the rest is the build.
    assert len(asked) == n_replies + 3 * len(ROWS)
    tokens = {r.request_sha256: r.prompt_tokens + r.completion_tokens for r in records if r.status}
    built = [*dict.fromkeys(record.request_sha256 for record in records)][:n_replies]
    assert cost["tokens"] == sum(tokens[sha] for sha in built)
    kept = evaluation.read_json("eval_results_summary.json")["index_cost"]["clock-30"]
    assert (kept["tokens"], kept["cost_usd"]) == (cost["tokens"], cost["cost_usd"])
    assert len(evaluation.responses()) == 2 * len(ROWS)


def was_unkept(record: Record, kill: Kill) -> bool:
    if record.arrived_s > kill.at_s + READ_LATE_S:
        return False
    return record.finished_s is None or record.finished_s > kill.at_s - NOT_YET_KEPT_S
