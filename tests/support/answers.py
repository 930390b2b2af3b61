"""Answers with what their searches retrieved and showed, as measures read them."""

from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult, Retrieved
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores


def answer(
    method: str,
    response: str,
    *,
    context_text: str | None = "",
    retrieved: Retrieved | None = None,
    correctness: int | None = None,
    tokens: int | None = None,
    latency_s: float | None = None,
    failed: bool = False,
    abstained: bool = False,
) -> QueryResult:
    """Make the answer to question s1 about an isle."""
    return QueryResult(
        "isle",
        "Who?",
        method,
        response,
        MetricScores(JudgeResult(correctness, "said")),
        EfficiencyMetrics(latency_s, 1, tokens, 0),
        context_text=context_text,
        sample_id="s1",
        failure=Failure("search", "error", "no answer") if failed else None,
        retrieved=retrieved,
        abstained=abstained,
    )
