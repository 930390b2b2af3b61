"""What a type checker must know in an editable install; copied elsewhere before it is checked."""

from pathlib import Path
from typing import assert_type

from graphrag.api.search import tog_search
from graphrag.config.enums import SearchMethod
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.types import JudgeResult

assert_type(JudgeResult(1, "why").reason, str)
assert_type(EvaluationConfig().root, Path)
assert_type(SearchMethod("local"), SearchMethod)


async def judge(judge: LLMJudge) -> None:
    """Await one of ours and one of the release's."""
    assert_type(await judge.judge_completeness("question", "answer"), JudgeResult)


def count(name: str) -> int:
    """Fail to check where ``tog_search`` is unknown, as everything may be done to Any."""
    return len(tog_search.__name__ + name)
