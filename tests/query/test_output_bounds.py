"""Every reply is bounded, and a reply that was cut off is called so, not asked for again."""

import pytest
from graphrag_llm.config import ModelConfig
from pydantic import BaseModel
from support.lighthouse import QUESTION, SpiedServer
from support.openai_server import Fault

from graphrag.query.client.call_errors import CutOffReplyError
from graphrag.query.client.models import open_completion
from graphrag.query.client.structured_output import allowed_output
from graphrag.query.client.usage import CallLog, OutputBound, measure_calls
from graphrag.query.graph_index import GraphIndex, SearchError


class Wanted(BaseModel):
    name: str


def bounds_sent(server: SpiedServer) -> list[tuple[object, object]]:
    return [
        (request.get("max_tokens"), request.get("max_completion_tokens"))
        for request in server.requests.values()
        if "messages" in request
    ]


async def test_tog_bounds_each_call(remote, server):
    result = await remote.search("tog", QUESTION)
    assert bounds_sent(server) == [(2000, None)] * result.llm_calls


@pytest.mark.parametrize("method", ["local", "basic", "global", "drift"])
async def test_a_scope_bounds_the_released_searches_and_nothing_else_does(method, remote, server):
    free = await remote.search(method, QUESTION)
    assert set(bounds_sent(server)) == {(None, None)}
    before = len(bounds_sent(server))

    log = CallLog(bound=OutputBound(700, "max_output_tokens"))
    bounded = await remote.search(method, QUESTION, log=log)
    assert set(bounds_sent(server)[before:]) == {(700, None)}
    assert bounded.context_text == free.context_text


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
async def test_a_bound_of_the_model_itself_wins_and_is_the_only_one_sent(key, make_project, server):
    index = await GraphIndex.open(make_project(model_extra=f"    call_args: {{{key}: 333}}"))
    await index.search("tog", QUESTION)
    log = CallLog(bound=OutputBound(700, "max_output_tokens"))
    await index.search("basic", QUESTION, log=log)

    wanted = (333, None) if key == "max_tokens" else (None, 333)
    assert set(bounds_sent(server)) == {wanted}


@pytest.mark.parametrize(
    ("provider", "model", "tokens", "arguments", "allowed"),
    [
        ("openai", "smollm2", 500, {}, 500),
        ("openai", "gpt-5", 500, {}, 25_500),
        ("hosted_vllm", "qwen3", 500, {"reasoning_effort": "low"}, 25_500),
        ("openai", "gpt-4o", 10**6, {}, 16_384),
    ],
)
def test_a_model_that_thinks_gets_room_for_it_and_none_more_than_it_can_write(
    provider, model, tokens, arguments, allowed
):
    config = ModelConfig(model_provider=provider, model=model, api_key="x", call_args=arguments)
    assert allowed_output(config, tokens) == allowed


@pytest.mark.parametrize("live", [False, True])
async def test_an_answer_of_tog_that_is_cut_off_fails_by_that_name_and_is_asked_for_once(
    live, remote, server
):
    server.behave(
        faults=lambda _, request: (
            Fault(ramble=True, content='{"missing": "", "answer": "')
            if "Form of the answer" in str(request.get("messages"))
            else None
        )
    )
    log = CallLog(live=live)
    with pytest.raises(
        SearchError, match=r"cut off.*raise tog_search\.max_answer_tokens"
    ) as raised:
        await remote.search("tog", QUESTION, (lambda _: None) if live else None, log=log)

    assert isinstance(raised.value.__cause__, CutOffReplyError)
    assert log.usage().llm_calls_by_phase["reasoning"] == log.usage().llm_calls == 1
    assert log.usage().cut_replies == 1


async def test_a_call_that_may_go_on_and_is_cut_off_leaves_it_to_the_ranking(remote, server):
    server.behave(
        faults=lambda _, request: (
            Fault(ramble=True) if '"look_up"' in str(request.get("messages")) else None
        )
    )
    found = await remote.search("tog", QUESTION)

    calls = found.context_data["exploration"]
    assert calls["note"][:-1].str.contains("cut off at .*, so the ranking went on").all()
    assert found.llm_calls_categories == {"exploration": len(calls) - 1, "reasoning": 1}
    assert found.usage.cut_replies == len(calls) - 1 > 0


async def test_a_response_that_is_cut_off_is_kept_and_counted(remote, server):
    server.behave(faults=lambda *_: Fault(ramble=True))
    log = CallLog(bound=OutputBound(5, "max_output_tokens"))
    found = await remote.search("basic", QUESTION, log=log)

    assert found.response == "and0 and1 and2 and3 and4"
    assert (found.usage.cut_replies, found.output_tokens) == (1, 5)
    assert log.attempts[-1].finish_reason == "length"


@pytest.mark.parametrize(
    ("extra", "bound", "says"),
    [
        (
            "    call_args: {max_tokens: 7}",
            9,
            "the reply was cut off at 7 tokens; raise call_args.max_tokens of openai/gpt-4o in "
            "settings.yaml",
        ),
        ("", 9, "at 9 tokens; raise some_setting"),
        ("", None, "context is too small"),
    ],
)
async def test_a_cut_reply_names_the_setting_that_cut_it(extra, bound, says, make_project, server):
    server.behave(faults=lambda *_: Fault(ramble=True))
    index = await GraphIndex.open(make_project(model_extra=extra))
    model = open_completion(index.header.model_configs("local")["completion"])
    scope = None if bound is None else OutputBound(bound, "some_setting")
    with measure_calls(CallLog(bound=scope)), pytest.raises(CutOffReplyError) as raised:
        await model.completion_async(messages="x", response_format=Wanted)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("n_tokens", "bound", "of_setup"),
    [
        (5, OutputBound(5, "its bound", of_setup=False), False),
        (5, OutputBound(5, "judge.max_output_tokens"), True),
        (4, OutputBound(5, "its bound", of_setup=False), True),  # the context was full
        (None, None, True),
    ],
)
def test_whether_a_higher_bound_makes_another_run_is_told_by_the_bound(n_tokens, bound, of_setup):
    assert CutOffReplyError("{", n_tokens, bound).of_setup is of_setup
