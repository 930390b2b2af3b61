"""A text about an isle, questions about it, and the server as one test sees it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_llm.config import ModelConfig
from support.openai_server import (
    Behaviour,
    Fault,
    FaultPlan,
    Json,
    LocalServer,
    Record,
    Reply,
    Totals,
    totals_of,
)

from graphrag.query.client.usage import RecordedCall, Usage

MakeProject = Callable[..., Path]
QUESTION = "Who repaired the great lamp with Marta Quill?"
METHODS = ("tog", "ppr", "local", "basic", "global", "drift", "bm25", "hybrid", "agentic")

TEXT = """\
Marta Quill keeps the lighthouse on Gannet Isle. The lighthouse was built by Oswin Tarrant in
1871. Oswin Tarrant was an engineer from Port Merrow. Marta Quill repaired the great lamp with
Jonas Feld. Jonas Feld is a glassmaker in Port Merrow. Jonas Feld learned his craft from Berta
Lindqvist. Berta Lindqvist founded the Merrow Glass Company. The Merrow Glass Company made the
lens of the great lamp.

Captain Rufus Doyle sails the ferry Halcyon between Port Merrow and Gannet Isle. Rufus Doyle is
married to Marta Quill. The ferry Halcyon was damaged in the storm of March. Jonas Feld paid for
the repair of the Halcyon. Lady Agnes Thorne owns Gannet Isle. Agnes Thorne wants to sell Gannet
Isle to the Northern Whaling Company. The Northern Whaling Company is led by Silas Crane. Silas
Crane once worked for Berta Lindqvist. Marta Quill wrote a letter to Agnes Thorne about the
sale. Rufus Doyle carried the letter on the Halcyon.
"""


@dataclass
class SpiedServer:
    """A session's server from one test's point of view: only that test's calls."""

    server: LocalServer
    requests: dict[int, Json] = field(default_factory=dict)
    _before: int = 0
    _faults: FaultPlan | None = None

    def __post_init__(self) -> None:
        self.reset(self.server.behaviour.reply)

    @property
    def base_url(self) -> str:
        return self.server.base_url

    def reset(self, reply: Reply) -> None:
        self._before = max((record.sequence for record in self.server.records), default=0)
        self.requests = {}
        self.behave(reply=reply)

    def behave(self, *, faults: FaultPlan | None = None, **changes: object) -> None:
        """Change how later calls are answered; calls are numbered from 1 in each test."""
        self._faults = faults
        given = {"reply": self.server.behaviour.reply, **changes}
        self.server.behaviour = Behaviour(faults=self._remember, **given)

    def _remember(self, sequence: int, request: Json) -> Fault | None:
        number = sequence - self._before
        self.requests[number] = request
        return None if self._faults is None else self._faults(number, request)

    @property
    def records(self) -> list[Record]:
        """The calls of this test, in order of arrival."""
        return [record for record in self.server.records if record.sequence > self._before]

    def of(self, endpoint: str) -> list[Record]:
        return [record for record in self.records if record.endpoint == endpoint]

    def totals(self) -> dict[str, Totals]:
        return self.server.totals(after=self._before)

    def naming(self, mark: str) -> list[Record]:
        """The calls whose request holds a mark, embeddings included."""
        return [
            record
            for record in self.records
            if mark in str(self.requests[record.sequence - self._before])
        ]


def seen(records: list[Record]) -> tuple[int, ...]:
    """Sum records up as :func:`counted` does a usage."""
    sums = totals_of(records)
    chat, embedded = sums["chat"], sums["embeddings"]
    failed = chat.failed_calls + embedded.failed_calls
    tokens = (chat.prompt_tokens, chat.output_tokens, embedded.prompt_tokens)
    return (chat.calls, embedded.calls, failed, *tokens)


def counted(usage: Usage) -> tuple[int, ...]:
    tokens = (usage.prompt_tokens, usage.output_tokens, usage.embedding_tokens)
    return (usage.llm_calls, usage.embedding_calls, usage.failed_calls, *tokens)


def chat_gets(fault: Fault) -> FaultPlan:
    """Plan this fault for every completion."""
    return lambda _, request: fault if "messages" in request else None


def model_config(server: SpiedServer | None, kind: str = "direct", **more: object) -> ModelConfig:
    """Return a model of the server that is asked directly or through litellm."""
    base = "http://127.0.0.1:9/v1" if server is None else server.base_url
    written = {"type": kind} if kind == "litellm" else {}
    given = {"model": "gpt-4o", "model_provider": "openai", "api_base": base, "api_key": "none"}
    return ModelConfig.model_validate({**written, **given, **more})


class MemoryJournal:
    """Keeps the calls in memory and notes what it was told."""

    def __init__(self) -> None:
        self.calls: dict[str, RecordedCall] = {}
        self.in_flight: Counter[str] = Counter()

    def replay(self, key: str) -> RecordedCall | None:
        return self.calls.get(key)

    def start(self, key: str) -> None:
        self.in_flight[key] += 1

    def finish(self, key: str, call: RecordedCall) -> None:
        self.in_flight[key] -= 1
        self.calls[key] = call

    def abandon(self, key: str) -> None:
        self.in_flight[key] -= 1
