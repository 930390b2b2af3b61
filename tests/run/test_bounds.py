"""Bounds on tokens and seconds in a run: what is sent, what is said, what is never scored."""

import asyncio
import re

import pytest
from graphrag_llm.config import ModelConfig
from support.openai_server import Behaviour, Fault, offline_reply

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.store.records import Unit
from graphrag.eval.testing import ScriptedRunner
from graphrag.query.client.call_errors import Answer, RetryPolicy
from graphrag.query.client.model_client import ModelCaller
from graphrag.query.client.rate_limit import CallLimit
from graphrag.query.client.usage import CallLog
from graphrag.query.structured_search.base import SearchResult

ROWS = [{"id": "q1", "question": "Who built the tower clock of Ashcombe?", "answer": "Idris Vane"}]


def is_judging(request):
    wanted = request.get("response_format") or {}
    return "score" in str(wanted) and "reason" in str(wanted)


@pytest.fixture
def asked(server):
    """Requests to the judge and to the methods, as the server sees them."""
    seen = {"judge": [], "methods": []}

    def note(request):
        seen["judge" if is_judging(request) else "methods"].append(request)
        return offline_reply()(request)

    server.behaviour = Behaviour(note)
    return seen


def test_every_call_of_a_run_is_bounded(make_evaluation, server, asked):
    evaluation = make_evaluation(
        server.base_url,
        methods=["tog", "local", "basic", "global", "closed_book"],
        max_output_tokens=1500,
        judge={"max_output_tokens": 400, "rubric": True, "quality": True, "pairwise": True},
    )
    evaluation.write_rows(ROWS)
    evaluation.done()

    bounds = [r.get("max_tokens") for r in (*asked["judge"], *asked["methods"])]
    assert None not in bounds
    assert {r["max_tokens"] for r in asked["judge"]} == {400}
    assert 1500 in {r["max_tokens"] for r in asked["methods"]}


def test_what_is_cut_off_is_asked_for_once_and_a_verdict_of_it_unscored(make_evaluation, server):
    server.behaviour = Behaviour(
        offline_reply(),
        lambda _, request: (
            Fault(ramble=True, content='{"reason": "')
            if is_judging(request)
            else Fault(ramble=True)
        ),
    )
    evaluation = make_evaluation(
        server.base_url, methods=["basic"], judge={"max_output_tokens": 30}, max_output_tokens=20
    )
    evaluation.write_rows(ROWS)
    n_before = len(server.records)
    result = evaluation.run()

    assert result.exit_code == 3
    assert "cut off at 30 tokens; raise judge.max_output_tokens" in result.output
    judged = [r for r in server.records[n_before:] if r.completion_tokens == 30]
    assert len(judged) == 4  # one a metric, none asked again
    assert evaluation.read_results("summary")["by_method"]["basic"]["correctness"] is None
    counts = evaluation.read_results("summary")["outcomes"]["basic"]["correctness"]
    assert counts["n_judge_unparseable"] == 1
    # A response that is cut off is judged as it is, and shown so.
    assert "basic: in 1 of 1 searches a reply was cut off" in result.output
    assert evaluation.read_results("summary")["efficiency"]["basic"]["n_cut_off"] == 1
    (entry,) = evaluation.read_results()["results"]
    assert entry["methods"]["basic"]["cut_replies"] == 1

    # A higher bound changes no score that is there, so the run can go on with it.
    assert "begin a new run" not in result.output
    server.behaviour = Behaviour(offline_reply())
    evaluation.configure(judge={"max_output_tokens": 500})
    evaluation.done("--retry-errors", "--resume")


def test_a_setting_that_would_mend_a_search_is_said_to_make_a_new_run(make_evaluation, server):
    server.behaviour = Behaviour(
        offline_reply(),
        lambda _, request: (
            Fault(ramble=True, content='{"missing": "", "answer": "')
            if '"missing"' in str(request.get("messages"))
            else None
        ),
    )
    evaluation = make_evaluation(server.base_url, methods=["tog", "basic"])
    evaluation.write_rows(ROWS)
    said = " ".join(evaluation.run().output.split())
    assert "raise tog_search.max_answer_tokens" in said
    new, _, again = said.partition("begin a new run with: ")[2].partition(" Ask again what ")
    assert new.startswith("graphrag eval --root")
    assert again == f"failed with: {new} --retry-errors"

    settings = (evaluation.project / "settings.yaml").read_text("utf-8")
    evaluation.write_settings(settings + "tog_search: {max_answer_tokens: 3000}\n")
    refused = evaluation.done("--retry-errors", code=2)
    reason = " ".join(refused.output.split())
    assert "max_answer_tokens" in reason
    assert reason.endswith("--retry-errors out to begin a new run, which asks everything again.")
    assert "--resume" not in reason


async def test_waiting_for_the_runs_own_limit_fails_no_search(tmp_path):
    limit = CallLimit(1)

    async def take_the_place():
        slot = await limit.acquire(limit.queue("other", "other"), object(), 0)
        asyncio.get_running_loop().call_later(0.9, limit.release, slot)

    await take_the_place()
    caller = ModelCaller(
        "completion", ModelConfig(model_provider="a", model="b", api_key="x"), RetryPolicy()
    )

    work_s = 0.05

    async def send(_left_out):
        await asyncio.sleep(work_s)
        return Answer("It was Ann.", 1, 1, "provider")

    async def search(method, query, key):
        call = await caller.call({}, send, lambda: 0)
        return SearchResult(call.reply, {}, "", 0.05, 1, 1, 1)

    config = EvaluationConfig(root=tmp_path, methods=("basic",), timeout_s=0.4)
    runner = ScriptedRunner(config, lambda *_: "")
    runner._run_search = search
    unit = Unit("u", Sample("q1", "a", "Who?", "Ann"), "basic")
    found = await runner.search_unit(unit, CallLog(limit))
    assert (found.failure, found.response) == (None, "It was Ann.")

    work_s = 30
    await take_the_place()
    late = await runner.search_unit(unit, CallLog(limit))
    assert late.failure.kind == "timeout"
    assert 0.4 <= late.latency_s < 0.8
    took = r"not counted: 1 call was made and took 0\.[4-7] s \(response\)"
    assert re.search(took, late.failure.message)
