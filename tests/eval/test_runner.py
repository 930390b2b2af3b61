import asyncio

import pytest

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import OutputSettings
from graphrag.eval.errors import RunStoppedError
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.testing import ScriptedRunner
from graphrag.query.graph_index import SearchError

ROWS = [
    {"imdb_key": "a", "question": "Who?", "answer": "Ann"},
    {"imdb_key": "b", "question": "Where?", "answer": "Rome"},
]


@pytest.fixture
def config(tmp_path):
    return EvaluationConfig(root=tmp_path, methods=("tog", "basic"), timeout_s=5)


def answer_right(method, question, key):
    return {"Who?": "It was Ann.", "Where?": "In Rome."}[question]


async def test_results_come_in_the_order_of_the_dataset(config):
    async def search(method, query, key):
        await asyncio.sleep(0.05 if query == "Who?" else 0)
        return await ScriptedRunner._run_search(runner, method, query, key)

    runner = ScriptedRunner(config, answer_right)
    runner._run_search = search
    results = await runner.run_evaluation(ROWS)
    assert [(r.question, r.method) for r in results] == [
        ("Who?", "tog"),
        ("Who?", "basic"),
        ("Where?", "tog"),
        ("Where?", "basic"),
    ]


async def test_a_failed_search_is_a_result_and_stops_nothing_else(config):
    def answer(method, question, key):
        if method == "tog":
            raise SearchError("503 from the service")
        return answer_right(method, question, key)

    results = await ScriptedRunner(config, answer).run_evaluation(ROWS)
    failed = [r for r in results if r.method == "tog"]
    for result in failed:
        assert result.response == "ERROR: 503 from the service"
        assert result.scores.to_dict() == dict.fromkeys(result.scores.to_dict(), 0)
        assert result.scores.correctness.reason == "Search failed"
        assert result.efficiency.latency >= 0
    assert all(r.scores.correctness.score == 1 for r in results if r.method == "basic")


@pytest.mark.parametrize("empty", ["", "  \n"])
async def test_an_empty_response_is_a_failure(config, empty):
    result = await ScriptedRunner(config, lambda *_: empty).evaluate_single("a", "Q", "A", "tog")
    assert result.failure.kind == "empty"
    assert result.response.startswith("ERROR: ")


async def test_a_service_that_refuses_stops_the_run_and_nothing_is_recorded_as_failed(config):
    def answer(*_):
        raise SearchError("401 wrong key", refused=True)

    with pytest.raises(RunStoppedError, match="wrong key"):
        await ScriptedRunner(config, answer).run_evaluation(ROWS)
    with EvaluationStore(config.output_folder / "eval.db") as store:
        (run,) = store.runs()
        assert run.status == "unfinished"
        assert store.responses(run.run_id) == {}


async def test_nothing_is_written_without_save_intermediate(config):
    quiet = config.model_copy(update={"output": OutputSettings(save_intermediate=False)})
    await ScriptedRunner(quiet, answer_right).run_evaluation(ROWS)
    assert not config.output_folder.exists()


async def test_many_failures_in_a_row_stop_the_run(config):
    def answer(*_):
        raise SearchError("connection refused")

    rows = [{"imdb_key": "a", "question": f"{n}?", "answer": "Ann"} for n in range(40)]
    runner = ScriptedRunner(config.model_copy(update={"concurrency": 1}), answer)
    with pytest.raises(RunStoppedError, match="last 10 searches all failed"):
        await runner.run_evaluation(rows)
    assert len(runner.asked) == 10


async def test_stopping_begins_nothing_new(config):
    def answer(method, question, key):
        runner.stop("enough")
        return "Ann"

    runner = ScriptedRunner(config.model_copy(update={"concurrency": 1}), answer)
    with pytest.raises(RunStoppedError, match="enough"):
        await runner.run_evaluation(ROWS)
    assert len(runner.asked) == 1
    with EvaluationStore(config.output_folder / "eval.db") as store:
        (run,) = store.runs()
        assert len(store.responses(run.run_id)) == 1
