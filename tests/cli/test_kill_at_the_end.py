"""Processes killed between the last reply and the last file: nothing is paid for twice."""

import signal
from functools import partial

import pytest
from support.clock_evaluation import ROWS
from support.deaths import (
    killed_at_a_file,
    killed_before_it_is_finished,
    killed_when_it_is_finished,
)

pytestmark = pytest.mark.slow

DONE, FAILED = 0, 100
PAGE = "report.html"
WINDOWS = {
    "before the mark": killed_before_it_is_finished,
    "after the mark": killed_when_it_is_finished,
    "the run's page": partial(killed_at_a_file, 5),
    "the files on top": partial(killed_at_a_file, 7),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_a_run_that_is_killed_at_its_end_writes_its_files_and_asks_nothing(
    make_evaluation, server, window
):
    evaluation = make_evaluation(
        server.base_url, methods=["basic"], thresholds={"correctness": 1.0}
    )
    evaluation.write_rows([ROWS[0], {**ROWS[1], "answer": "The moon is a lamp of brass"}])
    with evaluation.start("--full", prepare=WINDOWS[window]) as process:
        assert process.wait() == -signal.SIGKILL, process.output
    asked = len(server.records)
    own = evaluation.newest_folder
    resumed = evaluation.run("--resume")
    assert resumed.exit_code == FAILED, resumed.output  # as the run itself would have ended
    assert len(server.records) == asked
    said = " ".join(resumed.output.split())
    if window != "before the mark":
        assert f"Run {own.name} is finished: nothing is asked, its files are written" in said
    files = {path.name for path in own.iterdir()}
    assert {PAGE, "eval_results_summary.json", "eval_results_detailed.json"} <= files
    whole, top = evaluation.read_results(), evaluation.read_results(folder=own)
    assert whole == top
    assert len(whole["results"]) == 2
    # Once more changes nothing and asks nothing.
    evaluation.done("--resume", "-q", code=FAILED)
    assert len(server.records) == asked
    assert evaluation.read_results() == whole


def test_a_finished_run_without_files_comes_before_one_that_was_given_up_for_it(
    make_evaluation, server
):
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    assert evaluation.run("-q", "--skip-judge").exit_code == DONE  # unfinished
    with evaluation.start(prepare=killed_when_it_is_finished) as process:
        assert process.wait() == -signal.SIGKILL, process.output
    asked, own = len(server.records), evaluation.newest_folder
    evaluation.done("--resume")
    assert len(server.records) == asked
    assert (own / PAGE).exists()
    # With its files there, what is left is the unfinished one.
    second = evaluation.run("--resume")
    assert "6 of 6 responses are there, 0 of them judged" in " ".join(second.output.split())
    assert len(server.records) > asked


def test_a_judging_that_is_killed_at_its_end_asks_nothing_again(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    evaluation.done("-q")
    with evaluation.start("judge", "latest", prepare=killed_when_it_is_finished) as process:
        assert process.wait() == -signal.SIGKILL, process.output
    asked, own = len(server.records), evaluation.newest_folder
    resumed = evaluation.done("judge", "latest", "--resume")
    assert f"Run {own.name} is finished: nothing is asked" in " ".join(resumed.output.split())
    assert (own / PAGE).exists()
    assert len(server.records) == asked
