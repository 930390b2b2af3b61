"""Stores requests to models and their replies, compressed; equal long texts only once.

Prompts share most of their text: rules, texts of an index, what a judge reads of a search. They are
cut before and after each long line, so that equal passages make equal parts. A long part is kept
once for all runs of a store, under a hash of its text. The hash has 64 bits: among a million parts,
two different ones share a hash in one store out of some 30 million. The tables are made by the
first run that keeps calls, so that every release of this format reads the store with them and
without.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from graphrag.eval.store.records import CallScope, now
from graphrag.eval.store.sqlite import Statement, Values
from graphrag.eval.types.query_results import KeptCalls
from graphrag.query.client.usage import Exchange, Exchanges
from graphrag.text.redaction import redact, redact_data
from graphrag.text.terminal_escape import mend_text

EXCHANGE_TABLES = (
    "CREATE TABLE IF NOT EXISTS exchanges (run_id TEXT NOT NULL REFERENCES runs, "
    "unit TEXT NOT NULL, work TEXT NOT NULL, recorded_at TEXT NOT NULL, said BLOB NOT NULL, "
    "PRIMARY KEY (run_id, unit, work, recorded_at))",
    "CREATE TABLE IF NOT EXISTS exchange_parts (id INTEGER PRIMARY KEY, text BLOB NOT NULL)",
)
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = 'exchanges'"
_KEEP = "INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?, ?, ?)"
_KEEP_PART = "INSERT OR IGNORE INTO exchange_parts VALUES (?, ?)"
_FORGET = "DELETE FROM exchanges WHERE run_id = ? AND unit = ?"
_LINE_END = re.compile(r"\\n|\n")  # of a text, and of one in JSON
_LONG_LINE = 256
_SHORTEST_PART = 160

Read: TypeAlias = Callable[[str, tuple[object, ...]], list[Values]]
"""A function that takes a query and its values, and returns rows."""


def keep_exchanges(
    read: Read, run_id: str, scope: CallScope, exchanges: Exchanges
) -> Iterator[Statement]:
    """Yield the statements that keep a scope's exchanges; a search's replace all of its unit.

    API keys that are known only by their form are looked for in new parts alone, because that
    takes long.
    """
    parts: dict[int, str] = {}
    listed = [
        _pack_exchange(exchange, lambda text: _cut(text, parts))
        for exchange in sorted(exchanges.listed, key=lambda exchange: exchange.began)
    ]
    if scope == CallScope.of_search(scope.unit):
        yield _FORGET, (run_id, scope.unit)
    ids = {number for (number,) in read(f"SELECT id {_from_parts(parts)}", (*parts,))}
    for number in parts.keys() - ids:
        yield _KEEP_PART, (number, _packed(redact(parts[number])))
    content = _packed(json.dumps(listed, ensure_ascii=False, separators=(",", ":")))
    yield _KEEP, (run_id, scope.unit, scope.work, now(), content)


def read_exchanges(read: Read, run_id: str, units: Sequence[str]) -> dict[str, list[KeptCalls]]:
    """Return unit -> its model calls.

    If a run judged another run's responses again, the calls of searches are that run's.
    """
    if not read(_IS_THERE, ()):
        return {}
    sql = (
        "SELECT unit, work, said FROM exchanges WHERE (run_id = ?1 OR work = 'search' AND run_id = "
        "(SELECT json_extract(setup, '$.responses_of') FROM runs WHERE run_id = ?1)) "
        f"AND unit IN ({', '.join('?' * len(units))}) ORDER BY work <> 'search', recorded_at"
    )
    rows = [
        (unit, work, json.loads(_unpacked(content)))
        for unit, work, content in read(sql, (run_id, *units))
    ]
    every = (piece for *_, listed in rows for pieces in _texts(listed) for piece in pieces)
    ids = {piece for piece in every if isinstance(piece, int)}
    kept = read(f"SELECT id, text {_from_parts(ids)}", (*ids,))
    parts = {number: _unpacked(text) for number, text in kept}
    calls: dict[str, list[KeptCalls]] = {}
    for unit, work, listed in rows:
        for pieces in _texts(listed):
            pieces[:] = [parts[piece] if isinstance(piece, int) else piece for piece in pieces]
        calls.setdefault(str(unit), []).append({"work": str(work), "exchanges": listed})
    return calls


def _from_parts(ids: Iterable[int]) -> str:
    return f"FROM exchange_parts WHERE id IN ({', '.join('?' for _ in ids)})"


def _texts(exchanges: list[dict[str, Any]]) -> Iterator[list[Any]]:
    for exchange in exchanges:
        yield from (pieces for _, pieces in exchange["sent"])
        yield from (exchange["settings"], exchange["reply"] or [])


def _pack_exchange(exchange: Exchange, cut: Callable[[str], list[int | str]]) -> dict[str, object]:
    attempt = exchange.attempt.to_dict()
    return {
        "attempt": {k: v for k, v in attempt.items() if v is not None and v is not False},
        "sent": [(role, cut(text)) for role, text in exchange.sent],
        "settings": cut(exchange.settings),
        "reply": None if exchange.reply is None else cut(exchange.reply),
    }


def _cut(text: str, parts: dict[int, str]) -> list[int | str]:
    """Return the pieces of a text: short ones as they are, long ones as numbers in ``parts``."""
    pieces: list[int | str] = []
    for part in _split_text(mend_text(redact_data(text))):
        if len(part) >= _SHORTEST_PART:
            digest = hashlib.blake2b(part.encode(), digest_size=8).digest()
            number = int.from_bytes(digest, signed=True)
            parts[number] = part
            pieces.append(number)
        elif pieces and isinstance(last := pieces[-1], str):
            pieces[-1] = last + part
        else:
            pieces.append(part)
    return [redact(piece) if isinstance(piece, str) else piece for piece in pieces]


def _split_text(text: str) -> Iterator[str]:
    """Yield a text in pieces: each long line, and the short lines between two of them."""
    begun = at = 0
    for end in (*(match.end() for match in _LINE_END.finditer(text)), len(text)):
        if end - at >= _LONG_LINE:
            if begun < at:
                yield text[begun:at]
            yield text[at:end]
            begun = end
        at = end
    if begun < len(text):
        yield text[begun:]


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 9)


def _unpacked(kept: object) -> str:
    try:
        return zlib.decompress(cast("bytes", kept)).decode()
    except zlib.error as error:
        raise ValueError(str(error)) from error
