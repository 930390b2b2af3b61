"""Correctness: the response means the same as the ground truth, wording aside."""

from graphrag.eval.judged.declaration import JudgedMetric

METRIC = JudgedMetric(
    name="correctness",
    instructions="""You grade whether an answer is correct.

Compare "predicted" with "ground_truth", the accepted answer to "question".
Score 1 when "predicted" states the same thing as "ground_truth". Other wording, more detail and
another order are fine as long as nothing contradicts the accepted answer.
Score 0 when it states something else, leaves out what the accepted answer consists of,
contradicts it, or says that it does not know.
""",
    fields=("question", "ground_truth", "predicted"),
    one=(
        "the response means the same as the ground truth; wording, order and further detail that "
        "does not contradict it are fine"
    ),
    zero=(
        "it says something else, leaves out what the ground truth consists of, contradicts it, "
        "or says that it does not know"
    ),
    zero_if_failed=True,
)
