"""Ctrl-C and SIGTERM, sent to real processes in the middle of their work."""

import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from support.clock_evaluation import Evaluation, WarmProcess, wait_until
from support.lighthouse import SpiedServer

from graphrag.eval.store.database import EvaluationStore

pytestmark = pytest.mark.slow
INTERRUPTED = 130
# Longer than a run with nothing left to wait for needs to write its results and end, on a busy
# machine; no longer than the eight seconds that it gives what is in flight.
END_S = 8.0


def printed_command(output: str) -> list[str]:
    line = next(line for line in output.splitlines() if "Continue with: graphrag " in line)
    return shlex.split(line.partition("Continue with: graphrag ")[2])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_in_flight_finishes_and_the_printed_command_continues(
    make_evaluation, server, number, tmp_path
):
    evaluation = make_evaluation(
        server.base_url, "a folder with spaces", methods=["basic"], concurrency=3
    )
    watched = SpiedServer(server)
    watched.behave(latency_s=0.3)
    with evaluation.start() as process:
        assert wait_until(
            lambda: sum(record.outcome == "answered" for record in watched.records) >= 7
        ), process.output
        process.send(number)
        sent_s = time.monotonic()
        assert process.wait() == INTERRUPTED, process.output
        output = process.output
    late = [record for record in watched.records if record.arrived_s > sent_s + 0.1]
    assert not any(record.endpoint == "embeddings" for record in late)
    assert all(record.outcome == "answered" for record in watched.records)
    with EvaluationStore(evaluation.store_path) as store:
        run = store.runs()[0]
        assert store.calls_in_flight(run.run_id) == 0
        assert 0 < len(store.responses(run.run_id)) < 6
    assert "Stopped after" in output
    # Nobody who interrupts waits for figures and files: show makes them.
    assert "Computing the figures" not in output
    assert not (evaluation.output / "report.html").exists()
    evaluation.done("show", "latest")
    assert (evaluation.output / "report.html").exists()

    watched.behave()
    with WarmProcess(tmp_path / "resumed.txt", *printed_command(output)) as resumed:
        assert resumed.wait() == 0, resumed.output
        assert "0 calls were in flight" in resumed.output
    # Each question: an embedding, an answer, four verdicts; every request of them is different.
    assert Counter(record.request_sha256 for record in watched.records).most_common(1)[0][1] == 1
    assert len(watched.records) == 6 * 6


def test_what_hangs_is_cut_off_after_eight_seconds(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=2)
    watched = SpiedServer(server)
    watched.behave(latency_s=120)
    with evaluation.start() as process:
        assert wait_until(lambda: len(watched.records) >= 2), process.output
        process.send(signal.SIGINT)
        sent_s = time.monotonic()
        assert process.wait(30) == INTERRUPTED, process.output
        assert 7.9 < time.monotonic() - sent_s < 10 + END_S
        assert "Stopped after 0 of 6: interrupted" in process.output
    assert evaluation.count_calls() == 2
    watched.behave()
    resumed = evaluation.done("--resume")
    assert "2 calls were in flight" in " ".join(resumed.output.split())
    assert evaluation.count_calls() == len(watched.records) == 6 * 6 + 2
    earlier = evaluation.read_results("summary")["metadata"]["earlier_attempts"]
    assert earlier["calls"] == 2


def test_a_second_interrupt_stops_at_once(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=2)
    watched = SpiedServer(server)
    watched.behave(latency_s=120)
    with evaluation.start() as process:
        assert wait_until(lambda: len(watched.records) >= 2), process.output
        process.send(signal.SIGINT)
        assert wait_until(lambda: "Finishing what is in flight" in process.output)
        process.send(signal.SIGINT)
        sent_s = time.monotonic()
        assert process.wait(30) == INTERRUPTED, process.output
        assert time.monotonic() - sent_s < END_S
        assert "Traceback" not in process.output
        arguments = printed_command(process.output)
    watched.behave()
    assert arguments == ["eval", "--root", str(evaluation.root), "--resume"]
    resumed = evaluation.done("--resume")
    # What they cost is not known: their number is said, and they are asked again.
    assert "2 calls were in flight" in " ".join(resumed.output.split())
    assert evaluation.count_calls() == 6 * 6
    assert len(watched.records) == 6 * 6 + 2


def test_sigterm_at_any_other_time_says_what_ctrl_c_says():
    """While figures are computed, say, or with Ctrl-C ignored, as nohup has it."""
    ask = "import signal, sys; from graphrag.eval.cli.terminal import explained; {}; "
    end = "sys.exit(explained(lambda: signal.raise_signal(signal.SIGTERM)))"
    for first in ("", "signal.signal(signal.SIGINT, signal.SIG_IGN)"):
        code = ask.format(first or "pass") + end
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == INTERRUPTED
        assert done.stderr.startswith("Interrupted; what was finished is kept")


def not_built(evaluation: Evaluation) -> str:
    return (
        "Interrupted: index clock is not built. Begin again with: "
        f"graphrag eval --root {evaluation.root} --index"
    )


@pytest.mark.parametrize(
    ("sent", "gap_s"), [([signal.SIGTERM], 0), ([signal.SIGINT, signal.SIGTERM], 0.02)]
)
def test_a_build_by_the_embedded_models_ends_with_one_sentence(make_evaluation, sent, gap_s):
    """They compute in the loop itself: thousands of calls are waiting when it is interrupted."""
    evaluation = make_evaluation(methods=["basic"])
    shutil.rmtree(evaluation.project / "output")
    first = next((evaluation.project / "input").iterdir())
    first.write_text(first.read_text(encoding="utf-8") * 400, encoding="utf-8")
    there = sorted(path.name for path in evaluation.project.iterdir())
    with evaluation.start("--index") as process:
        texts_are_cut = (evaluation.project / "output.building" / "text_units.parquet").exists
        assert wait_until(texts_are_cut), process.output
        time.sleep(0.3)
        for number in sent:
            process.send(number)
            time.sleep(gap_s)
        assert process.wait(30) == INTERRUPTED, process.output
        said = process.output.splitlines()
    shown = ("Starting", "Building", "Stopping")
    told = {line for line in said if line and not line.startswith(shown)}
    assert told == {not_built(evaluation)}
    assert sorted(path.name for path in evaluation.project.iterdir()) in (
        there,
        sorted([*there, "cache"]),
    )
