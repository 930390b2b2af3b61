"""How long 100,000 results take to add up, against reading and writing them as JSON.

And what four times as many repeats of the same questions take: about four times as long.

python benchmarks/aggregate.py
"""

import json
import random
import time

from graphrag.eval.records.answers import EfficiencyMetrics, QueryResult
from graphrag.eval.records.judged import DEFAULT_METRICS
from graphrag.eval.records.verdicts import JudgeResult, MetricScores
from graphrag.eval.results.evaluation_results import aggregate_results

N_QUESTIONS, METHODS, DOCUMENTS = 25_000, ("tog", "local", "basic", "drift"), 20


def make_results(n_questions: int = N_QUESTIONS, n_trials: int = 1) -> list[QueryResult]:
    rng = random.Random(0)

    def result(trial: int, number: int, method: str) -> QueryResult:
        verdicts = {m: JudgeResult(int(rng.random() < 0.6), "r") for m in DEFAULT_METRICS}
        return QueryResult(
            imdb_key=str(number % DOCUMENTS),
            question=f"question {number}",
            method=method,
            response="an answer",
            scores=MetricScores.of(verdicts),
            efficiency=EfficiencyMetrics(rng.random(), 2, 100, 10),
            sample_id=str(number),
            trial=trial,
        )

    return [
        result(trial, number, method)
        for trial in range(n_trials)
        for number in range(n_questions)
        for method in METHODS
    ]


def time_repeats(n_trials: int) -> float:
    results = make_results(n_questions=5, n_trials=n_trials)
    started = time.perf_counter()
    assert aggregate_results(results).repeats is not None
    return time.perf_counter() - started


def main() -> None:
    results = make_results()
    aggregate_results(results[:8])  # loads scipy and statsmodels
    started = time.perf_counter()
    aggregated = aggregate_results(results)
    adding_up_s = time.perf_counter() - started
    started = time.perf_counter()
    json.loads(json.dumps([result.to_dict() for result in results]))
    json_s = time.perf_counter() - started
    assert aggregated.metadata["total_questions"] == N_QUESTIONS
    print(f"{len(results):,} results: added up in {adding_up_s:.2f} s")
    print(f"to JSON and back in {json_s:.2f} s; ratio {adding_up_s / json_s:.2f}")
    few_s, many_s = time_repeats(1_000), time_repeats(4_000)
    print(f"1,000 repeats of 5 questions: {few_s:.2f} s; 4,000: {many_s / few_s:.1f} times that")


if __name__ == "__main__":
    main()
