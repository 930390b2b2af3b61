"""Recorded calls in the forms in which graphrag_llm gives replies."""

from collections.abc import AsyncIterator
from typing import Any

from graphrag_llm.types import (
    LLMChoice,
    LLMCompletionChunk,
    LLMCompletionMessage,
    LLMCompletionResponse,
    LLMCompletionUsage,
    LLMEmbeddingResponse,
    LLMEmbeddingUsage,
)
from graphrag_llm.types import LLMEmbedding as EmbeddingRow
from pydantic import BaseModel

from graphrag.query.usage import CUT_OFF, CallAttempt, RecordedCall

_RESPONSE = LLMCompletionResponse[BaseModel]


def completion_response(call: RecordedCall) -> LLMCompletionResponse[BaseModel]:
    """Return a recorded completion as graphrag_llm gives it."""
    answered = call.attempts[-1]
    refusal = call.reply if answered.abstained else None
    message = LLMCompletionMessage.model_construct(
        role="assistant", content=call.reply, refusal=refusal
    )
    # Nothing of it is in doubt, and validating it costs as much as sending it.
    return _RESPONSE.model_construct(
        id="counted",
        object="chat.completion",
        created=0,
        model=answered.model,
        choices=[
            LLMChoice.model_construct(
                index=0, message=message, finish_reason=_finish_reason(answered)
            )
        ],
        usage=LLMCompletionUsage.model_construct(
            prompt_tokens=answered.prompt_tokens,
            completion_tokens=answered.output_tokens,
            total_tokens=answered.prompt_tokens + answered.output_tokens,
        ),
    )


async def in_one_chunk(
    response: LLMCompletionResponse[BaseModel],
) -> AsyncIterator[LLMCompletionChunk]:
    """Give a whole reply as a stream of one piece."""
    delta, reason = {"content": response.content}, response.choices[0].finish_reason
    yield LLMCompletionChunk.model_validate(
        {
            "id": response.id,
            "object": "chat.completion.chunk",
            "created": response.created,
            "model": response.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
    )


def _finish_reason(answered: CallAttempt) -> Any:
    # A reply that an earlier release kept has none: it was taken for whole then.
    return CUT_OFF if answered.finish_reason == CUT_OFF else "stop"


def embedding_response(call: RecordedCall) -> LLMEmbeddingResponse:
    """Return a recorded embedding as graphrag_llm gives it."""
    answered = call.attempts[-1]
    vectors: list[list[float]] = call.reply
    return LLMEmbeddingResponse.model_construct(
        object="list",
        data=[
            EmbeddingRow.model_construct(object="embedding", embedding=vector, index=index)
            for index, vector in enumerate(vectors)
        ],
        model=answered.model,
        usage=LLMEmbeddingUsage.model_construct(
            prompt_tokens=answered.prompt_tokens, total_tokens=answered.prompt_tokens
        ),
    )
