"""A judge and a runner that follow a script, for tests of this package and of its users."""

from collections.abc import Callable, Mapping

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.metrics.judge import Judge, MetricJudge
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.types.metric_definitions import REFUSAL
from graphrag.eval.types.verdicts import JudgeResult
from graphrag.query.graph_index import GraphIndex
from graphrag.query.structured_search.base import SearchResult

Grade = Callable[[str, Mapping[str, str]], JudgeResult]
"""From a metric and its material (question, predicted, ...) to a verdict."""
Answer = Callable[[str, str, str], "str | SearchResult"]
"""From (method, question, imdb_key) to a response; its errors are those of the search."""


def grade_by_containment(metric: str, material: Mapping[str, str]) -> JudgeResult:
    """Score 1 if the ground truth is contained in the response; the other metrics always score 1.

    If the documents have no answer (metric ``refusal``), score 1 if the response has the word
    "not".
    """
    if metric == REFUSAL.name:
        return JudgeResult(
            score=int("not" in material["predicted"].casefold().split()), reason="scripted"
        )
    if metric != "correctness":
        return JudgeResult(score=1, reason="scripted")
    is_contained = material["ground_truth"].casefold() in material["predicted"].casefold()
    return JudgeResult(score=int(is_contained), reason="scripted")


class ScriptedJudge(MetricJudge):
    """A judge that follows a script and records what it was asked.

    ``ScriptedJudge(grade=my_grade)``: ``grade`` maps a metric and its material to a verdict.
    ``asked``: metric and material of each grading, in order.
    """

    def __init__(self, grade: Grade = grade_by_containment) -> None:
        self._script = grade
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def _grade(self, metric: str, **material: str) -> JudgeResult:
        self.asked.append((metric, material))
        return self._script(metric, material)


class ScriptedRunner(EvaluationRunner):
    """A runner whose methods follow a script; it opens no index and asks no model.

    ``ScriptedRunner(config=config, answer=my_answer)``: ``answer`` maps (method, question,
    imdb_key) to a response; what it raises, the search raises. ``judge``: None for a
    :class:`ScriptedJudge`. ``asked``: method, question and key of each search, in order.
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

    async def _load_index(self, imdb_key: str) -> GraphIndex:
        raise AssertionError(f"a scripted runner opens no index, not even {imdb_key}")
