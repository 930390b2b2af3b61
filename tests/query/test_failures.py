"""A search that can't answer says why; it never gives an error or nothing as its response.

A service that can't be used is named by its address, with the setting to look at.
"""

import asyncio
import logging
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from support.lighthouse import METHODS, QUESTION, chat_gets
from support.openai_server import MALFORMED_JSON, Fault, Json
from support.services import REFUSING, THINKING, THOUGHT, Service
from typer.testing import CliRunner

from graphrag.query.client.call_errors import RetryPolicy, read_retry_policy
from graphrag.query.client.models import open_completion, open_embedding
from graphrag.query.client.usage import CallLog, measure_calls
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.methods import embeds
from graphrag.text.library_logs import lines_to
from graphrag.text.message_phrases import counted

NOWHERE = "http://127.0.0.1:9/v1"  # the discard service's port, which nothing answers
CHECK = " was asked: check api_base under completion_models in settings.yaml"
BUDGETS = {
    **{name: f"{name}_search.max_context_tokens" for name in ("tog", "local", "basic", "global")},
    "drift": "drift_search.data_max_tokens",
    "bm25": "basic_search.max_context_tokens",
}
NO_CREDIT = Fault(status=429, code="insufficient_quota", message="No quota left.")
NO_ROOM = Fault(
    status=400,
    code="exceed_context_size_error",
    message="request (9120 tokens) exceeds the available context size (4096 tokens), try again",
)


def failing() -> Iterator[tuple[str, str, Fault, tuple[str, ...], bool]]:
    """Give methods, which calls fail and how, what the search says, and if it is for good."""
    for method in METHODS:
        says = ("AuthenticationError", "check api_key under completion_models in settings.yaml")
        yield method, "messages", Fault(status=401), says, True
    yield "tog", "messages", Fault(status=404), ("NotFoundError", "check model and api_base"), True
    yield "local", "messages", Fault(status=400), ("BadRequestError",), False
    yield "local", "messages", NO_CREDIT, ("No quota left",), True
    for method in ("local", "basic", "drift", "hybrid"):
        says = ("AuthenticationError", "check api_key under embedding_models in settings.yaml")
        yield method, "input", Fault(status=401), says, True
    for method in ("tog", "local", "global", "drift"):
        yield method, "messages", Fault(content=""), (), False
    for method in ("tog", "global", "drift"):
        yield method, "messages", Fault(content=MALFORMED_JSON), ("read",), False
    for method, budget in BUDGETS.items():
        yield method, "messages", NO_ROOM, (budget, "9120 tokens"), False
    for method in ("tog", "basic", "global"):
        too_large = Fault(413, raw="<html>Request Entity Too Large</html>")
        yield method, "messages", too_large, ("no request as large", BUDGETS[method]), False
        no_balance = Fault(402, message="Insufficient Balance")
        says = ("Insufficient Balance", "what its account has left to pay with")
        yield method, "messages", no_balance, says, True


@pytest.mark.parametrize(("method", "part", "fault", "says", "refused"), failing())
async def test_a_call_that_fails_for_good_fails_the_search_and_is_sent_once(
    method, part, fault, says, refused, remote, server
):
    server.behave(faults=lambda _, request: fault if part in request else None)
    log = CallLog()
    with pytest.raises(SearchError) as caught:
        await remote.search(method, QUESTION, log=log)

    message, usage = str(caught.value), log.usage()
    assert [words for words in says if words not in message] == []
    assert "litellm" not in message
    assert caught.value.refused is refused
    assert server.base_url in message or not any("check " in words for words in says)
    assert usage.llm_calls == len(server.of("chat"))
    if fault.status is not None:
        failed = server.of("chat" if part == "messages" else "embeddings")
        assert usage.failed_calls == len(failed) > 0, "asked again although refused"
        assert len(failed) == 1 or part == "messages"
    elif fault.content:
        assert usage.failed_calls == 0, "a reply that came was paid for, whatever it says"
        assert usage.output_tokens == server.totals()["chat"].output_tokens > 0


async def test_only_a_service_that_had_no_room_is_met_with_advice_on_the_budget(remote, server):
    server.behave(faults=lambda *_: Fault(status=400, message="the model's context is too small"))
    with pytest.raises(SearchError) as caught:
        await remote.search("basic", QUESTION)
    assert "too small" in str(caught.value)
    assert not caught.value.context_is_full
    assert "lower" not in str(caught.value)
    server.behave(faults=lambda *_: NO_ROOM)
    with pytest.raises(SearchError, match=r"lower basic_search\.max") as caught:
        await remote.search("basic", QUESTION)
    assert caught.value.context_is_full


async def test_a_follow_up_question_that_stays_unreadable_fails_a_drift_search(remote, server):
    def faults(_: int, request: Json) -> Fault | None:
        asked = str(request.get("messages", [""])[-1])
        return Fault(content=MALFORMED_JSON) if "paid for the repair" in asked[:200] else None

    server.behave(faults=faults)
    with pytest.raises(SearchError, match=r"1 of \d+ follow-up questions"):
        await remote.search("drift", QUESTION)


async def test_a_search_that_was_given_up_records_the_call_in_flight(remote, server):
    server.behave(faults=chat_gets(Fault(hang_s=30)))
    log = CallLog()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(remote.search("basic", QUESTION, log=log), 1.0)

    assert [attempt.kind for attempt in log.attempts] == ["embedding", "completion"]
    assert log.attempts[-1].error == "CancelledError"
    assert log.attempts[-1].latency_s > 0.1
    assert log.usage().failed_calls == 1


async def test_a_call_that_runs_into_its_own_timeout_is_tried_again_and_counted(
    make_project, server
):
    extra = "    call_args: {timeout: 0.5}\n"
    index = await GraphIndex.open(make_project(model_extra=extra))
    hanging = iter([Fault(hang_s=30)])
    server.behave(faults=lambda _, request: next(hanging, None) if "messages" in request else None)
    result = await index.search("basic", QUESTION)

    assert result.usage.llm_calls == len(server.of("chat")) == 2
    assert result.usage.failed_calls == 1


@pytest.mark.parametrize(
    ("fault", "least_s"),
    [(Fault(status=429, retry_after_s=1), 1.0), (Fault(status=503, retry_after_ms=300), 0.3)],
)
async def test_the_wait_that_the_provider_asks_for_is_kept(fault, least_s, remote, server):
    failing = iter([fault])
    server.behave(faults=lambda _, request: next(failing, None) if "messages" in request else None)
    await remote.search("basic", QUESTION)

    first, second = server.of("chat")
    assert first.finished_s is not None
    assert least_s <= second.arrived_s - first.finished_s < least_s + 0.5


@pytest.mark.parametrize(
    ("fault", "max_retries"),
    [(Fault(status=429), 0), (Fault(status=500), 3), (Fault(disconnect="before"), 3)],
)
async def test_a_call_is_sent_once_and_once_more_for_each_retry(fault, max_retries, remote, server):
    server.behave(faults=lambda _, request: fault)
    configs = remote.header.model_configs("local")
    policy = RetryPolicy(max_retries, base_delay_s=0.01, max_delay_s=0.05)
    with measure_calls() as log:
        with pytest.raises(Exception, match=r".+"):
            await open_completion(configs["completion"], policy).completion_async(messages="hi")
        with pytest.raises(Exception, match=r".+"):
            await open_embedding(configs["embedding"], policy).embedding_async(input=["hi"])

    assert len(server.of("chat")) == len(server.of("embeddings")) == max_retries + 1
    assert log.usage().failed_calls == 2 * (max_retries + 1)
    assert {record.retry_count for record in server.records} <= {0, None}


@pytest.mark.parametrize("live", [False, True])
async def test_retries_of_the_settings_are_those_of_a_search(live, remote, server):
    configured = remote.header.model_configs("local")["completion"]
    assert read_retry_policy(configured) == RetryPolicy(6, base_delay_s=0, max_delay_s=0)
    assert read_retry_policy(configured.model_copy(update={"retry": None})) == RetryPolicy()
    server.behave(faults=chat_gets(Fault(status=500)))
    with pytest.raises(SearchError, match="InternalServerError"):
        await remote.search("local", QUESTION, log=CallLog(live=live))
    assert len(server.of("chat")) == 7


async def test_the_wait_between_attempts_grows_no_further_than_its_bound(remote, server):
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


async def cause_of(project: Path, method: str = "basic") -> SearchError:
    index = await GraphIndex.open(project)
    with pytest.raises(SearchError) as caught:
        await index.search(method, QUESTION)
    return caught.value


@pytest.mark.parametrize("method", METHODS)
async def test_a_service_that_is_not_there_is_named_by_its_address_without_its_password(
    method, make_project
):
    secret = "http://me:hidden@127.0.0.1:9/v1?key=hidden" if method == "basic" else NOWHERE
    cause = await cause_of(make_project(base_url=secret, max_retries=2), method)

    kind = "completion" if method == "drift" or not embeds(method) else "embedding"
    assert f"no connection to {NOWHERE}" in str(cause)
    assert f"check api_base under {kind}_models in settings.yaml" in str(cause)
    assert "litellm" not in str(cause)
    assert "hidden" not in str(cause)
    assert not cause.refused, "it may come back"


@pytest.mark.parametrize(
    ("fault", "says", "then"),
    [
        (
            Fault(raw="<html>Log in to the portal</html>"),
            "reply is garbled: it is a web page",
            CHECK,
        ),
        (Fault(raw=""), "reply is garbled: it is empty", CHECK),
        (Fault(502, raw="<html>Bad"), "BadGatewayError: a web page", " was asked"),
        (
            Fault(307, raw="", location="/v1/chat/completions"),
            "reply is garbled: it redirects without end",
            CHECK,
        ),
    ],
)
async def test_a_page_in_place_of_a_reply_names_the_address_that_was_asked(
    make_project, server, fault, says, then
):
    server.behave(faults=lambda *_: fault)
    cause = str(await cause_of(make_project(max_retries=2), "bm25"))
    assert f"{says}; http://127.0.0.1:" in cause
    assert then in cause
    assert "<html>" not in cause


async def test_where_a_service_redirects_to_nowhere_that_address_is_named(make_project, server):
    server.behave(faults=lambda *_: Fault(307, raw="", location="http://127.0.0.1:9/v1"))
    cause = str(await cause_of(make_project(max_retries=2), "bm25"))
    assert "no connection to 127.0.0.1:9 on the way to http://127.0.0.1:" in cause


@pytest.mark.parametrize(
    ("method", "providers", "says"),
    [
        (
            "tog",
            ("opnai", "openai"),
            "no provider 'opnai'; did you mean 'openai'? Correct model_provider",
        ),
        ("drift", ("openai", "opnai"), "no provider 'opnai'"),
        ("basic", ("openai", "anthropic"), "anthropic offers no embeddings"),
    ],
)
async def test_a_provider_that_does_not_exist_or_does_not_embed_is_a_refusal(
    method, providers, says, make_project
):
    project = make_project()
    path = project / "settings.yaml"
    parts = path.read_text(encoding="utf-8").split("model_provider: openai")
    written = [f"model_provider: {provider}" for provider in providers]
    text = parts[0] + written[0] + parts[1] + written[1] + parts[2]
    path.write_text(text, encoding="utf-8")
    cause = await cause_of(project, method)

    assert cause.refused
    assert says in str(cause)
    assert "in settings.yaml" in str(cause)
    assert "LLM Provider" not in str(cause)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("flags", [(), ("--streaming",)], ids=["whole", "stream"])
@pytest.mark.parametrize("method", ["tog", "basic", "local", "global", "drift"])
def test_a_query_that_fails_says_one_sentence(method, flags, make_project, server):
    from graphrag.cli.main import app

    root = make_project(max_retries=2)
    for fault, says in (
        (Fault(401), "check api_key under completion_models in settings.yaml\n"),
        (Fault(413, raw="<html>Too Large</html>"), "search.max_context_tokens"),
        (Fault(raw="<html>busy</html>"), "it is a web page"),
        (Fault(content=""), "em"),  # it is empty, or an empty response
    ):
        if method == "global" and fault.content == "":
            continue  # the release says that it found nothing
        server.behave(faults=chat_gets(fault))
        result = CliRunner().invoke(app, ["query", QUESTION, "-r", str(root), "-m", method, *flags])
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 1, (result.output, fault)
        # After the bar of DRIFT search, which is lower if another test's bar is still open.
        said = result.stderr.rpartition("\r")[2].rpartition("\x1b[A")[2]
        assert said.startswith("Error: the search failed: "), fault
        assert says in said.replace("data_max_tokens", "max_context_tokens")
        assert said.count("\n") == 1


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("method", ["tog", "basic", "global", "drift"])
@pytest.mark.parametrize("flags", [(), ("--streaming",)], ids=["whole", "stream"])
def test_a_query_asks_as_every_search_does(method, flags, make_project, server):
    """The released commands too: without what is refused, and without thoughts."""
    from graphrag.cli.main import app

    words = ["query", QUESTION, "-r", str(make_project()), "-m", method, *flags]
    plain = CliRunner().invoke(app, words)
    for service in (
        Service(REFUSING["DeepSeek: json_schema"].refuse, more=Fault(thoughts=THOUGHT)),
        THINKING["think"],
        THINKING["the end alone"],
        REFUSING["no stream, in other words"],
    ):
        server.behave(reply=service.reply(), faults=service.plan)
        result = CliRunner().invoke(app, words)
        assert (result.exit_code, result.stdout) == (0, plain.stdout), result.output


@pytest.mark.usefixtures("as_before")
def test_a_search_of_the_release_is_asked_of_a_table_that_lacks_a_column(make_project):
    from graphrag.cli.main import app

    root = make_project()
    table = root / "output" / "relationships.parquet"
    pd.read_parquet(table).drop(columns=["description"]).to_parquet(table)
    result = CliRunner().invoke(app, ["query", QUESTION, "-r", str(root), "-m", "local"])
    assert result.exit_code == 0, result.output


async def test_a_reply_that_the_service_filtered_is_a_failed_search(remote, server):
    for fault in (Fault(content="", reason_told="content_filter"), Fault(reason_told="SAFETY")):
        for method in ("tog", "basic", "bm25", "global"):
            for on_text in (None, lambda _: None):
                server.behave(faults=chat_gets(fault))
                with pytest.raises(SearchError, match="content filter stopped the reply"):
                    await remote.search(method, QUESTION, on_text)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault(disconnect="mid-stream"), "was lost before the reply was complete; ask again"),
        (Fault(raw="<html>busy</html>"), "is garbled: it is a web page"),
    ],
)
def test_a_stream_that_fails_says_how_and_what_it_took(fault, says, make_project, server):
    from graphrag.cli.main import app

    root = make_project(max_retries=2)
    server.behave(faults=lambda *_: fault)
    how = ("-m", "bm25", "--streaming", "--verbose")
    result = CliRunner().invoke(app, ["query", QUESTION, "-r", str(root), *how])

    n_sent = len(server.of("chat"))
    assert result.exit_code == 1, result.output
    assert says in result.stderr
    assert "no connection" not in result.stderr
    assert result.stdout.strip("\n") + "\n" == (result.stdout or "\n")  # the line is ended
    assert f"completions: {counted(n_sent, 'call')}, " in result.stderr
    assert f"failed calls: {n_sent}" in result.stderr


@pytest.mark.usefixtures("as_before")
def test_an_answer_that_is_cut_off_says_so(make_project, server):
    from graphrag.cli.main import app

    root = make_project()
    server.behave(faults=lambda *_: Fault(ramble=True))
    result = CliRunner().invoke(app, ["query", QUESTION, "-r", str(root), "-m", "bm25"])

    assert result.exit_code == 0, result.output
    assert "Note: 1 reply was cut off at the length that the model may write." in result.stderr


def test_what_litellm_drops_when_it_is_cancelled_is_not_warned_of():
    class Client:
        async def acompletion(self) -> None: ...

        async def other(self) -> None: ...

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lines_to(logging.NullHandler(), logging.WARNING):
            Client().acompletion()
            Client().other()
    assert [str(each.message).split("'")[1].rpartition(".")[2] for each in caught] == ["other"]
