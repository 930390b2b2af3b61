"""What is kept of runs and of production code over time, by the names a client uses."""

import contextlib
import json
import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from support.clock_evaluation import ROWS, Evaluation
from support.clock_fixtures import maker

from graphrag.eval import MetricPoint, MetricsCollector, StoredRun, list_runs
from graphrag.eval.errors import StoreError
from graphrag.eval.metrics.quality import QUALITY_MEASURES
from graphrag.eval.metrics.rubric import DIMENSIONS
from graphrag.eval.monitoring import MetricsCollector as SameCollector
from graphrag.eval.stats.intervals import t_estimate

DONE = 0
METRICS = ("correctness", "faithfulness", "relevance", "completeness")


@pytest.fixture(scope="module")
def judged(built_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """Return an evaluation with one run, judged in every way and pinned."""
    make = maker(built_project, tmp_path_factory.mktemp("judged"))
    evaluation = make(judge={"rubric": True, "quality": True})
    result = evaluation.run("-q")
    assert result.exit_code == DONE, result.output
    assert evaluation.run("compare", "latest", "--pin").exit_code == DONE
    return evaluation


def test_a_stored_run_has_the_mean_of_everything_judged_and_measured(judged):
    (run,) = list_runs(judged.store_path)
    assert isinstance(run, StoredRun)
    summary = judged.read_json("eval_results_summary.json")
    assert list(run.means) == list(run.measured) == ["tog", "basic"]
    for method, means in run.means.items():
        expected = {
            **{name: summary["by_method"][method][name] for name in METRICS},
            **{f"rubric.{n}": summary["rubric"][method][n]["mean"] for n in DIMENSIONS},
            **{f"quality.{n}": summary["quality"][method][n]["mean"] for n in QUALITY_MEASURES},
        }
        assert means == pytest.approx(expected)
        assert means["correctness"] == run.correctness[method]
        efficiency, figures = summary["efficiency"][method], run.measured[method]
        assert figures["latency_s"] == pytest.approx(efficiency["avg_latency"])
        tokens = efficiency["avg_prompt_tokens"] + efficiency["avg_output_tokens"]
        assert figures["tokens"] == pytest.approx(tokens)
        for name, found in summary["measures"][method]["measures"].items():
            assert figures[name] == pytest.approx(found["estimate"]["mean"])


def test_means_are_of_what_was_asked_for_alone(make_evaluation):
    evaluation = make_evaluation(metrics=["relevance"], methods=["basic"])
    assert evaluation.run("-q", "--skip-judge").exit_code == DONE
    (run,) = list_runs(evaluation.store_path)
    assert run.means == {"basic": {"relevance": None}}
    assert run.correctness == {"basic": None}


def test_the_history_as_json(judged):
    result = judged.run("history", "--json")
    assert result.exit_code == DONE, result.output
    (entry,) = json.loads(result.stdout)
    (run,) = list_runs(judged.store_path)
    wanted = ("run_id", "started_at", "status", "n_questions", "means", "cost_usd", "is_pinned")
    assert {name: entry[name] for name in wanted} == {name: getattr(run, name) for name in wanted}
    assert entry["is_pinned"] is True
    assert entry["n_questions"] == len(ROWS)
    assert entry["embedded_models"]


AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_what_is_recorded_is_read_back_the_oldest_first(tmp_path):
    collector = MetricsCollector(tmp_path / "metrics.db")
    assert MetricsCollector is SameCollector
    assert collector.names() == []
    collector.record("latency", 2.5, labels={"method": "tog"}, at=AT + timedelta(hours=1))
    collector.record("latency", 1.5, at=AT)
    collector.record("answers", 7)
    assert collector.names() == ["answers", "latency"]
    first, second = collector.history("latency")
    assert first == MetricPoint(at=AT, value=1.5, labels={})
    assert (second.at, second.value, second.labels) == (
        AT + timedelta(hours=1),
        2.5,
        {"method": "tog"},
    )
    (now,) = collector.history("answers")
    assert abs(datetime.now(UTC) - now.at) < timedelta(minutes=1)
    assert collector.history("nothing") == []
    again = MetricsCollector(str(tmp_path / "metrics.db"))
    assert again.history("latency") == [first, second]


def test_the_summary_is_a_t_interval(tmp_path):
    collector = MetricsCollector(tmp_path / "metrics.db")
    for hour, value in enumerate((9.0, 1.0, 2.0, 4.0)):
        collector.record("x", value, at=AT + timedelta(hours=hour))
    last = collector.summary("x", last=3)
    expected = t_estimate(np.array([1.0, 2.0, 4.0]), None)
    assert last == {
        "n": 3,
        "mean": pytest.approx(7 / 3),
        "low": pytest.approx(expected.low),
        "high": pytest.approx(expected.high),
        "latest": 4.0,
    }
    assert collector.summary("x")["n"] == 4
    collector.record("one", 3)
    assert collector.summary("one") == {
        "n": 1,
        "mean": 3.0,
        "low": None,
        "high": None,
        "latest": 3.0,
    }
    empty = {"n": 0, "mean": None, "low": None, "high": None, "latest": None}
    assert collector.summary("nothing") == empty
    with pytest.raises(ValueError, match="last"):
        collector.summary("x", last=0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "3", None, True])
def test_what_is_no_number_is_refused(tmp_path, value):
    collector = MetricsCollector(tmp_path / "metrics.db")
    with pytest.raises(ValueError, match="number"):
        collector.record("x", value)  # pyright: ignore[reportArgumentType]
    assert collector.names() == []


def test_threads_and_processes_record_side_by_side(tmp_path):
    path = tmp_path / "metrics.db"
    collectors = [MetricsCollector(path) for _ in range(2)]

    def record(number: int) -> None:
        collectors[number % 2].record("x", number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(record, range(200)))
    assert sorted(point.value for point in collectors[0].history("x")) == list(range(200))


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Not a database, but a page of notes.\n" * 50, encoding="utf-8")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        MetricsCollector(path)
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE kept (x)")
    with pytest.raises(StoreError, match="something else"):
        MetricsCollector(other)
    assert path.read_text("utf-8").startswith("Not a database")
