"""Defines the models that searches and judges ask; every call to them is counted."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError

from graphrag.query.client.call_errors import (
    Answer,
    CutOffReplyError,
    FilteredReplyError,
    GarbledReplyError,
    RetryPolicy,
    UnstreamedReplyError,
    read_retry_policy,
    read_usage,
)
from graphrag.query.client.direct.settings import is_asked_directly
from graphrag.query.client.model_client import ModelCaller
from graphrag.query.client.rate_limit import CallLimit
from graphrag.query.client.refused_parameters import adapt
from graphrag.query.client.streaming import stream_from
from graphrag.query.client.structured_output import (
    THOUGHTS_ALONE,
    Completion,
    Embeddings,
    TokenUsage,
    UnreadableReplyError,
    bind_output,
    check_content,
    check_size,
    check_vectors,
    has_stray_control,
    read_refusal,
    read_reply,
)
from graphrag.query.client.thoughts import SpokenText, begins_in_thoughts, without_thoughts
from graphrag.query.client.tokens import ModelTokenizer
from graphrag.query.client.usage import (
    CUT_OFF,
    FILTERED,
    CallAttempt,
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
_STREAMED: Request = {"stream": True, "stream_options": {"include_usage": True}}
_THOUGHTS_APART = ("openai", "azure", "anthropic", "gemini", "vertex_ai", "bedrock", "offline")
"""Providers whose own services never leave a closing tag of thoughts in a reply."""


class _NoRetries(int):
    """Zero that is true: litellm reads a false ``max_retries`` of an embedding as its default."""

    def __bool__(self) -> bool:
        return True


def count_models(config: "GraphRagConfig") -> "GraphRagConfig":
    """Return settings whose models the released graphrag's factories replace by counted ones."""
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
    """Asks a completion model, and counts every request in the open scope.

    A streamed request is sent as an ordinary one, whose usage figures and retries are exact, unless
    the scope is ``live`` (see ``CallRules``).
    """

    def __init__(self, config: "ModelConfig", retry: RetryPolicy | None = None) -> None:
        self.config = config
        self.tokenizer = ModelTokenizer(f"{config.model_provider}/{config.model}")
        self._caller = ModelCaller("completion", config, retry or read_retry_policy(config))
        self._may_open_thoughts = _may_open_thoughts(config)
        self._asks: dict[frozenset[str], _Ask] = {}

    async def completion_async(self, /, **kwargs: object) -> Any:
        """Ask the model and return a Completion.

        With ``stream=True`` it returns an async iterator of Completion, one for each piece. The
        output is bounded by the model's own ``call_args``, else by the request, else by the scope;
        only one bound is sent. Raises UnreadableReplyError if ``response_format`` was given and the
        reply is not JSON of that form; CutOffReplyError if that is because the reply was cut off.
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
            return stream_from(lambda emit: self._pass_on(request, bound, emit))
        return _stream_once(await self._complete(request, bound))

    def _ask(self, left_out: frozenset[str], request: Request) -> Awaitable[object]:
        """Send a request without the parameters that the model refuses."""
        if left_out not in self._asks:
            config = _without(self.config, self.config.call_args, left_out)
            self._asks[left_out] = _make_completion(config, self.tokenizer)
        return self._asks[left_out](**request)

    async def _complete(self, request: Request, bound: OutputBound | None) -> Completion:
        form = cast("type[BaseModel] | None", request.get("response_format"))
        prompt = _join_prompt(_messages(request))
        was_stray, thought = False, ""

        async def send(left_out: frozenset[str]) -> Answer:
            nonlocal was_stray, thought
            sent = adapt(request, left_out)
            response = cast("Completion", await self._ask(left_out, sent))
            choice = response.choices[0] if response.choices else None
            refusal = read_refusal(choice.message) if choice else ""
            # Services leave out the content of a refusal: the refusal is then the reply.
            text = response.content or refusal
            thought = _thoughts_of(choice.message) if choice else ""
            text = text.lstrip() if thought else text  # blanks that separated the two
            usage = read_usage(response.usage)
            if None in usage[:2]:
                check_size(len(text))  # before it is counted, which would take minutes
            reason = choice.finish_reason if choice else None
            written = f"{thought}{text}"
            answer = self._count(sent, text, written, usage, reason, bool(refusal))
            takes_controls, was_stray = was_stray, has_stray_control(text, prompt)
            check_content(answer, prompt, takes_controls)
            return answer

        call = await self._caller.call(
            _describe_request(request), send, lambda: self._count_prompt(request)
        )
        answered, content = call.attempts[-1], cast("str", call.reply)
        self._check_filter(answered)
        # For a complete reply some services give no reason, others one of their own.
        reason = CUT_OFF if answered.finish_reason == CUT_OFF else "stop"
        is_open = not thought and self._is_open(content, reason, learns=form is None)
        text = without_thoughts(content, prompt, is_open=is_open)
        usage = TokenUsage(answered.prompt_tokens, answered.output_tokens)
        reply = Completion.of(text, reason, text if answered.abstained else None, usage)
        if not text.strip() and (thought + content).strip():
            raise self._find_no_answer(thought + content, form, answered, bound)
        if form is not None:
            try:
                reply.formatted_response = read_reply(content, form, prompt)
            except UnreadableReplyError as error:
                if reason != CUT_OFF:
                    raise
                raise CutOffReplyError(error.content, answered.output_tokens, bound) from error
        return reply

    def _find_no_answer(
        self, content: str, form: object, answered: CallAttempt, bound: OutputBound | None
    ) -> Exception:
        """Return the error of a reply that is all thoughts; without a form note the failed call."""
        error: Exception = UnreadableReplyError(content, THOUGHTS_ALONE)
        if answered.finish_reason == CUT_OFF:
            error = CutOffReplyError(content, answered.output_tokens, bound)
        if form is None:
            self._caller.note_failure(error, current_scope() or CallLog())
        return error

    def _is_open(self, text: str, reason: str | None, learns: bool) -> bool:
        """Say whether a reply was cut off inside thoughts that the model's template began.

        ``learns``: whether the reply can show whether the template does so.
        """
        queue = self._caller.queue(current_scope() or CallLog())
        begins = begins_in_thoughts(text, reason != CUT_OFF) if learns else None
        queue.begins_in_thoughts = queue.begins_in_thoughts if begins is None else begins
        return reason == CUT_OFF and queue.begins_in_thoughts is True

    def _check_filter(self, answered: CallAttempt) -> None:
        """Raise FilteredReplyError if the service's filter stopped a reply; its call has failed."""
        if answered.finish_reason == FILTERED:
            error = FilteredReplyError()
            self._caller.note_failure(error, current_scope() or CallLog())
            raise error

    async def _pass_on(
        self, request: Request, bound: OutputBound | None, emit: Callable[[Completion], None]
    ) -> None:
        """Ask the model and pass on the pieces of its reply as they arrive."""
        texts: list[str] = []
        thoughts: list[str] = []
        usage: TokenUsage | None = None
        reason: str | None = None
        abstained = False
        is_known = self._caller.queue(current_scope() or CallLog()).begins_in_thoughts is False
        may_be_open = self._may_open_thoughts and not is_known
        spoken = SpokenText(_join_prompt(_messages(request)), may_be_open)
        redactor = StreamRedactor()

        def received() -> Answer | None:
            return count() if has_begun() else None

        def has_begun() -> bool:
            return any(texts) or bool(thoughts or usage)

        def count() -> Answer:
            text = "".join(texts)
            written = f"{''.join(thoughts)}{text}"
            return self._count(request, text, written, read_usage(usage), reason, abstained)

        def pass_on(text: str) -> None:
            if piece := redactor.feed(text):
                emit(Completion.of(piece, None))

        async def send(left_out: frozenset[str]) -> Answer:
            nonlocal usage, reason, abstained
            n_characters = 0
            stream = await self._ask(left_out, adapt({**request, **_STREAMED}, left_out))
            async for chunk in _pieces(stream):
                usage = chunk.usage or usage
                if not chunk.choices:
                    continue
                choice = chunk.choices[0]
                reason = choice.finish_reason or reason
                refusal = read_refusal(choice.delta)
                abstained = abstained or bool(refusal)
                text = choice.delta.content or refusal
                texts.append(text)
                if thought := _thoughts_of(choice.delta):
                    thoughts.append(thought)
                    spoken.may_be_open = False  # the service sends thoughts apart
                n_characters += len(text)
                check_size(n_characters)
                pass_on(spoken.feed(text))
            if not has_begun() and reason in (None, "stop"):  # litellm adds "stop" by itself
                raise UnstreamedReplyError
            has_form = request.get("response_format") is not None
            is_open = not thoughts and self._is_open("".join(texts), reason, learns=not has_form)
            pass_on(spoken.end(is_open))
            emit(Completion.of(redactor.end(), reason))
            return count()

        call = await self._caller.call(
            _describe_request({**request, **_STREAMED}),
            send,
            lambda: self._count_prompt(request),
            received,
        )
        self._check_filter(call.attempts[-1])
        content = "".join([*thoughts, *texts])
        if not spoken.passed_on.strip() and content.strip():
            form = request.get("response_format")
            raise self._find_no_answer(content, form, call.attempts[-1], bound)

    def _count(
        self,
        request: Request,
        content: str,
        written: str,
        usage: tuple[int | None, int | None, int | None],
        reason: str | None,
        abstained: bool,
    ) -> Answer:
        """Count a reply; ``written`` is its content, with thoughts that came apart in front.

        ``usage``: see :func:`read_usage`.
        """
        prompt, output, cached = usage
        if written and not output:
            output = None
        by = "provider"
        if prompt is None or output is None:
            by = "tokenizer"
            prompt = self._count_prompt(request) if prompt is None else prompt
            output = self.tokenizer.num_tokens(written) if output is None else output
        return Answer(
            reply=content,
            prompt_tokens=prompt,
            output_tokens=output,
            counted_by=by,
            cached_prompt_tokens=cached,
            finish_reason=reason,
            abstained=abstained,
        )

    def _count_prompt(self, request: Request) -> int:
        return self.tokenizer.num_prompt_tokens(cast("Any", request["messages"]))


class CountedEmbedding:
    """Asks an embedding model, and counts every request in the open scope."""

    def __init__(self, config: "ModelConfig", retry: RetryPolicy | None = None) -> None:
        self.config = config
        self.tokenizer = ModelTokenizer(f"{config.model_provider}/{config.model}")
        settings = {**({"encoding_format": "float"} if is_asked_directly(config) else {})}
        self._settings: Request = {**settings, **config.call_args}
        policy = retry or read_retry_policy(config)
        self._caller = ModelCaller("embedding", config, policy, self._settings)
        self._asks: dict[frozenset[str], _Ask] = {}

    async def vector_of(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return (await self.embedding_async(input=[text])).first_embedding

    async def embedding_async(self, /, **kwargs: object) -> Embeddings:
        """Return one vector for each text in ``input``."""
        kwargs.pop("metrics", None)

        async def send(left_out: frozenset[str]) -> Answer:
            try:
                response = cast("Embeddings", await self._ask(left_out, adapt(kwargs, left_out)))
            except ValidationError as error:
                raise GarbledReplyError("it has no embeddings") from error
            prompt, _, _ = read_usage(response.usage)
            by = "provider" if prompt else "tokenizer"
            answer = Answer(
                reply=response.embeddings,
                prompt_tokens=prompt or self._count(kwargs),
                output_tokens=0,
                counted_by=by,
            )
            check_vectors(answer, len(_texts(kwargs)))
            return answer

        call = await self._caller.call(kwargs, send, lambda: self._count(kwargs))
        usage = TokenUsage(call.attempts[-1].prompt_tokens)
        return Embeddings(cast("list[list[float]]", call.reply), usage)

    def _ask(self, left_out: frozenset[str], request: Request) -> Awaitable[object]:
        """Send a request without the parameters that the model refuses."""
        if left_out not in self._asks:
            config = _without(self.config, self._settings, left_out)
            self._asks[left_out] = _make_embedding(config, self.tokenizer)
        return self._asks[left_out](**request)

    def embedding(self, /, **kwargs: object) -> Embeddings:
        """Embed ``input`` and block this thread, as the released searches need it."""
        from graphrag.query.client.direct.http import wait_for

        scope = current_scope() or CallLog()
        try:
            spending = self._caller.afford(lambda: self._count(kwargs), scope)
        except NotAskedError as error:
            self._caller.note_failure(error, scope)
            raise
        # It runs in another loop, whose calls can't wait for the calls of this loop.
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
    """Mark the open scope as not fully counted if the model's calls are not counted."""
    scope = current_scope()
    if scope is not None and not isinstance(model, CountedCompletion):
        scope.has_uncounted = True


def count_completion(model: Any) -> Any:
    """Return a counted model with the settings of a released one; other models stay as they are."""
    is_released = type(model).__name__ == "LiteLLMCompletion" and model._cache is None
    return CountedCompletion(model._model_config) if is_released else model


open_completion, open_embedding = CountedCompletion, CountedEmbedding
"""Make the counted model of a configuration: ``model = open_completion(config=model_config)``, then
``reply = await model.completion_async(messages="Who signed?")``, whose text is ``reply.content``.
``retry`` replaces the configuration's own section."""


def _without(config: "ModelConfig", settings: Request, left_out: frozenset[str]) -> "ModelConfig":
    """Return a configuration with these parameters of every request, less the refused ones."""
    return config.model_copy(update={"call_args": adapt(settings, left_out)})


def _make_completion(config: "ModelConfig", tokenizer: ModelTokenizer) -> _Ask:
    if is_asked_directly(config):
        from graphrag.query.client.direct.asking import DirectModel

        return DirectModel(config).ask
    from graphrag_llm.completion import create_completion

    if config.type != "litellm":
        return create_completion(_strip_layers(config), tokenizer=tokenizer).completion_async
    once = {**config.call_args, "max_retries": 0}
    model: Any = create_completion(_strip_layers(config, call_args=once), tokenizer=tokenizer)

    def ask(response_format: object = None, **request: object) -> Awaitable[object]:
        # This skips the release's parsing: a reply that can't be parsed is still a reply, with its
        # usage. ``response_format`` is passed even if it is None, as the release does: without it
        # the release asks for a JSON object in the steps of global and DRIFT search.
        return model._completion_async(
            **request, response_format=response_format, enable_json_schema_validation=False
        )

    return ask


def _make_embedding(config: "ModelConfig", tokenizer: ModelTokenizer) -> _Ask:
    if is_asked_directly(config):
        from graphrag.query.client.direct.asking import DirectModel

        return DirectModel(config).embed
    from graphrag_llm.embedding import create_embedding

    once = {"max_retries": _NoRetries(0)} if config.type == "litellm" else {}
    bare = _strip_layers(config, call_args={**config.call_args, **once})
    return create_embedding(bare, tokenizer=tokenizer).embedding_async


def _may_open_thoughts(config: "ModelConfig") -> bool:
    """Say whether a model's template may begin its thoughts, so that a reply only ends them."""
    is_elsewhere = config.api_base is not None and config.type != "offline"
    return is_elsewhere or config.model_provider not in _THOUGHTS_APART


def _thoughts_of(message: object) -> str:
    """Return the thoughts that a service sends apart from the content of a message."""
    thoughts: object = getattr(message, "reasoning_content", None)
    return thoughts if isinstance(thoughts, str) else ""


async def _pieces(reply: object) -> AsyncIterator[Completion]:
    """Yield the pieces of a reply; a reply that was not streamed is a single piece."""
    if isinstance(reply, AsyncIterator):
        async for piece in cast("AsyncIterator[Completion]", reply):
            yield piece
        return
    full = cast("Completion", reply)
    choice = full.choices[0]
    ending = choice.finish_reason, read_refusal(choice.message) or None, full.usage
    yield Completion.of(full.content, *ending, _thoughts_of(choice.message))


async def _stream_once(reply: Completion) -> AsyncIterator[Completion]:
    yield Completion.of(reply.content, reply.choices[0].finish_reason)


@lru_cache(maxsize=256)
def _schema(form: type[BaseModel]) -> dict[str, object]:
    return form.model_json_schema()


def _describe_request(request: Request) -> Request:
    """Return everything that gives a request its meaning, JSON-ready."""
    form = cast("type[BaseModel] | None", request.get("response_format"))
    return {**request, "response_format": _schema(form) if form else None}


def _messages(request: Request) -> list[Message]:
    return cast("list[Message]", request["messages"])


def _texts(request: Request) -> list[str]:
    return cast("list[str]", request["input"])


def _join_prompt(messages: Sequence[object]) -> str:
    mappings = (cast("Message", m) for m in messages if isinstance(m, Mapping))
    return "\n".join(str(m["content"]) for m in mappings if m["role"] != "assistant")
