"""A run that is read from its store is in memory once."""

import tracemalloc
from pathlib import Path
from typing import Any

from graphrag.eval import EvaluationConfig
from graphrag.eval.dataset import Sample
from graphrag.eval.records import JudgeResult
from graphrag.eval.run import describe_setup, read_run
from graphrag.eval.store import EvaluationStore, RunDetails, StoredResponse
from graphrag.query.usage import Usage

N, CONTEXT = 100, 50_000


async def test_a_run_is_read_with_its_contexts_once(tmp_path: Path):
    given: Any = {"root": tmp_path, "metrics": ["correctness"], "output": {"dir": str(tmp_path)}}
    config = EvaluationConfig(**given)
    samples = [Sample(f"s{i}", "a", f"What is {i}?", "x") for i in range(N)]
    setup = describe_setup(config, samples, {"a": {"local": {"models": {}}}}, {"model": "m"})
    details = RunDetails("command", N, {**config.to_dict(), "methods": ["local"]})
    with EvaluationStore(tmp_path / "eval.db") as store:
        run = store.add_run(setup, samples, details)
        for i, sample in enumerate(samples):
            context = f"{i} ".ljust(CONTEXT, "x")
            found = StoredResponse(sample.id, sample.id, "local", "y", context, 1.0, Usage(), None)
            store.append_response(run.run_id, found)
            store.append_verdicts(
                run.run_id, sample.id, {"correctness": JudgeResult(1, "so")}, Usage()
            )
        store.finish_run(run.run_id)
        tracemalloc.start()
        try:
            read = await read_run(store, run, tmp_path, None)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert [len(result.context_text) for result in read.outcome.results] == [CONTEXT] * N
    assert peak < 1.5 * N * CONTEXT
