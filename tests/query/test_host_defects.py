"""Defects of the installed graphrag that this project works around.

Each test asserts that a defect is still there. When one fails, the release has mended it: read
the comment, see whether the work-around can go, and delete the test.
"""

import asyncio
import logging
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import create_embedding
from graphrag_llm.model_cost_registry import model_cost_registry
from support.lighthouse import SpiedServer
from support.openai_server import Fault
from support.projects import OFFLINE_SETTINGS

from graphrag.config.load_config import load_config
from graphrag.config.project_settings import read_settings
from graphrag.query.graph_index import GraphIndex
from graphrag.query.indexer_adapters import (
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_reports,
    read_indexer_text_units,
)

# What BasicSearch never awaits is freed when its log record is: under Python 3.13 that is during
# a later test of this file.
pytestmark = pytest.mark.filterwarnings(
    "ignore:coroutine 'LiteLLMCompletion.completion_async' was never:RuntimeWarning"
)

QUESTION = "Who repaired the great lamp with Marta Quill?"
Configure = Callable[..., ModelConfig]


@pytest.fixture
def config(server: SpiedServer) -> Configure:
    """Return a function that configures the released completion to ask the server."""
    server.behave(reply=lambda _: "hello")

    def configure(**values: Any) -> ModelConfig:
        given = {"model": "gpt-4o", "api_base": server.base_url, "api_key": "test", **values}
        return ModelConfig(model_provider="openai", **given)

    return configure


@pytest.fixture
def released_local(remote: GraphIndex) -> Any:
    """Return the released local search engine, asking the server."""
    from graphrag.query.factory import get_local_search_engine
    from graphrag.utils.api import get_embedding_store

    tables = remote.tables
    return get_local_search_engine(
        config=remote.header.config,
        reports=read_indexer_reports(
            tables.table("community_reports"), tables.table("communities"), 2
        ),
        text_units=read_indexer_text_units(tables.table("text_units")),
        entities=read_indexer_entities(tables.table("entities"), tables.table("communities"), 2),
        relationships=read_indexer_relationships(tables.table("relationships")),
        covariates={"claims": []},
        response_type="Multiple Paragraphs",
        description_embedding_store=get_embedding_store(
            remote.header.config.vector_store, "entity_description"
        ),
    )


@pytest.fixture
def _own_handlers() -> Iterator[None]:
    logger = logging.getLogger("graphrag")
    before = list(logger.handlers)
    yield
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    for handler in before:
        logger.addHandler(handler)


# Work-around: engines.ContextSearch asks stream_search.
async def test_basic_search_never_asks_its_model(remote: GraphIndex, server: SpiedServer) -> None:
    from graphrag.query.factory import get_basic_search_engine
    from graphrag.utils.api import get_embedding_store

    engine = get_basic_search_engine(
        text_units=read_indexer_text_units(remote.tables.table("text_units")),
        text_unit_embeddings=get_embedding_store(
            remote.header.config.vector_store, "text_unit_text"
        ),
        config=remote.header.config,
        response_type="Multiple Paragraphs",
    )
    found = await engine.search(query=QUESTION)

    assert found.response == ""
    assert found.llm_calls == 1
    assert server.of("chat") == []


# Work-around: engines.ContextSearch asks stream_search; CallLog.failures raises SearchError.
@pytest.mark.parametrize("status", [400, 401, 404])
async def test_local_search_swallows_errors_of_its_model(
    status: int, released_local: Any, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(status=status) if "messages" in request else None)

    assert (await released_local.search(query=QUESTION)).response == ""


# Work-around: models.known_vectors.
async def test_local_search_blocks_the_loop_while_it_embeds(
    released_local: Any, server: SpiedServer
) -> None:
    await released_local.search(query=QUESTION)
    server.behave(latency_s=lambda request: 0.3 if "input" in request else 0.0)
    started = time.perf_counter()
    await asyncio.gather(*(released_local.search(query=f"{QUESTION} {n}") for n in range(3)))

    assert time.perf_counter() - started > 0.9


# Work-around: graph_index.CountedSearchResult, from usage.CallLog.
async def test_counters_leave_out_the_question_and_the_embedding(
    released_local: Any, server: SpiedServer
) -> None:
    found = await released_local.search(query=QUESTION)

    system, user = server.of("chat")[-1].messages
    assert user["content"] == QUESTION
    assert found.prompt_tokens == len(released_local.tokenizer.encode(system["content"]))
    assert found.llm_calls == len(server.of("chat")) == len(server.of("embeddings"))


# Work-around: models.CountedCompletion reads the response's own usage.
async def test_an_empty_dict_for_metrics_stays_empty(config: Configure) -> None:
    model = create_completion(config(metrics={"type": "default"}))
    empty: dict[str, Any] = {}
    filled: dict[str, Any] = {"asked": 1}
    await model.completion_async(messages="hi", metrics=empty)
    await model.completion_async(messages="hi", metrics=filled)

    assert empty == {}
    assert len(filled) > 1


# Work-around: usage.model_price looks both names up.
def test_prices_of_openai_models_are_not_found() -> None:
    assert model_cost_registry.get_model_costs("openai/gpt-4o") is None
    assert model_cost_registry.get_model_costs("gpt-4o") is not None


# Work-around: models._completion_of sets max_retries to 0 for a completion.
async def test_the_client_retries_a_completion_unseen(
    config: Configure, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(status=500, retry_after_ms=1))
    with pytest.raises(Exception, match="The server had an error"):
        await create_completion(config()).completion_async(messages="hi")

    assert len(server.of("chat")) == 3


# Work-around: models._NoRetries.
async def test_max_retries_of_zero_is_not_zero_for_an_embedding(
    config: Configure, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(status=500, retry_after_ms=1))
    model = create_embedding(config(model="text-embedding-3-small", call_args={"max_retries": 0}))
    with pytest.raises(Exception, match="The server had an error"):
        await model.embedding_async(input=["hi"])

    assert len(server.of("embeddings")) == 3


# Work-around: calls.is_transient.
async def test_the_released_retry_skips_an_overloaded_service(
    config: Configure, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(status=503))
    retry = {"type": "immediate", "max_retries": 3}
    model = create_completion(config(retry=retry, call_args={"max_retries": 0}))
    with pytest.raises(Exception, match=r".+"):
        await model.completion_async(messages="hi")

    assert len(server.of("chat")) == 1


# Work-around: models._completion_of turns the check off, as read_reply does it.
async def test_a_reply_of_another_form_loses_its_usage(
    config: Configure, server: SpiedServer
) -> None:
    from pydantic import BaseModel

    class Wanted(BaseModel):
        score: int

    model = create_completion(config())
    with pytest.raises(Exception, match="JSONSchemaValidationError"):
        await model.completion_async(messages="hi", response_format=Wanted)

    assert server.totals()["chat"].output_tokens > 0


# Work-around: limits.CallLimit.
async def test_the_released_rate_limiter_blocks_the_loop(config: Configure) -> None:
    rate = {"type": "sliding_window", "period_in_seconds": 1, "requests_per_period": 1}
    model = create_completion(config(rate_limit=rate))
    gaps: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(model.completion_async(messages=f"hi {n}") for n in range(2)))
    ticking.cancel()

    assert max(gaps) > 0.4


# Work-around: project_settings.read_settings, for all four.
def test_load_config_changes_the_folder_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path.cwd())
    monkeypatch.setenv("GTOG_TEST_ENV", "to be restored")
    monkeypatch.delenv("GTOG_TEST_ENV")
    read = []
    for name in ("first", "second"):
        root = tmp_path / name
        root.mkdir()
        (root / ".env").write_text(f"GTOG_TEST_ENV={name}\n", encoding="utf-8")
        settings = OFFLINE_SETTINGS + "drift_search: {prompt: '${GTOG_TEST_ENV}'}\n"
        (root / "settings.yaml").write_text(settings, encoding="utf-8")
        read.append(load_config(root).drift_search.prompt)

    assert Path.cwd() == root
    assert os.environ["GTOG_TEST_ENV"] == "first"
    assert read == ["first", "first"]


def test_load_config_drops_unknown_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())
    settings = OFFLINE_SETTINGS + "local_serch: {top_k_entities: 3}\n"
    (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")

    assert not hasattr(load_config(tmp_path), "local_serch")


def test_a_relative_prompt_is_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphrag.utils.api import load_search_prompt

    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_search_prompt("mine.txt") == "mine"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert load_search_prompt("mine.txt") is None


# Work-around: api.search._start_log.
@pytest.mark.usefixtures("_own_handlers")
def test_init_loggers_drops_the_handlers_of_the_caller(project: Path) -> None:
    from graphrag.logger.standard_logging import init_loggers

    mine = logging.NullHandler()
    logging.getLogger("graphrag").addHandler(mine)
    init_loggers(config=read_settings(project))

    assert mine not in logging.getLogger("graphrag").handlers


# Work-around: Think-on-Graph reads the entities table itself.
async def test_entities_outside_communities_are_dropped_at_any_level(remote: GraphIndex) -> None:
    entities = remote.tables.table("entities")
    communities = remote.tables.table("communities")
    alone = entities["id"].iloc[0]
    communities["entity_ids"] = [
        [one for one in ids if one != alone] for ids in communities["entity_ids"]
    ]

    assert alone in {entity.id for entity in read_indexer_entities(entities, communities, None)}
    assert alone not in {entity.id for entity in read_indexer_entities(entities, communities, 2)}


# Work-around: eval.indexing runs the workflows itself.
async def test_indexing_traces_every_allocation(tmp_path: Path) -> None:
    from graphrag.callbacks.noop_workflow_callbacks import NoopWorkflowCallbacks
    from graphrag.index.run.run_pipeline import run_pipeline
    from graphrag.index.typing.pipeline import Pipeline

    (tmp_path / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    traced: list[bool] = []

    async def look(*_: Any) -> Any:
        traced.append(tracemalloc.is_tracing())
        return SimpleNamespace(result=None, stop=False)

    pipeline = Pipeline([("look", look)])
    async for _ in run_pipeline(pipeline, read_settings(tmp_path), NoopWorkflowCallbacks()):
        pass

    assert traced == [True]
