"""What it costs to keep calls and responses in eval.db on this machine.

It writes the same run again and again: 20 responses of 6 calls each, every call noted as sent, kept
when answered, and dropped with its response. It prints the median writes a second.

    uv run python benchmarks/store_writes.py
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import CallScope, RunSetup, StoredResponse
from graphrag.eval.store.session import StoredSession
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
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        EvaluationStore(Path(folder) / "eval.db") as store,
    ):
        writes_per_second(store)  # the first turn makes files and plans
        found = sorted(writes_per_second(store) for _ in range(given.turns))
    print(f"{median(found):.0f} writes/s ({found[0]:.0f} to {found[-1]:.0f})")


if __name__ == "__main__":
    main()
