"""A collector of OpenTelemetry on 127.0.0.1, which keeps what it is sent."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.http_service import serving

Json = dict[str, Any]
_KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/logs": ExportLogsServiceRequest}


class Collector:
    """``spans`` and ``events`` as JSON, their attributes by name; ``resources`` likewise."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Json] = []
        self.events: list[Json] = []
        self.resources: list[Json] = []
        self.bodies: list[bytes] = []

    def take(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        values = MessageToDict(_KINDS[path].FromString(body))
        for batch in values.get("resourceSpans", []) + values.get("resourceLogs", []):
            self.resources.append(_plain(batch["resource"])["attributes"])
            for scope in batch.get("scopeSpans", []):
                self.spans += map(_plain, scope["spans"])
            for scope in batch.get("scopeLogs", []):
                self.events += map(_plain, scope["logRecords"])

    def named(self, operation: str) -> list[Json]:
        """Return the spans of an operation."""
        key = "gen_ai.operation.name"
        return [span for span in self.spans if span["attributes"][key] == operation]

    def __str__(self) -> str:
        return json.dumps([self.spans, self.events, self.resources]) + str(self.bodies)


def _plain(values: Json) -> Json:
    attributes = {each["key"]: _value(each["value"]) for each in values.get("attributes", [])}
    return {**values, "attributes": attributes}


def _value(value: Json) -> Any:
    ((kind, content),) = value.items()
    return int(content) if kind == "intValue" else content


@contextmanager
def running_collector(status: int = 200) -> Generator[Collector]:
    """Serve until the block ends, answering everything with a status."""
    collector = Collector()

    def answer(path: str, body: bytes, _: object) -> tuple[int, bytes]:
        if status == 200:
            collector.take(path, body)
        return status, b""

    with serving(answer) as collector.url:
        yield collector
