"""Faithfulness: every claim of the response can be traced to the context."""

from graphrag.eval.judged.declaration import JudgedMetric

METRIC = JudgedMetric(
    name="faithfulness",
    instructions="""You grade whether an answer stays within its sources.

Split "answer" into the single claims it makes and look each one up in "context".
Score 1 when every claim can be traced to the context, directly or by an obvious step.
Score 0 when at least one claim can't, even if you know it to be true. Pointers to sources, such
as numbers in brackets, are not claims.
""",
    fields=("context", "answer"),
    one="every claim of the response can be traced to the context, directly or by an obvious step",
    zero="at least one claim can't, even if you know it to be true",
    zero_if_failed=False,
)
