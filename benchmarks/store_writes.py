"""What it costs to keep calls and responses: eval.db against PostgreSQL on this machine.

Both write the same run in turns, so that a busy machine slows both: 20 responses of 6 calls each,
every call noted as sent, kept when answered, and dropped with its response. It prints the median
writes a second of each, and of each pair of turns the ratio. "relaxed" is PostgreSQL that answers
before a write is on the disk (``synchronous_commit = off``).

    uv run --extra test python benchmarks/store_writes.py [--url postgresql://user@host/database]

Without ``--url`` a server of its own is started, which forces every write to disk as a real one
does; Debian's package ``postgresql`` has it.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgresql_server import running_postgresql

from graphrag.eval.store import (
    CallScope,
    EvaluationStore,
    RunSetup,
    StoredResponse,
    StoredSession,
    StoreLocation,
)
from graphrag.query.usage import CallAttempt, RecordedCall, summarize_attempts

RESPONSES, CALLS, CONTEXT = 20, 6, "A sentence of the context. " * 800
ATTEMPT = CallAttempt("completion", "openai/gpt-4o", "response", 1000, 100, "provider", 0.1)


def writes_per_second(store: EvaluationStore) -> float:
    """Keep a run and return how many transactions a second that made."""
    run_id = store.add_run(RunSetup({})).run_id
    begin = time.perf_counter()
    for number in range(RESPONSES):
        unit = f"unit{number}"
        journal = StoredSession(store, run_id).journal(CallScope.of_search(unit))
        for call in range(CALLS):
            journal.start(str(call))
            journal.finish(str(call), RecordedCall("An answer. " * 40, (ATTEMPT,)))
        usage = summarize_attempts([ATTEMPT] * CALLS)
        store.append_response(
            run_id, StoredResponse(unit, "q", "tog", "An answer.", CONTEXT, 1.0, usage)
        )
    return RESPONSES * (2 * CALLS + 1) / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="an empty database; default: a server of its own")
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = given.url
        if url is None:
            server = stack.enter_context(running_postgresql())
            server.sql("ALTER SYSTEM SET fsync = on")
            server.sql("SELECT pg_reload_conf()")
            url = server.new_database()
        stores = {
            "SQLite": stack.enter_context(EvaluationStore(folder / "eval.db")),
            "PostgreSQL": stack.enter_context(EvaluationStore(StoreLocation(folder, url))),
        }
        relaxed = f"{url}{'&' if '?' in url else '?'}options=-csynchronous_commit%3Doff"
        stores["relaxed"] = stack.enter_context(EvaluationStore(StoreLocation(folder, relaxed)))
        for store in stores.values():
            writes_per_second(store)  # the first turn makes files and plans
        turns = [
            {name: writes_per_second(store) for name, store in stores.items()}
            for _ in range(given.turns)
        ]
    for name in stores:
        found = sorted(turn[name] for turn in turns)
        print(f"{name:>10}: {median(found):7.0f} writes/s ({found[0]:.0f} to {found[-1]:.0f})")
    for name in ("PostgreSQL", "relaxed"):
        ratios = sorted(turn[name] / turn["SQLite"] for turn in turns)
        print(f"{name} / SQLite: {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
