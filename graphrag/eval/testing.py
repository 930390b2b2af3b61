"""A scripted judge and a scripted method, for tests of this package and of its users."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.records import JudgeResult, MetricScores
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.scorers.judge import JUDGED_METRICS, Judge
from graphrag.query.structured_search.base import SearchResult

if TYPE_CHECKING:
    from graphrag.query.graph_index import GraphIndex

Grade = Callable[[str, Mapping[str, str]], JudgeResult]
"""From a metric and its material (question, predicted, ...) to a verdict."""
Answer = Callable[[str, str, str], "str | SearchResult"]
"""From (method, question, imdb_key) to a response; raises what the search should raise."""


def grade_by_containment(metric: str, material: Mapping[str, str]) -> JudgeResult:
    """Grade 1 when the ground truth stands in the prediction, and 1 in the other metrics."""
    if metric != "correctness":
        return JudgeResult(1, "scripted")
    found = material["ground_truth"].casefold() in material["predicted"].casefold()
    return JudgeResult(int(found), "scripted")


class ScriptedJudge:
    """A judge that follows a script and remembers what it was asked.

    ``grade``: from a metric and its material to a verdict. ``asked``: metric and material of each
    grading, in order.
    """

    def __init__(self, grade: Grade = grade_by_containment) -> None:
        self._grade = grade
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def judge_correctness(
        self, question: str, ground_truth: str, predicted: str
    ) -> JudgeResult:
        """Grade by the script."""
        material = {"question": question, "ground_truth": ground_truth, "predicted": predicted}
        return self._ask("correctness", material)

    async def judge_faithfulness(self, context: str, answer: str) -> JudgeResult:
        """Grade by the script."""
        return self._ask("faithfulness", {"context": context, "answer": answer})

    async def judge_relevance(self, question: str, context: str) -> JudgeResult:
        """Grade by the script."""
        return self._ask("relevance", {"question": question, "context": context})

    async def judge_completeness(self, question: str, answer: str) -> JudgeResult:
        """Grade by the script."""
        return self._ask("completeness", {"question": question, "answer": answer})

    async def judge_metric(
        self, metric: str, question: str, ground_truth: str, predicted: str, context: str
    ) -> JudgeResult:
        """Grade by the script."""
        material = JUDGED_METRICS[metric].material(question, ground_truth, predicted, context)
        return self._ask(metric, material)

    async def evaluate_all(
        self, question: str, ground_truth: str, predicted: str, context: str
    ) -> MetricScores:
        """Grade the four default metrics by the script."""
        return MetricScores(
            await self.judge_correctness(question, ground_truth, predicted),
            await self.judge_faithfulness(context, predicted),
            await self.judge_relevance(question, context),
            await self.judge_completeness(question, predicted),
        )

    def _ask(self, metric: str, material: dict[str, str]) -> JudgeResult:
        self.asked.append((metric, material))
        return self._grade(metric, material)


class ScriptedRunner(EvaluationRunner):
    """A runner whose methods follow a script; it opens no index and asks no model.

    ``answer``: from (method, question, imdb_key) to a response; what it raises, the search raises.
    ``judge``: None: a :class:`ScriptedJudge`. ``asked``: method, question and key of each search,
    in order.
    """

    def __init__(
        self, config: EvaluationConfig, answer: Answer, judge: Judge | None = None
    ) -> None:
        super().__init__(config, judge or ScriptedJudge(), index_roots={})
        self._answer = answer
        self.asked: list[tuple[str, str, str]] = []

    async def _run_search(self, method: str, query: str, imdb_key: str) -> SearchResult:
        self.asked.append((method, query, imdb_key))
        answered = self._answer(method, query, imdb_key)
        if isinstance(answered, SearchResult):
            return answered
        return SearchResult(
            response=answered,
            context_data={},
            context_text=f"context of {query}",
            completion_time=0.01,
            llm_calls=1,
            prompt_tokens=10,
            output_tokens=2,
        )

    async def _load_index(self, imdb_key: str) -> "GraphIndex":
        raise AssertionError(f"a scripted runner opens no index, not even {imdb_key}")
