"""Results as a page or a cell shows them, with texts that try to be more than texts."""

from dataclasses import replace

from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult, Retrieved, Walk
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores
from graphrag.query.client.usage import Usage
from graphrag.text.search_trace import Step

METRICS = ("correctness", "faithfulness")
NASTY = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \u2028 ]]>"
RIGHT_TO_LEFT = "مرحبا \u202egnorts"
HUGE = "word " * 40_000
CONTEXT = f"""-----Entities-----
id|entity|description
4|ADA|{NASTY}

-----Relationships-----
id|source|target|description
7|ADA|BEN|"Ada taught Ben,
and he thanked her."
8|BEN|CARL|Ben wrote to Carl.

-----Sources-----
id|text
2|"A ""quoted"" text."
"""
WALK = Walk(
    (
        Step(1, ("1",), 2, ("1",), (f"ADA -> BEN | {NASTY}",), (NASTY,), "who Ada taught"),
        Step(2, ("1", "2"), note=NASTY),
    )
)
N_QUESTIONS = 120


def answer(n: int, method: str, score: int | None) -> QueryResult:
    failed = n == 3 and method == "basic"
    failure = Failure("search", "timeout", f"no answer in 5 s {NASTY}") if failed else None
    unscored = JudgeResult(None, "Unscored: odd", Failure("judge", "unreadable", "odd reply"))
    verdict = unscored if score is None else JudgeResult(score, f"because {NASTY}")
    retrieved = None
    if method == "tog":
        retrieved = Retrieved("tog", walk=WALK if n == 0 else None)
    response = f"Ada taught Ben. [Data: Relationships (7, 99); Sources (2)] {NASTY}"
    usage = Usage(
        llm_calls=2,
        prompt_tokens=100 + n,
        output_tokens=10,
        cost_usd=0.01,
        llm_calls_by_phase={"exploration": 1, "reasoning": 1},
        prompt_tokens_by_phase={"exploration": 40, "reasoning": 60 + n},
        output_tokens_by_phase={"exploration": 4, "reasoning": 6},
        models=("gpt",),
    )
    return QueryResult(
        imdb_key="film-a" if n % 2 else "film-b",
        question=[f"Question {n}?", f"{NASTY} 1?", f"{RIGHT_TO_LEFT} 2?"][n if n < 3 else 0],
        method=method,
        response="ERROR: late" if failed else HUGE if n == 4 else response,
        scores=MetricScores.of({"correctness": verdict, "faithfulness": JudgeResult(1, "borne")}),
        efficiency=EfficiencyMetrics.of(0.5 + n, usage),
        ground_truth=f"Truth {n}",
        context_text="" if failed else CONTEXT,
        sample_id=f"q{n}",
        failure=failure,
        usage=usage,
        judge_usage=usage,
        retrieved=retrieved,
    )


def scores(n: int) -> dict[str, int | None]:
    return {"tog": 1, "basic": None if n == 5 else int(n % 10 == 0)}


def evaluated(n_questions: int = N_QUESTIONS) -> EvaluationResults:
    found = [
        answer(n, method, score) for n in range(n_questions) for method, score in scores(n).items()
    ]
    results = aggregate_results(found, METRICS)
    return replace(results, metadata={**results.metadata, "run_id": NASTY, "warnings": [NASTY]})
