"""A run that is killed, or whose machine loses its power, at any write, goes on from there."""

import shutil
import signal
from collections import Counter
from dataclasses import replace

import pytest
from support.clock_evaluation import flat
from support.deaths import kill_self
from support.small_runs import Asked, SmallRun, in_child, noting, watched_writes

from graphrag.eval.results.runs import paid_usages
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.session import StoredSession
from graphrag.query.client.usage import sum_usages


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], Counter[str], int]:
    """Return what an undisturbed run keeps, what it asks, and how many statements it writes."""
    folder = tmp_path_factory.mktemp("whole")
    run, asked, numbers = SmallRun(folder), Asked(folder / "asked"), list[int]()
    with noting(asked.note), watched_writes(lambda n, _: numbers.append(n)):
        assert run.go().is_complete
    return run.kept(), asked.count(), max(numbers)


@pytest.mark.slow  # a process for every write
def test_killed_at_every_write_a_run_gives_what_an_undisturbed_one_gives(tmp_path, undisturbed):
    whole, asked_once, n_writes = undisturbed
    assert n_writes > 20
    for number in range(1, n_writes + 1):
        for is_done in (False, True):
            folder = tmp_path / f"{number}-{is_done}"
            run, asked = SmallRun(folder), Asked(tmp_path / f"{number}-{is_done}.txt")

            def kill(n: int, done: bool, at: tuple[int, bool] = (number, is_done)) -> None:
                if (n, done) == at:
                    kill_self()

            with noting(asked.note):
                with watched_writes(kill):
                    assert in_child(run.go) == -signal.SIGKILL
                in_flight, _ = run.noted_calls()
                run.go_on()
            assert run.kept() == whole, (number, is_done)
            again = asked.count() - asked_once
            assert asked.count() >= asked_once
            assert again.total() <= in_flight <= run.concurrency
            assert max(again.values(), default=0) <= 1


@pytest.mark.slow  # a process for every commit
def test_interrupted_at_every_commit_a_run_keeps_everything_once(tmp_path, undisturbed):
    (whole,), asked_once, n_writes = undisturbed
    n_codes = Counter[int]()
    for number in range(1, n_writes):
        for is_done in (False, True):
            folder = tmp_path / f"{number}-{is_done}"
            run, asked = SmallRun(folder), Asked(tmp_path / f"{number}-{is_done}.txt")

            def interrupt(n: int, done: bool, at: tuple[int, bool] = (number, is_done)) -> None:
                if (n, done) == at:
                    raise KeyboardInterrupt

            with noting(asked.note):
                with watched_writes(interrupt, only=("COMMIT",)):
                    code = in_child(run.go)
                run.go_on()
            n_codes[code] += 1
            status, samples, responses, verdicts, judge_usage, _, in_flight, *_ = run.kept()[0]
            assert (status, samples, responses, verdicts, judge_usage) == whole[:5]
            assert in_flight == 0
            assert (asked.count() - asked_once).total() <= run.concurrency
        if code == 0:  # there are no more commits
            break
    assert n_codes[0] == 2
    assert n_codes[1] > 10


def test_a_request_is_sent_when_all_is_kept_but_the_calls_in_flight(tmp_path):
    run, sent, commits = SmallRun(tmp_path, n=8, concurrency=3), 0, 0

    def look(_: str) -> None:
        nonlocal sent
        sent += 1
        with EvaluationStore(run.path, reads_only=True) as store:
            in_flight, n_kept = run.count_noted(store)
        assert sent - n_kept <= in_flight <= run.concurrency

    def count(_: int, is_done: bool) -> None:
        nonlocal commits
        commits += is_done

    with noting(look), watched_writes(count, only=("COMMIT",)):
        assert run.go().is_complete
    assert sent == 8 * 4
    assert commits < 2 * sent, "a reply is kept with what comes next"


def test_what_a_resumed_search_does_not_ask_again_is_counted_as_cost(tmp_path):
    run, asked = SmallRun(tmp_path / "run", n=1, concurrency=1), Asked(tmp_path / "asked")

    def killed_at_the_second(said: str) -> None:
        if said.startswith("Say"):
            kill_self()
        asked.note(said)

    with noting(killed_at_the_second):
        assert in_child(run.go) == -signal.SIGKILL
    with noting(asked.note):
        assert replace(run, first="Muse").go(resume=True).is_complete
    lines = [line for line, n in asked.count().items() for _ in range(n)]
    assert [line.partition(":")[0] for line in lines[:3]] == ["Plan", "Muse", "Say"]
    with EvaluationStore(run.path) as store:
        (found,) = store.runs()
        paid = sum_usages(paid_usages(store, found))
        (left,) = store.forgotten_usage(found.run_id)
        spent = StoredSession(store, found.run_id).spent_usd
    assert (left.llm_calls, left.prompt_tokens) == (1, len("Plan: What is ?"))
    assert (paid.llm_calls, paid.failed_calls) == (len(lines), 0)
    assert spent == pytest.approx(paid.cost_usd)


def test_a_call_in_flight_is_told_at_the_next_resume_alone(tmp_path):
    run, told = SmallRun(tmp_path, n=1, concurrency=1), list[int]()
    for first, resume in (("Plan", False), ("Muse", True), ("Look", True)):
        with noting(lambda _: kill_self()):
            assert in_child(lambda: replace(run, first=first).go(resume)) == -signal.SIGKILL  # noqa: B023
        told.append(run.noted_calls()[0])
    assert told == [1, 1, 1]


def test_after_a_power_cut_a_run_goes_on_from_what_reached_the_disk(tmp_path, undisturbed):
    whole, asked_once, _ = undisturbed
    lived, copies = SmallRun(tmp_path / "lived"), tmp_path / "copies"

    def copy(number: int, is_done: bool) -> None:
        if is_done:
            left = copies / str(number)
            left.mkdir(parents=True)
            for file in lived.folder.glob("eval.db*"):
                if file.suffix != ".lock":
                    shutil.copy(file, left)

    with watched_writes(copy):
        assert lived.go().is_complete
    for left in sorted(copies.iterdir()):
        log = left / "eval.db-wal"
        n_bytes = log.stat().st_size if log.exists() else 0
        # Whole; torn in the middle of its last page; its last pages never written; of another age.
        cuts = (0, 1000, 10_000, n_bytes)
        for cut in {0, cuts[int(left.name) % len(cuts)]}:
            run, asked = SmallRun(tmp_path / f"{left.name}-{cut}"), Counter[str]()
            shutil.copytree(left, run.folder)
            if cut and log.exists():
                (run.folder / "eval.db-shm").unlink(missing_ok=True)
                with (run.folder / "eval.db-wal").open("r+b") as file:
                    file.truncate(max(0, n_bytes - cut))
            in_flight, n_kept = run.noted_calls()
            with noting(lambda said, asked=asked: asked.update([flat(said)])):
                run.go_on()
            assert run.kept() == whole, (left.name, cut)
            assert asked <= asked_once
            assert in_flight <= run.concurrency
            assert asked.total() == asked_once.total() - n_kept, "nothing that is kept is asked"


def test_pages_of_the_log_that_were_written_in_another_order_are_left_out(tmp_path, undisturbed):
    lived = SmallRun(tmp_path / "lived")
    page = 4096 + 24

    def stop(number: int, is_done: bool) -> None:
        if number == 30 and is_done:
            kill_self()

    with watched_writes(stop):
        assert in_child(lived.go) == -signal.SIGKILL
    n_pages = (lived.folder / "eval.db-wal").stat().st_size // page
    for lost in range(0, n_pages, 3):
        run = SmallRun(tmp_path / str(lost))
        shutil.copytree(lived.folder, run.folder)
        with (run.folder / "eval.db-wal").open("r+b") as file:
            file.seek(32 + lost * page)
            file.write(b"\0" * page)
        run.go_on()
        assert run.kept() == undisturbed[0]
