"""The text, the settings and the server that the tests of this folder share."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from support.openai_server import Behaviour, FaultPlan, LocalServer, Record, Reply

from graphrag.query.usage import RecordedCall

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
    """The session's server from one test's point of view: only that test's calls."""

    server: LocalServer
    requests: dict[int, dict[str, Any]] = field(default_factory=dict)
    _before: int = 0
    _faults: FaultPlan | None = None

    @property
    def base_url(self) -> str:
        return self.server.base_url

    def reset(self, reply: Reply) -> None:
        self._before = max((record.sequence for record in self.server.records), default=0)
        self.requests = {}
        self.behave(reply=reply)

    def behave(self, *, faults: FaultPlan | None = None, **changes: Any) -> None:
        """Change how later calls are answered; calls are numbered from 1 in each test."""
        self._faults = faults
        given = {"reply": self.server.behaviour.reply, **changes}
        self.server.behaviour = Behaviour(faults=self._remember, **given)

    def _remember(self, sequence: int, request: dict[str, Any]) -> Any:
        number = sequence - self._before
        self.requests[number] = request
        return None if self._faults is None else self._faults(number, request)

    @property
    def records(self) -> list[Record]:
        """The calls of this test, in order of arrival."""
        return [record for record in self.server.records if record.sequence > self._before]

    def of(self, endpoint: str) -> list[Record]:
        return [record for record in self.records if record.endpoint == endpoint]

    def totals(self) -> Any:
        return self.server.totals(after=self._before)

    def naming(self, mark: str) -> list[Record]:
        """The calls whose request holds a mark, embeddings included."""
        return [
            record
            for record in self.records
            if mark in str(self.requests[record.sequence - self._before])
        ]


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
