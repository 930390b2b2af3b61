"""Models and judges that are not graphrag's: stand-ins of unittest.mock and plain objects."""

from unittest.mock import AsyncMock, MagicMock, Mock

import pytest
from graphrag_llm.completion import LLMCompletion

from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.types.verdicts import JudgeResult

REPLY = '{"reason": "it fits", "score": 1}'
VERDICT = JudgeResult(1, "it fits")


async def stream(*_, **__):
    for start in range(0, len(REPLY), 5):
        yield REPLY[start : start + 5]


class Pieces:
    """An async iterator that is no generator."""

    def __init__(self):
        self._left = [REPLY[:9], REPLY[9:], None]

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)


def mocked_stream():
    found = MagicMock()
    found.__aiter__.return_value = [REPLY[:9], REPLY[9:]]
    return found


STREAMS = {
    "a generator function": lambda: stream,
    "side_effect": lambda: MagicMock(side_effect=stream),
    "side_effect of AsyncMock": lambda: AsyncMock(side_effect=stream),
    "an iterator": lambda: MagicMock(return_value=Pieces()),
    "an awaited iterator": lambda: AsyncMock(return_value=Pieces()),
    "a mock's own iteration": lambda: MagicMock(return_value=mocked_stream()),
    "text": lambda: AsyncMock(return_value=REPLY),
    "a list": lambda: MagicMock(return_value=[REPLY[:9], REPLY[9:]]),
}


@pytest.mark.parametrize("kind", [MagicMock, AsyncMock, Mock])
@pytest.mark.parametrize("given", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("is_set_first", [True, False])
async def test_a_mock_with_a_stream_judges(kind, given, is_set_first):
    model = kind(achat_stream=given()) if is_set_first else kind()
    judge = LLMJudge(model, max_retries=0)
    if not is_set_first:
        model.achat_stream = given()
    assert await judge.judge_correctness("Who?", "Ann", "Ann.") == VERDICT


@pytest.mark.parametrize("kind", [MagicMock, AsyncMock])
async def test_a_completion_that_was_set_is_asked_before_a_stream(kind):
    model = kind()
    model.achat_stream = stream
    response = MagicMock(content='{"score": 0}')
    model.completion_async = AsyncMock(return_value=response)
    verdict = await LLMJudge(model).judge_relevance("Who?", "Ann did.")
    assert verdict == JudgeResult(0, "No reason provided")
    assert model.completion_async.await_args.kwargs["messages"][0]["role"] == "user"


async def test_a_stand_in_of_the_released_class_and_one_without_a_coroutine_are_asked():
    model = MagicMock(spec=LLMCompletion)
    model.completion_async.return_value.content = REPLY
    assert await LLMJudge(model).judge_relevance("Who?", "Ann did.") == VERDICT
    model = MagicMock(completion_async=MagicMock(return_value="no coroutine"))
    model.achat_stream = stream
    assert await LLMJudge(model).judge_relevance("Who?", "Ann did.") == VERDICT


class Proxy:
    """An object that hands everything on."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Completing:
    async def completion_async(self, **_):
        return MagicMock(content=REPLY)


class Streaming:
    def achat_stream(self, **_):
        return stream()


class Awaitable:
    def completion_async(self, **asked):
        return Completing().completion_async(**asked)


@pytest.mark.parametrize("inner", [Completing(), Streaming(), Awaitable()])
async def test_a_proxy_is_asked_as_what_it_stands_for(inner):
    assert await LLMJudge(inner).judge_relevance("Who?", "Ann did.") == VERDICT
    assert await LLMJudge(Proxy(inner)).judge_relevance("Who?", "Ann did.") == VERDICT


@pytest.mark.parametrize(
    "model",
    [
        MagicMock(),
        AsyncMock(),
        Mock(),
        Proxy(object()),
        MagicMock(achat_stream=AsyncMock(return_value=3)),
        MagicMock(achat_stream=MagicMock(return_value=[REPLY, 3])),
        MagicMock(achat_stream=MagicMock(side_effect=ConnectionError("gone"))),
        MagicMock(completion_async=AsyncMock(return_value=MagicMock())),
        MagicMock(spec=LLMCompletion),
    ],
)
async def test_a_mock_that_says_nothing_gives_no_score(model):
    verdict = await LLMJudge(model, max_retries=0).judge_relevance("Who?", "Ann did.")
    assert verdict.score is None
    assert verdict.failure is not None
    assert verdict.reason.startswith("Unscored")


@pytest.mark.parametrize("model", [object(), "gpt-4o", None])
def test_what_can_not_be_asked_is_refused_at_once(model):
    with pytest.raises(TypeError, match="achat_stream"):
        LLMJudge(model)
