"""The models that searches and judges ask, each call of them counted."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError

from graphrag.query.caller import ModelCaller
from graphrag.query.calls import (
    Answer,
    CutOffReplyError,
    GarbledReplyError,
    RetryPolicy,
    read_retry_policy,
    read_usage,
)
from graphrag.query.direct.settings import is_asked_directly
from graphrag.query.limits import CallLimit
from graphrag.query.replies import (
    Completion,
    Embeddings,
    TokenUsage,
    UnreadableReplyError,
    bind_output,
    check_content,
    check_size,
    check_vectors,
    holds_stray_control,
    read_refusal,
    read_reply,
)
from graphrag.query.streaming import stream_from
from graphrag.query.tokens import ModelTokenizer
from graphrag.query.usage import (
    CUT_OFF,
    CallLog,
    Message,
    NotAskedError,
    OutputBound,
    current_scope,
    measure_calls,
)
from graphrag.text.redaction import StreamRedactor

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

    from graphrag.config.models.graph_rag_config import GraphRagConfig

Request = dict[str, object]
_Ask = Callable[..., Awaitable[object]]
_COUNTED = "counted"
_TAKEN_OVER = ("metrics", "stream_options", "max_retries")


class _NoRetries(int):
    """Zero that is true: litellm reads a false ``max_retries`` of an embedding as its default."""

    def __bool__(self) -> bool:
        return True


def count_models(config: "GraphRagConfig") -> "GraphRagConfig":
    """Return settings of which the release's factories make counted models."""
    from graphrag_llm.completion.completion_factory import register_completion
    from graphrag_llm.embedding.embedding_factory import register_embedding

    def completion(*, counted: "ModelConfig", **_: object) -> Any:
        return CountedCompletion(counted)

    def embedding(*, counted: "ModelConfig", **_: object) -> Any:
        return CountedEmbedding(counted)

    register_completion(_COUNTED, completion)
    register_embedding(_COUNTED, embedding)
    counted = {
        kind: {
            name: _strip_layers(model, type=_COUNTED, counted=model)
            for name, model in cast("dict[str, ModelConfig]", getattr(config, kind)).items()
        }
        for kind in ("completion_models", "embedding_models")
    }
    return config.model_copy(update=counted)


def _strip_layers(config: "ModelConfig", **changes: object) -> "ModelConfig":
    """Return a configuration without the layers that :class:`ModelCaller` takes over."""
    taken_over = dict.fromkeys(("retry", "rate_limit", "metrics"))
    return config.model_copy(update={**taken_over, **changes})


class CountedCompletion:
    """A completion model whose every request is counted in the open scope.

    A streamed request is sent as an ordinary one, whose usage figures and retries are exact,
    unless the scope is live.
    """

    def __init__(self, config: "ModelConfig", retry: RetryPolicy | None = None) -> None:
        self.config = config
        self.tokenizer = ModelTokenizer(f"{config.model_provider}/{config.model}")
        self._caller = ModelCaller("completion", config, retry or read_retry_policy(config))
        self._ask = _make_completion(config, self.tokenizer)

    async def completion_async(self, /, **kwargs: object) -> Any:
        """Ask the model.

        Returns Completion or async iterator of Completion: the iterator, of pieces, when
        ``stream=True``. Raises UnreadableReplyError: if ``response_format`` was given and the reply
        is not JSON of that form. Raises CutOffReplyError: if it is not because the reply was cut
        off. The output is bounded by the model's own ``call_args``, else by the request, else by
        the scope; one bound is sent, never two.
        """
        scope = current_scope() or CallLog()
        if isinstance(kwargs["messages"], str):
            kwargs["messages"] = [{"role": "user", "content": kwargs["messages"]}]
        for taken_over in _TAKEN_OVER:
            kwargs.pop(taken_over, None)
        bound, request = bind_output(kwargs, self.config, scope.bound)
        if scope.prompts is not None:
            scope.prompts.append(_messages(request))
        if not request.pop("stream", False):
            return await self._complete(request, bound)
        if scope.live:
            return stream_from(lambda tell: self._pass_on(request, tell))
        return _stream_whole(await self._complete(request, bound))

    async def _complete(self, request: Request, bound: OutputBound | None) -> Completion:
        form = cast("type[BaseModel] | None", request.get("response_format"))
        material = _join_material(_messages(request))
        was_stray = False

        async def send() -> Answer:
            nonlocal was_stray
            response = cast("Completion", await self._ask(**request))
            choice = response.choices[0] if response.choices else None
            refusal = read_refusal(choice.message) if choice else ""
            # Services that refuse leave the content out: what they say instead is the reply.
            text = response.content or refusal
            if not read_usage(response.usage, output=True)[0]:
                check_size(len(text))  # before it is counted, which would take minutes
            reason = choice.finish_reason if choice else None
            answer = self._count(request, text, response.usage, reason, bool(refusal))
            takes_controls, was_stray = was_stray, holds_stray_control(text, material)
            check_content(answer, material, takes_controls)
            return answer

        call = await self._caller.call(
            _describe_request(request), send, lambda: self._count_prompt(request)
        )
        answered, text = call.attempts[-1], cast("str", call.reply)
        # Some services give no reason, and others one of their own, for a reply that is whole.
        reason = CUT_OFF if answered.finish_reason == CUT_OFF else "stop"
        usage = TokenUsage(answered.prompt_tokens, answered.output_tokens)
        reply = Completion.of(text, reason, text if answered.abstained else None, usage)
        if form is not None:
            try:
                reply.formatted_response = read_reply(text, form, material)
            except UnreadableReplyError as error:
                if reason != CUT_OFF:
                    raise
                raise CutOffReplyError(error.content, answered.output_tokens, bound) from error
        return reply

    async def _pass_on(self, request: Request, tell: Callable[[Completion], None]) -> None:
        """Ask, and tell of the pieces of the reply as they come."""
        texts: list[str] = []
        usage: TokenUsage | None = None
        reason: str | None = None
        abstained = False

        def received() -> Answer | None:
            if not (texts or usage):
                return None
            return self._count(request, "".join(texts), usage, reason, abstained)

        async def send() -> Answer:
            nonlocal usage, reason, abstained
            n_characters, redactor = 0, StreamRedactor()
            options = {"stream": True, "stream_options": {"include_usage": True}}
            stream = await self._ask(**request, **options)
            async for chunk in cast("AsyncIterator[Completion]", stream):
                usage = chunk.usage or usage
                if not chunk.choices:
                    continue
                choice = chunk.choices[0]
                reason = choice.finish_reason or reason
                refusal = read_refusal(choice.delta)
                abstained = abstained or bool(refusal)
                text = choice.delta.content or refusal
                texts.append(text)
                n_characters += len(text)
                check_size(n_characters)
                if text or not chunk.usage:  # litellm gives the figures a piece of their own
                    tell(Completion.of(redactor.feed(text), choice.finish_reason))
            if rest := redactor.end():
                tell(Completion.of(rest, reason))
            return received() or self._count(request, "", None, reason, abstained)

        await self._caller.call(
            _describe_request(request), send, lambda: self._count_prompt(request), received
        )

    def _count(
        self, request: Request, content: str, usage: object, reason: str | None, abstained: bool
    ) -> Answer:
        prompt, output, cached = read_usage(usage, output=True)
        if prompt:
            return Answer(content, prompt, output, "provider", cached, reason, abstained)
        prompt, output = self._count_prompt(request), self.tokenizer.num_tokens(content)
        return Answer(content, prompt, output, "tokenizer", None, reason, abstained)

    def _count_prompt(self, request: Request) -> int:
        return self.tokenizer.num_prompt_tokens(cast("Any", request["messages"]))


class CountedEmbedding:
    """An embedding model whose every request is counted in the open scope."""

    def __init__(self, config: "ModelConfig", retry: RetryPolicy | None = None) -> None:
        self.config = config
        self.tokenizer = ModelTokenizer(f"{config.model_provider}/{config.model}")
        self._caller = ModelCaller("embedding", config, retry or read_retry_policy(config))
        self._ask = _make_embedding(config, self.tokenizer)

    async def vector_of(self, text: str) -> list[float]:
        """Embed one text."""
        return (await self.embedding_async(input=[text])).first_embedding

    async def embedding_async(self, /, **kwargs: object) -> Embeddings:
        """Embed ``input``, a list of texts, to one vector each."""
        kwargs.pop("metrics", None)

        async def send() -> Answer:
            try:
                response = cast("Embeddings", await self._ask(**kwargs))
            except ValidationError as error:
                raise GarbledReplyError("it holds no embeddings") from error
            prompt, _, _ = read_usage(response.usage, output=False)
            by = "provider" if prompt else "tokenizer"
            answer = Answer(response.embeddings, prompt or self._count(kwargs), 0, by)
            check_vectors(answer, len(_texts(kwargs)))
            return answer

        call = await self._caller.call(kwargs, send, lambda: self._count(kwargs))
        usage = TokenUsage(call.attempts[-1].prompt_tokens)
        return Embeddings(cast("list[list[float]]", call.reply), usage)

    def embedding(self, /, **kwargs: object) -> Embeddings:
        """Embed and block this thread, as the released searches do."""
        from graphrag.query.direct.http import wait_for

        scope = current_scope() or CallLog()
        try:
            spending = self._caller.afford(lambda: self._count(kwargs), scope)
        except NotAskedError as error:
            self._caller.note_failure(error, scope)
            raise
        # In another loop, whose calls can't wait for those of this one.
        apart = CallLog(CallLimit(), time=scope.time, watch=scope.watch, exchanges=scope.exchanges)
        try:
            with measure_calls(apart):
                return wait_for(self.embedding_async(**kwargs))
        finally:
            scope.attempts += apart.attempts
            scope.failures += apart.failures
            for attempt in apart.attempts:
                spending.count(attempt)

    def _count(self, request: Request) -> int:
        return sum(self.tokenizer.num_tokens(text) for text in _texts(request))


def note_uncounted(model: object) -> None:
    """Note in the open scope that a model is asked whose calls nobody counts, if it is one."""
    scope = current_scope()
    if scope is not None and not isinstance(model, CountedCompletion):
        scope.has_uncounted = True


def count_completion(model: Any) -> Any:
    """Return a counted model with the settings of a released one; any other as it is."""
    is_released = type(model).__name__ == "LiteLLMCompletion" and model._cache is None
    return CountedCompletion(model._model_config) if is_released else model


open_completion, open_embedding = CountedCompletion, CountedEmbedding
"""Make the counted model of a configuration; ``retry``: in place of its own section."""


def _make_completion(config: "ModelConfig", tokenizer: ModelTokenizer) -> _Ask:
    if is_asked_directly(config):
        from graphrag.query.direct.asking import DirectModel

        return DirectModel(config).ask
    from graphrag_llm.completion import create_completion

    if config.type != "litellm":
        return create_completion(_strip_layers(config), tokenizer=tokenizer).completion_async
    once = {**config.call_args, "max_retries": 0}
    model: Any = create_completion(_strip_layers(config, call_args=once), tokenizer=tokenizer)

    def ask(response_format: object = None, **request: object) -> Awaitable[object]:
        # Past the parsing of what comes back: a reply that can't be parsed is still a reply, with
        # its usage. A form is named even where there is none, as the release does: without the
        # name it asks for a JSON object in the steps of global and DRIFT search.
        return model._completion_async(
            **request, response_format=response_format, enable_json_schema_validation=False
        )

    return ask


def _make_embedding(config: "ModelConfig", tokenizer: ModelTokenizer) -> _Ask:
    if is_asked_directly(config):
        from graphrag.query.direct.asking import DirectModel

        return DirectModel(config).embed
    from graphrag_llm.embedding import create_embedding

    once = {"max_retries": _NoRetries(0)} if config.type == "litellm" else {}
    bare = _strip_layers(config, call_args={**config.call_args, **once})
    return create_embedding(bare, tokenizer=tokenizer).embedding_async


async def _stream_whole(reply: Completion) -> AsyncIterator[Completion]:
    yield Completion.of(reply.content, reply.choices[0].finish_reason)


@lru_cache(maxsize=256)
def _schema(form: type[BaseModel]) -> dict[str, object]:
    return form.model_json_schema()


def _describe_request(request: Request) -> Request:
    """Return what gives a request its meaning, JSON-ready."""
    form = cast("type[BaseModel] | None", request.get("response_format"))
    return {**request, "response_format": _schema(form) if form else None}


def _messages(request: Request) -> list[Message]:
    return cast("list[Message]", request["messages"])


def _texts(request: Request) -> list[str]:
    return cast("list[str]", request["input"])


def _join_material(messages: Sequence[object]) -> str:
    mappings = (cast("Message", m) for m in messages if isinstance(m, Mapping))
    return "\n".join(str(m["content"]) for m in mappings if m["role"] != "assistant")
