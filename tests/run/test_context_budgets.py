"""Methods at several context budgets: variants, as those are that 1.1.0 made of ``budgets``."""

import json
import sqlite3
from contextlib import closing
from typing import Any, get_args

import pytest
import yaml
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat
from support.viewed_store import serving

from graphrag.query.methods import SearchMethod
from graphrag.tokenizer.get_tokenizer import get_tokenizer

SEARCHES = [name for name in get_args(SearchMethod) if name not in ("global", "drift")]


def at(method: str, *budgets: int, **settings: Any) -> list[dict[str, Any]]:
    return [
        {"name": f"{method}@{n}", "method": method, "max_context_tokens": n, **settings}
        for n in budgets
    ]


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    made = make_evaluation(methods=["basic"])
    made.write_rows(ROWS[:3])
    return made


def test_what_every_search_shows_stays_within_its_budget(evaluation):
    variants = [variant for method in SEARCHES for variant in at(method, 200, 400)]
    evaluation.configure(methods=variants, metrics=[])
    evaluation.done("--skip-judge", "-q")
    responses = evaluation.responses()
    assert len(responses) == 3 * 2 * len(SEARCHES)
    tokenizer = get_tokenizer(encoding_model="o200k_base")
    for found in responses:
        shown = len(tokenizer.encode(found.context_text))
        assert 0 < shown <= int(found.method.partition("@")[2]), found.method


def test_a_run_that_was_asked_at_budgets_is_one_of_its_variants(evaluation):
    """1.1.0 kept ``budgets`` in the settings of a run, and the variants that it made of them."""
    asked = evaluation.root / "eval_config.yaml"
    mine = asked.read_text(encoding="utf-8")
    evaluation.configure(methods=[*at("basic", 200, 400), "closed_book"], metrics=["correctness"])
    evaluation.done("-q")
    evaluation.done("-q")
    summary = evaluation.read_results("summary")
    newer, older = evaluation.runs()
    with closing(sqlite3.connect(evaluation.store_path)) as db, db:
        for run_id, text in db.execute("SELECT run_id, details FROM runs").fetchall():
            details = json.loads(text)
            details["config"] |= {"budgets": [200, 400]}
            line = "UPDATE runs SET details = ? WHERE run_id = ?"
            db.execute(line, (json.dumps(details), run_id))
    asked.write_text(mine, encoding="utf-8")  # nothing of it names a variant any more

    shown = evaluation.done("show", newer.run_id, "--full", COLUMNS="300")
    assert "basic@200" in shown.output
    assert evaluation.read_results("summary", evaluation.newest_folder) == summary
    pairs = {(pair["a"], pair["b"]) for pair in summary["comparisons"]}
    assert ("basic@200", "basic@400") in pairs
    assert "Budgets of context differ: basic@200 200; basic@400 400 tokens." in flat(shown.output)
    evaluation.done("compare", newer.run_id, older.run_id, code=3)
    evaluation.done("judge", newer.run_id, "--metrics", "relevance", "-q")
    judged = evaluation.runs()[0]
    assert judged.setup.methods == ("basic@200", "basic@400", "closed_book")
    searched = {"basic@200": "basic", "basic@400": "basic"}
    assert judged.details.search_methods == searched
    with serving(evaluation.output) as served:
        assert "basic@400" in served.client.get(f"/runs/{newer.run_id}").text


def test_the_shipped_run_lets_retrieval_decide(project_root):
    config = yaml.safe_load((project_root / "eval_config.yaml").read_text(encoding="utf-8"))
    budget = config["equal_terms"]["max_context_tokens"]
    for key in config["indexes"]:
        text = (project_root / "eval" / f"{key}.txt").read_text(encoding="utf-8")
        assert len(text) / 5 > 2 * budget  # a token of English has four letters to five
