"""A judge that doubts a ground truth says so beside the score, and people see it first."""

import json

from playwright.sync_api import expect
from support.chromium import open_browser, watched
from support.clock_evaluation import ROWS, flat
from support.openai_server import Behaviour, offline_reply

from graphrag.eval.annotation.review import Review
from graphrag.eval.report.questions import find_wrong
from graphrag.eval.store.atomic_files import PAGE_FILE
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import JudgeResult, MetricScores, combine_repeats

DOUBT = "Two pages differ on who stole it."


def doubting(doubted: str):
    """Return a judge's replies: as the embedded one, and a doubt about one question."""
    others = offline_reply()

    def reply(request: dict[str, object]) -> str:
        prompt = str(request["messages"])
        if "whether an answer is correct" not in prompt:
            return others(request)
        doubt = DOUBT if doubted in prompt else None
        return json.dumps({"reason": "so", "score": int("Reed" in prompt), "doubt": doubt})

    return Behaviour(reply)


def test_a_doubted_row_comes_first_everywhere_and_its_score_stands(make_evaluation, server):
    row = ROWS[2]
    server.behaviour = doubting("no such question")
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    plain = flat(evaluation.done(COLUMNS="200").output)
    assert "doubts" not in plain
    before = {
        e["id"]: e["methods"]["basic"]["scores"] for e in evaluation.read_results()["results"]
    }

    server.behaviour = doubting(row["question"])
    for line in ((), ("judge", "latest")):
        said = evaluation.done(*line, COLUMNS="200").output
        told = said[said.index("The judge doubts") :].splitlines()
        first, second = told[:2]
        assert said.index("The judge doubts") < said.index(" is right on ")
        assert "The judge doubts the ground truth of 1 of 6 questions; no score hangs" in first
        assert f"q3: {DOUBT} (basic)" in second
        entries = evaluation.read_results(folder=evaluation.newest_folder)["results"]
        entries = {each["id"]: each["methods"]["basic"] for each in entries}
        assert {name: entry["scores"] for name, entry in entries.items()} == before
        assert entries["q3"]["doubt"] == {"correctness": DOUBT}
        assert not any("doubt" in entry for name, entry in entries.items() if name != "q3")
    shown = evaluation.done("show", "latest", COLUMNS="200").output
    assert "doubts the ground truth of 1 of 6" in flat(shown)
    one = flat(evaluation.done("show", "latest", "--question", "q3", COLUMNS="200").output)
    assert f"doubts the ground truth: {DOUBT}" in one

    with open_browser() as browser, watched(browser) as page:
        page.goto((evaluation.newest_folder / PAGE_FILE).as_uri())
        first = page.locator("#list li").first
        expect(first).to_contain_text(f"{row['question']}ground truth doubted")
        expect(page.locator("#list")).to_contain_text("ground truth doubted")
        first.locator("a").click()
        expect(page.locator("#question")).to_contain_text(f"The judge doubts it {DOUBT}")

    with EvaluationStore(evaluation.store_path) as store:
        doubts = store.doubts()
    assert doubts == {row["question"]: DOUBT}
    review = Review(evaluation.root / "questions.json", {}, "Ann", doubts)
    assert [each["doubt"] for each in review.rows()] == [DOUBT, "", "", "", "", ""]


def test_of_wrong_answers_the_doubted_ones_come_first():
    def wrong(name: str, **grades: dict[str, object]) -> QueryResult:
        scores, spent = MetricScores(JudgeResult(0, "no")), EfficiencyMetrics(0.1, 1, 1, 1)
        return QueryResult(
            "film", "Who?", "tog", "Ann.", scores, spent, sample_id=name, grades=grades
        )

    results = [wrong("a"), wrong("b", doubt={"correctness": DOUBT})]
    assert find_wrong(results, "tog", "correctness") == (["b", "a"], [])


def test_a_doubt_of_one_repeat_is_kept_and_has_no_vote():
    verdicts = [JudgeResult(1, "a"), JudgeResult(1, "b", doubt=DOUBT), JudgeResult(0, "c")]
    found = combine_repeats(verdicts)
    assert (found.score, found.reason, found.doubt) == (1, "a", DOUBT)
