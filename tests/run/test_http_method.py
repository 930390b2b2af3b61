"""A system behind HTTP: asked by one block of eval_config.yaml, what it does not tell unknown."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat
from support.http_service import serving

from graphrag.eval.config.sections import HttpService
from graphrag.eval.runner.custom_methods import find, read_answer
from graphrag.query.client.call_errors import GarbledReplyError

KEY = "rk-4711-abcdefgh"
WHOLE = {
    "answer": "Idris Vane [Data: Sources (1)]",
    "passages": [{"text": "Idris Vane built it."}, {"text": "The clock."}],
    "usage": {"calls": 2, "prompt": 30, "output": 4, "usd": 0.25},
}
TOLD = {
    "contexts": "passages.*.text",
    "llm_calls": "usage.calls",
    "prompt_tokens": "usage.prompt",
    "output_tokens": "usage.output",
    "cost_usd": "usage.usd",
}


@dataclass
class Service:
    """What a service answers, the first replies first, and what it was sent."""

    url: str = ""
    replies: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    reply: Any = field(default_factory=lambda: WHOLE)
    seen: list[tuple[str, Any, dict[str, str]]] = field(default_factory=list[Any])

    def block(self, **changes: Any) -> dict[str, Any]:
        return {"url": self.url, "body": {"q": "{question}", "of": ["{index}", 3]}, **changes}


@pytest.fixture
def service() -> Iterator[Service]:
    serves = Service()

    def answer(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        serves.seen.append((path, json.loads(body or b"null"), headers))
        status, reply = serves.replies.pop(0) if serves.replies else (200, serves.reply)
        return status, reply if isinstance(reply, bytes) else json.dumps(reply).encode()

    with serving(answer) as address:
        serves.url = f"{address}/ask"
        yield serves


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    evaluation = make_evaluation()
    evaluation.write_rows(ROWS[:2])
    return evaluation


def method(name: str, block: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "http": block}


def test_a_service_is_compared_with_a_search(evaluation, service):
    headers = {"Authorization": "Bearer ${RAG_KEY}"}
    block = service.block(headers=headers, **TOLD)
    evaluation.configure(methods=["basic", method("rag", block)])
    service.replies = [(503, {"detail": "busy"})]
    (evaluation.root / ".env").write_text(f"RAG_KEY={KEY}\n", encoding="utf-8")
    service.reply = {**WHOLE, "answer": f"Idris Vane, not {KEY}"}
    evaluation.done("--full", COLUMNS="200")
    assert len(service.seen) == 3  # one was asked again
    assert {body["q"] for _, body, _ in service.seen} == {row["question"] for row in ROWS[:2]}
    assert all(body["of"] == ["clock", 3] for _, body, _ in service.seen)
    assert all(sent["Authorization"] == f"Bearer {KEY}" for _, _, sent in service.seen)
    summary = evaluation.read_results("summary")
    spent = summary["efficiency"]["rag"]
    assert (spent["avg_llm_calls"], spent["avg_prompt_tokens"], spent["cost_usd"]) == (2, 30, 0.5)
    assert summary["by_method"]["rag"]["relevance"] is not None
    (stored,) = {r.context_text for r in evaluation.responses() if r.method == "rag"}
    assert stored == "Idris Vane built it.\n\nThe clock."
    warned = " ".join(evaluation.run("--dry-run", "--max-cost", "1", COLUMNS="200").output.split())
    assert "--max-cost counts what rag took only once" in warned
    assert (evaluation.runs()[0].setup.indexes["clock"]["rag"]["http"]["headers"]) == headers
    for path in evaluation.output.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_an_empty_answer_costs_what_the_service_tells(evaluation, service):
    evaluation.configure(methods=[method("rag", service.block(**TOLD))])
    service.reply = {**WHOLE, "answer": " "}
    said = " ".join(evaluation.run().output.split())
    assert "every search failed (2 of 2)" in said
    assert "The run took 4 calls, 68 tokens and $0.5000." in said


def test_what_a_service_does_not_tell_is_unknown_and_never_0(evaluation, service):
    block = service.block(answer="choices.0.text", contexts="passages.*.txt", prompt_tokens="n")
    service.reply = {"choices": [{"text": "Idris Vane"}], "passages": WHOLE["passages"], "n": 7}
    service.replies = [(422, {"detail": "no"})]
    evaluation.configure(
        methods=["basic", method("rag", block)], judge={"rubric": True}, concurrency=1
    )
    evaluation.write_rows(ROWS[:3])
    evaluation.done("--full", COLUMNS="220")
    for _ in range(2):  # as the run ended, and as it is read from the store
        summary, detailed = evaluation.read_results("summary"), evaluation.read_results()
        by_method, spent = summary["by_method"]["rag"], summary["efficiency"]["rag"]
        assert by_method["correctness"] is not None
        assert (by_method["faithfulness"], by_method["relevance"]) == (None, None)
        costs = ("avg_llm_calls", "avg_prompt_tokens", "avg_output_tokens", "tokens", "cost_usd")
        assert {name: spent[name] for name in costs} == dict.fromkeys(costs)
        failed, answered = (detailed["results"][n]["methods"]["rag"] for n in (0, 1))
        assert failed["response"].startswith("ERROR: http://127.0.0.1:")
        for each in (failed, answered):
            assert set(each["efficiency"].values()) == {None}
        assert "does not report its context" in answered["reasons"]["faithfulness"]
        assert answered["rubric"]["groundedness"]["score"] is None
        assert answered["rubric"]["completeness"]["score"] is not None
        evaluation.done("show", "latest", "--full")
    retrieval = json.loads((evaluation.output / "retrieval_results.json").read_text())
    assert retrieval["results"][1]["methods"]["rag"]["measures"]["recall"] is None
    shown = evaluation.run("show", "--question", "q2", "--full").output
    assert "Context: unknown" in shown


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"url": "ftp://x/{question}"}, "url must begin with http://"),
        ({"body": {"q": "{qestion}"}}, "contains {question}"),
        ({"headers": {"X-Key": "secret"}}, "headers.X-Key: name a variable"),
        ({"contxts": "a"}, "unknown key 'contxts'; did you mean 'contexts'"),
        ({"headers": {"X-Key": "${NO_SUCH_KEY}"}}, "needs ${NO_SUCH_KEY}, which is not set"),
    ],
)
def test_a_wrong_block_is_one_sentence(evaluation, service, changes, sentence):
    evaluation.configure(methods=["basic", method("rag", service.block(**changes))])
    result = evaluation.done(COLUMNS="300", code=2)
    assert sentence in result.output
    assert not service.seen


@pytest.mark.parametrize(
    ("replies", "code", "sentence"),
    [
        ([(401, {"detail": "no such key"})], 1, "no such key; check url and headers of rag"),
        ([(200, b"<html>")], 0, "the service's reply is garbled: it is a web page"),
        ([(200, {"reply": "x"})], 0, "no answer at 'answer': there is reply, not 'answer'"),
        ([(200, {"answer": None})], 0, "at 'answer' is no text but NoneType"),
        ([(307, b"")], 0, "Error code: 307"),
    ],
)
def test_a_bad_reply_is_said_in_one_sentence(evaluation, service, replies, code, sentence):
    service.replies = replies
    evaluation.configure(methods=["basic", method("rag", service.block())], concurrency=1)
    result = evaluation.done(COLUMNS="300", code=code)
    told = [each.failure.message for each in evaluation.responses() if each.failure is not None]
    assert sentence in " ".join([result.output, *told])


def test_a_service_that_fails_until_the_time_is_up_is_told_by_how_it_failed(evaluation, service):
    evaluation.configure(methods=[method("rag", service.block())], timeout_s=1.5)
    service.replies = [(500, {"detail": "the disk is full"})] * 50
    result = evaluation.run("--limit", "1")
    assert len(service.seen) > 1
    assert "no response within 1.5 s; the latest request failed: " in flat(result.output)
    assert "the disk is full" in flat(result.output)
    assert "no model was asked" not in result.output


def test_a_service_that_is_not_there_stops_the_run_and_it_goes_on(evaluation, service):
    here = service.block()
    away = {**here, "url": "http://127.0.0.1:9/ask"}
    evaluation.configure(methods=["basic", method("rag", away)], patience_s=0.2)
    result = evaluation.done(COLUMNS="300", code=3)
    assert "127.0.0.1:9/ask" in result.output
    evaluation.configure(methods=["basic", method("rag", {**here, "version": "2"})])
    assert "version" in evaluation.run("--resume", COLUMNS="500").output


def test_a_question_in_an_address_is_asked_by_get(evaluation, service):
    block = {"url": f"{service.url}?q={{question}}&of={{index}}"}
    evaluation.configure(methods=["basic", method("rag", block)])
    evaluation.write_rows([{**ROWS[0], "question": "Who & {index}?"}])
    evaluation.done("-q", "--skip-judge")
    ((path, body, _),) = service.seen
    asked = {"q": ["Who & {index}?"], "of": ["clock"]}
    assert (parse_qs(urlsplit(path).query), body) == (asked, None)


def test_places_of_a_reply():
    reply = {"a": [{"b": [{"c": "1"}, {"c": "2"}]}, {"b": []}], "n": True}
    assert find(reply, "a.*.b.*.c") == ["1", "2"]
    assert find(reply, "a.0.b.1.c") == "2"
    with pytest.raises(LookupError, match="there is c, not 'd'"):
        find(reply, "a.0.b.0.d")

    def read(**places: Any) -> Any:
        service = HttpService(url="http://x/{question}", answer="a.0.b.0.c", **places)
        return read_answer(service, reply)

    assert read(contexts="a.1.b").contexts == ()  # it says that it retrieved nothing
    assert read(contexts="z").contexts is None
    assert read(llm_calls=1).llm_calls == 1
    with pytest.raises(GarbledReplyError, match=r"such as a\.0\.b\.\*\.text"):
        read(contexts="a.0.b")
