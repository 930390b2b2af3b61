"""Searches and verdicts made by worker processes, and what one of them is worth."""

import sqlite3

import pytest
from support.clock_evaluation import Evaluation, MakeEvaluation

METHODS = ["tog", "local", "basic"]
TABLES = {
    "responses": "unit, sample_id, method, response, context_text, usage, failure, trial, "
    "retrieved, abstained",
    "verdicts": "unit, metric, score, reason, failure, repeats",
    "judge_usage": "unit, usage",
    "calls": "scope, call",
}


def rows_of(evaluation: Evaluation) -> dict[str, list[tuple[object, ...]]]:
    """Return what a store holds, but when and how fast."""
    with sqlite3.connect(evaluation.store_path) as db:
        return {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in TABLES.items()
        }


def test_two_workers_give_what_one_process_gives(make_evaluation: MakeEvaluation):
    alone = make_evaluation(name="alone", methods=METHODS)
    result = alone.run("--quiet")
    assert result.exit_code == 0, result.output
    shared = make_evaluation(name="shared", methods=METHODS)
    result = shared.run("--quiet", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert rows_of(shared) == rows_of(alone)
    assert shared.read_results() == alone.read_results()
