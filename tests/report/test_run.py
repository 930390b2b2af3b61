"""What the terminal says of a run: what is corrected, what is not, and what flipped."""

from dataclasses import replace

from rich.console import Console

from graphrag.eval.metrics.measure_means import summarize_measures
from graphrag.eval.metrics.measures import MeasuredAnswer, list_forms
from graphrag.eval.report.run import describe_costs, list_run
from graphrag.eval.report.run_tables import measures_tables, spent_table
from graphrag.eval.report.table import show
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.results.usage import describe_beside
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores, failed_search_scores
from graphrag.query.client.usage import Usage

FORMS = list_forms(())


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


def unscored(result: QueryResult) -> QueryResult:
    missing = JudgeResult(None, "", Failure("judge", "unreadable", "garbled"))
    return replace(result, scores=MetricScores(correctness=missing))


def test_missing_verdicts_are_counted_of_answers_and_of_searches():
    each = [searched(i, m, trial) for m in ("tog", "basic") for i in range(12) for trial in (0, 1)]
    text = shown([failed(20, "tog"), *map(unscored, each[:3]), *each[3:]])
    assert "tog: verdicts on 3 of 24 responses are unscored and left out" in text
    assert "tog - basic: +100.0 (" in text
    assert ") over 11 questions, p " in text
    assert "(4 pairs of searches without both verdicts)" in text  # one was asked of tog alone


def test_what_something_that_does_not_count_took_is_unknown():
    beside = describe_beside([Usage(llm_calls=3, is_counted=False, cost_usd=None)], ())
    results = aggregate_results([searched(0, "tog")], ["correctness"])
    results = replace(results, metadata={**results.metadata, **beside})
    (*_, taken, total) = spent_table(results).rows
    assert taken == ["earlier attempts, failed or lost", None, None, None]
    assert total[1:] == [None, None, None]
    assert "an unknown part is of earlier attempts" in [*describe_costs(results)][-1]


def test_tokens_that_a_failed_search_makes_unknown_are_told_of_the_others():
    lost = replace(failed(9, "mine"), efficiency=EfficiencyMetrics(1.0, None, None, None))
    text = shown([searched(1, "tog"), *(searched(i, "mine") for i in range(3)), lost])
    assert (
        "mine: 1 of 4 searches do not report what they took, as one that failed may not, so tokens "
        "and dollars are unknown; the other 3 took 110 tokens on average."
    ) in text
    assert "do not report" not in shown([searched(1, "tog"), failed(2, "tog")])


def test_measures_of_different_questions_have_their_n_beside_them():
    def measured(number: int, **values: float | None) -> MeasuredAnswer:
        nothing = {form.name: None for form in FORMS}
        every = {**nothing, **values}
        return MeasuredAnswer(f"q{number}", "a", "tog", FORMS, every, 1, 0, True, 9)

    rows = [measured(n, hit_rate=1.0, aspect_coverage=None if n else 0.5) for n in range(12)]
    (table,) = measures_tables(summarize_measures(rows))
    assert table.texts == [["tog", "100 (75-100) n 12", "50.0 n 1"]]
    (table,) = measures_tables(summarize_measures(rows[1:]))
    assert table.texts == [["tog", "100 (74-100)"]]
    assert table.note.startswith("Over 11 questions, as labels allow.")


def test_repeats_say_what_flips():
    mixed = [(1, 0, 0), (0, 1, 1)]
    text = shown([searched(i, "tog", trial, mixed[i % 2]) for i in range(8) for trial in (0, 1)])
    assert "search flips judge flips" in text
    assert "tog correctness 0.0 66.7" in text
