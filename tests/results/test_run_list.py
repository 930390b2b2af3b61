"""The list of runs says what a run's summary says, to the last digit."""

import json
import random
import sqlite3
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.eval import StoredRun, list_runs
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import StoreError
from graphrag.eval.metrics.quality import QUALITY_MEASURES
from graphrag.eval.results.runs import LINE
from graphrag.eval.results.scored_rows import FAILED_AS_0
from graphrag.eval.runner.run_setup import describe_setup
from graphrag.eval.store.atomic_files import SUMMARY_FILE, run_folder
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.figure_cache import KeptFigures, begin_keeping, keep_figures
from graphrag.eval.store.records import Judgement, RunDetails, RunSetup, StoredResponse
from graphrag.eval.types.code_digest import digest_code
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.usage import Usage

METHODS, N = ("tog", "basic"), 60
FURTHER: dict[str, object] = {"further": {"quality": {}}}


def usage_of(chance: random.Random, model: str) -> Usage:
    """Return a usage whose dollars have many digits; now and then one that is not counted."""
    cost, counted = chance.random() / 7, chance.random() > 0.05
    return Usage(2, chance.randrange(9000), 300, cost_usd=cost, models=(model,), is_counted=counted)


def verdicts_of(chance: random.Random, is_whole: bool) -> dict[str, JudgeResult]:
    """Return verdicts of which some failed, are missing, or are a majority."""
    found: dict[str, JudgeResult] = {}
    for metric in DEFAULT_METRICS:
        score, kind = chance.randrange(2), chance.randrange(8)
        if kind == 0:
            found[metric] = JudgeResult(None, "-", Failure("judge", "unreadable", "no JSON"))
        elif kind == 1:
            found[metric] = JudgeResult(score, "said", repeats=(score, 1 - score, score))
        elif is_whole or kind > 2:
            found[metric] = JudgeResult(score, "said")
    return found


def keep(folder: Path, trials: int, is_whole: bool, all_lost: bool = False) -> tuple[str, str]:
    """Keep a run and one that judges its responses again; return their ids."""
    chance = random.Random(trials)
    samples = [Sample(f"q{i}", f"film{i % 3}", f"Question {i}?", "Truth") for i in range(N)]
    nowhere = {"ground_truth": "", "expected_sources": ("Truth is told",)}
    if not all_lost:
        samples = [replace(s, **nowhere) if i % 9 == 0 else s for i, s in enumerate(samples)]
        samples = [replace(s, answerable=False) if i % 7 == 1 else s for i, s in enumerate(samples)]
    config = EvaluationConfig(
        root=folder, methods=list(METHODS), output={"dir": str(folder)}, trials=trials
    )
    described: dict[str, dict[str, dict[str, object]]] = {
        f"film{k}": {m: {"models": {}} for m in METHODS} for k in range(3)
    }
    setup = describe_setup(config, samples, described, {"model": "openai/gpt-4o"})
    details = RunDetails("command", N * 2 * trials, config.to_dict(), command="graphrag eval")
    units = [(s, m, trial) for s in samples for m in METHODS for trial in range(trials)]
    with EvaluationStore(folder / "eval.db") as store:
        first = store.add_run(setup, samples, details)
        for n, (sample, method, trial) in enumerate(units):
            unit, failed = f"{sample.id} {method} {trial}", all_lost or chance.random() < 0.15
            response = StoredResponse(
                *(unit, sample.id, method, f"Said {n}", "context"),
                latency_s=None if n % 17 == 3 else chance.random() * 9,
                usage=usage_of(chance, "gpt"),
                failure=Failure("search", "timeout", f"late {n}") if failed else None,
                trial=trial,
                abstained=chance.random() < 0.1,
            )
            store.append_response(first.run_id, response)
            if not failed and (is_whole or n % 13):
                judging = usage_of(chance, "judge")
                store.append_verdicts(first.run_id, unit, verdicts_of(chance, is_whole), judging)
        store.append_forgotten(first.run_id, "gone", usage_of(chance, "gpt"))
        store.finish_run(first.run_id)
        judging = RunSetup({**setup.root, **FURTHER, "responses_of": first.run_id})
        again = store.add_run(judging, samples, details)
        store.copy_responses(first.run_id, again.run_id)
        for unit, response in store.responses(again.run_id).items():
            if response.failure is None:
                for _ in range(2):  # judged once more: both are paid for, the latter counts
                    verdicts, judging = verdicts_of(chance, is_whole), usage_of(chance, "judge")
                    store.append_verdicts(again.run_id, unit, verdicts, judging)
                if response.trial == 0:
                    value: dict[str, object] = {m: chance.random() for m in QUALITY_MEASURES}
                    kept = Judgement(unit, "quality", value, False, usage_of(chance, "judge"))
                    store.append_judgement(again.run_id, kept)
        store.finish_run(again.run_id)
    return first.run_id, again.run_id


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("is_whole", [True, False])
def test_the_list_says_what_the_summary_says(tmp_path: Path, trials: int, is_whole: bool):
    ids = keep(tmp_path, trials, is_whole)
    listed = {run.run_id: run for run in list_runs(tmp_path / "eval.db")}
    for run_id in ids:
        shown = CliRunner().invoke(app, ["eval", "show", run_id, "--output", str(tmp_path)])
        assert shown.exit_code == 0, shown.output
        folder = run_folder(tmp_path, run_id)
        summary = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
        line = listed[run_id]
        check_summary(summary, line)


def test_a_run_whose_searches_all_failed_is_listed_as_its_tables_show_it(tmp_path: Path):
    run_id, _ = keep(tmp_path, 1, is_whole=True, all_lost=True)
    line = list_runs(tmp_path / "eval.db")[-1]
    shown = CliRunner().invoke(app, ["eval", "show", run_id, "--output", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    path = run_folder(tmp_path, run_id) / SUMMARY_FILE
    check_summary(json.loads(path.read_text(encoding="utf-8")), line)
    assert line.means["tog"]["relevance"] is None


def check_summary(summary: dict[str, Any], line: StoredRun) -> None:
    for method, metric in product(METHODS, DEFAULT_METRICS):
        outcome = summary["outcomes"][method][metric]
        both = f"{metric}{FAILED_AS_0}" if not outcome["failed_search_is_zero"] else metric
        # Means of repeats are summed by document there: they may differ in the last bit.
        assert outcome["end_to_end"]["mean"] == pytest.approx(line.means[method][both], abs=1e-15)
        assert outcome["end_to_end"]["n"] == line.n[method][both]
    again = "responses_of" in summary["metadata"]["setup"]
    parts = [e["judge_cost_usd"] for e in summary["efficiency"].values()]
    parts += [] if again else [e["cost_usd"] for e in summary["efficiency"].values()]
    parts.append(summary["further_judges_cost_usd"])  # without what the documents don't answer
    beside = ("earlier_attempts", "unfinished_answers")
    parts += [summary["metadata"].get(name, {"cost_usd": 0.0})["cost_usd"] for name in beside]
    assert sum(parts) == pytest.approx(line.cost_usd)
    for method, efficiency in summary["efficiency"].items():
        names = ("avg_prompt_tokens", "avg_output_tokens")
        tokens = [efficiency[name] for name in names]
        listed = line.measured[method]["tokens"]
        assert listed == (None if None in tokens else pytest.approx(sum(tokens)))


def test_a_usage_that_is_no_json_is_a_damaged_row(tmp_path: Path):
    keep(tmp_path, 1, is_whole=True)
    with sqlite3.connect(tmp_path / "eval.db") as db:
        db.execute("UPDATE responses SET usage = '{' WHERE rowid = 3")
    with pytest.raises(StoreError, match="a row of it is damaged"):
        list_runs(tmp_path / "eval.db")


def test_a_figure_that_no_answer_can_take_is_not_known(tmp_path: Path):
    keep(tmp_path, 1, is_whole=True)
    path, usage = tmp_path / "eval.db", Usage(embedding_tokens=-1, cost_usd=0.1).to_dict()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE responses SET usage = ? WHERE rowid = 3", (json.dumps(usage),))
        db.execute("UPDATE responses SET latency_s = -1 WHERE rowid = 5")
    first = list_runs(path)[-1]
    assert first.cost_usd is None
    assert None in {measured["tokens"] for measured in first.measured.values()}


def test_the_list_is_kept_until_a_row_changes_whoever_changes_it(tmp_path: Path):
    first, _ = keep(tmp_path, 1, is_whole=True)
    path = tmp_path / "eval.db"
    before = list_runs(path)
    made_up = json.dumps({**before[-1].to_dict(), "cost_usd": 77.0})
    token = begin_keeping(path, LINE, [first])
    keep_figures(path, LINE, token, {first: KeptFigures(digest_code(), made_up)})
    assert list_runs(path)[-1].cost_usd == 77  # as no row is read
    with sqlite3.connect(path) as db:
        db.execute("UPDATE judge_usage SET usage = usage WHERE rowid = 1")
    assert list_runs(path) == before
    cost = before[-1].cost_usd
    assert cost is not None
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM forgotten WHERE unit = 'gone'")
    after = list_runs(path)[-1].cost_usd
    assert after is not None
    assert after < cost


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE kept_figures SET value = replace(value, '0.', '0.9')",
        "UPDATE kept_figures SET value = '{'",
        "UPDATE kept_figures SET key = 'of another version'",
        "DELETE FROM kept_figures",
        "DROP TABLE kept_figures",
    ],
)
def test_a_kept_line_that_is_damaged_of_other_code_or_gone_is_made_again(
    tmp_path: Path, damage: str
):
    keep(tmp_path, 1, is_whole=True)
    path = tmp_path / "eval.db"
    before = list_runs(path)
    with sqlite3.connect(path) as db:
        db.execute(damage)
    assert list_runs(path) == before


def test_what_is_kept_counts_for_nothing_where_changes_were_not_noticed(tmp_path: Path):
    keep(tmp_path, 1, is_whole=True)
    path = tmp_path / "eval.db"
    before = list_runs(path)
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER outdate_responses_update")
        db.execute("UPDATE responses SET latency_s = latency_s + 1, usage = usage")
    assert list_runs(path) != before
    (slower, seconds) = (
        runs[-1].measured["tog"]["latency_s"] for runs in (list_runs(path), before)
    )
    assert slower == pytest.approx((seconds or 0) + 1)


def test_what_changes_while_a_line_is_made_is_noticed(tmp_path: Path):
    first, _ = keep(tmp_path, 1, is_whole=True)
    path = tmp_path / "eval.db"
    line = list_runs(path)[-1]
    token = begin_keeping(path, LINE, [first])
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM forgotten")
    keep_figures(path, LINE, token, {first: KeptFigures(digest_code(), json.dumps(line.to_dict()))})
    assert list_runs(path)[-1].cost_usd != line.cost_usd
