"""Methods of one's own that wait without await: in the event loop, and in threads."""

import asyncio
import signal
import sys
import threading
import time

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat, wait_until
from support.held_loops import shorten, shorten_but_the_finish

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import RunStoppedError
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.testing import ScriptedJudge

MODULE = """
import asyncio, pathlib, time

def wait():
    while not (pathlib.Path(__file__).parent / "let go").exists():
        time.sleep(3600)  # here

async def fine(question):
    await asyncio.sleep(0.01)
    return "Idris Vane"

async def holding(question):
    await asyncio.sleep(0.01)
    if "bank" in question:
        wait()
    return "Idris Vane"

async def inner(question):
    return (await asyncio.gather(holding(question), asyncio.sleep(0)))[0]

async def swallowing(question):
    while True:
        try:
            wait()
        except BaseException:
            pass

def plain(question, index, project):
    if "bank" in question:
        wait()
    return f"Idris Vane of {index} in {project.name}"

async def refused(question):
    class PanicException(BaseException):
        pass
    raise PanicException("index out of bounds")
"""
LINE = MODULE.splitlines().index("        time.sleep(3600)  # here") + 1
PLACE = f"my_own.py:{LINE} in wait"


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    made = make_evaluation()
    (made.root / "my_own.py").write_text(MODULE, encoding="utf-8")
    made.configure(concurrency=2)
    return made


def ask(evaluation: Evaluation, *names: str, timeout_s: float = 600) -> None:
    methods = [{"name": name, "function": f"my_own:{name}"} for name in names]
    evaluation.configure(methods=methods, timeout_s=timeout_s)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["holding", "inner"])
def test_a_method_that_holds_the_loop_is_named_and_ends_the_run(evaluation, name):
    ask(evaluation, "fine", name, timeout_s=2)
    with evaluation.start("--skip-judge", prepare=shorten) as process:
        assert process.wait() == 1, process.output
        output = flat(process.output)
    assert f"Warning: {name} on 'q2' has held the event loop for" in output
    assert PLACE in output
    assert "write it as a plain function" in output
    n = len(evaluation.responses())
    assert 0 < n < 12
    assert f"Stopped after {n} of 12: {name} on 'q2' has held" in output
    assert f"Continue with: graphrag eval --skip-judge --root {evaluation.root} --resume" in output
    assert "Traceback" not in output
    assert sorted({each.failure for each in evaluation.responses()}, key=str) == [None]
    (evaluation.root / "let go").touch()
    evaluation.done("--skip-judge", "--resume")
    assert len(evaluation.responses()) == 12
    assert not any(each.failure for each in evaluation.responses())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_while_the_loop_is_held(evaluation, number):
    ask(evaluation, "fine", "holding")
    with evaluation.start("--skip-judge", prepare=shorten) as process:
        assert wait_until(lambda: "has held the event loop" in process.output), process.output
        process.send(number)
        assert wait_until(lambda: "Finishing what is in flight" in process.output, 5)
        assert process.wait(20) == 130, process.output
        output = flat(process.output)
    n = len(evaluation.responses())
    assert 0 < n < 12
    assert f"Stopped after {n} of 12: interrupted. Continue with: graphrag eval" in output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["holding", "swallowing"])
def test_a_second_interrupt_stops_at_once_while_the_loop_is_held(evaluation, name):
    ask(evaluation, "fine", name)
    with evaluation.start("--skip-judge", prepare=shorten_but_the_finish) as process:
        assert wait_until(lambda: "has held the event loop" in process.output), process.output
        process.send(signal.SIGINT)
        assert wait_until(lambda: "Finishing what is in flight" in process.output, 5)
        process.send(signal.SIGINT)
        assert process.wait(15) == 130, process.output
        output = flat(process.output)
    assert "Continue with: graphrag eval" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_what_never_lets_go_ends_with_the_process(evaluation):
    ask(evaluation, "fine", "swallowing", timeout_s=1)
    with evaluation.start("--skip-judge", prepare=shorten) as process:
        assert process.wait(30) == 1, process.output
        output = flat(process.output)
    assert "Stopped: swallowing on 'q1' has held the event loop" in output
    assert "--resume" in output


@pytest.mark.slow
def test_a_plain_function_gets_a_thread_and_is_timed_out(evaluation):
    ask(evaluation, "fine", "plain", timeout_s=1)
    with evaluation.start("--skip-judge") as process:
        assert process.wait() == 0, process.output
    failed = {(each.method, each.sample_id): each for each in evaluation.responses()}
    assert len(failed) == 12
    (late,) = (each for each in failed.values() if each.failure is not None)
    assert (late.method, late.sample_id, late.failure.kind) == ("plain", "q2", "timeout")
    assert failed["plain", "q1"].response == "Idris Vane of clock in clock"


def _runner(evaluation: Evaluation, timeout_s: float, method) -> EvaluationRunner:
    config = EvaluationConfig(
        root=evaluation.root, timeout_s=timeout_s, output={"save_intermediate": False}
    )
    return EvaluationRunner(config, ScriptedJudge(), methods={"mine": method})


async def test_in_a_running_loop_it_is_named_too_and_no_thread_stays(evaluation, capsys):
    async def quick(question: str) -> str:
        await asyncio.sleep(0)
        return "Idris Vane"

    async def blocking(question: str) -> str:
        time.sleep(60)  # noqa: ASYNC251
        return "late"

    rows = [{**row, "imdb_key": "clock"} for row in ROWS[:2]]
    results = await _runner(evaluation, 60, quick).run_evaluation(rows, ["mine"])
    assert [each.response for each in results] == ["Idris Vane"] * 2
    assert capsys.readouterr().err == ""
    with pytest.raises(RunStoppedError, match=r"mine on 'q1' has held .* in blocking"):
        await _runner(evaluation, 0.2, blocking).run_evaluation(rows, ["mine"])
    assert wait_until(lambda: "loop" not in {each.name for each in threading.enumerate()}, 5)
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL


async def test_what_passes_all_that_catches_errors_is_a_failed_search(evaluation):
    sys.path.insert(0, str(evaluation.root))
    try:
        import my_own  # pyright: ignore[reportMissingImports]
    finally:
        sys.path.remove(str(evaluation.root))
        sys.modules.pop("my_own", None)
    answer = await _runner(evaluation, 60, my_own.refused).evaluate_single(
        "clock", "Q", "A", "mine"
    )
    assert answer.failure is not None
    assert "PanicException: index out of bounds" in answer.failure.message
