"""A runner whose configuration, judge and searches are one's own, among them unittest.mock's."""

import asyncio
import json
from types import SimpleNamespace
from unittest.mock import AsyncMock, MagicMock, patch

import pytest

from graphrag.config.project_settings import read_settings
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError, RunStoppedError
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.testing import ScriptedRunner
from graphrag.eval.types.own_code import contained
from graphrag.eval.types.verdicts import JudgeResult, MetricScores
from graphrag.query.graph_index import SearchError

SCORES = MetricScores(*(JudgeResult(1, f"reason {n}") for n in range(4)))
FIGURES = {"completion_time": 1.5, "llm_calls": 3, "prompt_tokens": 100, "output_tokens": 20}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder, which must stay empty unless a test fills it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mocked_judge(**kwargs):
    judge = MagicMock()
    judge.evaluate_all = AsyncMock(**(kwargs or {"return_value": SCORES}))
    return judge


def found(**changes):
    given = {"response": "It was Ann.", "context_text": "Ann did it.", **FIGURES, **changes}
    return MagicMock(**given)


async def ask(runner, result, **kwargs):
    search = AsyncMock(return_value=result, **kwargs)
    with patch.object(runner, "_run_search", search):
        return await runner.evaluate_single("a", "Who?", "Ann", "tog"), search


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("value", [None, "3", float("nan"), -1, True, "unset"])
async def test_a_figure_that_is_no_number_is_not_made_up(name, value):
    result = found(**{name: value})
    if value == "unset":
        result = MagicMock(response="It was Ann.", context_text="Ann did it.")
    single, _ = await ask(EvaluationRunner(MagicMock(), mocked_judge()), result)
    efficiency = single.efficiency
    if value == "unset" or name != "completion_time":
        assert not single.usage.is_counted
        assert single.usage.cost_usd is None
        assert (efficiency.llm_calls, efficiency.prompt_tokens) == (None, None)
    else:
        assert (efficiency.llm_calls, efficiency.prompt_tokens) == (3, 100)
    if value == "unset" or name == "completion_time":
        assert 0 <= efficiency.latency < 1
    else:
        assert efficiency.latency == 1.5
    json.dumps(aggregate_results([single]).to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "result", [MagicMock(), *(MagicMock(response=text) for text in (None, 3, "", " \n")), None]
)
async def test_a_result_without_text_is_a_failed_search(result):
    judge = mocked_judge()
    single, _ = await ask(EvaluationRunner(MagicMock(), judge), result)
    assert single.response.startswith("ERROR: ")
    assert single.failure.stage == "search"
    assert set(single.scores.to_dict().values()) == {0}
    judge.evaluate_all.assert_not_awaited()


@pytest.mark.parametrize(
    "scores",
    [
        MagicMock(
            correctness=MagicMock(score=1, reason="r"),
            faithfulness=JudgeResult(0, "r"),
            relevance=MagicMock(score=1, reason=MagicMock()),
            completeness=MagicMock(score=7),
        ),
        {
            "correctness": {"score": 1, "reason": "r"},
            "faithfulness": {"score": 0, "reason": "r"},
            "relevance": {"score": 1},
            "completeness": None,
        },
    ],
)
async def test_verdicts_are_read_from_objects_and_never_guessed(scores):
    runner = EvaluationRunner(MagicMock(), mocked_judge(return_value=scores))
    single, _ = await ask(runner, found())
    assert list(single.scores.to_dict().values()) == [1, 0, 1, None]
    assert single.scores.correctness == JudgeResult(1, "r")
    assert single.scores.relevance.reason == "No reason provided"
    assert single.scores.completeness.failure.kind == "unreadable"


@pytest.mark.parametrize("judge", [MagicMock(), AsyncMock(), mocked_judge(return_value=None)])
async def test_a_judge_that_says_nothing_scores_nothing(judge):
    single, _ = await ask(EvaluationRunner(MagicMock(), judge), found())
    assert set(single.scores.to_dict().values()) == {None}
    assert single.scores.correctness.failure is not None


async def test_a_model_in_place_of_a_judge_is_refused_before_anything_is_asked():
    config = EvaluationConfig(output={"save_intermediate": False})
    runner = ScriptedRunner(config, lambda *_: "Ann", SimpleNamespace(achat_stream=print))
    with pytest.raises(ConfigError, match=r"no evaluate_all; give LLMJudge\(model\)"):
        await runner.run_evaluation([{"imdb_key": "a", "question": "Who?", "answer": "Ann"}])
    assert runner.asked == []


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_judge_needs_no_method_but_one_for_a_part_of_the_metrics(tmp_path, is_async):
    kind = AsyncMock if is_async else MagicMock
    judge = MagicMock(evaluate_all=kind(return_value=SCORES))
    config = EvaluationConfig(root=tmp_path, metrics=("correctness", "relevance"))
    single, _ = await ask(EvaluationRunner(config, judge), found())
    assert single.scores == MetricScores(SCORES.correctness, relevance=SCORES.relevance)
    assert judge.evaluate_all.call_count == 1


async def test_a_projects_configuration_judges_with_its_default_model(
    built_project, folder, monkeypatch
):
    (folder / "clock").symlink_to(built_project)
    config = read_settings(built_project)
    runner = EvaluationRunner(config)
    result = await runner.evaluate_single(
        "clock", "Who stole the silver pendulum?", "Tobias Reed", "tog"
    )
    assert result.failure is None
    assert "Tobias Reed" in result.response
    assert result.scores.correctness.score == 1
    assert result.judge_usage.models == ("offline/rules",)
    assert runner.config is config
    assert runner.judge is None
    assert runner.index_roots == {}
    assert [entry.name for entry in folder.iterdir()] == ["clock"]


@pytest.mark.parametrize("key", ["elsewhere", "", ".", "..", "../clock"])
async def test_what_is_no_project_folder_here_is_a_failed_search(built_project, folder, key):
    (folder / "settings.yaml").write_text("{}", encoding="utf-8")
    (folder / "elsewhere").mkdir()
    runner = EvaluationRunner(MagicMock(), mocked_judge())
    result = await runner.evaluate_single(key, "Who?", "Ann", "tog")
    assert result.response == f"ERROR: IndexUnavailableError: no index is configured for {key!r}"
    assert set(result.scores.to_dict().values()) == {0}


async def test_a_judge_that_cannot_be_opened_is_told_before_anything_is_asked():
    asked: list[str] = []

    async def answer(question: str) -> str:
        asked.append(question)
        return "Ann"

    runner = EvaluationRunner(EvaluationConfig(), None, {}, {"mine": answer})
    with pytest.raises(ConfigError, match="names the judge's model"):
        await runner.evaluate_single("a", "Who?", "Ann", "mine")
    assert asked == []


@pytest.mark.parametrize("is_full", [False, True])
async def test_a_search_says_itself_whether_its_context_was_full(is_full):
    runner = EvaluationRunner(MagicMock(), mocked_judge())
    error = SearchError("the model's context is too small, they say", context_is_full=is_full)
    with patch.object(runner, "_run_search", AsyncMock(side_effect=error)):
        single = await runner.evaluate_single("a", "Who?", "Ann", "tog")
    assert single.failure.of_setup is is_full


async def test_many_failures_in_a_row_stop_the_run(tmp_path):
    def answer(*_):
        raise SearchError("connection refused")

    rows = [{"imdb_key": "a", "question": f"{n}?", "answer": "Ann"} for n in range(40)]
    config = EvaluationConfig(root=tmp_path, methods=("tog", "basic"), concurrency=1)
    runner = ScriptedRunner(config, answer)
    with pytest.raises(RunStoppedError, match="last 10 searches all failed"):
        await runner.run_evaluation(rows)
    assert len(runner.asked) == 10


async def test_of_a_run_that_is_kept_nowhere_every_failure_is_a_result(tmp_path):
    def answer(method, *_):
        raise SearchError("connection refused")

    rows = [{"imdb_key": "a", "question": f"{n}?", "answer": "Ann"} for n in range(20)]
    config = EvaluationConfig(output={"save_intermediate": False}, concurrency=1)
    results = await ScriptedRunner(config, answer).run_evaluation(rows, ["tog"])
    assert [result.question for result in results] == [row["question"] for row in rows]
    assert {result.response for result in results} == {"ERROR: connection refused"}


async def test_a_method_that_ends_its_own_work_ends_no_run():
    async def ask(question):
        work = asyncio.create_task(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(work.cancel)
        await work

    config = EvaluationConfig(output={"save_intermediate": False})
    rows = [
        {"imdb_key": "a", "question": question, "answer": "Ann"} for question in ("Who?", "Why?")
    ]
    runner = EvaluationRunner(config, mocked_judge(), methods={"mine": ask})
    results = await runner.run_evaluation(rows, ["mine"])
    told = "ERROR: RuntimeError: the method was canceled from within"
    assert [result.response for result in results] == [told] * 2


async def test_a_task_that_is_canceled_from_outside_is_no_failure_of_what_runs_in_it():
    async def work():
        with contained("the method"):
            await asyncio.sleep(60)

    running = asyncio.create_task(work())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_what_a_judge_took_that_nobody_counted_is_unknown():
    async def stream(**_):
        yield '{"reason": "same", "score": 1}'

    config = EvaluationConfig(output={"save_intermediate": False})
    rows = [{"imdb_key": "a", "question": "Who?", "answer": "Ann"}]
    for judge in (LLMJudge(SimpleNamespace(achat_stream=stream)), mocked_judge(), None):
        runner = ScriptedRunner(config, lambda *_: "Ann", judge)
        (result,) = await runner.run_evaluation(rows, ["tog"])
        assert result.scores.correctness.score == 1
        figures = aggregate_results([result]).efficiency["tog"]
        unknown = (None, None) if judge else (0, 0)  # the scripted judge asks no model
        assert (figures["judge_calls"], figures["judge_cost_usd"]) == unknown
        assert result.judge_usage.is_counted is (judge is None)


async def test_progress_names_what_was_done_also_of_further_judges():
    async def stream(**_):
        yield '{"reason": "same", "score": 1}'

    settings = {"output": {"save_intermediate": False}, "concurrency": 1}
    config = EvaluationConfig(**settings, judge={"rubric": True, "max_retries": 0})
    rows = [{"imdb_key": key, "question": "Who?", "answer": "Ann"} for key in ("a", "b")]
    judge = LLMJudge(SimpleNamespace(achat_stream=stream))
    runner = EvaluationRunner(config, judge, methods={"mine": lambda question: "Ann"})
    calls = []
    await runner.run_evaluation(rows, ["mine"], lambda *call: calls.append(call))
    assert calls == [(1, 2, "a", "mine"), (2, 2, "b", "mine")] * 2


async def test_a_run_that_is_stopped_hands_on_what_it_has(tmp_path):
    def answer(_, question, key):
        if question == "3?":
            raise SearchError("wrong key", refused=True)
        return "Ann"

    rows = [{"imdb_key": "a", "question": f"{n}?", "answer": "Ann"} for n in range(9)]
    config = EvaluationConfig(output={"save_intermediate": False}, concurrency=1)
    with pytest.raises(RunStoppedError, match="wrong key") as stopped:
        await ScriptedRunner(config, answer).run_evaluation(rows, ["tog"])
    assert [result.question for result in stopped.value.results] == ["0?", "1?", "2?"]


async def test_a_stored_run_names_the_search_of_each_method_that_was_asked(tmp_path):
    tight = {"method": "basic", "k": 1}
    config = EvaluationConfig(root=tmp_path, methods=("tog",), variants={"tight": tight})
    rows = [{"imdb_key": "a", "question": "Who?", "answer": "Ann"}]
    await ScriptedRunner(config, lambda *_: "Ann").run_evaluation(rows, ["tight"])
    with EvaluationStore(config.store_path) as store:
        (run,) = store.runs()
    assert run.details.search_methods == {"tight": "basic"}
