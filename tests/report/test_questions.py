"""One question on the terminal: what failed is said once, and as what it is."""

from openai import OpenAIError
from rich.console import Console

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.report.questions import show_question
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores
from graphrag.query.client.call_errors import describe_error
from graphrag.query.client.usage import Usage


class InternalServerError(OpenAIError):
    """One with the name of litellm's."""


def shown(result: QueryResult) -> str:
    sample = Sample("q1", "clock", result.question, result.ground_truth)
    console = Console(record=True, width=300)
    show_question(console, sample, [("basic", result, {}, None)])
    return console.export_text()


def answered(failure: Failure | None, usage: Usage, **scores: JudgeResult) -> QueryResult:
    return QueryResult(
        imdb_key="clock",
        question="Who built it?",
        ground_truth="Idris Vane",
        method="basic",
        response=f"ERROR: {failure.message}" if failure else "no json here",
        scores=MetricScores.of(scores),
        efficiency=EfficiencyMetrics.of(0.5, usage),
        sample_id="q1",
        usage=usage,
        failure=failure,
    )


def test_a_search_that_failed_says_why_once_and_what_calls_it_made():
    failure = Failure("search", "error", "InternalServerError: code 500")
    text = shown(answered(failure, Usage(failed_calls=3)))
    assert text.count("code 500") == 1
    assert "basic: no answer\n  search failed (error): InternalServerError: code 500\n" in text
    assert "0 calls and 3 that failed, 0 tokens" in text


def test_a_verdict_that_is_missing_says_so_once():
    unread = JudgeResult(
        None, "Unscored: it is not JSON", Failure("judge", "unreadable", "it is not JSON")
    )
    text = shown(answered(None, Usage(llm_calls=1), correctness=unread))
    assert "correctness: unscored (unreadable): it is not JSON\n" in text
    assert "1 call, 0 tokens" in text


def test_an_error_is_named_once_however_often_a_library_names_it():
    said = "litellm.InternalServerError: InternalServerError: OpenAIException - code 500"
    assert describe_error(InternalServerError(said)) == (
        "InternalServerError: OpenAIException - code 500"
    )
