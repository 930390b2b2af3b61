"""Sends the searches, judgings and model calls of a run to an OpenTelemetry collector over OTLP.

Names follow the GenAI conventions (open-telemetry/semantic-conventions-genai, 0.1.0); names that
they lack begin with ``gtog.``. Only ``--otel`` loads this module.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import cast

from opentelemetry import trace
from opentelemetry._logs import LogRecord, NoOpLogger, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, StatusCode

from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.scheduler import Executor, FurtherTask
from graphrag.eval.store.records import Judgement, StoredResponse, Unit
from graphrag.eval.types.verdicts import JudgeResult
from graphrag.query.client.call_errors import describe_error
from graphrag.query.client.model_prices import is_offline
from graphrag.query.client.usage import CallAttempt, CallLog, Message
from graphrag.text.redaction import know_settings, redact

_NAME = "graphrag-eval"
_ASKS_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = ("true", "span_only", "span_and_event")
_ON_EVENTS = ("true", "event_only", "span_and_event")
_PATIENCE_S = 5.0
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""litellm's name of a provider -> the name in the conventions, if it differs."""
Values = Mapping[str, str | int | float | Sequence[str] | None]


class _SpanExporter(OTLPSpanExporter):
    n_sent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self.n_sent += len(spans) if result is SpanExportResult.SUCCESS else 0
        return result


class _EventExporter(OTLPLogExporter):
    n_sent = 0

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        result = super().export(batch)
        self.n_sent += len(batch) if result is LogRecordExportResult.SUCCESS else 0
        return result


class _Troubles(logging.Handler):
    """Keeps the exporters' log lines off the terminal, and notes that there is trouble."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.ended = threading.Event()
        self.latest = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.ended.set()
        if record.levelno >= logging.ERROR:
            self.latest = f" ({redact(record.getMessage())[:200].rstrip('.')})"


class Telemetry:
    """Sends a span for each search, judging and model call, and an event for each verdict.

    The ``OTEL_`` variables set where to, and how. Prompts, answers and the judge's reasons are sent
    only if OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for them; keys are never sent.
    ``run_id`` is on every span. Raises ConfigError if the variables can't be used.
    """

    def __init__(self) -> None:
        kind = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
        if kind not in ("", "http/protobuf"):
            msg = f"OTEL_EXPORTER_OTLP_PROTOCOL is {kind}; --otel speaks http/protobuf alone."
            raise ConfigError(msg)
        know_settings({})
        self.run_id: str | None = None
        self._troubles = _Troubles()
        library = logging.getLogger("opentelemetry")
        library.addHandler(self._troubles)
        library.propagate = False
        try:
            self._spans, self._events = _SpanExporter(), _EventExporter()
            resource = Resource.create()
            if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
                resource = resource.merge(Resource({SERVICE_NAME: _NAME}))
            self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
            self._loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
            self._tracers.add_span_processor(BatchSpanProcessor(self._spans))
            self._loggers.add_log_record_processor(BatchLogRecordProcessor(self._events))
        except ValueError as error:
            msg = f"--otel can't use the variables that begin with OTEL_: {redact(str(error))}."
            raise ConfigError(msg) from error
        self._tracer = self._tracers.get_tracer(_NAME)
        self._logger = self._loggers.get_logger(_NAME)
        if os.environ.get("OTEL_LOGS_EXPORTER", "").strip().lower() == "none":
            self._logger = NoOpLogger(_NAME)  # MLflow's server takes only spans
        content = os.environ.get(_ASKS_CONTENT, "").strip().lower()
        self._content_on_spans = content in _ON_SPANS
        self._content_on_events = content in _ON_EVENTS
        self._executor: Executor | None = None
        self._searches: dict[str, Span] = {}
        self._n_spans = self._n_events = 0

    def around(self, executor: Executor) -> Executor:
        """Return an executor that sends its searches and judgings as spans, their calls below."""
        self._executor = executor
        return self

    def around_further(self, tasks: Sequence[FurtherTask]) -> list[FurtherTask]:
        """Return further judgings that are sent as spans."""
        return [replace(task, judge=partial(self._judge_further, task)) for task in tasks]

    def close(self) -> str | None:
        """Send what is left, within five seconds; return a sentence if not all was delivered.

        A collector that does not respond is not waited for.
        """
        self._troubles.ended.clear()
        threading.Thread(target=self._shut_down, daemon=True).start()
        self._troubles.ended.wait(_PATIENCE_S)
        n_spans, n_events = self._spans.n_sent, self._events.n_sent
        self._spans.shutdown()
        self._events.shutdown()
        if (n_spans, n_events) == (self._n_spans, self._n_events):
            return None
        common = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
        where = redact(os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", common))
        return (
            f"{n_spans:,} of {self._n_spans:,} spans and {n_events:,} of {self._n_events:,} "
            f"verdicts reached the collector at {where}{self._troubles.latest}; check "
            "OTEL_EXPORTER_OTLP_ENDPOINT. The run itself lacks nothing."
        )

    def _shut_down(self) -> None:
        self._tracers.shutdown()
        self._loggers.shutdown()
        self._troubles.ended.set()

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Have a question answered, and send a span."""
        assert self._executor is not None
        with self._open_span(unit.method, None, unit, log) as span:
            self._searches[unit.key] = NonRecordingSpan(span.get_span_context())
            response = await self._executor.search_unit(unit, log)
            unit_ids = None if response.retrieved is None else response.retrieved.text_unit_ids
            values: Values = {"gtog.latency_s": response.latency_s}
            if unit_ids is not None:
                documents = json.dumps([{"id": unit_id} for unit_id in unit_ids])
                values = {**values, "gen_ai.retrieval.documents": documents}
            span.set_attributes(
                _clean({**values, **self._content([unit.sample.question], response.response)})
            )
            if response.failure is not None:
                _mark_failed(span, response.failure.kind, response.failure.message)
        return response

    async def judge_unit(
        self, unit: Unit, response: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged on some metrics, and send a span and the verdicts."""
        assert self._executor is not None
        search = self._searches.get(unit.key)
        with self._open_span("judge", search, unit, log) as span:
            verdicts = await self._executor.judge_unit(unit, response, metrics, log)
        for metric, verdict in verdicts.items():
            if verdict.score is not None or verdict.failure is not None:
                self._emit_verdict(metric, verdict, search or span)
        return verdicts

    async def _judge_further(self, task: FurtherTask, log: CallLog) -> Judgement:
        with self._open_span(task.kind, self._searches.get(task.subject), None, log) as span:
            judgement = await task.judge(log)
            if judgement.failed:
                _mark_failed(span, "judge", "The judge failed, in full or in part")
        return judgement

    @contextmanager
    def _open_span(
        self, name: str, parent: Span | None, unit: Unit | None, log: CallLog
    ) -> Generator[Span]:
        values: Values = {"gen_ai.agent.name": name}
        if unit is not None:
            labels = {"gen_ai.data_source.id": unit.sample.imdb_key, "gtog.method": unit.method}
            question = {"gtog.question.id": unit.sample.id, "gtog.trial": unit.trial}
            values = {**values, **labels, **question}
        span = self._start_span("invoke_workflow", name, values, parent)
        log.watch = self._on_call
        quiet = {"record_exception": False, "set_status_on_exception": False}
        with trace.use_span(span, end_on_exit=True, **quiet):
            try:
                yield span
            except BaseException as error:
                _mark_failed(span, type(error).__name__, describe_error(error))
                raise

    def _start_span(
        self,
        operation: str,
        name: str,
        values: Values,
        parent: Span | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        started_ns: int | None = None,
    ) -> Span:
        above = None if parent is None else trace.set_span_in_context(parent)
        span = self._tracer.start_span(f"{operation} {name}", above, kind, start_time=started_ns)
        self._n_spans += span.is_recording()
        always = {"gen_ai.operation.name": operation, "gtog.run.id": self.run_id}
        span.set_attributes(_clean({**always, **values}))
        return span

    def _on_call(self, attempt: CallAttempt, request: Mapping[str, object], reply: object) -> None:
        ended_ns, is_chat = time.time_ns(), attempt.kind == "completion"
        provider, _, model = attempt.model.partition("/")
        values: Values = {
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model,
            "gen_ai.usage.cache_read.input_tokens": attempt.cached_prompt_tokens,
            "gen_ai.response.finish_reasons": attempt.finish_reason and [attempt.finish_reason],
            "gtog.phase": attempt.phase,
            "gtog.tokens_counted_by": attempt.counted_by,
        }
        if attempt.counted_by != "nobody":
            output = attempt.output_tokens if is_chat else None
            usage = {"gen_ai.usage.input_tokens": attempt.prompt_tokens}
            values = {**values, **usage, "gen_ai.usage.output_tokens": output}
        if is_chat:
            messages = cast("Sequence[Message]", request["messages"])
            values = {**values, **self._content(messages, reply)}
        kind = SpanKind.INTERNAL if is_offline(attempt.model) else SpanKind.CLIENT
        started = ended_ns - round(attempt.latency_s * 1e9)
        operation = "chat" if is_chat else "embeddings"
        span = self._start_span(operation, model, values, None, kind, started)
        if attempt.error is not None:
            error_name = attempt.error.partition(":")[0]
            _mark_failed(span, error_name if error_name.isidentifier() else "_OTHER", attempt.error)
        span.end(ended_ns)

    def _content(self, messages: Sequence[Message | str], reply: object) -> dict[str, str]:
        """Return messages and reply in the form of the conventions, if content is asked for."""
        if not self._content_on_spans:
            return {}
        inputs = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
        outputs = [{"role": "assistant", "content": reply}] if isinstance(reply, str) else []
        contents = {"gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}
        return {name: _dump_messages(entries) for name, entries in contents.items() if entries}

    def _emit_verdict(self, metric: str, verdict: JudgeResult, span: Span) -> None:
        score, failure = verdict.score, verdict.failure
        values: Values = {
            "gen_ai.evaluation.name": metric,
            "gen_ai.evaluation.score.value": None if score is None else float(score),
            "gen_ai.evaluation.score.label": None if score is None else ("fail", "pass")[score],
            "gen_ai.evaluation.explanation": verdict.reason if self._content_on_events else None,
            "error.type": None if failure is None else failure.kind,
            "gtog.run.id": self.run_id,
        }
        self._n_events += not isinstance(self._logger, NoOpLogger)
        event = LogRecord(
            timestamp=time.time_ns(),
            context=trace.set_span_in_context(span),
            severity_number=SeverityNumber.INFO,
            event_name="gen_ai.evaluation.result",
            attributes=_clean(values),
        )
        self._logger.emit(event)


def _clean(values: Values) -> dict[str, str | int | float | Sequence[str]]:
    """Return the known values, with secrets removed."""
    present = {name: value for name, value in values.items() if value is not None}
    return {n: redact(value) if isinstance(value, str) else value for n, value in present.items()}


def _mark_failed(span: Span, kind: str, message: str) -> None:
    span.set_attributes(_clean({"error.type": kind}))
    span.set_status(StatusCode.ERROR, redact(message))


def _dump_messages(messages: Sequence[Message]) -> str:
    def parts(text: object) -> list[dict[str, str]]:
        return [{"type": "text", "content": str(text)}]

    entries = [{"role": m["role"], "parts": parts(m["content"])} for m in messages]
    return json.dumps(entries, ensure_ascii=False)
