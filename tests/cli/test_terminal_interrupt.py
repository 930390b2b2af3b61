"""Ctrl-C in a real terminal: once ends a command in order, twice at once."""

import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation, in_process, wait_until
from support.lighthouse import SpiedServer
from support.openai_server import LocalServer
from support.terminal import Terminal

pytestmark = pytest.mark.slow
INTERRUPTED = 130
AT_ONCE = 2
ENDS_WITHIN_S = 10.0
# What a busy machine takes besides.
SLACK_S = 8.0


def judge_later(evaluation: Evaluation) -> list[str]:
    evaluation.done("-q", "--skip-judge")
    return ["eval", "judge", "latest"]


def write_suite(evaluation: Evaluation) -> list[str]:
    cases = [
        {
            "id": f"c{n}",
            "input_data": {"question": f"Who built clock {n}?"},
            "expected_output": {"keywords": ["Vane"]},
        }
        for n in range(9)
    ]
    suite = {"name": "clocks", "evaluator": "query_response", "cases": cases}
    evaluation.write_suite("clocks.yaml", suite)
    return ["eval", "suite", "clocks"]


COMMANDS: dict[str, Callable[[Evaluation], list[str]]] = {
    "eval": lambda _: ["eval"],
    "judge": judge_later,
    "draft": lambda _: ["eval", "draft", "-n", "3", "--kinds", "fact"],
    "suite": write_suite,
}


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    return make_evaluation(server.base_url, "a folder", methods=["basic"], concurrency=AT_ONCE)


def printed_command(shown: str) -> list[str]:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    (line,) = re.findall(r"(?:Continue|Begin again) with: graphrag ([^\r\n]+)", plain)
    return shlex.split(line)


def goes_on(shown: str, watched: SpiedServer) -> None:
    """The printed command ends the run, and what was answered is never asked again.

    But for calls whose answers came while the run was ending: as many as it makes at once.
    """
    assert "Traceback" not in shown
    go_on = printed_command(shown)
    n_open = max(AT_ONCE, sum(record.outcome != "answered" for record in watched.records))
    watched.behave()
    assert in_process(*go_on[1:]).exit_code in (0, 100)  # of a suite
    asked = Counter(record.request_sha256 for record in watched.records)
    assert sum(times - 1 for times in asked.values()) <= n_open


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("latency_s", [0.3, 120])
def test_ctrl_c_once_ends_in_order(evaluation, server, name, latency_s):
    words = COMMANDS[name](evaluation)
    watched = SpiedServer(server)
    watched.behave(latency_s=latency_s)
    n = 2 if latency_s > 1 else 5
    with Terminal(*words, "--root", str(evaluation.root)) as terminal:
        assert wait_until(lambda: len(watched.records) >= n), terminal.shown
        terminal.press_ctrl_c()
        code, took_s = terminal.wait(40)
        shown = terminal.shown
    assert (code, took_s < ENDS_WITHIN_S + SLACK_S) == (INTERRUPTED, True), shown
    goes_on(shown, watched)


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_twice_ends_at_once(evaluation, server, name):
    words = COMMANDS[name](evaluation)
    watched = SpiedServer(server)
    watched.behave(latency_s=120)
    with Terminal(*words, "--root", str(evaluation.root)) as terminal:
        assert wait_until(lambda: len(watched.records) >= 2), terminal.shown
        terminal.press_ctrl_c()
        time.sleep(0.5)  # two signals at once are one
        terminal.press_ctrl_c()
        code, took_s = terminal.wait(30)
        shown = terminal.shown
    assert (code, took_s < 3) == (INTERRUPTED, True), shown
    goes_on(shown, watched)


_SWALLOWS = """
import time
from graphrag.eval.cli import evaluate

async def build(root, *_):
    evaluate.unfinished_folder(root).mkdir()
    print("at work", flush=True)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            print("swallowed", flush=True)

evaluate.build_index = build
"""


@pytest.mark.parametrize("presses", [1, 2])
def test_an_index_that_is_built_holds_nothing_up(make_evaluation, presses):
    """What computes and swallows errors is ended after ten seconds, or by the second press."""
    evaluation = make_evaluation(methods=["basic"])
    shutil.rmtree(evaluation.project / "output")
    words = ("eval", "--index", "--root", str(evaluation.root))
    with Terminal(*words, code=_SWALLOWS) as terminal:
        assert wait_until(lambda: "at work" in terminal.shown), terminal.shown
        for _ in range(presses):
            time.sleep(0.5)  # two signals at once are one
            terminal.press_ctrl_c()
        code, took_s = terminal.wait(30)
        shown = terminal.shown
    within_s = ENDS_WITHIN_S + SLACK_S if presses == 1 else 3
    assert (code, took_s < within_s) == (INTERRUPTED, True), shown
    assert "swallowed" not in shown
    assert "index clock is not built" in shown
    assert not list(evaluation.project.glob("output*"))
    assert printed_command(shown) == ["eval", "--root", words[3], "--index"]


HOLDS = """
import time

async def holds(question):
    time.sleep(3600)

def plain(question):
    time.sleep(3600)
"""


@pytest.mark.parametrize("name", ["holds", "plain"])
def test_ctrl_c_ends_a_run_whose_method_waits_for_ever(make_evaluation, name):
    evaluation = make_evaluation(methods=["basic", {"name": "own", "function": f"my_own:{name}"}])
    (evaluation.root / "my_own.py").write_text(HOLDS, encoding="utf-8")
    with Terminal("eval", "--skip-judge", "--root", str(evaluation.root)) as terminal:
        assert wait_until(lambda: "Evaluating" in terminal.shown), terminal.shown
        time.sleep(1)
        terminal.press_ctrl_c()
        code, took_s = terminal.wait(30)
        shown = terminal.shown
    assert (code, took_s < ENDS_WITHIN_S + SLACK_S) == (INTERRUPTED, True), shown
    assert printed_command(shown)[-1] == "--resume"


def test_ctrl_c_ends_a_command_whose_code_of_ones_own_hangs_when_it_is_imported(make_evaluation):
    own = {"name": "own", "function": "my_own:answer"}
    evaluation = make_evaluation(methods=[own])
    clings = "print('at work', flush=True)\nwhile True:\n    try:\n        time.sleep(9)\n"
    text = f"import time\n{clings}    except BaseException:\n        pass\n"
    (evaluation.root / "my_own.py").write_text(text, encoding="utf-8")
    with Terminal("eval", "--root", str(evaluation.root)) as terminal:
        assert wait_until(lambda: "at work" in terminal.shown), terminal.shown
        for _ in range(2):
            time.sleep(0.5)
            terminal.press_ctrl_c()
        code, took_s = terminal.wait(30)
        shown = terminal.shown
    assert (code, took_s < 3) == (INTERRUPTED, True), shown
