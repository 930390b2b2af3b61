"""``--otel``: what a collector gets of a run, and what becomes of a run without one."""

import json
import time
from collections import Counter
from collections.abc import Generator

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.collector import Collector, Json, running_collector
from support.openai_server import Behaviour, Fault, LocalServer, offline_reply
from support.projects import server_settings

from graphrag.eval.store.database import EvaluationStore

KEY = "sk-planted0123456789abcdef"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    with running_collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation, server: LocalServer) -> Evaluation:
    made = make_evaluation(server.base_url, methods=["tog", "basic"], judge={"quality": True})
    made.write_rows(ROWS[:3])
    settings = server_settings(server.base_url).replace("api_key: test", f"api_key: {KEY}")
    made.write_settings(settings)

    before = len(server.records)

    def fails_once(n: int, request: Json) -> Fault | None:
        message = f"Too many requests of {KEY}."
        return Fault(status=429, message=message, retry_after_s=0) if n == before + 3 else None

    server.behaviour = Behaviour(offline_reply(), fails_once)
    return made


def test_spans_are_the_calls_and_tokens_that_the_run_counts(evaluation, collector, server):
    before = len(server.records)
    result = evaluation.done("--otel")
    assert "reached the collector" not in result.output
    chats, embeddings = collector.named("chat"), collector.named("embeddings")
    with EvaluationStore(evaluation.store_path) as store:
        run_id = store.runs()[0].run_id
        usages = [response.usage for response in store.responses(run_id).values()]
        usages += [usage for each in store.judge_usage(run_id).values() for usage in each]
        further = [judgement.usage for judgement in store.judgements(run_id)]
    calls = chats + embeddings
    assert len(calls) == evaluation.count_calls() + sum(u.llm_calls for u in further)
    assert len(calls) == len(server.records) - before
    sums = Counter[str]()
    for span in calls:
        for name in ("input_tokens", "output_tokens"):
            key = span["attributes"]["gen_ai.operation.name"], name
            sums[" ".join(key)] += span["attributes"].get(f"gen_ai.usage.{name}", 0)
    assert sums == {
        "chat input_tokens": sum(u.prompt_tokens for u in usages + further),
        "chat output_tokens": sum(u.output_tokens for u in usages + further),
        "embeddings input_tokens": sum(u.embedding_tokens for u in usages + further),
        "embeddings output_tokens": 0,
    }
    for span in chats:
        assert span["attributes"]["gen_ai.provider.name"] == "openai"
        assert span["attributes"]["gen_ai.request.model"] == "gpt-4o"
    assert {r["service.name"] for r in collector.resources} == {"graphrag-eval"}
    (failed,) = [span for span in calls if "error.type" in span["attributes"]]
    assert failed["status"]["code"] == "STATUS_CODE_ERROR"
    assert "gen_ai.usage.input_tokens" not in failed["attributes"]

    by_id = {span["spanId"]: span for span in collector.spans}
    above = {span["spanId"]: by_id.get(span.get("parentSpanId", "")) for span in collector.spans}
    agents = Counter[str]()
    for span in collector.named("invoke_workflow"):
        name = span["attributes"]["gen_ai.agent.name"]
        agents[name] += 1
        parent = above[span["spanId"]]
        if name in ("judge", "quality"):
            assert parent is not None
            assert parent["attributes"]["gen_ai.agent.name"] in ("tog", "basic")
        else:
            assert parent is None
            documents = json.loads(span["attributes"]["gen_ai.retrieval.documents"])
            assert documents
            assert all(list(document) == ["id"] for document in documents)
    assert agents == {"tog": 3, "basic": 3, "judge": 6, "quality": 6}
    for span in calls:
        parent = above[span["spanId"]]
        assert parent is not None
        assert parent["attributes"]["gen_ai.operation.name"] == "invoke_workflow"
        assert int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(parent["endTimeUnixNano"])

    assert len(collector.events) == 6 * 4
    with EvaluationStore(evaluation.store_path) as store:
        stored = Counter(
            (metric, verdict.score)
            for verdicts in store.verdicts(run_id).values()
            for metric, verdict in verdicts.items()
        )
    sent = Counter[tuple[str, int | None]]()
    for event in collector.events:
        assert event["eventName"] == "gen_ai.evaluation.result"
        attributes, of = event["attributes"], by_id[event["spanId"]]
        assert of["attributes"]["gen_ai.agent.name"] in ("tog", "basic")
        score = attributes["gen_ai.evaluation.score.value"]
        assert attributes["gen_ai.evaluation.score.label"] == ("pass" if score else "fail")
        sent[attributes["gen_ai.evaluation.name"], int(score)] += 1
    assert sent == stored
    text = str(collector)
    assert KEY not in text
    for content in (*(row["question"] for row in ROWS), "Idris", "explanation", "messages"):
        assert content not in text


def test_content_is_sent_where_it_is_asked_for_and_no_key_with_it(
    evaluation, collector, monkeypatch
):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    evaluation.write_rows([{**ROWS[0], "question": f"Who built the clock, by {KEY}?"}])
    evaluation.done("--otel", "--methods", "basic")
    (search,) = (s for s in collector.spans if s["attributes"].get("gen_ai.agent.name") == "basic")
    (asked,) = json.loads(search["attributes"]["gen_ai.input.messages"])
    assert asked == {
        "role": "user",
        "parts": [{"type": "text", "content": "Who built the clock, by [redacted]?"}],
    }
    chats = collector.named("chat")
    answered = [s for s in chats if "error.type" not in s["attributes"]]
    assert all("gen_ai.output.messages" in s["attributes"] for s in answered)
    assert all(e["attributes"]["gen_ai.evaluation.explanation"] for e in collector.events)
    assert {r["service.name"] for r in collector.resources} == {"mine"}
    assert KEY not in str(collector)


@pytest.mark.parametrize("status", [None, 401])
def test_a_collector_that_takes_nothing_costs_a_sentence(status, evaluation, monkeypatch):
    with running_collector(status or 401) as running:
        url = running.url if status else "http://user:pa55word@127.0.0.1:9"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        started = time.perf_counter()
        plain = evaluation.run("--methods", "basic")
        between = time.perf_counter()
        result = evaluation.run("--otel", "--methods", "basic")
        ended = time.perf_counter()
    assert plain.exit_code == result.exit_code == 0
    assert ended - between < between - started + 5
    lines = [line for line in result.output.splitlines() if "reached the collector" in line]
    assert len(lines) == 1
    assert "Warning: 0 of " in lines[0]
    assert ("401" in lines[0]) == (status == 401)
    assert "pa55word" not in result.output
    assert "Traceback" not in result.output


def test_a_receiver_of_spans_alone_is_sent_no_events(evaluation, monkeypatch):
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    with running_collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{running.url}/v1/traces")
        result = evaluation.run("--otel", "--methods", "basic")
    assert result.exit_code == 0
    assert "reached the collector" not in result.output
    assert running.named("chat")
    assert not running.events


def test_settings_that_can_not_be_used_are_told_before_anything_is_asked(
    evaluation, server, monkeypatch
):
    before = server.totals()
    for name, value in (
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "99999"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            result = evaluation.run("--otel")
        assert result.exit_code == 2
        assert name in result.output or "max_export_batch_size" in result.output
    result = evaluation.done("--otel", "--workers", "2", code=2)
    assert server.totals() == before
