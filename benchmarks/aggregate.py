"""How long 100,000 results take to add up, against reading and writing them as JSON.

python benchmarks/aggregate.py
"""

import json
import random
import time

from graphrag.eval import (
    EfficiencyMetrics,
    JudgeResult,
    MetricScores,
    QueryResult,
    aggregate_results,
)

N_QUESTIONS, METHODS, DOCUMENTS = 25_000, ("tog", "local", "basic", "drift"), 20


def make_results() -> list[QueryResult]:
    rng = random.Random(0)

    def result(number: int, method: str) -> QueryResult:
        verdicts = [JudgeResult(int(rng.random() < 0.6), "r") for _ in range(4)]
        return QueryResult(
            imdb_key=str(number % DOCUMENTS),
            question=f"question {number}",
            method=method,
            response="an answer",
            scores=MetricScores(*verdicts),
            efficiency=EfficiencyMetrics(rng.random(), 2, 100, 10),
            sample_id=str(number),
        )

    return [result(number, method) for number in range(N_QUESTIONS) for method in METHODS]


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


if __name__ == "__main__":
    main()
