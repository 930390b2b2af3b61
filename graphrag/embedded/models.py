"""Implements graphrag's model interfaces by rules, and chooses the rule for each request."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from difflib import get_close_matches
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from graphrag_llm.completion import LLMCompletion
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import LLMEmbedding
from graphrag_llm.types import (
    LLMChoice,
    LLMChoiceChunk,
    LLMChoiceDelta,
    LLMCompletionChunk,
    LLMCompletionMessage,
    LLMCompletionResponse,
    LLMCompletionUsage,
    LLMEmbeddingResponse,
    LLMEmbeddingUsage,
)
from graphrag_llm.types import LLMEmbedding as EmbeddingRow

from graphrag.embedded import OfflineModelError, answering, extraction, grading, note_call
from graphrag.embedded.requests import Reply, Request, plain_messages, read_request
from graphrag.embedded.vectors import WORDLLAMA_LENGTHS, embed_texts, find_wordllama
from graphrag.installation import WORDLLAMA
from graphrag.text.context_tables import context_region, read_context
from graphrag.text.languages import main_language
from graphrag.text.stems import read_as

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

_HASHED_LENGTH = 384
# Rows of tables that are read to find the language of a request.
_MOST_READ = 20
_WORDS_A_CHUNK = re.compile(r"(?:\s*\S+){1,8}|\s+")
_FACTORY_ARGUMENTS = frozenset(
    {"metrics_processor", "rate_limiter", "retrier", "cache", "cache_key_creator"}
)

_SUPPORTED = (
    "graphrag's index prompts (extract graph, summarize descriptions, community reports)",
    "its local, basic, global and drift search prompts, and that of agentic search",
    "Think-on-Graph's calls, which answer or go on",
    "the evaluation's judge prompts (the four metrics, rubric, quality, pairwise, assertions, "
    "claims)",
    "the prompts of graphrag eval draft",
)

_STRUCTURED: dict[frozenset[str], Callable[[Request], Mapping[str, object] | None]] = {
    frozenset(fields.split()): handler
    for fields, handler in {
        "missing answer relationships sources": answering.check_and_answer,
        "missing answer relationships sources keep follow look_up": answering.answer_or_go_on,
        "missing query": answering.name_next_search,
        "reason score": grading.judge,
        "reason score doubt": grading.judge_without_doubt,
        "relevance faithfulness completeness coherence groundedness overall_score summary": (
            grading.grade_rubric
        ),
        "reasoning accuracy completeness relevance overall_score": grading.grade_quality,
        "reasoning winner": grading.compare_answers,
        "rulings": grading.rule_on_statements,
        "sentences": grading.split_claims,
        "claims": grading.rule_on_claims,
        "question answer quotes difficulty": grading.draft_question,
        "question answer quotes difficulty assertions": grading.draft_question,
        "assertions": grading.propose_assertions,
        "found answer": grading.answer_from_texts,
        "difference same": grading.compare_meaning,
        "intermediate_answer score follow_up_queries": answering.answer_primer,
        "title summary findings rating rating_explanation": extraction.answer_community_report,
    }.items()
}


def _answer_connectivity(request: Request) -> str | None:
    is_test = "LLM connectivity test" in request.user and len(request.user.split()) < 20
    return "Hello World" if is_test else None


_PLAIN: tuple[Callable[[Request], str | None], ...] = (
    extraction.answer_extraction,
    extraction.answer_description_summary,
    _answer_connectivity,
    answering.answer_hypothesis,
    answering.answer_rating,
)


def reply(request: Request) -> Reply:
    """Reply to a request, in JSON if it names a class for the reply.

    Raises OfflineModelError if no rule knows the request; nothing is made up instead.
    """
    if request.reply_type is not None:
        handler = _STRUCTURED.get(request.fields)
        values = handler(request) if handler else None
        if values is None:
            raise _unknown_request(f"a reply with the fields {', '.join(sorted(request.fields))}")
        return Reply(request.reply_type.model_validate(values).model_dump_json())
    texts = (handler(request) for handler in _PLAIN)
    text = next((text for text in texts if text is not None), None)
    return _reply_from_context(request) if text is None else Reply(text)


def _language_of(request: Request) -> str:
    """Return the language of a request's tables or material; the instructions are in English."""
    texts = [record.text for record in islice(read_context(request.system), _MOST_READ)]
    return main_language(texts or [" ".join(map(str, request.material.values()))])


def _reply_from_context(request: Request) -> Reply:
    region = context_region(request.system)
    instructions = request.system.replace(region, "", 1)
    if "---Example questions---" in instructions:
        raise _unknown_request("new questions to be made up")
    if "---Analyst Reports---" in instructions or "---Data Reports---" in instructions:
        return answering.answer_reduce(request)
    if "---Data tables---" in instructions:
        if '"points"' in instructions:
            return answering.answer_map(request)
        if "follow_up_queries" in instructions:
            return answering.answer_drift_local(request)
        return answering.answer_from_tables(request)
    marks = "-----Sources-----", "No sources are given"
    if read_context(request.system) or any(mark in request.system for mark in marks):
        return answering.answer_from_tables(request)
    raise _unknown_request("something else")


def _unknown_request(task: str) -> OfflineModelError:
    return OfflineModelError(
        f"The request asks for {task}, which the offline model can't do. "
        f"It answers {'; '.join(_SUPPORTED)}. For anything else configure a language model."
    )


class _OfflineModel:
    """The name and the tokenizer of a model; it has no state, so that threads may share it."""

    _role: ClassVar[Literal["completion", "embedding"]]
    _further_settings: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        model_id: str,
        model_config: ModelConfig,
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        **kwargs: object,
    ) -> None:
        unknown = {*(model_config.model_extra or {}), *kwargs} - _FACTORY_ARGUMENTS
        keys = sorted([*ModelConfig.model_fields, *self._further_settings])
        for name in sorted(unknown - {*keys}):
            near = get_close_matches(name, keys, n=1, cutoff=0.6)
            advice = (
                f"did you mean `{near[0]}`?" if near else f"it may have only: {', '.join(keys)}."
            )
            raise OfflineModelError(
                f"The {self._role} model {model_id} has no setting `{name}`; {advice}"
            )
        self._model_id = model_id
        self._tokenizer = tokenizer
        self._metrics_store = metrics_store

    @property
    def metrics_store(self) -> "MetricsStore":
        """Where the metrics of all calls are added up."""
        return self._metrics_store

    def _count(self, **tokens: int) -> None:
        counts: dict[str, int | float] = {"successful_response_count": 1, **tokens}
        self._metrics_store.update_metrics(metrics=counts)

    @property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer that counts the usage."""
        return self._tokenizer


class OfflineCompletion(_OfflineModel, LLMCompletion):
    """Replies by rules: deterministic, without a network, in milliseconds.

    Sampling arguments (temperature, seed, ...) and token limits change nothing.
    """

    _role = "completion"

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Reply to messages, like `completion`; an async iterator if streaming."""
        # Count in a thread first; the tokenizer caches the count. Waiting here lets Ctrl-C through
        # even if a thousand calls are made at once.
        messages = plain_messages(kwargs.get("messages"))
        await asyncio.to_thread(self._tokenizer.num_prompt_tokens, cast("Any", messages))
        response = self.completion(**kwargs)
        return _as_async(cast("Any", response)) if isinstance(response, Iterator) else response

    def completion(self, /, **kwargs: Any) -> Any:
        """Reply to ``messages``, a text or role-content mappings.

        ``response_format``, a pydantic class, may be combined with ``stream``. Usage, counted by
        the tokenizer, then comes on a last chunk if ``stream_options={"include_usage": True}``. If
        a search's question has no answer in its context, ``refusal`` has the text, too. Raises
        OfflineModelError if no rule knows the request.
        """
        note_call(self._role, self._model_id)
        messages = plain_messages(kwargs.get("messages"))
        request = read_request(messages, kwargs.get("response_format"))
        with read_as(_language_of(request)):
            answer = reply(request)
        text, refusal = answer.text, answer.text if answer.abstains else None
        n_prompt = self._tokenizer.num_prompt_tokens(cast("Any", messages))
        n_output = self._tokenizer.num_tokens(text)
        self._count(prompt_tokens=n_prompt, completion_tokens=n_output)
        response = LLMCompletionResponse[Any](
            id="offline-" + blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest(),
            object="chat.completion",
            created=0,
            model=self._model_id,
            choices=[
                LLMChoice(
                    index=0,
                    message=LLMCompletionMessage(role="assistant", content=text, refusal=refusal),
                    finish_reason="stop",
                )
            ],
            usage=LLMCompletionUsage(
                prompt_tokens=n_prompt, completion_tokens=n_output, total_tokens=n_prompt + n_output
            ),
            formatted_response=request.reply_type and request.reply_type.model_validate_json(text),
        )
        if not kwargs.get("stream"):
            return response
        return iter(self._chunks(response, kwargs.get("stream_options") or {}))

    def _chunks(
        self, response: LLMCompletionResponse[Any], options: Mapping[str, object]
    ) -> list[LLMCompletionChunk]:
        refuses = response.choices[0].message.refusal is not None

        def chunk(piece: str | None) -> LLMCompletionChunk:
            refusal = piece if refuses else None
            delta = LLMChoiceDelta(role="assistant", content=piece, refusal=refusal)
            return LLMCompletionChunk(
                id=response.id,
                object="chat.completion.chunk",
                created=0,
                model=self._model_id,
                choices=[LLMChoiceChunk(index=0, delta=delta)],
            )

        chunks = [chunk(piece) for piece in _WORDS_A_CHUNK.findall(response.content) or [""]]
        chunks[-1].choices[0].finish_reason = "stop"
        if options.get("include_usage"):
            # OpenAI sends no choice here, but released callers read choices[0] of every chunk.
            last = chunk(None)
            last.usage = response.usage
            chunks.append(last)
        return chunks


class OfflineEmbedding(_OfflineModel, LLMEmbedding):
    """Vectors from hashed n-grams or learned words: deterministic, without a network, any script.

    ``dimensions``, which `vector_store.vector_size` must equal, is the vectors' length: at least 8
    for hashed n-grams (384 if None); 64, 128 or 256 (None) for learned words. Raises
    OfflineModelError for another length, or if the package of the learned words is not installed.
    """

    _role = "embedding"
    _further_settings = ("dimensions",)

    def __init__(
        self, *, model_config: ModelConfig, dimensions: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(model_config=model_config, **kwargs)
        self._model = model_config.model
        self._is_learnt = self._model == WORDLLAMA
        if self._is_learnt:
            find_wordllama()
        default = max(WORDLLAMA_LENGTHS) if self._is_learnt else _HASHED_LENGTH
        self._dimensions = self._check_length(default if dimensions is None else dimensions)

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed texts, like `embedding`."""
        await asyncio.sleep(0)
        return self.embedding(**kwargs)

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed ``input``, a list of texts, each as a vector of Euclidean norm 1.

        ``dimensions``: another length than that of the settings. The tokenizer counts the usage.
        """
        note_call(self._role, self._model_id)
        texts: list[str] = kwargs["input"]
        dimensions = self._check_length(kwargs.get("dimensions") or self._dimensions)
        tokens = sum(self._tokenizer.num_tokens(text) for text in texts)
        self._count(prompt_tokens=tokens)
        vectors = embed_texts(self._model, texts, dimensions)
        return LLMEmbeddingResponse(
            object="list",
            data=[
                EmbeddingRow(object="embedding", index=at, embedding=vector.tolist())
                for at, vector in enumerate(vectors)
            ],
            model=self._model_id,
            usage=LLMEmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
        )

    def _check_length(self, dimensions: object) -> int:
        length = dimensions if isinstance(dimensions, int) and dimensions is not True else 0
        if length in WORDLLAMA_LENGTHS if self._is_learnt else length >= 8:
            return length
        allowed = (
            f"64, 128 or 256 of {WORDLLAMA}" if self._is_learnt else "a whole number of at least 8"
        )
        raise OfflineModelError(f"`dimensions` must be {allowed}, not {dimensions!r}.")


async def _as_async(chunks: Iterator[LLMCompletionChunk]) -> AsyncIterator[LLMCompletionChunk]:
    for chunk in chunks:
        yield chunk
