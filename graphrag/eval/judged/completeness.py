"""Completeness: the response addresses every part of the question."""

from graphrag.eval.judged.declaration import JudgedMetric

METRIC = JudgedMetric(
    name="completeness",
    instructions="""\
You grade whether an answer covers its question. Whether it is right is graded elsewhere.

List the parts that "question" asks for and look for each of them in "answer".
Score 1 when every part is addressed.
Score 0 when a part is left out, evaded, or answered only by saying that it is unknown.
""",
    fields=("question", "answer"),
    one="the response addresses every part of the question, whether rightly or not",
    zero="it leaves a part out, evades it, or only says that it is unknown",
    zero_if_failed=True,
)
