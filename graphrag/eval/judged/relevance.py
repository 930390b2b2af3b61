"""Relevance: the context helps to answer the question."""

from graphrag.eval.judged.declaration import JudgedMetric

METRIC = JudgedMetric(
    name="relevance",
    instructions="""You grade whether retrieved text is of use.

Read "context" with "question" in mind.
Score 1 when the context holds information that helps to answer the question, fully or in part.
Score 0 when nothing in it brings a reader closer to the answer.
""",
    fields=("question", "context"),
    one="the context holds information that helps to answer the question, fully or in part",
    zero="nothing in the context brings a reader closer to the answer",
    zero_if_failed=False,
)
