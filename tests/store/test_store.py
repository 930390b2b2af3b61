"""The store through its public methods: what goes in comes out, and trouble is one sentence."""

import asyncio
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import StoreError
from graphrag.eval.runner.preflight import check_output
from graphrag.eval.runner.resume import choose_run
from graphrag.eval.runner.run_setup import RunOptions, RunPlan
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import (
    CallScope,
    Judgement,
    RunDetails,
    RunSetup,
    StoredResponse,
)
from graphrag.eval.store.session import StoredSession, UnitState, unkept_session
from graphrag.eval.types.query_results import Retrieved
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.checked_numbers import MOST_COUNT
from graphrag.query.client.usage import (
    CallAttempt,
    CallLog,
    RecordedCall,
    Usage,
    sum_usages,
    summarize_attempts,
)
from graphrag.text.redaction import REDACTED, _Known, know_settings  # pyright: ignore

# SQLite's text is UTF-8, in which lone surrogates can't be written.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
COUNTS = st.integers(0, MOST_COUNT)
MONEY = st.floats(0, 1e6)
FAILURES = st.builds(
    Failure,
    st.sampled_from(["search", "judge"]),
    st.sampled_from(["error", "timeout", "refused", "unreadable", "empty"]),
    TEXT,
)
USAGES = st.builds(
    Usage,
    llm_calls=COUNTS,
    prompt_tokens=COUNTS,
    cost_usd=st.none() | MONEY,
    llm_calls_by_phase=st.dictionaries(TEXT, COUNTS, max_size=3),
    models=st.lists(TEXT, max_size=3).map(tuple),
)
RESPONSES = st.builds(
    StoredResponse,
    unit=TEXT,
    sample_id=TEXT,
    method=TEXT,
    response=TEXT,
    context_text=TEXT,
    latency_s=st.none() | MONEY,
    usage=USAGES,
    failure=st.none() | FAILURES,
    trial=COUNTS,
    abstained=st.booleans(),
    retrieved=st.none()
    | st.builds(
        Retrieved,
        TEXT,
        st.none() | st.lists(TEXT, max_size=2).map(tuple),
        entities=st.lists(TEXT, max_size=2).map(tuple),
    ),
)
SCORES = st.sampled_from([0, 1, None])
VERDICTS = st.builds(
    JudgeResult, SCORES, TEXT, st.none() | FAILURES, st.lists(SCORES, max_size=3).map(tuple)
)
ATTEMPTS = st.builds(
    CallAttempt,
    kind=st.sampled_from(["completion", "embedding"]),
    model=TEXT,
    phase=TEXT,
    prompt_tokens=COUNTS,
    output_tokens=COUNTS,
    counted_by=st.sampled_from(["provider", "tokenizer", "nobody"]),
    latency_s=MONEY,
    cached_prompt_tokens=st.none() | COUNTS,
    error=st.none() | TEXT,
    abstained=st.booleans(),
)
CALLS = st.builds(
    RecordedCall,
    reply=TEXT | st.lists(st.lists(st.floats(-1, 1), max_size=3), max_size=2),
    attempts=st.lists(ATTEMPTS, max_size=3).map(tuple),
)
SAMPLES = st.builds(
    Sample,
    *[TEXT] * 4,
    *[st.lists(TEXT, max_size=2).map(tuple)] * 5,
    answerable=st.booleans(),
    tags=st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=2),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
# Each example makes a run of its own, so one store serves them all.
SHARED_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def attempt(cost: bool = True) -> CallAttempt:
    tokens = (1000, 100) if cost else (0, 0)
    return CallAttempt("completion", "openai/gpt-4o", "response", *tokens, "provider", 0.1)


def response(unit: str = "u", text: str = "Ann", failure: Failure | None = None) -> StoredResponse:
    usage = summarize_attempts([attempt()])
    return StoredResponse(unit, "q1", "tog", text, "context", 0.5, usage, failure)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results" / "eval.db"


@pytest.fixture
def store(path: Path):
    with EvaluationStore(path) as opened:
        yield opened


@SHARED_STORE
@given(
    found=st.lists(RESPONSES, max_size=4, unique_by=lambda each: each.unit),
    verdicts=st.dictionaries(TEXT, VERDICTS, max_size=4),
    usages=st.lists(USAGES, max_size=3),
    samples=st.lists(SAMPLES, max_size=3),
    sections=st.dictionaries(TEXT, JSON, max_size=5),
    scope=st.builds(CallScope, TEXT, TEXT),
    call=CALLS,
)
def test_what_is_kept_comes_back_as_it_was(
    store, found, verdicts, usages, samples, sections, scope, call
):
    run_id = store.add_run(RunSetup(sections), samples).run_id
    with sqlite3.connect(store.path) as beside:  # byte for byte and in its order
        found_setup = beside.execute("SELECT setup FROM runs WHERE run_id = ?", (run_id,))
        assert found_setup.fetchone() == (json.dumps(sections),)
    beside.close()
    journal = StoredSession(store, run_id).journal(scope)
    journal.start("key")
    assert journal.replay("key") is None
    journal.finish("key", call)
    assert journal.replay("key") == call
    for each in found:
        store.append_response(run_id, each)
    for usage in usages:
        store.append_verdicts(run_id, "u", verdicts, usage)
    assert store.samples(run_id) == samples
    assert store.responses(run_id) == {each.unit: each for each in found}
    assert store.verdicts(run_id) == ({"u": verdicts} if verdicts and usages else {})
    assert store.judge_usage(run_id) == ({"u": usages} if usages else {})


def test_a_verdict_that_is_none_is_unscored(store):
    run_id = store.add_run(RunSetup({})).run_id
    store.append_verdicts(run_id, "u", {"correctness": JudgeResult(1, "so")}, Usage())
    with sqlite3.connect(store.path) as other:
        other.execute("UPDATE verdicts SET score = 7")
    other.close()
    verdict = store.verdicts(run_id)["u"]["correctness"]
    assert verdict.score is None
    assert "the stored verdict can't be read" in verdict.reason


@pytest.mark.parametrize(
    ("n_units", "reason"),
    [(1, "can't be written .* choose another"), (10**12, r"has \d+ MB left and the run may need")],
)
def test_a_folder_that_can_not_hold_a_run_is_refused(tmp_path, n_units, reason):
    check_output(tmp_path, 1)
    folder = tmp_path
    if n_units == 1:
        (tmp_path / "file").write_text("", encoding="utf-8")
        folder = tmp_path / "file" / "results"
        with pytest.raises(StoreError, match=reason):
            EvaluationStore(folder / "eval.db")
    with pytest.raises(StoreError, match=reason):
        check_output(folder, n_units)


def test_a_session_reads_the_calls_of_unfinished_work_once(store, monkeypatch):
    run = store.add_run(RunSetup({}))
    scope, call = CallScope.of_search("u"), RecordedCall("Ann", (attempt(),))
    StoredSession(store, run.run_id).journal(scope).finish("k", call)
    StoredSession(store, run.run_id).journal(CallScope.of_search("v")).start("k")
    session = StoredSession(store, run.run_id)
    monkeypatch.setattr(store, "finished_calls", None)
    journal, other = session.journal(scope), session.journal(CallScope.of_search("v"))
    assert (journal.replay("k"), journal.replay("l"), other.replay("k")) == (call, None, None)
    other.finish("k", call)
    assert other.replay("k") == call
    session.keep_response(response("u"))
    again = session.journal(scope)
    assert again.replay("k") is None
    monkeypatch.undo()
    later = StoredSession(store, run.run_id).journal(CallScope.of_search("v"))
    assert later.replay("k") == call


def test_a_response_drops_verdicts_on_the_one_that_it_replaces(store):
    run = store.add_run(RunSetup({}))
    for unit in ("u", "v"):
        store.append_response(run.run_id, response(unit))
        store.append_verdicts(run.run_id, unit, {"correctness": JudgeResult(1, "so")}, Usage())
    store.append_response(run.run_id, response("u"))
    assert set(store.verdicts(run.run_id)) == {"v"}
    assert set(store.judge_usage(run.run_id)) == {"u", "v"}, "they were paid for"


def test_calls_that_are_no_part_of_what_takes_their_place_are_counted_beside_it(store):
    run, one = store.add_run(RunSetup({})), summarize_attempts([attempt()])
    scopes = (CallScope.of_search("u"), CallScope.of_verdicts("u"), CallScope("rubric", "u"))
    begun = StoredSession(store, run.run_id)
    for scope in scopes:
        for key in ("replayed", "left"):
            begun.journal(scope).finish(key, RecordedCall("Ann", (attempt(),)))
    session = StoredSession(store, run.run_id)
    assert session.spent_usd == pytest.approx(6 * (one.cost_usd or 0))
    later = session.journal(scopes[0])
    later.finish("in a worker that died", RecordedCall("Ann", (attempt(),)))
    session.keep_response(response(), {"replayed"})
    session.keep_verdicts("u", {"correctness": JudgeResult(1, "so")}, one, {"replayed"})
    session.keep_judgement(Judgement("u", "rubric", {}, False, one), {"replayed"})
    assert [usage.llm_calls for usage in store.forgotten_usage(run.run_id)] == [2, 1, 1]
    assert store.unclaimed_usage(run.run_id) == {}
    assert StoredSession(store, run.run_id).spent_usd == pytest.approx(7 * (one.cost_usd or 0))
    others = (CallScope.of_search("v"), CallScope.of_verdicts("u"), CallScope.of_search("w"))
    for scope in others:
        StoredSession(store, run.run_id).journal(scope).finish("k", RecordedCall("A", (attempt(),)))
    store.append_response(run.run_id, response("v"))
    assert set(store.unclaimed_usage(run.run_id)) == {"judge u", "search w"}
    store.append_verdicts(run.run_id, "u", {}, Usage())
    assert set(store.unclaimed_usage(run.run_id)) == {"search w"}


def test_what_is_cut_off_costs_its_lost_attempts_beside_its_finished_calls(store):
    run, one = store.add_run(RunSetup({})), summarize_attempts([attempt()])
    session, scope = StoredSession(store, run.run_id), CallScope.of_search("u")
    session.journal(scope).finish("k", RecordedCall("Ann", (attempt(), attempt())))
    log = CallLog()
    log.attempts, log.counted = [attempt()] * 5, {"k"}  # two of the five are the finished call's
    session.keep_cut_off(scope, log)
    session.keep_cut_off(CallScope.of_search("another"), CallLog())
    assert [usage.llm_calls for usage in store.forgotten_usage(run.run_id)] == [3]
    assert store.unclaimed_usage(run.run_id)[scope.stored].llm_calls == 2
    later = StoredSession(store, run.run_id)
    assert later.spent_usd == pytest.approx(5 * (one.cost_usd or 0))
    later.keep_response(response(), {"k"})
    assert [usage.llm_calls for usage in store.forgotten_usage(run.run_id)] == [3]


def test_retrying_forgets_failures_and_nothing_else(store):
    run = store.add_run(RunSetup({}))
    broken = Failure("search", "error", "503")
    unreadable = Failure("judge", "unreadable", "x")
    store.append_response(run.run_id, response("good"))
    store.append_response(run.run_id, response("bad", "ERROR: 503", broken))
    verdicts = {
        "correctness": JudgeResult(1, "ok"),
        "relevance": JudgeResult(None, "Unscored: x", unreadable),
    }
    store.append_verdicts(run.run_id, "good", verdicts, Usage())
    kept = StoredSession(store, run.run_id)
    assert kept.response("bad") is not None
    assert kept.state("good") == UnitState(False, frozenset({"correctness", "relevance"}), 1)
    session = StoredSession(store, run.run_id, retry_errors=True)
    assert session.response("bad") is None
    assert session.response("good") == response("good")
    assert session.state("good") == UnitState(False, frozenset({"correctness"}))
    # What the forgotten search cost was spent all the same.
    assert session.spent_usd == pytest.approx(kept.spent_usd)


def test_judgements_come_back_and_keep_what_an_earlier_one_cost(store):
    run = store.add_run(RunSetup({}))
    paid = summarize_attempts([attempt()])
    first = Judgement("u", "rubric", {"relevance": None}, True, paid)
    store.append_judgement(run.run_id, first)
    assert store.judgements(run.run_id) == [first]
    other = Judgement("u", "pairwise:tog:local", {"winner": "a"}, False, paid)
    again = Judgement("u", "rubric", {"relevance": 5}, False, paid)
    for judged in (other, again):
        store.append_judgement(run.run_id, judged)
    found = {judged.kind: judged for judged in store.judgements(run.run_id)}
    assert found == {
        "rubric": replace(again, usage=sum_usages([paid, paid])),
        "pairwise:tog:local": other,
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("PRAGMA user_version = 1", "has format 1, .* before 1.0.0 .*; choose another folder"),
        ("PRAGMA user_version = 99", "has format 99, .* newer .*: update gtog, or choose another"),
        ("CREATE TABLE runs (x)", "a database of something else"),
    ],
)
def test_a_store_that_no_version_or_a_newer_one_reads_is_refused_and_left_alone(
    path, change, reason
):
    if "PRAGMA" in change:
        EvaluationStore(path).close()
    path.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    content = path.read_bytes()
    for reads_only in (False, False, True):  # and it does not stay locked
        with pytest.raises(StoreError, match=reason):
            EvaluationStore(path, reads_only)
    assert path.read_bytes() == content


async def test_what_could_not_be_kept_is_told_at_the_next_write_and_at_the_end(store):
    scope, wrong = CallScope.of_search("a"), cast("str", object())

    async def write() -> None:
        with store.grouped():
            store.write_call("run", scope, "first", None)
            store.drop_call("run", scope, "none")
            store.drop_call("run", scope, wrong)
            await asyncio.sleep(0)
            with pytest.raises(StoreError):
                store.write_call("run", scope, "second", None)

    with pytest.raises(StoreError):
        await write()
    assert store.calls_in_flight("run") == 1


async def test_a_call_is_noted_at_once_and_its_end_with_what_comes_next(store):
    scope = CallScope.of_search("a")

    def seen_beside() -> int:
        with EvaluationStore(store.path, reads_only=True) as other:
            return other.calls_in_flight("run")

    with store.grouped():
        for call in ("first", "second", "third", "fourth"):
            store.write_call("run", scope, call, None)
        assert seen_beside() == 4
        store.drop_call("run", scope, "first")
        assert seen_beside() == 4
        store.write_call("run", scope, "fifth", None)
        assert seen_beside() == 4
        store.drop_call("run", scope, "second")
        assert store.calls_in_flight("run") == seen_beside() == 3
        store.drop_call("run", scope, "third")
        await asyncio.sleep(0)
        assert seen_beside() == 2
        store.drop_call("run", scope, "fourth")
        assert seen_beside() == 2
    assert seen_beside() == 1


def test_no_key_and_no_half_of_a_character_is_kept(store, monkeypatch):
    for name in ("shown", "data"):
        monkeypatch.setattr(_Known, name, getattr(_Known, name))
    key = "9f86d081884c7d659a2feaa0c55ad015"
    know_settings({"api_key": key})
    run = store.add_run(RunSetup({"said": key}))
    for unit, text in (("a", f"It is {key}."), ("b", "Half \ud83d of it."), ("c", "Zoë.")):
        store.append_response(run.run_id, response(unit, text))
    found = {unit: each.response for unit, each in store.responses(run.run_id).items()}
    assert found == {"a": f"It is {REDACTED}.", "b": "Half ? of it.", "c": "Zoë."}
    assert store.runs()[0].setup == RunSetup({"said": REDACTED})


def test_a_session_keeps_of_a_finished_unit_only_how_far_it_is(store):
    run = store.add_run(RunSetup({}))
    session = StoredSession(store, run.run_id)
    units = [f"u{n}" for n in range(200)]  # more than are read at once
    verdict = JudgeResult(1, "so it is")
    for unit in units:
        session.keep_response(response(unit))
        session.keep_verdicts(unit, {"correctness": verdict}, Usage())
    state = UnitState(failed=False, metrics=frozenset({"correctness"}))
    for opened in (session, StoredSession(store, run.run_id)):
        assert opened.state("u7") == state
        assert opened.state("u7") is opened.state("u8")
        assert opened.response("u7") == response("u7")
        contexts = [text for text, _ in opened.read_again(units)]
        assert contexts == [response(unit).context_text for unit in units]


def test_a_session_that_is_kept_nowhere_makes_no_file_and_notes_no_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with unkept_session() as session:
        assert session.journal(CallScope.of_search("u")) is None
        session.keep_response(response("u"))
        session.keep_verdicts("u", {"correctness": JudgeResult(1, "so")}, Usage())
        assert session.response("u") == response("u")
        assert session.state("u") == UnitState(False, frozenset({"correctness"}))
        assert not list(tmp_path.iterdir())


FULL = {
    "dataset": {"fingerprint": "f", "questions": 3},
    "methods": {"order": ["tog", "basic"]},
    "indexes": {
        "film": {
            "tog": {"models": {"completion": {"model": "a/b"}, "embedding": {"model": "a/e"}}},
            "basic": {"index": "built", "models": {"completion": {"model": "a/a"}}},
        }
    },
    "judge": {"model": "a/j"},
    "metrics": {"relevance": {}, "correctness": {}},
    "further": {"rubric": {}, "pairwise": {"pairs": [["tog", "basic"]]}},
    "releases": {"gtog": "1"},
}


def test_sections_are_read_by_name():
    setup = RunSetup(FULL)
    assert (setup.n_questions, setup.methods) == (3, ("tog", "basic"))
    assert setup.metrics == ("relevance", "correctness")
    assert setup.further == {"rubric", "pairwise"}
    assert setup.completion_models() == ["a/a", "a/b"]
    assert setup.fingerprints(["tog", "basic"]) == {"film": "built"}
    assert setup.fingerprints(["tog"]) == {"film": None}


def test_resuming_a_finished_run_tells_of_an_unfinished_one_with_other_flags(tmp_path):
    details, warnings = RunDetails("command", 1, {"metrics": []}), list[str]()
    with EvaluationStore(tmp_path / "eval.db") as store:
        finished = store.add_run(RunSetup({"a": 1}), [], details)
        store.finish_run(finished.run_id)
        other = store.add_run(RunSetup({"a": 2}), [], details)
        plan = RunPlan(RunSetup({"a": 1}), [], details, EvaluationConfig(), [])
        run = choose_run(store, plan, RunOptions(resume=True), warnings.append, warnings.append)
    assert run.run_id == finished.run_id
    assert f"run {other.run_id} is unfinished" in warnings[-1]
