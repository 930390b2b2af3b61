"""The core as a client meets it: configuration, judge, runner, results."""

import inspect
import json
import pickle
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock, MagicMock, patch

import numpy as np
import pytest

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError, DatasetError
from graphrag.eval.metrics import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
    JudgeResult,
    LLMJudge,
    MetricScores,
)
from graphrag.eval.results import EvaluationResults, MethodSummary, aggregate_results
from graphrag.eval.runner import (
    EfficiencyMetrics,
    EvaluationConfig,
    EvaluationRunner,
    QueryResult,
    run_evaluation,
)

METRICS = ("correctness", "faithfulness", "relevance", "completeness")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scores(*given):
    return MetricScores(*(JudgeResult(score, f"reason {n}") for n, score in enumerate(given)))


def result(method="tog", question="Who?", key="a", given=(1, 1, 0, 1), **changes):
    figures = {"latency": 1.23456, "llm_calls": 3, "prompt_tokens": 101, "output_tokens": 21}
    return QueryResult(
        imdb_key=key,
        question=question,
        method=method,
        response="It was Ann.",
        scores=scores(*given),
        efficiency=EfficiencyMetrics(**{**figures, **changes}),
        ground_truth="Ann",
        context_text="Ann did it.",
    )


# The names


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [
        (CORRECTNESS_PROMPT, ("question", "ground_truth", "predicted")),
        (FAITHFULNESS_PROMPT, ("context", "answer")),
        (RELEVANCE_PROMPT, ("question", "context")),
        (COMPLETENESS_PROMPT, ("question", "answer")),
    ],
)
def test_prompts_are_templates(prompt, fields):
    text = prompt.format(**{field: f"<{field}>" for field in fields})
    assert all(f"<{field}>" in text for field in fields)


# The records


def test_a_verdict_and_the_scores_of_a_response():
    assert JudgeResult(1, "fits").to_dict() == {"score": 1, "reason": "fits"}
    assert JudgeResult(score=0, reason="no").to_dict() == {"score": 0, "reason": "no"}
    given = scores(1, np.False_, np.True_, 0.0)  # as comparisons of numbers give them
    assert repr([*given.to_dict().values()]) == "[1, 0, 1, 0]"
    assert given.to_dict() == dict(zip(METRICS, (1, 0, 1, 0), strict=True))
    assert given.to_detailed_dict()["faithfulness"] == {"score": 0, "reason": "reason 1"}
    named = {name: JudgeResult(1, "") for name in METRICS}
    assert list(MetricScores(**named).to_dict()) == list(METRICS)


def test_what_a_search_cost_and_its_result():
    efficiency = EfficiencyMetrics(1.5, 2, 300, 40)
    assert efficiency.to_dict() == {
        "latency": 1.5,
        "llm_calls": 2,
        "prompt_tokens": 300,
        "output_tokens": 40,
    }
    plain = QueryResult("a", "Who?", "tog", "Ann.", scores(1, 1, 1, 1), efficiency)
    assert (plain.ground_truth, plain.context_text) == ("", "")
    shown = plain.to_dict()
    assert shown["scores"] == dict.fromkeys(METRICS, 1)
    assert shown["efficiency"] == efficiency.to_dict()
    assert {k: shown[k] for k in ("imdb_key", "question", "method", "response")} == {
        "imdb_key": "a",
        "question": "Who?",
        "method": "tog",
        "response": "Ann.",
    }
    assert shown["ground_truth"] == ""


# The configuration


def test_a_configuration_by_keyword_or_by_sections(folder):
    config = EvaluationConfig(dataset_path="qa.json", index_roots={"a": "projects/a"})
    assert (config.dataset_path, config.index_roots) == ("qa.json", {"a": "projects/a"})
    assert (config.dataset.path, config.indexes) == ("qa.json", {"a": "projects/a"})
    assert config.methods == ["tog", "local", "basic"]
    assert (config.output_dir, config.save_intermediate) == ("eval/results", True)
    by_keyword: dict[str, object] = {
        "dataset_path": Path("qa.json"),
        "index_roots": {"a": Path("/data/a")},
        "output_dir": "out",
        "save_intermediate": False,
        "output": {},
    }
    by_section: dict[str, object] = {
        "dataset": {"path": "qa.json"},
        "indexes": {"a": "/data/a"},
        "output": {"dir": "out", "save_intermediate": False},
    }
    for given in (by_keyword, by_section):
        config = EvaluationConfig(methods=["local"], judge={"temperature": 0.5}, **given)
        assert (config.dataset_path, config.index_roots) == ("qa.json", {"a": "/data/a"})
        assert config.methods == ["local"]
        assert (config.output_dir, config.output.dir) == ("out", "out")
        assert config.save_intermediate is config.output.save_intermediate is False
        assert config.judge.temperature == 0.5
    assert EvaluationConfig(output_dir="out", output={"save_intermediate": False}).output_dir


def test_paths_of_a_file_elsewhere_are_joined_to_its_folder(folder):
    (folder / "there").mkdir()
    text = "dataset: {path: qa.json}\nindexes: {a: p, b: /data/b}\n"
    for place in (folder, folder / "there"):
        (place / "eval_config.yaml").write_text(text, encoding="utf-8")
    here = EvaluationConfig.from_yaml("eval_config.yaml")
    assert (here.dataset_path, here.index_roots["a"]) == ("qa.json", "p")
    assert here.output_dir == "eval/results"
    there = EvaluationConfig.from_yaml("there/eval_config.yaml")
    assert there.dataset_path == str(Path("there/qa.json"))
    assert there.index_roots == {"a": str(Path("there/p")), "b": "/data/b"}
    assert there.output_dir == str(Path("there/eval/results"))


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"dataset_path": "a", "dataset": {"path": "a"}}, ("dataset_path", "dataset.path")),
        ({"index_roots": {"a": "a"}, "indexes": {"a": "a"}}, ("index_roots", "indexes")),
        ({"output_dir": "a", "output": {"dir": "b"}}, ("output_dir", "output.dir")),
        (
            {"save_intermediate": True, "output": {"save_intermediate": True}},
            ("save_intermediate", "output.save_intermediate"),
        ),
    ],
)
def test_a_setting_given_both_ways_is_refused(given, names):
    with pytest.raises(ValueError, match="one setting") as error:
        EvaluationConfig(**given)
    assert all(name in str(error.value) for name in names)


# The judge


def streaming(*pieces):
    async def stream(**kwargs):
        for piece in pieces:
            yield piece

    return stream


async def test_a_mock_that_streams_judges():
    model = MagicMock()
    model.achat_stream = MagicMock(side_effect=streaming('{"score": 1, ', '"reason": "same"}'))
    judge = LLMJudge(model)
    assert (judge.model, judge.temperature) == (model, 0.0)
    found = await judge.judge_correctness(question="Who?", ground_truth="Ann", predicted="Ann.")
    assert found.to_dict() == {"score": 1, "reason": "same"}
    (call,) = model.achat_stream.call_args_list
    assert (call.args, set(call.kwargs)) == ((), {"prompt", "history", "model_parameters"})
    assert call.kwargs["history"] == []
    assert call.kwargs["model_parameters"] == {"temperature": 0.0}
    assert '"Who?"' in call.kwargs["prompt"]


async def test_correctness_is_asked_first():
    model = MagicMock()
    model.achat_stream = MagicMock(side_effect=streaming('{"score": 1, "reason": "r"}'))
    found = await LLMJudge(model, temperature=0.3).evaluate_all(
        question="Who?", ground_truth="TRUTH", predicted="Ann.", context="Ann did it."
    )
    assert found.to_dict() == dict.fromkeys(METRICS, 1)
    prompts = [call.kwargs["prompt"] for call in model.achat_stream.call_args_list]
    assert len(prompts) == 4
    parameters = [call.kwargs["model_parameters"] for call in model.achat_stream.call_args_list]
    assert parameters == [{"temperature": 0.3}] * 4
    assert ["TRUTH" in prompt for prompt in prompts] == [True, False, False, False]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("judge_correctness", ["question", "ground_truth", "predicted"]),
        ("judge_faithfulness", ["context", "answer"]),
        ("judge_relevance", ["question", "context"]),
        ("judge_completeness", ["question", "answer"]),
        ("evaluate_all", ["question", "ground_truth", "predicted", "context"]),
    ],
)
def test_what_a_judge_is_asked(name, parameters):
    method = getattr(LLMJudge, name)
    assert inspect.iscoroutinefunction(method)
    assert list(inspect.signature(method).parameters)[1:] == parameters


# The runner


def mocked():
    judge = MagicMock()
    judge.evaluate_all = AsyncMock(return_value=scores(1, 1, 1, 1))
    found = MagicMock(
        response="It was Ann.",
        context_text="Ann did it.",
        completion_time=1.5,
        llm_calls=3,
        prompt_tokens=100,
        output_tokens=20,
    )
    return judge, found


async def test_a_runner_of_mocks(folder):
    judge, found = mocked()
    config = MagicMock()
    asked = EvaluationRunner(config=config, judge=judge, index_roots={"a": "p"})
    assert (asked.config, asked.judge, asked.index_roots) == (config, judge, {"a": "p"})
    with patch.object(asked, "_run_search", AsyncMock(return_value=found)) as search:
        single = await asked.evaluate_single(
            imdb_key="a", question="Who?", ground_truth="Ann", method="tog"
        )
    search.assert_awaited_once_with("tog", "Who?", "a")
    judge.evaluate_all.assert_awaited_once_with(
        question="Who?", ground_truth="Ann", predicted="It was Ann.", context="Ann did it."
    )
    assert isinstance(single, QueryResult)
    assert single.efficiency.to_dict() == {
        "latency": 1.5,
        "llm_calls": 3,
        "prompt_tokens": 100,
        "output_tokens": 20,
    }
    with patch.object(asked, "_run_search", AsyncMock(side_effect=RuntimeError("no index"))):
        single = await asked.evaluate_single("a", "Who?", "Ann", "tog")
    assert single.response.startswith("ERROR: ")
    assert single.scores.to_detailed_dict() == {
        key: {"score": 0, "reason": "Search failed"} for key in METRICS
    }
    assert list(folder.iterdir()) == []
    config = EvaluationConfig(dataset_path="qa.json", index_roots={"a": "p"})
    assert EvaluationRunner(config).index_roots == {"a": "p"}
    assert EvaluationRunner(MagicMock()).index_roots == {}


async def test_a_whole_evaluation_of_mocks(folder):
    judge, found = mocked()
    asked, told = EvaluationRunner(MagicMock(), judge), []
    rows = [
        {"imdb_key": "a", "question": "Who?", "answer": "Ann"},
        {"imdb_key": "b", "question": "Where?", "answer": "Rome"},
    ]
    with patch.object(asked, "_run_search", AsyncMock(return_value=found)):
        given = await asked.run_evaluation(
            dataset=rows,
            methods=["tog", "local"],
            progress_callback=lambda current, total, imdb_key, method: told.append(
                (current, total, imdb_key, method)
            ),
        )
    assert [(r.imdb_key, r.method) for r in given] == [
        ("a", "tog"),
        ("a", "local"),
        ("b", "tog"),
        ("b", "local"),
    ]
    assert [each[:2] for each in told] == [(n, 4) for n in (1, 2, 3, 4)]


async def test_what_is_no_list_of_methods_or_of_rows_is_refused(folder):
    asked = EvaluationRunner(MagicMock(), mocked()[0])
    rows = [{"imdb_key": "a", "question": "Who?", "answer": "Ann"}]
    mixed = [Sample("1", "a", "Where?", "Rome"), {"imdb_key": "a", "question": "Q", "answer": "A"}]
    with patch.object(asked, "_run_search", AsyncMock()) as search:
        with pytest.raises(ConfigError, match=r"list of names, such as \['tog'\]"):
            await asked.run_evaluation(rows, "tog")
        with pytest.raises(DatasetError, match=r"mixes samples \(1 of 2\) and rows"):
            await asked.run_evaluation(mixed, ["tog"])
    search.assert_not_awaited()


# The results


def test_results_are_added_up():
    found = aggregate_results(
        [result(), result("local", given=(0, 1, 1, 1)), result(question="Where?", key="b")]
    )
    assert {"timestamp", "total_questions", "methods", "movies"} <= set(found.metadata)
    assert found.metadata["total_questions"] == 2
    assert (found.metadata["methods"], found.metadata["movies"]) == (["tog", "local"], ["a", "b"])
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.by_method["local"]["correctness"] == 0
    assert found.by_movie["b"]["tog"]["relevance"] == 0
    for name in ("avg_latency", "avg_llm_calls", "avg_prompt_tokens", "avg_output_tokens"):
        assert name in found.efficiency["tog"]
    given = [result(), result(question="Where?", given=(0, 1, 1, 1))]
    once = aggregate_results(each for each in given)
    assert once.metadata["total_questions"] == 2
    assert once.by_method == aggregate_results(given).by_method
    nothing = aggregate_results([])
    assert nothing.metadata["total_questions"] == 0
    assert nothing.by_method == nothing.by_movie == nothing.efficiency == {}


def test_results_made_by_hand(tmp_path):
    found = EvaluationResults(
        metadata={"timestamp": "2026-01-01T00:00:00", "total_questions": 1, "methods": ["tog"]},
        results=[result()],
        by_method={"tog": {"correctness": 1.0}},
        by_movie={"a": {"tog": {"correctness": 1.0}}},
        efficiency={"tog": {"avg_latency": 1.0}},
    )
    assert {"metadata", "by_method", "by_movie", "efficiency"} <= set(found.to_dict())
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_json(indent=4).startswith('{\n    "')
    detailed = found.to_detailed_dict()
    (entry,) = detailed["results"]
    assert (entry["imdb_key"], entry["question"], entry["ground_truth"]) == ("a", "Who?", "Ann")
    told = entry["methods"]["tog"]
    assert told["response"] == "It was Ann."
    assert told["scores"] == dict(zip(METRICS, (1, 1, 0, 1), strict=True))
    assert told["efficiency"]["prompt_tokens"] == 101
    assert json.loads(found.to_detailed_json(indent=2)) == detailed
    target = tmp_path / "new" / "folder"
    found.save(target)
    summary = json.loads((target / "eval_results_summary.json").read_text("utf-8"))
    assert {"by_method", "by_movie", "efficiency"} <= set(summary)
    told = json.loads((target / "eval_results_detailed.json").read_text("utf-8"))
    assert {"timestamp", "total_questions", "methods"} <= set(told["metadata"])
    (summary,) = found.summaries()
    assert (summary.correctness, summary.relevance, summary.avg_latency) == (1.0, None, 1.0)
    assert "tog" in found._repr_html_()


def test_a_summary_is_rounded():
    summary = MethodSummary(
        correctness=0.66666,
        faithfulness=1.0,
        relevance=None,
        completeness=0.12345,
        avg_latency=1.23456,
        avg_llm_calls=2.345,
        avg_prompt_tokens=1234.5678,
        avg_output_tokens=17,
        count=3,
    )
    shown = summary.to_dict()
    assert shown == {
        "correctness": 0.667,
        "faithfulness": 1.0,
        "relevance": None,
        "completeness": 0.123,
        "avg_latency": 1.235,
        "avg_llm_calls": 2.3,
        "avg_prompt_tokens": 1235.0,
        "avg_output_tokens": 17.0,
        "count": 3,
    }
    assert isinstance(shown["avg_output_tokens"], float)
    assert MethodSummary(1, 1, 1, 1, 0.5, 1, 2, 3, 4).count == 4


def test_summaries_come_in_the_order_of_the_methods():
    found = aggregate_results(
        [result("local", given=(0, 1, 1, 1)), result("tog"), result("local", question="Where?")]
    )
    local, tog = found.summaries()
    assert (local.method, local.count, local.correctness) == ("local", 2, 0.5)
    assert (tog.method, tog.count, tog.relevance) == ("tog", 1, 0.0)
    assert tog.to_dict() == {
        "correctness": 1.0,
        "faithfulness": 1.0,
        "relevance": 0.0,
        "completeness": 1.0,
        "avg_latency": 1.235,
        "avg_llm_calls": 3.0,
        "avg_prompt_tokens": 101.0,
        "avg_output_tokens": 21.0,
        "count": 1,
    }
    (failed,) = aggregate_results([result(latency=None, llm_calls=None)]).summaries()
    assert failed.to_dict()["avg_latency"] is failed.to_dict()["avg_llm_calls"] is None


def test_results_of_one_question_are_its_repeats():
    given = [result(given=(1, 1, 1, 1)), result(question="Why?"), result(given=(0, 1, 1, 1))]
    with pytest.warns(UserWarning, match=r"1 result repeats the question .* tog's for 'Who\?'"):
        found = aggregate_results(given)
    assert found.metadata["total_questions"] == 2
    assert [each.trial for each in found.results] == [0, 0, 1]
    assert found.by_method["tog"]["correctness"] == 0.75
    assert found.by_method["tog"]["relevance"] == 0.5
    assert found.analysis.outcomes["tog"]["correctness"].mean.n == 2
    with pytest.warns(UserWarning, match="2 results repeat"):
        found = aggregate_results([replace(given[0], trial=2), *given[:1] * 3])
    assert [each.trial for each in found.results] == [2, 0, 1, 3]


# A whole evaluation in one call


async def test_an_evaluation_of_a_file_and_folders(folder, built_project):
    rows = [{"imdb_key": "clock", "question": "Who built the clock?", "answer": "Ida"}]
    (folder / "qa.json").write_text(json.dumps(rows), encoding="utf-8")
    found = await run_evaluation("qa.json", {"clock": str(built_project)}, methods=["basic"])
    assert isinstance(found, EvaluationResults)
    assert found.metadata["methods"] == ["basic"]
    assert found.by_method["basic"]["completeness"] is not None
    assert found.metadata["embedded_models"]
    assert [path.name for path in folder.iterdir()] == ["qa.json"]
    parameters = inspect.signature(run_evaluation).parameters
    assert list(parameters) == ["qa_dataset_path", "index_configs", "methods"]
    assert parameters["methods"].default == ["tog", "local", "basic"]
    with pytest.raises(ConfigError, match="The project folder nowhere does not exist"):
        await run_evaluation("qa.json", {"clock": "nowhere"}, methods=["basic"])


async def test_a_misspelt_method_is_named_with_the_nearest(folder, built_project):
    asked = EvaluationRunner(MagicMock(), mocked()[0], {"clock": str(built_project)})
    single = await asked.evaluate_single("clock", "Who built the clock?", "Ida", "basc")
    assert "unknown name 'basc'; did you mean 'basic'?" in single.response


# What further judges said


async def test_grades_and_their_reasons_stand_beside_the_scores(folder):
    reply = {
        "relevance": {"reasoning": "to the point", "score": 5},
        "faithfulness": {"reasoning": "all of it", "score": 4},
        "completeness": {"reasoning": "not the date", "score": 3},
        "coherence": {"reasoning": "reads well", "score": 5},
        "groundedness": {"reasoning": "no source", "score": 0},
        "reasoning": "mostly right",
        "accuracy": 0.9,
        "overall": 0.8,
        "overall_score": 0.8,
    }

    async def stream(prompt, **kwargs):
        given = {"score": 1, "reason": "same"}
        if '"coherence"' in prompt or '"accuracy"' in prompt:
            given = (
                reply
                if '"coherence"' in prompt
                else {**reply, "relevance": 1.0, "completeness": 0.7}
            )
        yield json.dumps(given)

    model = MagicMock()
    model.achat_stream = stream
    config = EvaluationConfig(
        methods=["tog"], save_intermediate=False, judge={"rubric": True, "quality": True}
    )
    asked = EvaluationRunner(config, LLMJudge(model), {"a": "p"})
    _, found = mocked()
    rows = [{"imdb_key": "a", "question": "Who?", "answer": "Ann"}]
    with patch.object(asked, "_run_search", AsyncMock(return_value=found)):
        added_up = aggregate_results(await asked.run_evaluation(rows))
    (entry,) = added_up.to_detailed_dict()["results"]
    told = entry["methods"]["tog"]
    assert told["rubric"]["completeness"]["score"] == 3
    assert told["rubric"]["completeness"]["reasoning"] == "not the date"
    assert told["rubric"]["groundedness"]["score"] is None
    assert (told["quality"]["accuracy"], told["quality"]["reasoning"]) == (0.9, "mostly right")
    (row,) = added_up.to_pandas().to_dict("records")
    assert (row["rubric_completeness"], row["rubric_relevance"]) == (3, 5)
    assert row["rubric_completeness_reasoning"] == "not the date"
    assert (row["quality_completeness"], row["quality_reasoning"]) == (0.7, "mostly right")
    assert row["correctness_reason"] == "same"


# The searches


@pytest.fixture
def tables(built_project):
    import pandas as pd

    from graphrag.config.project_settings import read_settings

    def read(name):
        return pd.read_parquet(built_project / "output" / f"{name}.parquet")

    return read_settings(built_project), read


async def test_tog_search_with_and_without_texts(tables):
    from graphrag import api

    config, read = tables
    entities, relationships, units = map(read, ("entities", "relationships", "text_units"))
    names = list(inspect.signature(api.tog_search).parameters)
    assert names[:5] == ["config", "entities", "relationships", "query", "text_units"]
    assert inspect.signature(api.tog_search).parameters["text_units"].default is None
    bare = await api.tog_search(config, entities, relationships, "Who built the tower clock?")
    with_text = await api.tog_search(
        config=config,
        entities=entities,
        relationships=relationships,
        text_units=units,
        query="Who built the tower clock?",
    )
    response, context_data = with_text
    assert (with_text.response, with_text.context_data) == (response, context_data)
    assert bare.llm_calls >= 1
    assert bare.completion_time > 0
    assert "Idris Vane" in response


async def test_basic_and_local_search_by_keyword(tables):
    from graphrag import api

    config, read = tables
    question = "Who built the tower clock of Ashcombe?"
    found = await api.basic_search(config=config, text_units=read("text_units"), query=question)
    assert found.response
    assert (found.llm_calls, found.prompt_tokens > 0) == (1, True)
    response, _ = await api.local_search(
        config=config,
        entities=read("entities"),
        communities=read("communities"),
        community_reports=read("community_reports"),
        text_units=read("text_units"),
        relationships=read("relationships"),
        covariates=None,
        community_level=2,
        response_type="Multiple Paragraphs",
        query=question,
    )
    assert response
