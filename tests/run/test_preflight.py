"""What is warned of before the first call."""

import pytest

from graphrag.eval.runner.checks import list_judge_warnings


@pytest.mark.parametrize(
    ("judge", "answering", "is_related"),
    [
        ("openai/gpt-4.1", "openai/gpt-4o", True),
        ("openai/gpt-4.1", "mistral/codestral-2.1", False),
        ("bedrock/us.anthropic.claude-3-5", "anthropic/claude-4.1", True),
        ("bedrock/meta.llama3-1-70b", "ollama/llama2", True),
    ],
)
def test_a_version_is_no_family(judge: str, answering: str, is_related: bool):
    assert bool(list_judge_warnings(judge, [answering])) is is_related
