"""Services that are not OpenAI: what they refuse is left out, what their models think is no answer.

Each over HTTP, by every method, streamed and not, directly and through litellm.
"""

import json
import logging

import pytest
from support.lighthouse import METHODS, QUESTION, counted, model_config, seen
from support.openai_server import Fault, offline_reply
from support.services import REFUSING, THINKING, THOUGHT, Service

from graphrag.eval.metrics.judge import LLMJudge
from graphrag.query.client.call_errors import CutOffReplyError
from graphrag.query.client.models import open_completion
from graphrag.query.client.usage import CallLog, OutputBound, measure_calls
from graphrag.query.graph_index import GraphIndex, SearchError

STREAMED = ("no stream", "no stream, in other words", "Mistral: 422 for stream_options")


async def ask(index: GraphIndex, method: str, live: bool) -> tuple[str, str, CallLog]:
    """Ask; return the response, the text that was passed on, and the calls."""
    log, pieces = CallLog(live=live), list[str]()
    result = await index.search(method, QUESTION, pieces.append if live else None, log)
    return str(result.response), "".join(pieces), log


_PLAIN: dict[str, str] = {}


@pytest.fixture
async def plain(remote: GraphIndex, server) -> dict[str, str]:
    """Return what each method answers where nothing is refused or thought."""
    if not _PLAIN:
        server.behave(reply=offline_reply())
        _PLAIN.update({m: (await ask(remote, m, live=False))[0] for m in METHODS})
        server.reset(offline_reply())
    return _PLAIN


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("service", THINKING)
async def test_thoughts_are_output_and_no_answer(service, live, remote, server, plain):
    before = len(server.records)
    server.behave(reply=THINKING[service].reply(), faults=THINKING[service].plan)
    for method in METHODS if service.startswith("the end") else ("tog", "basic", "local", "global"):
        response, shown, log = await ask(remote, method, live)
        assert (response, method) == (plain[method], method)
        assert shown == (response if live else ""), method
        asked, before = server.records[before:], len(server.records)
        assert counted(log.usage()) == seen(asked), "a thought is paid for as output"
        assert "zzthought" not in str(log.exchanges)


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("method", METHODS)
async def test_thoughts_alone_are_a_search_that_failed(method, live, remote, server):
    for service in (
        Service(dress=lambda _: f"<think>{THOUGHT}</think>\n"),
        Service(dress=lambda _: f"<think>{THOUGHT}"),
        Service(more=Fault(thoughts=THOUGHT, content="")),
    ):
        server.behave(reply=service.reply(), faults=service.plan)
        with pytest.raises(SearchError) as caught:
            await ask(remote, method, live)
        assert "only the model's thoughts" in str(caught.value), method
        assert "zzthought" not in str(caught.value)


@pytest.mark.parametrize("kind", ["direct", "litellm"])
@pytest.mark.parametrize("service", REFUSING)
async def test_what_a_service_refuses_is_left_out(service, kind, make_project, server, plain):
    extra = "    type: litellm" if kind == "litellm" else ""
    index = await GraphIndex.open(make_project(model_extra=extra, name=kind))
    server.behave(reply=REFUSING[service].reply(), faults=REFUSING[service].plan)
    for method in METHODS if kind == "direct" else ("tog", "basic"):
        before = len(server.records)
        response, _, log = await ask(index, method, live=service in STREAMED)
        assert (response, method) == (plain[method], method)
        asked = server.records[before:]
        assert counted(log.usage())[:3] == seen(asked)[:3], "refused calls are calls"


@pytest.mark.parametrize("kind", ["direct", "litellm"])
@pytest.mark.parametrize("service", [name for name in REFUSING if name not in STREAMED])
async def test_a_judge_gives_its_verdict_without_what_is_refused(service, kind, server, caplog):
    server.behave(reply=REFUSING[service].reply(), faults=REFUSING[service].plan)
    judge = LLMJudge(open_completion(model_config(server, kind)))
    bound = OutputBound(500, "judge.max_output_tokens")
    with measure_calls(CallLog(bound=bound)) as log, caplog.at_level(logging.WARNING):
        for _ in range(2):
            verdict = await judge.judge_correctness("Who?", "Jonas Feld", "Jonas Feld")
            assert (verdict.score, verdict.failure) == (1, None)
    assert counted(log.usage())[:3] == seen(server.records)[:3]
    told = [r.getMessage() for r in caplog.records if "refuses parameters" in r.getMessage()]
    n_learned = 0 if service.endswith("no system") else 1  # a judge has no instructions apart
    assert len(told) == n_learned, "it is learned once, and said once"


@pytest.mark.parametrize(
    ("told", "prompt", "output"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 500, "total_tokens": 0}, None, 500),
        ({"prompt_tokens": None, "completion_tokens": 500, "total_tokens": None}, None, 500),
        ({"prompt_tokens": None, "completion_tokens": 500, "total_tokens": 560}, 60, 500),
        ({"prompt_tokens": 60, "completion_tokens": None, "total_tokens": None}, 60, None),
        ({"prompt_tokens": 60, "completion_tokens": 0, "total_tokens": 60}, 60, None),
    ],
)
async def test_each_figure_that_is_told_is_kept_and_each_other_is_counted(
    told, prompt, output, server
):
    server.behave(faults=lambda *_: Fault(content="Jonas Feld did it.", usage=told))
    model = open_completion(model_config(server))
    with measure_calls(CallLog()) as log:
        await model.completion_async(messages="Who did it?")
    (attempt,) = log.attempts
    asked = [{"role": "user", "content": "Who did it?"}]
    counted_here = model.tokenizer.num_prompt_tokens(asked)
    written = model.tokenizer.num_tokens("Jonas Feld did it.")
    assert attempt.prompt_tokens == (counted_here if prompt is None else prompt)
    assert attempt.output_tokens == (written if output is None else output)
    is_told = None not in (prompt, output)
    assert attempt.counted_by == ("provider" if is_told else "tokenizer")
    assert log.usage().tokens_counted_here == (0 if is_told else 1)


@pytest.mark.parametrize("kind", ["direct", "litellm"])
@pytest.mark.parametrize("service", ["apart", "the end alone"])
async def test_an_answer_streams_as_it_comes_where_thoughts_come_apart(service, kind, server):
    answer = "Jonas Feld built the lighthouse on the island. " * 20
    thinking = THINKING[service]
    server.behave(reply=lambda _: thinking.dress(answer), faults=thinking.plan)
    with measure_calls(CallLog(live=True)):
        model = open_completion(model_config(server, kind))
        stream = await model.completion_async(messages="Who?", stream=True)
        pieces = [text async for piece in stream if (text := piece.choices[0].delta.content)]
    assert "".join(pieces).strip() == answer.strip()
    assert len(pieces) > 5
    server.behave(reply=lambda _: answer)
    with measure_calls(CallLog(live=True)):
        stream = await model.completion_async(messages="Who?", stream=True)
        pieces = [text async for piece in stream if (text := piece.choices[0].delta.content)]
    assert len(pieces) == 1, "thoughts may have been opened"


async def test_what_a_model_replied_tells_whether_its_template_begins_its_thoughts(server):
    """Then answers stream as they come, or what is cut off before the end of thoughts is none."""
    answer = "Jonas Feld built the lighthouse on the island. " * 20

    async def stream(log: CallLog) -> int:
        with measure_calls(log):
            asked = await model.completion_async(messages="Who?", stream=True)
            return len([piece async for piece in asked if piece.choices[0].delta.content])

    server.behave(reply=lambda _: answer)
    model = open_completion(model_config(server))
    assert await stream(CallLog(live=True)) == 1, "thoughts may have been begun"
    assert await stream(CallLog(live=True)) > 5
    server.behave(faults=lambda *_: Fault(content=THOUGHT, reason_told="length"))
    assert (await model.completion_async(messages="Who?")).content == THOUGHT
    server.behave(faults=lambda *_: Fault(content=f"{THOUGHT}</think>Jonas Feld."))
    assert (await model.completion_async(messages="Who?")).content == "Jonas Feld."
    server.behave(faults=lambda *_: Fault(content=THOUGHT, reason_told="length"))
    for live in (False, True):
        with pytest.raises(CutOffReplyError):
            await (stream(CallLog(live=True)) if live else model.completion_async(messages="Who?"))


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_service_that_streams_none_is_read_whole(kind, server):
    whole = {"choices": [{"message": {"content": "Jonas Feld."}, "finish_reason": "stop"}]}
    body = json.dumps({**whole, "object": "chat.completion", "id": "1", "created": 1, "model": "m"})
    server.behave(faults=lambda *_: Fault(raw=body))
    with measure_calls(CallLog(live=True)):
        model = open_completion(model_config(server, kind))
        asked = await model.completion_async(messages="Who?", stream=True)
        said = "".join([piece.choices[0].delta.content or "" async for piece in asked])
        again = await model.completion_async(messages="Who?", stream=True)
        said += "".join([piece.choices[0].delta.content or "" async for piece in again])
    assert said == "Jonas Feld.Jonas Feld."
    assert len(server.records) == (2 if kind == "direct" else 3), "one was asked for a stream"
