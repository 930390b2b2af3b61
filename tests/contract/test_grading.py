"""Grading by a model on five dimensions, as a client uses it."""

import asyncio
import json
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

import graphrag.eval
import graphrag.eval.metrics
from graphrag.eval import (
    DimensionScore,
    EvaluableEntity,
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    EvaluableRelationship,
    LLMEvaluation,
    LLMEvaluationPrompt,
    ResultMetadata,
    RubricJudge,
)

NAMES = ("relevance", "faithfulness", "completeness", "coherence", "groundedness")


def reply(*scores, **more):
    given = scores or (5, 5, 5, 5, 4)
    grades = {
        name: {"score": score, "reasoning": f"why {name}"}
        for name, score in zip(NAMES, given, strict=True)
    }
    return json.dumps({**grades, **more})


def result_of(query="Who built the clock?", **values):
    given = {"answer": "Idris Vane did.", "context_chunks": ["Idris Vane built it."], **values}
    return EvaluableQueryResult(query, **given)


def test_all_names_import_from_both_modules():
    for name in (
        *("DimensionScore", "LLMEvaluation", "LLMEvaluationPrompt", "RubricJudge"),
        *("EvaluableQueryResult", "EvaluableQueryResultBuilder", "ResultMetadata"),
        *("EvaluableEntity", "EvaluableRelationship"),
    ):
        assert getattr(graphrag.eval, name) is getattr(graphrag.eval.metrics, name)


def test_a_result_and_its_items_have_their_fields_in_order_and_empty_lists():
    result = EvaluableQueryResult("Q", "A")
    assert (result.query, result.answer) == ("Q", "A")
    assert result.retrieved_entities == result.retrieved_relationships == []
    assert result.context_chunks == []
    assert result.metadata == ResultMetadata() == ResultMetadata(0, 0, 0, "", None, {})
    assert ResultMetadata().custom is not ResultMetadata().custom
    assert EvaluableEntity("A") == EvaluableEntity("A", "", "", None)
    assert EvaluableEntity("A", "person", "is a", 0.9) == EvaluableEntity(
        name="A", type="person", description="is a", confidence=0.9
    )
    assert EvaluableRelationship("A", "B", "knows him", "knows", 0.5) == EvaluableRelationship(
        source="A", target="B", description="knows him", type="knows", confidence=0.5
    )


def build():
    return (
        EvaluableQueryResultBuilder()
        .query("Who?")
        .answer("Ann.")
        .entities([EvaluableEntity("Ann"), {"title": "Bob", "entity_type": "person"}, "Cy"])
        .relationships([SimpleNamespace(source="Ann", target="Dan", relation_type="knows")])
        .chunks(["one", "one", {"content": "two"}])
        .retrieval_strategy("hybrid")
        .processing_time_ms(150)
        .custom_metadata("model", "m")
        .custom_metadata("k", 3)
        .build()
    )


def test_the_builder_adds_nothing_to_the_lists():
    result = build()
    assert result.retrieved_entities == [
        EvaluableEntity("Ann"),
        EvaluableEntity("Bob", "person"),
        EvaluableEntity("Cy"),
    ]
    assert result.retrieved_relationships == [EvaluableRelationship("Ann", "Dan", type="knows")]
    assert result.context_chunks == ["one", "one", "two"]
    assert result.metadata == ResultMetadata(
        entities_count=3,
        relationships_count=1,
        chunks_count=3,
        retrieval_strategy="hybrid",
        processing_time_ms=150,
        custom={"model": "m", "k": 3},
    )


def test_a_result_is_written_and_read_back():
    result = build()
    assert EvaluableQueryResult.from_dict(result.to_dict()) == result
    assert EvaluableQueryResult.from_json(result.to_json()) == result
    written = json.loads(result.to_json())
    assert written["metadata"]["retrieval_strategy"] == "hybrid"
    assert written["retrieved_entities"][1]["name"] == "Bob"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda builder: builder.answer("A").build(), "query"),
        (lambda builder: builder.query("Q").build(), "answer"),
        (lambda builder: builder.entities([{"type": "person"}]), "name"),
        (lambda builder: builder.entities([3]), "name"),
        (lambda builder: builder.entities([SimpleNamespace(name=None)]), "name"),
        (lambda builder: builder.chunks("Idris Vane built it."), "list"),
    ],
)
def test_the_builder_refuses_what_makes_no_result(step, said):
    with pytest.raises(ValueError, match=said):
        step(EvaluableQueryResultBuilder())


def test_the_prompt_shows_the_first_of_each_list():
    result = result_of(
        retrieved_entities=[EvaluableEntity(f"E{i}x", "person", "", 0.75) for i in range(12)],
        retrieved_relationships=[
            EvaluableRelationship(f"S{i}x", f"T{i}x", "", "knows", 0.625) for i in range(12)
        ],
        context_chunks=[f"chunk {i}x" for i in range(7)],
        metadata=ResultMetadata(retrieval_strategy="secret-method"),
    )
    shown = LLMEvaluationPrompt().generate(result)
    assert "Who built the clock?" in shown
    assert "Idris Vane did." in shown
    assert all(f"E{i}x" in shown and f"S{i}x" in shown for i in range(10))
    few = LLMEvaluationPrompt(n_entities=1, n_relationships=2, n_texts=3).generate(result)
    assert all(part in shown for part in ("chunk 4x", "person", "0.75", "knows", "0.625"))
    assert all(name in shown for name in (*NAMES, "overall_score", "summary", "reasoning"))
    for absent in ("E10x", "T10x", "chunk 5x", "secret-method"):
        assert absent not in shown
    assert all(part in few for part in ("E0x", "S1x", "chunk 2x"))
    assert not any(part in few for part in ("E1x", "S2x", "chunk 3x"))


def test_a_reply_is_read_with_its_overall_score_and_summary():
    evaluation = LLMEvaluation.from_json(reply(overall_score="4.7", summary="Good."))
    assert evaluation == LLMEvaluation.from_json(reply(overall_score=4.7, summary="Good."))
    assert evaluation.relevance == DimensionScore(5, "why relevance")
    assert evaluation.overall_score == 4.7
    assert evaluation.summary == "Good."
    assert evaluation.passes_threshold(4.7)
    assert not evaluation.passes_threshold(4.8)
    assert evaluation.weakest_dimension() == ("groundedness", evaluation.groundedness)


@pytest.mark.parametrize("overall", [None, 0, 6, "good", True, [4], float("nan")])
def test_an_overall_score_that_is_none_gives_way_to_the_mean(overall):
    evaluation = LLMEvaluation.from_json(reply(overall_score=overall))
    assert evaluation.overall_score == pytest.approx(4.8)
    assert LLMEvaluation.from_json(reply()).overall_score == pytest.approx(4.8)


@pytest.mark.parametrize(
    "text",
    [
        reply(overall_score=4),
        f"```json\n{reply(overall_score=4)}\n```",
        f"```\n{reply(overall_score=4)}",
        f"I thought about it. {reply(overall_score=4)} That is all.",
        f'{{"note": 1}} {reply(overall_score=4)}',
    ],
)
def test_a_reply_may_have_prose_around_it(text):
    assert LLMEvaluation.from_json(text).overall_score == 4


@pytest.mark.parametrize("text", ["", "no JSON", "5", "[5]", "relevance: 5", reply() + reply()])
def test_what_holds_no_json_object_raises(text):
    with pytest.raises(ValueError, match="read"):
        LLMEvaluation.from_json(text)


@pytest.mark.parametrize("bad", [0, 6, -1, 2.5, "5/5", "five", "55", "", True, None, [5], {}])
def test_a_dimension_that_is_no_grade_is_unscored(bad):
    evaluation = LLMEvaluation.from_json(reply(5, bad, 5, 5, 5, overall_score=5))
    assert evaluation.faithfulness.score is None
    assert evaluation.faithfulness.failure.kind == "unreadable"
    assert evaluation.overall_score is None
    assert not evaluation.passes_threshold(1)
    assert evaluation.weakest_dimension()[0] == "relevance"
    assert "unscored" in evaluation.report()


@pytest.mark.parametrize("good", ["4", " 4 ", 4.0])
def test_a_plain_number_written_otherwise_is_a_grade(good):
    assert LLMEvaluation.from_json(reply(5, good, 5, 5, 5)).faithfulness.score == 4


def test_a_missing_dimension_is_unscored():
    evaluation = LLMEvaluation.from_json("{}")
    assert evaluation.weakest_dimension() is None
    assert evaluation.relevance.score is None
    assert "missing" in evaluation.relevance.reasoning


def test_an_evaluation_made_by_hand_has_its_mean():
    scores = [DimensionScore(score, "x") for score in (5, 4, 3, 3, 5)]
    evaluation = LLMEvaluation(*scores)
    assert evaluation.overall_score == 4
    assert evaluation.weakest_dimension() == ("completeness", scores[2])
    assert LLMEvaluation(*scores, overall_score=2.5, summary="s").overall_score == 2.5
    most = LLMEvaluation(*(DimensionScore(score, "x") for score in (5, 5, 5, 5, 4)))
    assert most.passes_threshold(3 * 1.6)  # 4.800000000000001
    assert not most.passes_threshold(4.801)


def test_an_evaluation_is_written_and_read_back():
    for text in (reply(overall_score=4.5, summary="s"), reply(5, 9, 5, 5, 5)):
        evaluation = LLMEvaluation.from_json(text)
        assert LLMEvaluation.from_dict(json.loads(json.dumps(evaluation.to_dict()))) == evaluation
    written = json.loads(LLMEvaluation.from_json(reply(summary="s")).to_json())
    assert written["groundedness"]["score"] == 4
    assert written["groundedness"]["reasoning"] == "why groundedness"
    assert (written["overall_score"], written["summary"]) == (pytest.approx(4.8), "s")
    assert LLMEvaluation.from_json(json.dumps(written)).overall_score == pytest.approx(4.8)


def test_the_report_shows_all_of_it():
    shown = LLMEvaluation.from_json(reply(overall_score=4.8, summary="Well done.")).report()
    for name in NAMES:
        assert name.capitalize() in shown
        assert f"why {name}" in shown
    for part in ("4.80/5.0", "5/5", "4/5", "Well done.", "Weakest", "groundedness"):
        assert part in shown


async def test_a_batch_is_graded_in_order_and_side_by_side():
    running = most = 0

    async def stream(prompt, history, model_parameters):
        nonlocal running, most
        running += 1
        most = max(most, running)
        number = next(i for i in range(9) if f"number {i}?" in prompt)
        await asyncio.sleep(0.01 * (9 - number))
        running -= 1
        yield "no grades" if number == 4 else reply(*[1 + number % 5] * 5)

    model = MagicMock()
    model.achat_stream = stream
    results = [result_of(f"Is it number {i}?") for i in range(9)]
    judge = RubricJudge(model, max_retries=0)
    evaluations = await judge.evaluate_batch(results, concurrency=3)
    assert most == 3
    expected = [None if i == 4 else 1 + i % 5 for i in range(9)]
    assert [each.relevance.score for each in evaluations] == expected
    assert evaluations[4].overall_score is None
    assert evaluations[4].relevance.failure.kind == "unreadable"
    assert await judge.evaluate_batch([]) == []
    with pytest.raises(ValueError, match="concurrency"):
        await judge.evaluate_batch(results, concurrency=0)


async def test_a_model_that_raises_leaves_its_answer_unscored():
    model = MagicMock(achat_stream=MagicMock(side_effect=ConnectionError("gone")))
    (evaluation,) = await RubricJudge(model).evaluate_batch([result_of()])
    assert evaluation.overall_score is None
    assert {evaluation.relevance.failure.kind, evaluation.coherence.failure.kind} == {"error"}
