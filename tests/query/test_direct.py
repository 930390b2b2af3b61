"""What is asked directly, what that leaves behind, and which models go through litellm."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import warnings
from typing import Any

import pytest
from graphrag_llm.config import ModelConfig
from support.lighthouse import SpiedServer
from support.openai_server import Fault

from graphrag.config.project_settings import read_settings as read_project
from graphrag.query.calls import NoReplyError, RetryPolicy
from graphrag.query.direct.settings import is_asked_directly, read_settings
from graphrag.query.model_facts import known_facts
from graphrag.query.models import open_completion
from graphrag.query.tokens import ModelTokenizer
from graphrag.query.usage import CallLog, measure_calls

KINDS = ("litellm", "direct")


def config(server: SpiedServer | None = None, kind: str = "direct", **more: Any) -> Any:
    base = "http://127.0.0.1:9/v1" if server is None else server.base_url
    given = {"model": "gpt-4o", "model_provider": "openai", "api_base": base, "api_key": "none"}
    written: Any = {"type": kind} if kind == "litellm" else {}
    return ModelConfig(**{**written, **given, **more})


STREAMS = {
    "whole": None,
    "a refusal": Fault(refusal="I can't help with that."),
    "no usage": Fault(omit_usage=True),
    "turned away": Fault(status=429, retry_after_s=0.01),
    "refused": Fault(status=401),
    "cut off": Fault(ramble=True),
    "dropped": Fault(disconnect="before"),
    "dropped in the middle": Fault(disconnect="mid-stream"),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_the_same_through_both(name: str, server: SpiedServer) -> None:
    told: list[Any] = []
    for kind in KINDS:
        server.reset(lambda _: "one two three four five six seven eight nine")
        server.behave(faults=lambda *_: STREAMS[name])
        model = open_completion(config(server, kind), RetryPolicy(1, 0.0, 0.0))
        pieces, failed = list[str](), False
        with measure_calls(CallLog(live=True)) as log:
            try:
                async for chunk in await model.completion_async(
                    messages="count", stream=True, max_tokens=12
                ):
                    pieces += [choice.delta.content or "" for choice in chunk.choices]
            except Exception:
                failed = True
        figures = [
            (a.prompt_tokens, a.output_tokens, a.counted_by, a.finish_reason, a.error is None)
            for a in log.attempts
        ]
        requests = [server.requests[n] for n in sorted(server.requests)]
        told.append(("".join(pieces), failed, figures, requests))
    through, direct = told
    if name == "a refusal":  # litellm drops the refusal of a stream
        assert direct[0] == "I can't help with that."
    elif name == "no usage":  # litellm counts here itself, and does not say so
        assert [figures[2] for figures in direct[2]] == ["tokenizer"]
    else:
        assert direct == through
    assert direct[3] == through[3]


@pytest.mark.parametrize(
    ("more", "directly"),
    [
        ({}, True),
        ({"api_base": None}, True),
        ({"call_args": {"temperature": 0.0, "extra_body": {"top_k": 3}}}, True),
        ({"type": "litellm"}, False),
        ({"type": "offline", "model_provider": "offline"}, False),
        ({"model_provider": "azure"}, False),
        ({"model_provider": "mistral"}, False),
        ({"api_version": "2024-06-01"}, False),
        ({"call_args": {"drop_params": True}}, False),
        ({"mock_responses": ["hi"]}, False),
        ({"model": "o3-mini"}, False),
        ({"api_base": "127.0.0.1:8080"}, False),
    ],
)
def test_a_model_of_openai_s_interface_is_asked_directly_where_no_type_is_written(
    more: dict[str, Any], directly: bool
) -> None:
    made = config(**more)
    assert is_asked_directly(made) is directly
    renamed = made.model_copy(update={"model": made.model})  # as a judge's is
    assert is_asked_directly(renamed) is directly


def test_settings_files_tell_a_type_that_is_written(make_project: Any) -> None:
    for name, extra in (("open", ""), ("written", "    type: litellm")):
        settings = read_project(make_project(name=name, model_extra=extra))
        model = settings.completion_models["default_completion_model"]
        assert is_asked_directly(model) is (name == "open")
        assert is_asked_directly(settings.embedding_models["default_embedding_model"])


def test_settings_become_headers_a_body_and_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "")
    call_args = {
        "organization": "us",
        "extra_headers": {"X-Team": "a"},
        "extra_body": {"top_k": 3},
        "extra_query": {"v": 1},
        "timeout": 7,
        "seed": 3,
    }
    found = read_settings(config(api_base="http://ann:p%40ss@models.test/v1/", call_args=call_args))
    assert found.base == "http://models.test/v1"
    assert found.headers["Authorization"] == "Basic YW5uOnBAc3M="
    assert (found.headers["OpenAI-Organization"], found.headers["X-Team"]) == ("us", "a")
    assert found.body == {"model": "gpt-4o", "top_k": 3, "seed": 3}
    assert found.query == {"v": "1"}
    assert found.proxy == "http://proxy.test:3128"
    assert "p@ss" not in repr(found) + repr(found).replace("%40", "@")


async def test_a_request_that_takes_too_long_is_counted(server: SpiedServer) -> None:
    server.behave(faults=lambda *_: Fault(hang_s=5))
    model = open_completion(config(server, call_args={"timeout": 0.1}), RetryPolicy(1, 0.0, 0.0))
    with measure_calls(CallLog()) as log, pytest.raises(NoReplyError, match=r"call_args\.timeout"):
        await model.completion_async(messages="hi")
    assert [attempt.counted_by for attempt in log.attempts] == ["nobody", "nobody"]


def test_no_session_is_left_open_after_a_loop_has_ended(server: SpiedServer) -> None:
    from graphrag.query.direct import http

    async def ask() -> None:
        await asyncio.gather(
            *(open_completion(config(server)).completion_async(messages=f"{n}") for n in range(5))
        )

    server.behave(reply=lambda _: "hi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with asyncio.Runner() as runner:
            runner.run(ask())
            assert runner.get_loop() in http._SESSIONS
        assert runner._loop not in http._SESSIONS  # pyright: ignore
        gc.collect()
    assert len(server.records) == 5


_ALONE = """
import asyncio, json, sys
from graphrag_llm.config import ModelConfig
from graphrag.eval.metrics import LLMJudge
from graphrag.eval.runner import EvaluationRunner
from graphrag.query.models import open_completion
from graphrag.query.usage import measure_calls
from graphrag.query.model_facts import known_facts
async def main():
    model = open_completion(ModelConfig(**json.loads(sys.argv[1])))
    with measure_calls() as log:
        verdict = await LLMJudge(model).judge_relevance("Who?", "Ann.")
    return verdict.score, log.usage().cost_usd
score, cost = asyncio.run(main())
large = {"lancedb", "litellm", "networkx", "openai", "pandas"}
print(json.dumps([score, cost, sorted(large & set(sys.modules))]))
"""


def test_a_judge_that_is_asked_directly_loads_nothing_large(server: SpiedServer) -> None:
    server.behave(reply=lambda _: '{"reason": "so", "score": 1}')
    given = config(server).model_dump(mode="json", exclude_unset=True)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", _ALONE, json.dumps(given)],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        check=True,
    )
    score, cost, loaded = json.loads(done.stdout)
    assert (score, loaded) == (1, [])
    usage = server.totals()["chat"]
    assert cost == pytest.approx(usage.prompt_tokens * 2.5e-6 + usage.output_tokens * 1e-5)
    assert "Unclosed" not in done.stderr


def test_prices_and_tokens_are_those_of_litellm() -> None:
    import litellm

    from graphrag.query import model_facts

    read = model_facts._read_map()
    local = litellm.litellm_core_utils.get_model_cost_map.get_model_cost_map("")
    assert read == local
    assert known_facts("openai/gpt-4o")["input_cost_per_token"] > 0
    for text in ("Grüße 🙂 <|endoftext|>", "", "The lamp\n| of Marta Quill"):
        for model in ("openai/gpt-4o", "openai/smollm2", "offline/rules"):
            tokens = litellm.encode(model=model, text=text)
            assert ModelTokenizer(model).encode(text) == tokens
            assert ModelTokenizer(model).num_tokens(text) == len(tokens)
