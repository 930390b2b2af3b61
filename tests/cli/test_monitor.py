"""A watch: rounds that are kept, an alarm when a metric fell, and none when nothing changed."""

import json
import re
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from support.clock_evaluation import Evaluation, flat, judging, wait_until
from support.clock_fixtures import maker
from support.openai_server import Behaviour, LocalServer

from graphrag.eval.results.runs import list_runs
from graphrag.eval.store.database import EvaluationStore

DONE, USAGE, INCOMPLETE, ALARM, INTERRUPTED = 0, 2, 3, 100, 130
N = 24


@pytest.fixture(scope="module")
def _pinned_once(
    built_project: Path, tmp_path_factory: pytest.TempPathFactory, _server: LocalServer
) -> Evaluation:
    evaluation = maker(built_project, tmp_path_factory.mktemp("pinned"))(
        _server.base_url, methods=["basic"], metrics=["correctness"], concurrency=1
    )
    asked = (f"Who is number {i}?" for i in range(N))
    evaluation.write_rows(
        [{"id": f"q{i}", "question": q, "answer": "Idris"} for i, q in enumerate(asked)]
    )
    _server.behaviour = Behaviour(judging(lambda number: True))
    evaluation.done("-q")
    evaluation.done("compare", "latest", "--pin")
    return evaluation


@pytest.fixture
def pinned(_pinned_once: Evaluation, server: LocalServer, tmp_path: Path) -> Evaluation:
    """Return an evaluation whose pinned run answered all questions rightly."""
    evaluation = Evaluation(tmp_path / "evaluation")
    shutil.copytree(_pinned_once.root, evaluation.root)
    server.behaviour = Behaviour(judging(lambda number: True))
    evaluation.configure(concurrency=8)
    return evaluation


def asked_in(evaluation: Evaluation) -> list[set[str]]:
    """Return the questions of each round, the oldest first."""
    with EvaluationStore(evaluation.store_path) as store:
        return [
            {found.sample_id for found in store.responses(run.run_id).values()}
            for run in reversed(store.runs())
            if run.origin == "monitor"
        ]


def watch(evaluation: Evaluation, *flags: str, code: int = DONE) -> str:
    """Run a round of a watch whose baseline is the pinned run alone; return what it says."""
    return flat(evaluation.done("monitor", "--baseline-runs", "1", *flags, code=code).output)


def notes(evaluation: Evaluation) -> list[dict[str, object]]:
    """Return what the rounds say of themselves, the oldest first."""
    with EvaluationStore(evaluation.store_path) as store:
        marked = [run.details.watch for run in reversed(store.runs()) if run.details]
    return [dict(note) for note in marked if note]


def test_an_unchanged_system_raises_no_alarm_and_its_rounds_are_history(pinned):
    assert watch(pinned, "-q").startswith("Round 1: no metric has fallen beyond doubt")
    said = watch(pinned)
    assert "No metric has fallen beyond doubt (level 5 % over all looks)" in said
    newest, older, base = list_runs(pinned.store_path)
    assert (newest.origin, older.origin) == ("graphrag eval monitor",) * 2
    assert newest.means == {"basic": {"correctness": 1.0}}
    assert base.is_pinned
    assert "Round 2, pass 2" in said
    assert "100.0% of 48 answers right, 100.0% of 24 answers in 1 baseline run" in said
    assert "p = 1 where an alarm needs 0.0063 or less" in said
    assert "looked at after pass 4" in watch(pinned)
    # What was asked by hand stays the newest run of graphrag eval.
    assert f"latest is run {base.run_id}" in flat(pinned.run("compare", "latest", "pinned").output)


def test_a_fall_raises_the_alarm_by_code_and_file(pinned, server):
    begun = pinned.done("monitor")
    said = flat(begun.output)
    assert "This watch begins with 2 further runs of its baseline of about $" in said
    assert "What this watch is expected to see, with 3 baseline runs (simulated):" in said
    assert re.search(
        r"basic, correctness \(24 questions\): \d+% of falls of 10 points by pass 8", said
    )
    assert [(note["of_baseline"], note["pass_number"]) for note in notes(pinned)] == [
        (True, 2),
        (True, 3),
        (False, 1),
    ]
    server.behaviour = Behaviour(judging(lambda number: number % 2))
    result = pinned.done("monitor", "--alarm", str(pinned.root / "alarm.json"), code=ALARM)
    alarm = json.loads((pinned.root / "alarm.json").read_text("utf-8"))
    assert alarm["alarm"] is True
    (fall,) = alarm["falls"]
    assert (fall["method"], fall["metric"]) == ("basic", "correctness")
    assert (fall["n_questions"], fall["n_runs"]) == (N, 3)
    assert (fall["n"], fall["n_right"]) == (2 * N, 2 * N - N // 2)
    assert (fall["n_baseline"], fall["n_baseline_right"]) == (3 * N, 3 * N)
    assert fall["pass_number"] == alarm["round"] == 2
    # of 5 answers with 4 right ones the 3 of the baseline are among these, for half the questions
    assert fall["p"] == fall["p_holm"] == pytest.approx(0.4 ** (N // 2))
    newest = list_runs(pinned.store_path)[0]
    assert fall["run_id"] == newest.run_id
    assert f"compare {newest.run_id} pinned" in flat(result.output)
    # The system recovers: the alarm stands, in a new process too, until another run is pinned.
    server.behaviour = Behaviour(judging(lambda number: True))
    assert "ALARM: basic correctness fell" in watch(pinned, "-q", code=ALARM)
    pinned.done("-q")
    pinned.done("compare", "latest", "--pin")
    watch(pinned, "-q")


def test_samples_are_drawn_without_replacement_and_add_up(pinned, server):
    # Two rounds of one command, one after the other, and two more.
    flags = ("--every", "1s", "--rounds", "2", "--sample", "9")
    once = watch(pinned, *flags, "-v")
    assert "The next round begins at" in once
    assert once.count("looked at after pass 1") == 2
    last = watch(pinned, "--sample", "9")
    assert f"100.0% of {N} answers right, 100.0% of {N} answers in" in last
    assert "p = 1 where" in last
    watch(pinned, "--sample", "9", "-q")
    first, second, third, fourth = asked_in(pinned)
    assert [len(asked) for asked in (first, second, third, fourth)] == [9, 9, 6, 9]
    assert first | second | third == {f"q{i}" for i in range(N)}
    assert fourth != first
    # A look is taken once all questions of the pass are asked: 15 of 24 were wrong then.
    server.behaviour = Behaviour(judging(lambda number: False))
    for code in (DONE, DONE, ALARM):
        watch(pinned, "--sample", "5", "-q", code=code)
    assert (2 / 3) ** 15 < 0.05 / 8 < (2 / 3) ** 10


@pytest.mark.slow  # a process of its own, and a signal
def test_ctrl_c_between_rounds_ends_the_watch(pinned):
    watch(pinned, "--sample", "4", "-q")
    flags = ("monitor", "--every", "1d", "--sample", "4")
    with pinned.start(*flags, "--baseline-runs", "1") as watching:
        assert wait_until(lambda: "The next round begins" in watching.output)
        watching.send(signal.SIGINT)
        assert watching.wait() == INTERRUPTED
        text = flat(watching.output)
    assert "Interrupted between rounds; 1 round of this watch is kept. Go on with:" in text
    assert "--every 1d" in text
    assert "Traceback" not in text
    assert len(set[str]().union(*asked_in(pinned))) == 8  # the pass went on in a new process


def test_a_baseline_run_that_a_bound_stopped_goes_on_before_the_watch_begins(pinned):
    pinned.configure(concurrency=1)
    pinned.done("monitor", "--max-cost", "0.01", "--baseline-runs", "2", code=INCOMPLETE)
    pinned.done("monitor", "--baseline-runs", "2", "-q")
    one, two, three = asked_in(pinned)
    assert one | two == three == {f"q{i}" for i in range(N)}
    assert 0 < len(one) < N
    assert [note["of_baseline"] for note in notes(pinned)] == [True, True, False]
    # From then on no run is added: the system may have changed.
    pinned.done("monitor", "--baseline-runs", "5", "-q")
    assert [note["of_baseline"] for note in notes(pinned)] == [True, True, False, False]


def test_a_baseline_run_of_another_system_is_none(pinned):
    path = pinned.project / "settings.yaml"
    path.write_text(f"{path.read_text('utf-8')}basic_search: {{k: 1}}\n", encoding="utf-8")
    for n_runs in (1, 1):  # the second time nothing is paid for
        refused = pinned.done("monitor", code=INCOMPLETE)
        said = flat(refused.output)
        assert "of another system: the settings of basic differ (k: 10 -> 1)" in said
        assert len(asked_in(pinned)) == n_runs
    run_id = list_runs(pinned.store_path)[0].run_id
    assert f"compare {run_id} --pin" in said
    pinned.done("compare", run_id, "--pin")
    pinned.done("monitor", "--baseline-runs", "2", "-q")


def test_a_question_without_verdicts_is_asked_again(pinned, server):
    watch(pinned, "-q")
    with sqlite3.connect(pinned.store_path) as db:  # killed between answer and verdict
        run = "(SELECT run_id FROM runs ORDER BY rowid DESC LIMIT 1)"
        db.execute(f"DELETE FROM verdicts WHERE run_id = {run} AND rowid % 2")
    db.close()
    watch(pinned, "-q")
    assert len(asked_in(pinned)[1]) == N // 2
    # Verdicts that fail decide nothing.
    server.behaviour = Behaviour(
        lambda request: "no verdict" if "ground_truth" in str(request["messages"]) else "Idris."
    )
    assert "not decided, as the judge gave" in watch(pinned, code=INCOMPLETE)


def test_what_the_baseline_does_not_hold_is_not_paid_for(pinned, server):
    before = len(server.records)
    watch(pinned)
    of_a_round = len(server.records) - before
    pinned.configure(methods=["bm25", "basic"], metrics=["correctness", "relevance"])
    before = len(server.records)
    assert "No metric has fallen" in watch(pinned)
    assert len(server.records) - before == of_a_round
    with EvaluationStore(pinned.store_path) as store:
        last = store.runs()[0]
        assert {each.method for each in store.responses(last.run_id).values()} == {"basic"}


def test_wrong_usage_is_one_sentence(pinned, make_evaluation):
    for flags, words in {
        ("--every", "daily"): "--every daily: give a number and a unit",
        ("--rounds", "2"): "--rounds needs --every",
        ("--methods", "tog"): "none of tog; name one of them with --methods, or pin another run",
    }.items():
        result = pinned.done("monitor", *flags, code=USAGE)
        assert words in flat(result.output)
        assert asked_in(pinned) == [], flags
    without = make_evaluation(name="another", methods=["basic"]).done("monitor", code=USAGE)
    assert re.search(r"No baseline is pinned .* compare latest --pin", flat(without.output))


def test_an_index_that_is_gone_is_named_with_a_command_that_there_is(pinned):
    (pinned.project / "output").rename(pinned.project / "gone")
    said = watch(pinned, code=USAGE)
    assert "Index clock:" in said
    assert "build it with" in said
    assert "--index," not in said
