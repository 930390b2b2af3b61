"""What a store holds, but when and how fast it came."""

import sqlite3

from support.clock_evaluation import Evaluation

METHODS = ["tog", "local", "basic"]
_TABLES = {
    "responses": "unit, sample_id, method, response, context_text, usage, failure, trial, "
    "retrieved, abstained",
    "verdicts": "unit, metric, score, reason, failure, repeats",
    "judge_usage": "unit, usage",
    "forgotten": "unit, usage",
    "calls": "scope, call",
    "runs": "status, setup",
}


def rows_of(evaluation: Evaluation) -> dict[str, list[tuple[object, ...]]]:
    """Return table -> its rows, sorted."""
    with sqlite3.connect(evaluation.store_path) as db:
        return {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in _TABLES.items()
        }
