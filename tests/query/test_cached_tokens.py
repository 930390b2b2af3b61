"""Tokens from a provider's cache are counted apart where it reports them, and nowhere else."""

from typing import Any

import pytest
from graphrag_llm.config import ModelConfig
from hypothesis import given
from hypothesis import strategies as st
from support.lighthouse import SpiedServer
from support.openai_server import Fault

from graphrag.query.models import open_completion
from graphrag.query.usage import (
    CallAttempt,
    CallLog,
    Usage,
    measure_calls,
    sum_usages,
    summarize_attempts,
)

KINDS = ("litellm", "direct")


def config(server: SpiedServer, kind: str, model: str = "gpt-4o") -> ModelConfig:
    key = {"api_base": server.base_url, "api_key": "none"}
    written: Any = {"type": kind} if kind == "litellm" else {}
    return ModelConfig(**written, model_provider="openai", model=model, **key)


async def ask(model: Any, live: bool) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}} if live else {}
    said = await model.completion_async(messages="hi", **options)
    if live:
        async for _ in said:
            pass


async def counted(given: ModelConfig, live: bool, n: int) -> Usage:
    """Ask as a ``GraphIndex`` does."""
    model = open_completion(given)
    with measure_calls(CallLog(live=live)) as log:
        for _ in range(n):
            await ask(model, live)
    return log.usage()


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_reported_is_counted_and_nothing_else(
    kind: str, live: bool, server: SpiedServer
) -> None:
    for reported, total, n in (
        ((None, None, None), None, 0),
        ((0, 0, 0), 0, 3),
        ((3, 0, 2), 5, 3),
        ((None, 3, 0), 3, 2),
    ):
        server.reset(lambda _: "hello")
        server.behave(faults=lambda n, _, told=reported: Fault(cached_tokens=told[n - 1]))
        usage = await counted(config(server, kind), live, 3)
        assert (usage.cached_prompt_tokens, usage.calls_reporting_cached_tokens) == (total, n)
        assert usage.prompt_tokens == sum(record.prompt_tokens for record in server.records)
        assert usage.llm_calls == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_more_cached_tokens_than_there_are_cost_no_less_than_all(
    kind: str, server: SpiedServer
) -> None:
    server.behave(faults=lambda *_: Fault(cached_tokens=9_999), reply=lambda _: "hello")
    usage = await counted(config(server, kind), False, 1)
    assert usage.cached_prompt_tokens == usage.prompt_tokens > 0
    assert usage.cost_usd == pytest.approx(
        usage.prompt_tokens * 1.25e-6 + usage.output_tokens * 1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_the_cost_is_not_known_where_cached_tokens_have_no_price(
    kind: str, server: SpiedServer
) -> None:
    given = config(server, kind, "gpt-4-turbo")  # the map has no price of its cached tokens
    server.behave(faults=lambda n, _: Fault(cached_tokens=3 * (n == 1)), reply=lambda _: "hello")
    usage = await counted(given, False, 2)
    most = pytest.approx(usage.prompt_tokens * 1e-5 + usage.output_tokens * 3e-5)
    assert (usage.cost_usd, usage.cost_usd_at_most, usage.spent_usd) == (None, most, most)
    assert usage.cost_usd_by_model == {"openai/gpt-4-turbo": None}

    fresh = await counted(given, False, 2)
    assert (fresh.cost_usd, fresh.cost_usd_at_most) == (most, None)
    both = sum_usages([usage, fresh])
    assert (both.cost_usd, both.cost_usd_at_most) == (None, pytest.approx(2 * fresh.spent_usd))
    assert sum_usages([usage, Usage(cost_usd=None)]).cost_usd_at_most is None


ATTEMPTS = st.lists(
    st.builds(
        CallAttempt,
        kind=st.sampled_from(["completion", "embedding"]),
        model=st.sampled_from(["openai/gpt-4o", "openai/gpt-4-turbo", "nobody/knows"]),
        phase=st.just("response"),
        prompt_tokens=st.integers(50, 99),
        output_tokens=st.integers(0, 9),
        counted_by=st.just("provider"),
        latency_s=st.just(0.1),
        cached_prompt_tokens=st.none() | st.integers(0, 50),
    ),
    max_size=5,
)


@given(st.lists(ATTEMPTS, max_size=4))
def test_sums_are_the_same_in_parts_and_as_a_whole(parts: list[list[CallAttempt]]) -> None:
    whole = summarize_attempts(attempt for part in parts for attempt in part)
    summed = sum_usages(summarize_attempts(part) for part in parts)
    assert summed.cached_prompt_tokens == whole.cached_prompt_tokens
    assert summed.calls_reporting_cached_tokens == whole.calls_reporting_cached_tokens
    assert summed.cost_usd == pytest.approx(whole.cost_usd)
    assert summed.cost_usd_at_most == pytest.approx(whole.cost_usd_at_most)
    assert (whole.cached_prompt_tokens is None) == (whole.calls_reporting_cached_tokens == 0)
