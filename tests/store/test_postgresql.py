"""Runs in PostgreSQL through the commands, against a real server."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from support.clock_evaluation import MakeEvaluation, wait_until
from support.openai_server import Behaviour, LocalServer, offline_reply
from support.postgresql_server import PASSWORD, QUOTED_PASSWORD, PostgreSQLServer

from graphrag.eval.analysis import list_runs, read_rows
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.view import viewed_of
from graphrag.eval.errors import StoreError
from graphrag.eval.people import read_sheet, write_sheet
from graphrag.eval.store import (
    CallScope,
    EvaluationStore,
    RunSetup,
    StoredSession,
    StoreLocation,
)
from graphrag.query.usage import RecordedCall, Usage


@pytest.fixture
def url(postgresql: PostgreSQLServer) -> str:
    return postgresql.new_database()


def store_at(url: str) -> EvaluationStore:
    return EvaluationStore(StoreLocation(Path("nowhere"), url))


def refused(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        store_at(url)
    text = str(caught.value)
    assert "\n" not in text
    assert PASSWORD not in text
    assert QUOTED_PASSWORD not in text
    return text


def test_a_run_is_one_process_s_and_two_runs_go_on_side_by_side(url: str):
    with store_at(url) as one, store_at(url) as other:
        first, second = one.add_run(RunSetup({})), other.add_run(RunSetup({}))
        for _ in range(2):
            with pytest.raises(
                StoreError, match=rf"\(gtog on .*\) is working on run {first.run_id}"
            ):
                other.reopen_run(first.run_id)
        other.append_verdicts(second.run_id, "u", {}, Usage())  # being refused spoils nothing
        assert one.runs() == other.runs() == [second, first]
        one.close()
        other.reopen_run(first.run_id)


def test_many_openers_at_once_make_the_tables_once(url: str):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        for store in pool.map(store_at, [url] * 8):
            assert store.runs() == []
            store.close()


def test_what_keeps_a_store_from_being_opened_is_one_sentence(postgresql: PostgreSQLServer):
    folder = postgresql.folder
    said = refused(f"postgresql://postgres@/nothing?host={folder}")
    assert 'database "nothing" does not exist' in said
    assert "/nothing can't be opened" in said
    assert "No such file" in refused(f"postgresql://postgres@/x?host={folder}/none")
    assert "Connection refused" in refused("postgresql://postgres@127.0.0.1:1/x?connect_timeout=2")
    wrong = refused(f"postgresql://evaluator:not-{QUOTED_PASSWORD}@/postgres?host={folder}")
    assert "The user or the password is wrong" in wrong
    assert "PGPASSWORD" in refused(f"postgresql://evaluator@/postgres?host={folder}")
    closed = postgresql.new_database().replace("postgres@", f"evaluator:{QUOTED_PASSWORD}@")
    assert "GRANT" in refused(closed)
    latin = postgresql.new_database(more="ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "keeps text as LATIN1" in refused(latin)


def test_who_owns_the_database_needs_no_other_right(postgresql: PostgreSQLServer):
    url = postgresql.new_database(owner="evaluator")
    with store_at(url.replace("postgres@", f"evaluator:{QUOTED_PASSWORD}@")) as store:
        assert store.runs() == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE gtog.format SET number = 99", "has format 99, this release reads 4"),
        ("UPDATE gtog.format SET number = 3", "has format 3, this release reads 4"),
        ("DROP TABLE gtog.format", "of something else"),
    ],
)
def test_tables_of_another_format_are_refused(url: str, statement: str, said: str):
    store_at(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())
    assert said in refused(url)


def test_a_lost_connection_stops_everything_and_keeps_what_was_written(
    postgresql: PostgreSQLServer, url: str, caplog: pytest.LogCaptureFixture
):
    store = store_at(url)
    run = store.add_run(RunSetup({}))
    scope = CallScope.of_search("u")
    journal = StoredSession(store, run.run_id).journal(scope)
    journal.finish("k", RecordedCall("Ann", ()))
    postgresql.crash()
    with pytest.raises(StoreError, match=r"was lost .*kept.*--resume") as lost:
        store.append_verdicts(run.run_id, "u", {}, Usage())
    postgresql.start()
    with pytest.raises(StoreError) as again:  # what comes later may rest on what was lost
        journal.finish("other", RecordedCall("Bo", ()))
    assert again.value is lost.value
    store.close()
    assert caplog.text == ""
    with store_at(url) as reopened:
        reopened.reopen_run(run.run_id)
        journal = StoredSession(reopened, run.run_id).journal(scope)
        assert journal.replay("k") == RecordedCall("Ann", ())
        assert reopened.judge_usage(run.run_id) == {}


def test_half_of_what_belongs_together_is_never_kept(url: str):
    with store_at(url) as store:
        run = store.add_run(RunSetup({}))
        verdicts = {"correctness": object()}  # the second statement can't even be made
        with pytest.raises(AttributeError):
            store.append_verdicts(run.run_id, "u", verdicts, Usage())  # pyright: ignore
        with pytest.raises(StoreError, match="null value"):
            store.append_verdicts(run.run_id, "u", {None: verdict()}, Usage())  # pyright: ignore
    with store_at(url) as store:
        assert store.judge_usage(run.run_id) == {}
        assert store.verdicts(run.run_id) == {}


def verdict():
    from graphrag.eval.records import JudgeResult

    return JudgeResult(1, "same")


def test_killed_and_cut_off_a_run_in_postgresql_gives_what_eval_db_gives(
    make_evaluation: MakeEvaluation, server: LocalServer, postgresql: PostgreSQLServer, url: str
):
    server.behaviour = Behaviour(offline_reply(), latency_s=0.03)
    config = {"methods": ["basic"], "metrics": ["correctness"], "concurrency": 2}
    whole = make_evaluation(server.base_url, "whole", **config)
    assert whole.run("--quiet").exit_code == 0
    asked_once = len(server.records)

    shared = make_evaluation(server.base_url, "shared", **config, output={"store": url})
    with shared.start() as process:
        wait_until(lambda: not process.is_alive or len(server.records) >= asked_once + 5)
        process.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, process.output
    n_kept = len(server.records)
    server.behaviour = Behaviour(offline_reply(), latency_s=0.3)
    with shared.start("--resume") as process:
        wait_until(lambda: not process.is_alive or len(server.records) >= n_kept + 3)
        # The run has an owner now, wherever a second one is begun.
        second = shared.run("--resume")
        assert second.exit_code == 1, second.output
        assert "is working on run" in second.output
        judging = shared.run("judge", "latest", "-q")
        assert judging.exit_code == 1, judging.output
        (sentence,) = [line for line in judging.output.splitlines() if line.startswith("Error: ")]
        assert re.search(
            r"\(gtog on .*, \d+\) is working on run .* or name another run\.", sentence
        )
        postgresql.crash()
        assert process.wait() == 1, process.output
        assert "was lost" in process.output
        assert "--resume" in process.output
    postgresql.start()
    server.behaviour = Behaviour(offline_reply())
    finished = shared.run("--resume")
    assert finished.exit_code == 0, finished.output
    assert not (shared.output / "eval.db").exists()
    for name in ("detailed", "summary"):
        assert shared.read_results(name) == whole.read_results(name)
    # What was in flight was asked again, twice, and nothing else.
    assert len(server.records) - asked_once <= asked_once + 2 * 2
    assert shared.run("baseline", "set", "latest").exit_code == 0
    place = StoreLocation(shared.output, url)
    (kept,) = list_runs(place)
    assert (kept.status, kept.is_pinned) == ("finished", True)
    rows = read_rows("latest", place).rows
    assert [row.scores for row in rows] == [row.scores for row in read_rows("pinned", place).rows]


def test_every_command_takes_its_runs_from_postgresql(make_evaluation: MakeEvaluation, url: str):
    shared = make_evaluation(name="shared", methods=["basic"], output={"store": url})
    place = StoreLocation(shared.output, url)
    rows = json.loads((shared.root / "questions.json").read_text("utf-8"))
    shared.write_rows(rows[:2])

    def run(*flags: str) -> str:
        done = shared.run(*flags)
        assert done.exit_code == 0, (flags, done.output)
        return done.output

    run("--quiet")
    (first,) = list_runs(place)
    page = shared.output / "runs" / first.run_id / "report.html"
    page.unlink()
    run("report")
    assert page.is_file()
    assert "correctness" in run("show", "latest", "--full")
    run("show", "--failed")
    run("show", "latest", "--export", str(shared.root / "rows.csv"))
    run("baseline", "set", "latest")
    run("judge", "latest", "--metrics", "relevance")
    second, _ = list_runs(place)
    assert second.origin == "graphrag eval judge"
    assert second.run_id in run("history")
    # Two questions decide nothing, which code 3 says.
    compared = shared.run("compare", second.run_id, "pinned")
    assert compared.exit_code == 3, compared.output
    run("audit", "export", first.run_id, "--questions", "2")
    sheet = shared.output / "audit_correctness.csv"
    text = sheet.read_text("utf-8")
    assert "label" in text
    labelled = shared.root / "labelled.csv"
    items = [replace(item, label=1) for item in read_sheet(sheet)]
    write_sheet(labelled, items)
    assert shared.run("audit", "import", str(labelled)).exit_code in (0, 3)
    run("dashboard")
    viewed = viewed_of(Place(shared.root, store=url))
    assert "<html" in viewed.render(first.run_id, None)
    recovered = shared.run("recover")
    assert recovered.exit_code == 2
    assert "is looked after by its server; only an eval.db is recovered" in recovered.output
    monitored = shared.run("monitor", "--baseline", first.run_id, "-q")
    assert monitored.exit_code in (0, 3), monitored.output
    assert not (shared.output / "eval.db").exists()
