"""What the terminal says of a run: what is corrected, what is not, and what flipped."""

from dataclasses import replace

from rich.console import Console

from graphrag.eval.records.answers import EfficiencyMetrics, QueryResult
from graphrag.eval.records.verdicts import Failure, JudgeResult, MetricScores, failed_search_scores
from graphrag.eval.report.run import list_run
from graphrag.eval.report.table import show
from graphrag.eval.results.evaluation_results import aggregate_results


def searched(question: int, method: str, trial: int = 0, repeats: tuple[int, ...] = ()):
    name = f"q{question}"
    score = int(2 * sum(repeats) > len(repeats)) if repeats else int(method == "tog")
    scores = MetricScores(correctness=JudgeResult(score, "", None, repeats))
    took = EfficiencyMetrics(1.0 + question, 2, 100, 10)
    return QueryResult("a", name, method, "said", scores, took, sample_id=name, trial=trial)


def failed(question: int, method: str) -> QueryResult:
    return replace(
        searched(question, method),
        scores=failed_search_scores(["correctness"]),
        efficiency=EfficiencyMetrics(30.0, 1, 0, 0),
        failure=Failure("search", "timeout", "timed out"),
    )


def shown(results: list[QueryResult]) -> str:
    console = Console(record=True, width=200)
    show(console, list_run(aggregate_results(results, ["correctness"]), full=True))
    return " ".join(console.export_text().split())


def test_the_tables_say_what_is_corrected_and_what_is_not():
    text = shown([searched(i, method) for i in range(40) for method in ("tog", "basic")])
    assert "p < 0.001: tog better than basic" in text
    assert "Score: correctness method right %" in text
    assert "All intervals hold together at 95 % confidence" in text
    assert "beats it in score, tokens or median seconds" in text
    assert "unfinished" not in text.lower()


def test_searches_that_did_not_end_stand_beside_the_latency():
    found = [failed(0, "tog"), *(searched(i, "tog") for i in range(1, 12))]
    text = shown([*found, *(searched(i, "basic") for i in range(12))])
    assert "tog 7.50 (8 % unfinished) >= 20.10 (8 % unfinished)" in text
    assert "basic 6.50 11.45" in text
    assert "Unfinished: searches that failed" in text


def test_repeats_say_what_flips():
    mixed = [(1, 0, 0), (0, 1, 1)]
    text = shown([searched(i, "tog", trial, mixed[i % 2]) for i in range(8) for trial in (0, 1)])
    assert "search flips judge flips" in text
    assert "tog correctness 0.0 66.7" in text
