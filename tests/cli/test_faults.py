"""What breaks around a run: the service, the key, the disk, the index, a second runner."""

import shutil
from typing import Any

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation, flat
from support.openai_server import Behaviour, Fault, LocalServer, offline_reply

from graphrag.eval.store.database import EvaluationStore


def fail_from(server: LocalServer, n: int, fault: Fault) -> None:
    """Let the server fail from its n-th request on, counted from now."""
    begun = len(server.records)
    server.behaviour = Behaviour(
        offline_reply(), faults=lambda number, _: fault if number > begun + n else None
    )


def run_of(evaluation: Evaluation) -> Any:
    with EvaluationStore(evaluation.store_path) as store:
        run = store.runs()[0]
        return run, store.responses(run.run_id), store.verdicts(run.run_id)


@pytest.fixture
def basic(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    return make_evaluation(server.base_url, methods=["basic"], concurrency=2, patience_s=0.3)


def test_a_service_that_never_returns_ends_the_run_incomplete_and_resumable(basic, server):
    fail_from(server, 16, Fault(status=503))
    before = len(server.records)
    stopped = basic.done(code=3)
    said = flat(stopped.output)
    assert "patience_s" in said
    assert f"Continue with: graphrag eval --root {basic.root} --resume" in said
    run, responses, verdicts = run_of(basic)
    assert run.status == "unfinished"
    assert 0 < len(responses) < 6
    assert not any(found.failure for found in responses.values())
    assert not any(v.failure for each in verdicts.values() for v in each.values())
    answered = sum(record.outcome == "answered" for record in server.records[before:])
    assert basic.count_calls() == len(server.records) - before > answered, "failed ones as well"

    server.behaviour = Behaviour(offline_reply())
    begun = len(server.records)
    basic.done("--resume")
    assert answered + len(server.records) - begun == 6 * 6, "nothing is asked twice"
    assert basic.count_calls() == len(server.records) - before


def test_a_second_runner_is_refused_and_the_first_goes_on(basic):
    with EvaluationStore(basic.store_path):
        refused = basic.run()
    assert refused.exit_code == 1
    assert "Another process" in flat(refused.output)
    assert basic.store_path.with_name("eval.db.lock").exists(), "a lock file that is left is no bar"
    basic.done("--limit", "1")


def test_an_index_that_vanishes_costs_its_searches_and_no_others(basic, server, tmp_path):
    begun, output = len(server.records), basic.project / "output"

    def remove(number: int, _: object) -> Fault | None:
        if number == begun + 8:
            shutil.move(output, tmp_path / "away")
        return None

    server.behaviour = Behaviour(offline_reply(), faults=remove)
    ended = basic.run()
    _, responses, _ = run_of(basic)
    assert len(responses) == 6
    for found in responses.values():
        assert found.response.strip()
        assert found.failure is None or found.failure.message in found.response
    assert ended.exit_code in (0, 1, 2), ended.output
    assert "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({}, "basic_search.max_context_tokens in settings.yaml"),
        ({"equal_terms": {"max_context_tokens": 900}}, "equal_terms.max_context_tokens in eval"),
        ({"equal_terms": {"max_context_tokens": None}}, "basic_search.max_context_tokens in s"),
        (
            {"methods": [{"name": "wide", "method": "basic", "max_context_tokens": 900}]},
            "max_context_tokens of wide in eval_config.yaml",
        ),
    ],
)
def test_a_context_that_is_too_large_names_the_setting_that_bounds_it(
    basic, server, changes, remedy
):
    basic.configure(**changes)
    fail_from(server, 0, Fault(status=400, code="context_length_exceeded"))
    assert f"; lower {remedy}" in flat(basic.run("--limit", "1").output)


@pytest.fixture
def unbuilt(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    made = make_evaluation(server.base_url, methods=["bm25"])
    for name in ("output", "cache"):
        shutil.rmtree(made.project / name, ignore_errors=True)
    return made


def test_an_index_that_a_service_refuses_to_build_says_why(unbuilt, server):
    fail_from(server, 0, Fault(status=401, message="no such key: sk-depot0123456789abcdef"))
    refused = unbuilt.done("--index", code=1)
    said = flat(refused.output)
    assert "failed in extract_graph" in said
    why = said.partition("the last request that failed: ")[2]
    assert "no such key: [redacted]. Check model, api_base and api_key in " in why
    assert "Traceback" not in said
    assert "Traceback" in unbuilt.store_path.with_name("eval.log").read_text(encoding="utf-8")


def test_requests_that_failed_while_an_index_was_built_are_told(unbuilt, server):
    text, begun = "Petra Holm met Idris Vane in Port Ellery.", len(server.records)
    (unbuilt.project / "input" / "second.txt").write_text(text, encoding="utf-8")
    server.behaviour = Behaviour(
        offline_reply(), lambda n, _: Fault(status=400, message="odd") if n == begun + 1 else None
    )
    said = flat(unbuilt.done("--index", "--skip-judge").output)
    assert "Warning: 1 request failed while the index of" in said
    assert "odd; it lacks what they were to give. To build it again, delete" in said


def test_an_index_of_another_vector_size_says_which_to_set(unbuilt, server):
    server.behaviour = Behaviour(offline_reply(), vector_size=48)
    said = flat(unbuilt.done("--index", code=1).output)
    assert "set vector_store.vector_size in its settings.yaml to 48" in said
