"""A search that can't answer says why; it never gives an error or nothing as its response."""

import asyncio
from itertools import pairwise

import pytest
from support.lighthouse import METHODS, QUESTION, MakeProject, SpiedServer, chat_gets
from support.openai_server import MALFORMED_JSON, Fault, Json

from graphrag.query.calls import RetryPolicy, read_retry_policy
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.models import open_completion, open_embedding
from graphrag.query.usage import CallLog, measure_calls

CAUSES = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError"}


@pytest.mark.parametrize(
    ("method", "status"),
    [*((method, 401) for method in METHODS), ("local", 400), ("tog", 404)],
)
async def test_a_refused_call_fails_the_search(
    method: str, status: int, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(status=status)))
    log = CallLog()
    with pytest.raises(SearchError) as caught:
        await remote.search(method, QUESTION, log=log)

    assert CAUSES[status] in str(caught.value)
    assert caught.value.refused is (status != 400)
    assert log.usage().failed_calls == len(server.of("chat")), "asked again although refused"


@pytest.mark.parametrize("method", ["local", "basic", "drift", "hybrid"])
async def test_a_refused_embedding_fails_the_search(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(status=401) if "input" in request else None)
    with pytest.raises(SearchError, match="AuthenticationError") as caught:
        await remote.search(method, QUESTION)

    assert caught.value.refused
    assert len(server.of("embeddings")) == 1


async def test_no_credit_left_is_a_refusal_although_its_status_is_429(
    remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(
        faults=chat_gets(Fault(status=429, code="insufficient_quota", message="No quota left."))
    )
    with pytest.raises(SearchError) as caught:
        await remote.search("local", QUESTION)

    assert caught.value.refused
    assert len(server.of("chat")) == 1


@pytest.mark.parametrize("method", ["tog", "local", "global", "drift"])
async def test_an_empty_reply_fails_the_search(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(content="")))
    log = CallLog()
    with pytest.raises(SearchError):
        await remote.search(method, QUESTION, log=log)

    assert log.usage().llm_calls == len(server.of("chat"))


@pytest.mark.parametrize("method", ["tog", "global", "drift"])
async def test_a_reply_that_is_not_the_json_asked_for_fails_the_search(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(content=MALFORMED_JSON)))
    log = CallLog()
    with pytest.raises(SearchError, match=r"read"):
        await remote.search(method, QUESTION, log=log)

    usage = log.usage()
    assert usage.llm_calls == len(server.of("chat"))
    assert usage.failed_calls == 0, "a reply that came was paid for, whatever it says"
    assert usage.output_tokens == server.totals()["chat"].output_tokens > 0


async def test_a_follow_up_question_that_stays_unreadable_fails_a_drift_search(
    remote: GraphIndex, server: SpiedServer
) -> None:
    def faults(_: int, request: Json) -> Fault | None:
        asked = str(request.get("messages", [""])[-1])
        return Fault(content=MALFORMED_JSON) if "paid for the repair" in asked[:200] else None

    server.behave(faults=faults)
    with pytest.raises(SearchError, match=r"1 of \d+ follow-up questions"):
        await remote.search("drift", QUESTION)


async def test_a_search_that_was_given_up_records_the_call_in_flight(
    remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(hang_s=30)))
    log = CallLog()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(remote.search("basic", QUESTION, log=log), 1.0)

    assert [attempt.kind for attempt in log.attempts] == ["embedding", "completion"]
    assert log.attempts[-1].error == "CancelledError"
    assert log.attempts[-1].latency_s > 0.1
    assert log.usage().failed_calls == 1


async def test_a_call_that_runs_into_its_own_timeout_is_tried_again_and_counted(
    make_project: MakeProject, server: SpiedServer
) -> None:
    extra = "    call_args: {timeout: 0.5}\n"
    index = await GraphIndex.open(make_project(model_extra=extra))
    hanging = iter([Fault(hang_s=30)])
    server.behave(faults=lambda _, request: next(hanging, None) if "messages" in request else None)
    result = await index.search("basic", QUESTION)

    assert len(server.of("chat")) == 2
    assert result.usage.failed_calls == 1
    assert result.usage.llm_calls == 2


@pytest.mark.parametrize(
    ("fault", "least_s"),
    [
        (Fault(status=429, retry_after_s=1), 1.0),
        (Fault(status=429, retry_after_ms=300), 0.3),
        (Fault(status=503, retry_after_ms=300), 0.3),
    ],
)
async def test_the_wait_that_the_provider_asks_for_is_kept(
    fault: Fault, least_s: float, remote: GraphIndex, server: SpiedServer
) -> None:
    failing = iter([fault])
    server.behave(faults=lambda _, request: next(failing, None) if "messages" in request else None)
    await remote.search("basic", QUESTION)

    first, second = server.of("chat")
    assert first.finished_s is not None
    assert least_s <= second.arrived_s - first.finished_s < least_s + 0.5


@pytest.mark.parametrize("max_retries", [0, 3])
@pytest.mark.parametrize(
    "fault", [Fault(status=429), Fault(status=500), Fault(status=503), Fault(disconnect="before")]
)
async def test_a_call_is_sent_once_and_once_more_for_each_retry(
    fault: Fault, max_retries: int, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: fault)
    configs = remote.header.model_configs("local")
    policy = RetryPolicy(max_retries, base_delay_s=0.01, max_delay_s=0.05)
    with measure_calls() as log:
        with pytest.raises(Exception, match=r".+"):
            await open_completion(configs["completion"], policy).completion_async(messages="hi")
        with pytest.raises(Exception, match=r".+"):
            await open_embedding(configs["embedding"], policy).embedding_async(input=["hi"])

    assert len(server.of("chat")) == max_retries + 1
    assert len(server.of("embeddings")) == max_retries + 1
    assert log.usage().failed_calls == 2 * (max_retries + 1)
    assert {record.retry_count for record in server.records} <= {0, None}


@pytest.mark.parametrize("live", [False, True])
async def test_retries_of_the_settings_are_those_of_a_search(
    live: bool, make_project: MakeProject, server: SpiedServer
) -> None:
    index = await GraphIndex.open(make_project(max_retries=3))
    server.behave(faults=chat_gets(Fault(status=500)))
    with pytest.raises(SearchError, match="InternalServerError"):
        await index.search("local", QUESTION, log=CallLog(live=live))

    assert len(server.of("chat")) == 4


async def test_the_wait_between_attempts_grows_no_further_than_its_bound(
    remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(status=500))
    policy = RetryPolicy(max_retries=8, base_delay_s=60, max_delay_s=0.2)
    model = open_completion(remote.header.model_configs("local")["completion"], policy)
    async with asyncio.timeout(60):  # without the bound the waits come to about two hours
        with pytest.raises(Exception, match="The server had an error"):
            await model.completion_async(messages="hi")

    records = server.of("chat")
    gaps = [after.arrived_s - (before.finished_s or 0) for before, after in pairwise(records)]
    assert len(gaps) == 8
    assert sum(gaps) > 0.15  # eight draws of at most 0.2 s that come to less: p < 1e-6


async def test_immediate_retries_do_not_wait(remote: GraphIndex) -> None:
    configured = remote.header.model_configs("local")["completion"]

    assert read_retry_policy(configured) == RetryPolicy(6, base_delay_s=0, max_delay_s=0)
    assert read_retry_policy(configured.model_copy(update={"retry": None})) == RetryPolicy()
