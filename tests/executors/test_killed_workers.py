"""Real worker processes, one of them killed, then their owner, then another executor goes on."""

import signal
from collections import Counter
from os import kill
from pathlib import Path

from executors.stored_rows import METHODS, rows_of
from support.clock_evaluation import MakeEvaluation, wait_until
from support.openai_server import Behaviour, LocalServer, offline_reply

CONCURRENCY = 4


def workers_of(pid: int) -> list[int]:
    """Return the processes that a process began and that began no other: not Python's own."""
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes().decode()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == pid and fields[0] != "Z" and "spawn_main" in command:
            found.append(int(status.parent.name))
    return sorted(found)


def test_nothing_is_lost_when_a_worker_and_then_the_owner_is_killed(
    make_evaluation: MakeEvaluation, server: LocalServer
):
    config = {"methods": METHODS, "concurrency": CONCURRENCY}
    whole = make_evaluation(server.base_url, "whole", **config)
    before = len(server.records)
    assert whole.run("--quiet").exit_code == 0
    asked_once = Counter(record.request_sha256 for record in server.records[before:])

    killed = make_evaluation(server.base_url, "killed", **config)
    server.behaviour = Behaviour(offline_reply(), latency_s=0.05)
    before = len(server.records)
    with killed.start("--workers", "2") as process:
        pid = process._process.pid
        assert pid is not None
        assert wait_until(lambda: len(server.records) >= before + 12), process.output
        first = workers_of(pid)
        assert first, process.output
        kill(first[0], signal.SIGKILL)
        at_first = len(server.records)
        # The dead one's successor works as well.
        assert wait_until(
            lambda: len(server.records) >= at_first + 12 and len(workers_of(pid)) == 2
        ), process.output
        assert wait_until(lambda: len(server.records) >= at_first + 25), process.output
        left = workers_of(pid)
        process.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in left), 10)

    server.behaviour = Behaviour(offline_reply())
    result = killed.run("--resume", "--quiet")
    assert result.exit_code == 0, result.output
    assert rows_of(killed) == rows_of(whole)
    again = Counter(record.request_sha256 for record in server.records[before:])
    again.subtract(asked_once)
    assert min(again.values()) == 0
    # Of the first kill half the places were the dead worker's.
    assert again.total() <= CONCURRENCY // 2 + CONCURRENCY
