"""Methods at several context budgets: what is asked, drawn, compared and refused."""

import re
from collections import Counter
from dataclasses import replace
from math import log2
from typing import get_args

import pytest
import yaml
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation, flat

from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.errors import ConfigError
from graphrag.eval.records.answers import EfficiencyMetrics, QueryResult
from graphrag.eval.records.verdicts import (
    Failure,
    JudgeResult,
    MetricScores,
    failed_search_scores,
)
from graphrag.eval.report.answer import answer_run
from graphrag.eval.results.curves import area_under, area_weights, draw_curves
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.query.methods import SearchMethod
from graphrag.query.usage import Usage
from graphrag.tokenizer.get_tokenizer import get_tokenizer

SEARCHES = [name for name in get_args(SearchMethod) if name not in ("global", "drift")]
QUOTES = {
    "q1": "Idris Vane built the tower clock of\nAshcombe.",
    "q2": "Petra Holm owns the Ashcombe Bank.",
    "q3": "Tobias Reed stole the silver pendulum of the\ntower clock.",
}
ASKED = [{**row, "evidence": [QUOTES[row["id"]]]} for row in ROWS[:3]]


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    made = make_evaluation(methods=["basic", "local", "closed_book"])
    made.write_rows(ASKED)
    return made


def names_of(evaluation: Evaluation) -> list[str]:
    return list(evaluation.runs()[0].setup.methods)


def test_a_run_at_budgets_asks_draws_and_compares_areas(evaluation):
    evaluation.configure(budgets=[400, 200])
    result = evaluation.done("--full", COLUMNS="300")
    searches = ["basic@200", "basic@400", "local@200", "local@400"]
    assert names_of(evaluation) == [*searches, "closed_book"]
    (run,) = evaluation.runs()
    asked = Counter(found.method for found in evaluation.responses())
    assert asked == dict.fromkeys([*searches, "closed_book"], 3)
    settings = {n: run.setup.indexes["clock"][n]["settings"] for n in searches}
    assert [settings[n]["max_context_tokens"] for n in searches] == [200, 400, 200, 400]

    summary = evaluation.read_results("summary")
    assert summary["comparisons"] == []  # 10 pairs of names would say nothing of methods
    curves = summary["budget_curves"]
    assert curves["budgets"] == [200, 400]
    assert curves["figures"] == ["correctness", "shown_hit_rate", "shown_recall"]
    by_method = {each["method"]: each for each in curves["curves"]}
    assert list(by_method) == ["basic", "local", "closed_book"]
    assert by_method["closed_book"]["areas"] == {}
    for method in ("basic", "local"):
        small, large = by_method[method]["points"]
        assert small["prompt_tokens"]["mean"] < large["prompt_tokens"]["mean"]
        for point in (small, large):
            prompt = summary["efficiency"][point["name"]]["avg_prompt_tokens"]
            assert point["prompt_tokens"]["mean"] == pytest.approx(prompt)
            mean = summary["by_method"][point["name"]]["correctness"]
            assert point["scores"]["correctness"]["mean"] == pytest.approx(mean)
        area = by_method[method]["areas"]["shown_recall"]
        means = [p["scores"]["shown_recall"]["mean"] for p in (small, large)]
        assert area["mean"] == pytest.approx(sum(means) / 2)
        assert area["n"] == 3
    pairs = {(d["figure"], d["a"], d["b"]): d for d in curves["differences"]}
    assert [key for key, d in pairs.items() if d["p_holm"] is not None] == [
        ("correctness", "basic", "local")
    ]

    assert summary["best"]["winner"] is None
    assert sorted(summary["best"]["contenders"]) == ["basic", "local"]

    shown = flat(result.output)
    assert "(offline baseline models): " in shown
    assert "Area under correctness" in shown
    assert "Scores against tokens" in shown
    text = (evaluation.output / "budget_curves.md").read_text(encoding="utf-8")
    assert "| basic | 200 |" in text
    assert "offline baseline models" in text
    page = (evaluation.output / "report.html").read_text(encoding="utf-8")
    assert '"plot-curve-0"' in page
    assert '"plot-scores"' not in page
    again = evaluation.run("show", "latest", COLUMNS="300")
    assert "Area under correctness" in flat(again.output)
    evaluation.configure(budgets=None)
    evaluation.done("--methods", "basic", "--limit", "1", "-q")
    assert not (evaluation.output / "budget_curves.md").exists()
    assert (evaluation.output / "runs" / run.run_id / "budget_curves.md").exists()


def test_without_a_judge_evidence_is_drawn_and_a_stopped_run_goes_on(evaluation):
    evaluation.write_rows([{**row, "evidence": list(QUOTES.values())} for row in ROWS[:3]])
    evaluation.configure(
        budgets=[200, 400],
        methods=["basic", {"name": "narrow", "method": "basic", "k": 1}, "drift"],
        metrics=[],
        equal_terms=True,
    )
    dry = flat(evaluation.run("--dry-run", COLUMNS="300").output)
    assert "Searches: 15" in dry
    assert (
        "Budgets: 200, 400 tokens of context; basic, narrow at each, drift once; 12 of the "
        "searches are at a budget" in dry
    )
    assert "drift has no context budget and is asked once" in dry
    assert "Equal terms give the form of the answer alone" in dry
    chosen = ("--methods", ",".join([*SEARCHES, "narrow"]))
    evaluation.done(*chosen, "--skip-judge", "-q")
    result = evaluation.run("--retry-errors", *chosen, COLUMNS="300")
    assert "Resuming run" in flat(result.output), result.output
    curves = evaluation.read_results("summary")["budget_curves"]
    assert curves["figures"] == ["shown_hit_rate", "shown_recall"]
    recall = {c["method"]: c["areas"]["shown_recall"]["mean"] for c in curves["curves"]}
    responses = evaluation.responses()
    assert len(responses) == 3 * 2 * (len(SEARCHES) + 1)
    tokenizer = get_tokenizer(encoding_model="o200k_base")
    for found in responses:  # what is shown stays within the budget
        shown = len(tokenizer.encode(found.context_text))
        assert 0 < shown <= int(found.method.partition("@")[2]), found.method
    assert recall["narrow"] < recall["basic"]  # one text unit at either budget
    assert "Area under evidence shown, any" in flat(result.output)


AT = {"budgets": [200, 400]}
TIGHT = {"name": "tight", "method": "basic", "max_context_tokens": 300}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"budgets": ["0", "1000"]}, "whole and each at least 200, such as 1000,2000,4000; not"),
        ({"budgets": ["1k", "2k"]}, "not '1k'"),
        ({"budgets": [1000, 2000, 1000]}, "budgets names one twice: 1000, 1000, 2000"),
        ({"budgets": [1000]}, "one budget for all searches is equal_terms.max_context_tokens"),
        ({"budgets": "200,400"}, "budgets is a list of numbers"),
        ({**AT, "judge": {"pairwise": True}}, "judge.pairwise would hold"),
        ({**AT, "methods": ["drift", "oracle"]}, "none of the methods"),
        ({**AT, "methods": [TIGHT]}, "variants.tight sets max_context_tokens of its own"),
        (
            {**AT, "equal_terms": {"max_context_tokens": 300}},
            "budgets and equal_terms.max_context_tokens both set the context budget",
        ),
    ],
)
def test_budgets_that_go_with_nothing_are_refused(config, reason):
    with pytest.raises(ConfigError, match=re.escape(reason)):
        parse_config({"methods": ["basic", "local"], **config}, "eval_config.yaml")


def test_settings_with_budgets_are_read_again_as_they_were():
    variants = [{"name": "wide", "method": "tog", "width": 5}, "oracle"]
    config = EvaluationConfig(methods=["local", *variants], budgets=[1000, 500])
    assert config.methods == ["local@500", "local@1000", "wide@500", "wide@1000", "oracle"]
    assert config.variants["wide@500"].changes == {"width": 5, "max_context_tokens": 500}
    again = EvaluationConfig(**{k: v for k, v in config.to_dict().items() if k != "root"})
    assert again.methods == config.methods
    assert again.curves == {
        "local": {500: "local@500", 1000: "local@1000"},
        "wide": {500: "wide@500", 1000: "wide@1000"},
    }


def test_the_area_is_the_trapezoid_over_doublings():
    assert area_weights((1000, 2000, 4000, 8000)) == pytest.approx((1 / 6, 1 / 3, 1 / 3, 1 / 6))
    assert sum(area_weights((300, 500, 4000))) == pytest.approx(1)
    scores = {300: 0.0, 500: 1.0, 4000: 0.5}
    by_hand = (log2(500 / 300) * 0.5 + log2(4000 / 500) * 0.75) / log2(4000 / 300)
    assert area_under(scores, (300, 500, 4000)) == pytest.approx(by_hand)
    assert area_under({**scores, 500: None}, (300, 500, 4000)) is None
    assert area_under(dict.fromkeys((2, 4, 8), 1), (2, 4, 8)) == pytest.approx(1)
    for wrong in ((1000,), (0, 10), (20, 10)):
        with pytest.raises(ValueError, match="budgets"):
            area_weights(wrong)


def answered(n: int, name: str, score: int | None, tokens: int) -> QueryResult:
    verdict = JudgeResult(score, "because") if score is not None else None
    usage = Usage(llm_calls=1, prompt_tokens=tokens, output_tokens=1, cost_usd=0.0)
    return QueryResult(
        imdb_key="a" if n % 2 else "b",
        question=f"Question {n}?",
        ground_truth="x",
        method=name,
        response="y",
        scores=MetricScores.of({} if verdict is None else {"correctness": verdict}),
        efficiency=EfficiencyMetrics.of(0.1, usage),
        sample_id=f"q{n}",
        usage=usage,
    )


def test_a_method_that_is_better_at_every_budget_wins_by_its_area():
    groups = {m: {b: f"{m}@{b}" for b in (500, 1000, 2000)} for m in ("good", "poor", "middling")}
    share = {"good": 9, "poor": 2, "middling": 5}
    results = [
        answered(n, name, int(n % 10 < share[method]), budget)
        for method, at in groups.items()
        for budget, name in at.items()
        for n in range(60)
    ]
    found = aggregate_results(results, ("correctness",), curves=groups)
    assert found.curves is not None
    assert found.curves.winner == "good"
    areas = {c.method: c.areas["correctness"].mean for c in found.curves.curves}
    assert areas == pytest.approx({"good": 0.9, "poor": 0.2, "middling": 0.5})
    assert found.analysis is not None
    assert found.analysis.comparisons == []
    assert found.to_dict()["best"] == {
        "winner": "good",
        "contenders": ["good"],
        "beaten": {"middling": "good", "poor": "good"},
    }
    p = {(d.a, d.b): (d.result.p, d.p_holm) for d in found.curves.differences}
    assert all(raw is not None and corrected >= raw for raw, corrected in p.values())
    cell = found._repr_html_()
    assert "WINNER: Use good" in cell
    assert cell.count("data:image/svg+xml") == 1  # one curve plot, drawn, and no plot of 9 names

    lost = [replaced for replaced in results if replaced.method != "good@500"]
    lost += [answered(n, "good@500", None if n < 5 else 1, 500) for n in range(60)]
    curves = draw_curves(groups, lost, ("correctness",))
    assert curves is not None
    assert curves.curves[-1].method == "good" or curves.curves[0].method == "good"
    good = next(c for c in curves.curves if c.method == "good")
    assert (good.n_left_out["correctness"], good.areas["correctness"].n) == (5, 55)
    assert curves.winner is None  # of 60 questions 55 have both areas, under 95 %


@pytest.mark.parametrize(
    ("share", "chip"), [({"good": 9, "poor": 2}, "WINNER"), ({"good": 0, "poor": 0}, "TOO FEW")]
)
@pytest.mark.parametrize(("n_answered", "of"), [(0, "60 of 60"), (5, "55 of 60")])
def test_the_answer_says_of_a_method_that_it_failed_at_every_budget(share, chip, n_answered, of):
    groups = {m: {b: f"{m}@{b}" for b in (500, 1000, 2000)} for m in share}
    failed = {"failure": Failure("search", "error", "x"), "scores": failed_search_scores()}
    results = [
        replace(result, **(failed if method == "poor" and n >= n_answered else {}))
        for method, at in groups.items()
        for budget, name in at.items()
        for n in range(60)
        for result in [answered(n, name, int(n % 10 < share[method]), budget)]
    ]
    answer = answer_run(aggregate_results(results, ("correctness",), curves=groups))
    assert answer is not None
    assert answer.chip == chip
    listed = ", ".join(f"{name} {of}" for name in groups["poor"].values())
    assert answer.lead.startswith(f"Failed searches: {listed}.")
    assert answer.next == "see why the searches of poor@500 failed"


def test_the_shipped_run_lets_retrieval_decide(project_root):
    config = yaml.safe_load((project_root / "eval_config.yaml").read_text(encoding="utf-8"))
    budget = config["equal_terms"]["max_context_tokens"]
    for key in config["indexes"]:
        text = (project_root / "eval" / f"{key}.txt").read_text(encoding="utf-8")
        assert len(text) / 5 > 2 * budget  # a token of English has four letters to five
