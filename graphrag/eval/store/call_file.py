"""Finished calls in a file of JSON lines, so that what was paid for is not paid for again."""

import json
import os
from pathlib import Path

from pydantic import TypeAdapter

from graphrag.eval.errors import StoreError
from graphrag.query.usage import CallAttempt, RecordedCall
from graphrag.redaction import redact_data

_ATTEMPTS = TypeAdapter(tuple[CallAttempt, ...])


class CallFile:
    """A journal of calls (see ``CallJournal``) in one file; a line that was cut off is passed over.

    StoreError if the file can't be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._calls: dict[str, RecordedCall] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_bytes().splitlines() if path.exists() else []
            self._file = path.open("ab")
            if lines and not path.read_bytes().endswith(b"\n"):
                self._file.write(b"\n")
        except OSError as error:
            msg = f"{path} can't be written: {error.strerror}; choose another --output."
            raise StoreError(msg) from error
        for line in lines:
            try:
                kept = json.loads(line)
                attempts = _ATTEMPTS.validate_python(kept["attempts"])
                self._calls[kept["key"]] = RecordedCall(kept["reply"], attempts)
            except (ValueError, KeyError, TypeError):
                continue

    def __enter__(self) -> "CallFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        return self._calls.get(key)

    def start(self, key: str) -> None:
        """Note nothing: a call that was cut off is sent again."""

    def abandon(self, key: str) -> None:
        """Note nothing: a call that failed is sent again."""

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call before anything is made of it."""
        self._calls[key] = call
        attempts = _ATTEMPTS.dump_python(call.attempts, mode="json")
        line = redact_data(json.dumps({"key": key, "reply": call.reply, "attempts": attempts}))
        try:
            self._file.write(f"{line}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            msg = f"{self._file.name} can't be written: {error.strerror}; make room, and go on."
            raise StoreError(msg) from error
