"""What CI servers and pull requests are told of two runs: JUnit and Markdown."""

import shlex
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from graphrag.eval.compare.compare import RunComparison, compare_runs
from graphrag.eval.compare.setup_changes import judge_changes
from graphrag.eval.report.comparison import answer_comparison, join_reasons
from graphrag.eval.report.pull_request import render_junit, render_markdown
from graphrag.eval.results.method_conditions import BUDGET
from graphrag.eval.results.runs import RunMetadata, RunRows
from graphrag.eval.results.scored_rows import Row
from graphrag.eval.stats.gates import Reason
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.records import RunSetup
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.query.client.usage import Usage

NASTY = "Who | is @octocat?\n</details>\x0b\x00\u202e <img src=x> `a` #1 https://evil.example & *b*"
ALLOWED = {
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message", "type"},
    "system-out": set[str](),
}
"""Element -> attributes, of the schema that CI servers read (junit-10.xsd)."""


def row(number: int, state: State, score: int | None, question: str | None = None) -> Row:
    return Row(
        question_id=f"q{number}",
        document="clock",
        method="tog",
        states={**dict.fromkeys(METRICS, State.NOT_JUDGED), "correctness": state},
        scores={**dict.fromkeys(METRICS), "correctness": score},
        latency_s=1.25,
        censored=state is State.SEARCH_FAILED,
        question=question or f"Question {number}?",
        reference="the same",
    )


def right(number: int, **changes: str) -> Row:
    return row(number, State.SCORED, 1, **changes)


def wrong(number: int, **changes: str) -> Row:
    return row(number, State.SCORED, 0, **changes)


def compare(new: list[Row], old: list[Row]) -> RunComparison:
    sides = [RunRows(rows, RunMetadata(name, name)) for rows, name in ((new, "n"), (old, "o"))]
    return compare_runs(*sides, metrics=["correctness"])


@pytest.fixture
def comparison() -> RunComparison:
    states = {4: State.SEARCH_FAILED, 5: State.JUDGE_UNPARSEABLE, 7: State.ABSTAINED}
    new = [wrong(1, question=NASTY), *map(right, (2, 3, 6, 8))]
    new += [row(n, state, None) for n, state in states.items()]
    old = [right(1, question=NASTY), wrong(2), *map(right, (3, 4, 5, 7, 9))]
    return compare(new, [*old, row(6, State.JUDGE_FAILED, None)])


def test_junit_has_a_test_case_for_each_question(comparison):
    gate, questions = ElementTree.fromstring(render_junit(comparison))
    assert [case.get("name") for case in gate] == ["tog"]
    found = {(case.get("name") or "").split()[0]: case for case in questions}
    tags = {name: [ended.tag for ended in case] for name, case in found.items()}
    assert tags == {
        **{"q1": ["failure"], "q2": ["system-out"], "q3": [], "q4": ["error"], "q7": ["failure"]},
        **{key: ["skipped"] for key in ("q5", "q6", "q8", "q9")},
    }
    told = {name: case[0].get("message") for name, case in found.items() if len(case)}
    assert told["q1"] == "tog: newly wrong: correctness 1 -> 0: judged 1 -> judged 0"
    assert told["q4"] == "tog: search failed: the search failed; baseline: judged 1"
    assert told["q5"] == "tog: unscored: no verdict in the new run: judge unparseable"
    assert told["q6"] == "tog: unscored: no verdict in the baseline: judge failed"
    assert told["q7"] == "tog: newly wrong: correctness 1 -> 0: judged 1 -> abstained"
    assert told["q8"] == "tog: not compared: only in the new run"
    assert {name: case.get("time") for name, case in found.items()} == {
        **dict.fromkeys(found, "1.250"),
        "q8": None,
        "q9": None,
    }
    assert found["q3"].get("classname") == "graphrag.eval.correctness.tog"
    assert found["q3"].get("name") == "q3 of clock: Question 3?"
    counts = {k: questions.get(k) for k in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "9", "failures": "2", "errors": "1", "skipped": "4"}
    # It counts the flips that the gate counts, a failed search as newly wrong.
    (item,) = comparison.items
    changes = [each.change for each in item.questions]
    assert changes.count("newly wrong") + changes.count("search failed") == 3
    assert (item.decision.newly_wrong, item.decision.newly_right) == (3, 1)
    assert changes.count("newly right") == 1


def test_junit_is_of_the_form_that_ci_servers_read(comparison):
    text = render_junit(comparison)
    assert "\ufffd\ufffd" in text  # what XML forbids even escaped
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for element in [each for suite in root for each in suite.iter()]:
        assert set(element.keys()) <= ALLOWED[element.tag], element.tag


def test_markdown_says_the_answer_first_and_what_flipped(comparison):
    usages = {
        "n": Usage(prompt_tokens=1000, output_tokens=234, cost_usd=0.5),
        "o": Usage(prompt_tokens=10, cost_usd=None),
    }
    lines = render_markdown(comparison, usages).splitlines()
    assert lines[0].startswith("### Evaluation gate: ")
    assert "Cost, searches and judge: new run $0.5000 (1,234 tokens); baseline price not " in (
        "\n".join(lines)
    )
    place = lines.index("<details>")
    assert (
        lines[place + 1] == "<summary>Answers that flipped: 3 newly wrong, 1 newly right</summary>"
    )
    assert lines[place + 3].startswith("- newly wrong: tog, correctness: q1 of clock: Who ")
    assert lines[place + 6] == "- newly right: tog, correctness: q2 of clock: Question 2?"


def test_one_reason_is_told_once_with_the_names_of_what_it_is_of():
    loss = "a loss of up to {} points can't be ruled out, more than the accepted loss of {} points"
    worst = {"tog": "8.1", "ppr": "12.5", "bm25": "8.1"}
    same = {method: Reason(loss, (worst[method], "5")) for method in worst}
    assert join_reasons(same) == (
        "A loss of up to 8.1 (tog and bm25) and 12.5 (ppr) points can't be ruled out, more than "
        "the accepted loss of 5 points."
    )
    assert join_reasons({"tog": same["tog"]}) == f"A{loss.format(8.1, 5)[1:]}."
    other = {**same, "local": Reason("there is nothing to compare")}
    assert join_reasons(other).endswith("loss of 5 points; local: there is nothing to compare")
    missing = {"tog": ("90%", "10"), "ppr": ("80%", "20")}
    judged = {m: Reason("{} of {} verdicts", figures) for m, figures in missing.items()}
    assert join_reasons(judged) == "tog: 90% of 10 verdicts; ppr: 80% of 20 verdicts"


def test_a_number_in_a_name_is_no_figure():
    changed = {
        method: judge_changes([f"report {year}"], accepts=False)[0]
        for method, year in (("tog", 2023), ("ppr", 2024))
    }
    assert join_reasons(changed).startswith(
        "The index of report 2023 (tog) and report 2024 (ppr) changed since the baseline, or "
    )


def test_what_every_method_leaves_out_is_told():
    old = [replace(right(n), method=method) for method in ("tog", "ppr") for n in range(12)]
    answer = answer_comparison(compare([*old[:10], *old[12:21]], old))
    assert answer.score.startswith("10 questions compared; of 19 answers, 0 newly wrong")
    assert answer.score.endswith("; left out: 5 only in the baseline.")


def test_more_questions_are_not_named_where_verdicts_are_missing():
    old = [replace(right(n), method=method) for method in ("tog", "ppr") for n in range(12)]
    unscored = [replace(row(n, State.JUDGE_FAILED, None), method="ppr") for n in range(6)]
    answer = answer_comparison(compare([*old[:12], *unscored, *old[18:]], old))
    assert (answer.chip, answer.next) == ("INCONCLUSIVE", "")
    assert answer_comparison(compare(old, old)).next == "hundreds more questions decide"


def test_flips_are_counted_of_answers_and_few_questions_give_no_number():
    def twice(rows: list[Row]) -> list[Row]:
        return [*rows, *(replace(each, method="ppr") for each in rows)]

    old = [right(n) if n % 2 else wrong(n) for n in range(12)]
    new = [right(0), *old[1:11], wrong(11)]
    answer = answer_comparison(compare(twice(new), twice(old)))
    assert answer.score == "12 questions compared; of 24 answers, 2 newly wrong, 2 newly right."
    assert (answer.chip, answer.next) == ("TOO FEW", "hundreds more questions decide")


def with_budgets(comparison, new, baseline):
    def side(of, by_index):
        asked = {key: {"tog": {"settings": {BUDGET: size}}} for key, size in by_index.items()}
        return replace(of, setup=RunSetup({"indexes": asked}))

    given = side(comparison.new, new), side(comparison.baseline, baseline)
    return answer_comparison(replace(comparison, new=given[0], baseline=given[1]))


def test_a_budget_that_changed_is_said_first(comparison):
    answer = with_budgets(comparison, {"clock": 8000}, {"clock": 2000})
    told = "Budgets of context changed: tog 2,000 -> 8,000 tokens. Undecided"
    assert answer.headline.startswith(told)


def test_an_index_that_one_run_asked_says_nothing_of_budgets(comparison):
    answer = with_budgets(comparison, {"clock": 2000}, {"clock": 2000, "tower": 2000})
    assert "Budgets" not in answer.headline


def test_a_run_that_judged_again_paid_for_the_judge_alone(comparison):
    judged = replace(comparison.new, setup=RunSetup({"responses_of": "o"}))
    text = render_markdown(replace(comparison, new=judged), {"n": Usage(cost_usd=0.0)})
    assert "new run $0.0000 (0 tokens, judge alone); baseline not known here" in text
    unknown = Usage(cost_usd=None, is_counted=False, cached_prompt_tokens=9)
    text = render_markdown(replace(comparison, new=judged), {"n": unknown})
    assert "price not known (tokens not counted, judge alone)" in text


def test_a_baseline_that_no_store_may_hold_is_not_looked_up(comparison):
    sides = {"new": "n", "baseline": "o"}
    known = {side: RunMetadata(run_id, run_id) for side, run_id in sides.items()}
    answer = answer_comparison(replace(comparison, **known))
    assert (answer.chip, answer.next) == ("INCONCLUSIVE", "look at 3 newly wrong answers")
    assert "show n --changed o" in answer.command
    pinned = RunMetadata("results/baseline.json", "o")
    answer = answer_comparison(replace(comparison, **{**known, "baseline": pinned}))
    assert "show n --question q1" in answer.command


def test_no_text_of_a_question_does_anything_in_markdown(comparison):
    text = render_markdown(comparison)
    (line,) = [line for line in text.splitlines() if "q1 of clock" in line]
    for live in ("@octocat", " | ", "</", "<img", " `a", "#1", "://", " *b", "\0", "\u202e"):
        assert live not in line, live
    assert text.count("</details>") == text.count("<details>") == text.count("\n<details>\n")


@pytest.mark.parametrize(
    "root", ["/a_b/c__d", "/my runs/x_y@2", "/it's/#1", "/_x_,y", "/a_b/www.x/~1"]
)
def test_a_command_in_markdown_runs_when_it_is_copied(comparison, root):
    lines = [
        shlex.join([*program, "view", "--labels", name, "--root", root, "--metric", "a_b,c"])
        for program in (("graphrag", "eval"), (f"{root}/bin/gtog", "eval"))
        for name in ("20_1", "latest")
    ]
    lines.append(shlex.join(["python", "-m", "graphrag.eval", "show", "--root", root]))
    said = f"the *judge* is_not: {lines[0]}, and: {lines[1]}"
    warnings = (said, f"add one ({lines[2]}), or not_; then: {lines[3]}", f"Or: {lines[4]}")
    text = render_markdown(replace(comparison, warnings=warnings))
    spans = [
        each.content
        for token in MarkdownIt().parse(text)
        for each in token.children or ()
        if each.type == "code_inline"
    ]
    assert [span for span in spans if span in lines] == lines
    rest = [span for span in spans if span not in lines]
    assert all("eval view --labels" in span or "eval show" in span for span in rest)
    assert "Warning: the *judge* is_not: <code>" in MarkdownIt().render(text)


def test_ten_flips_are_named_and_a_comparison_of_any_size_stays_below_the_limit():
    old = [right(n, question=f"{n} {'long ' * 900}") for n in range(400)]
    new = [wrong(n, question=f"{n} {'long ' * 900}") for n in range(400)]
    text = render_markdown(compare(new, old))
    assert text.count("- newly wrong: ") == 10
    assert "- ... and 390 more\n" in text
    assert len(text) < 65_536
    few = compare([wrong(1)], [right(1)])
    warnings = tuple(f"{n} " + "\U0001f600" * 1000 for n in range(200))
    text = render_markdown(replace(few, warnings=warnings))
    assert len(text.encode()) < 65_536
    assert text.startswith("### Evaluation gate: ")
    assert "lines left out here" in text
    assert text.count("<details>") == text.count("</details>")
