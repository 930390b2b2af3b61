"""The rate of a model holds across those who ask it: workers first, then the owner."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from graphrag_llm.config import ModelConfig, RateLimitConfig
from support.openai_server import LocalServer, running_server

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import JudgeResult
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.queue import RunRequest
from graphrag.eval.scorers.judge import LLMJudge
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.query.models import open_completion
from graphrag.query.usage import CallLog, Usage

PERIOD_S = 1


class Elsewhere:
    """Does what workers do, without asking; when it was done is known."""

    ended_s = 0.0

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        return StoredResponse(unit.key, unit.sample.id, unit.method, "x", "", 0.1, Usage(), None)

    async def judge_unit(
        self, unit: Unit, found: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        self.ended_s = time.monotonic()
        return {metric: JudgeResult(1, "so") for metric in metrics}


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with running_server(lambda request: "{}") as running:
        yield running


async def test_what_the_owner_asks_after_its_workers_keeps_within_the_rate_of_both(
    server: LocalServer, tmp_path: Path
):
    model: Any = {"type": "openai_direct", "model_provider": "openai", "model": "gpt-4o"}
    rate = RateLimitConfig(type="sliding_window", period_in_seconds=PERIOD_S, requests_per_period=2)
    asked = open_completion(ModelConfig(**model, api_base=server.base_url, rate_limit=rate))
    await asked.completion_async(messages="hi")  # under no limit of a run; loads what it needs
    before = len(server.records)
    given: Any = {"root": tmp_path, "judge": {"rubric": True, "max_retries": 0}}

    async def mine(question: str) -> str:
        return question

    workers = Elsewhere()
    runner = EvaluationRunner(
        EvaluationConfig(**given), LLMJudge(asked), {}, {"mine": mine}, executor=workers
    )
    sample = Sample("s", "a", "What is it?", "x")
    outcome = await runner.run(RunRequest([Unit("s", sample, "mine")]))
    assert outcome.is_complete, outcome.stopped
    assert min(r.arrived_s for r in server.records[before:]) >= workers.ended_s + PERIOD_S
