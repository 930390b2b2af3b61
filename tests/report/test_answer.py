"""The answer before the tables: which method to take, how sure that is, and what next."""

import json
from dataclasses import replace
from functools import partial
from unittest.mock import ANY

import pytest
from rich.console import Console

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.report.cost_comparison import Prices
from graphrag.eval.report.recommendation import Answer, answer_run
from graphrag.eval.report.recommendation_by_group import answer_kinds
from graphrag.eval.report.run import kinds_table, list_run
from graphrag.eval.report.run_tables import RIGHT, metrics_table, score_table
from graphrag.eval.report.table import show
from graphrag.eval.results.analysis import Analysis, RepeatAnalysis
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.results.human_labels import LabelledQuestion, correct_comparisons
from graphrag.eval.results.method_conditions import Conditions
from graphrag.eval.results.question_groups import Group, Grouping, Lead, group_questions
from graphrag.eval.results.scored_rows import Row, with_every_metric
from graphrag.eval.stats.intervals import Estimate
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.index_costs import IndexCost, StepCost
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores, failed_search_scores
from graphrag.eval.web.plots import plot_run
from graphrag.query.client.usage import Usage

NOTHING = EfficiencyMetrics(1.0, 1, 1, 1)
TOKENS = {
    **{"tog": 9000, "ppr": 2000, "local": 4000, "basic": 1000, "hybrid": 1500, "bm25": 3000},
    **{"a": 9000, "b": 1000, "closed_book": 5000, "small": 3000, "oracle": 300},
}


def evaluate(
    right: dict[str, range],
    n: int = 100,
    usd: float = 0.0,
    asked: dict[str, range] | None = None,
    unread: dict[str, range] | None = None,
) -> EvaluationResults:
    """Return results in which each method answers a range of n questions rightly.

    A method is ``asked`` all unless a range is given; its ``unread`` ones have no verdict.
    """

    def result(i: int, method: str) -> QueryResult:
        verdict = JudgeResult(int(i in right[method]), "")
        if i in (unread or {}).get(method, ()):
            verdict = JudgeResult(None, "", Failure("judge", "error", "503"))
        took = EfficiencyMetrics(1.0, 1, TOKENS[method], 0)
        made = QueryResult("a", f"Q{i}", method, "x", MetricScores(*[verdict] * 4), took)
        return replace(made, usage=Usage(cost_usd=usd * TOKENS[method]), judge_usage=Usage())

    pairs = [(i, m) for i in range(n) for m in right if i in (asked or {}).get(m, range(n))]
    return aggregate_results([result(i, method) for i, method in pairs])


def answer_of(results: EvaluationResults) -> Answer:
    answer = answer_run(results)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("n_labels", "said"),
    [
        (
            100,
            "Right by people's labels, in percent: tog 80, basic 78. The judge says tog 60, basic",
        ),
        (
            70,
            "basic is right on 80 % of questions as people's labels correct it; tog 80. The judge",
        ),
    ],
)
def test_scores_that_labels_correct_are_told_first_and_the_judges_beside_them(n_labels, said):
    right = {"tog": range(20, 80), "basic": range(40)}
    truth = {"tog": range(80), "basic": range(78)}
    seen = evaluate(right)

    def question(i: int) -> LabelledQuestion:
        scores, labels = ({m: int(i in of[m]) for m in of} for of in (right, truth))
        drawn = labels if i % 10 < n_labels // 10 else {}
        stratum = ("a", tuple(map(str, scores.values())))
        return LabelledQuestion(("a", f"Q{i}"), stratum, scores, [*right], drawn)

    labels = {"correctness": list(map(question, range(100)))}
    assert answer_of(seen).chip == "WINNER"
    assert seen.analysis is not None
    analysis = correct_comparisons(seen.analysis, labels)
    corrected = replace(seen, analysis=analysis)
    answer = answer_of(corrected)
    assert answer.score.startswith(said)
    assert "corrected the differences" not in answer.lead
    weighted = "labels weighted by group, bonett-price; p: of the interval"
    name = "bonett-price; p: mcnemar, exact" if n_labels == 100 else weighted
    assert f"Intervals: {name}." in answer.how
    table = score_table(corrected, analysis)
    assert [name for name, _ in table.columns[:3]] == ["method", "right %", "by the judge %"]
    assert [row[:3] for row in table.texts] == [
        ["tog", ANY, "60.0 (50-70)"],
        ["basic", ANY, "40.0 (30-50)"],
    ]
    assert str(table.texts[0][1]).startswith("80.0 (")
    twice = replace(corrected, repeats=RepeatAnalysis(2, 1, ()))
    assert score_table(twice, analysis).note.endswith(" Labels are of the first search.")
    every = metrics_table(["correctness"], analysis)
    assert every.title == "Every metric in %, by the judge (95 % interval each), n questions"
    means = {
        m: Estimate(mean, 30, 0.1, 0.9, "wilson") for m, mean in (("tog", 0.8), ("basic", 0.3))
    }
    group = Group("kind", "fact", 30, means, [Lead("tog", "basic", 30, 0.5, 0.1, 0.8, 0.001, 1)])
    sorted_by_judge = replace(corrected, kinds=(Grouping("kind", (group,), 0),))
    assert kinds_table(sorted_by_judge).title.startswith(
        "By kind of question: correctness in %, by the judge ("
    )
    told = answer_kinds(sorted_by_judge, "basic")
    assert told.startswith("Shown by the judge alone to be better than basic: tog on kind fact")
    drawn = plot_run(corrected, analysis)
    assert [point.x for point in drawn["scores"].series[0].points] == pytest.approx(
        [80, 78 if n_labels == 100 else 80]
    )
    kept = analysis.to_dict()
    assert kept["corrected_means"]["correctness"]["tog"]["estimate"]["mean"] == pytest.approx(0.8)
    assert kept["best"]["contenders"] == ["tog", "basic"]


def ringed(results: EvaluationResults, analysis: Analysis, plot: str) -> list[str]:
    series = plot_run(results, analysis)[plot].series
    return [each.name for each in series if each.points[0].is_ringed]


def test_a_ring_follows_what_the_plot_shows():
    """Bm25 is the quickest, which the plot of tokens does not show; an oracle is no choice."""
    right = {"ppr": range(80), "bm25": range(60), "oracle": range(100)}
    seconds = {"ppr": 2.0, "bm25": 1.0, "oracle": 0.5}
    results = aggregate_results(
        [
            replace(each, efficiency=replace(each.efficiency, latency=seconds[each.method]))
            for each in evaluate(right).results
        ]
    )
    assert results.analysis is not None
    assert ringed(results, results.analysis, "cost") == ["ppr"]
    assert ringed(results, results.analysis, "latency") == ["ppr", "bm25"]
    note = plot_run(results, results.analysis)["cost"].note
    assert note.endswith("in this plot. The control oracle gets none.")


def test_a_ring_goes_by_the_scores_that_labels_corrected():
    right, truth = {"tog": range(60), "basic": range(40)}, {"tog": range(50), "basic": range(60)}
    seen = evaluate(right)
    assert seen.analysis is not None
    questions = [
        LabelledQuestion(
            ("a", f"Q{i}"),
            ("a", ()),
            {m: int(i in right[m]) for m in right},
            [*right],
            {m: int(i in truth[m]) for m in truth},
        )
        for i in range(100)
    ]
    labels = {"correctness": questions}
    assert ringed(seen, seen.analysis, "cost") == ["tog", "basic"]
    assert ringed(seen, correct_comparisons(seen.analysis, labels), "cost") == ["basic"]


def test_few_labels_ask_for_more_of_them_and_not_for_questions():
    right = {"tog": range(50), "basic": range(40, 90)}
    seen, nexts = evaluate(right), list[str]()
    assert seen.analysis is not None
    for n_labels in (70, 100):
        questions: list[LabelledQuestion] = []
        for i in range(100):
            scores = {m: int(i in of) for m, of in right.items()}
            labels = (
                {"tog": int(i % 4 < 3), "basic": int(i % 3 < 2)} if i % 10 < n_labels / 10 else {}
            )
            stratum = ("a", tuple(map(str, scores.values())))
            questions.append(LabelledQuestion(("a", f"Q{i}"), stratum, scores, [*right], labels))
        analysis = correct_comparisons(seen.analysis, {"correctness": questions})
        answer = answer_of(replace(seen, analysis=analysis))
        assert answer.chip == "TOO FEW"
        nexts.append(answer.next)
    assert nexts[0] == "label more answers"
    assert nexts[1].endswith("more questions decide")


def test_one_method_is_told_by_its_labels():
    seen = evaluate({"tog": range(60)})
    assert seen.analysis is not None
    questions = [
        LabelledQuestion(("a", f"Q{i}"), ("a", ()), {"tog": int(i < 60)}, ["tog"], {"tog": 1})
        for i in range(100)
    ]
    labels = {"correctness": questions}
    analysis = correct_comparisons(seen.analysis, labels)
    answer = answer_of(replace(seen, analysis=analysis))
    assert answer.headline == "tog is right on 100 % of questions by people's labels."
    assert "The judge says tog 60." in answer.score
    assert answer.lead.startswith("95 % sure: 96.3 to 100.0 %.")


ALL = range(2000)
CASES = {
    "it beats all others": (
        partial(evaluate, {"local": range(50), "tog": range(80), "basic": range(40)}),
        "WINNER: Use tog. tog is right on 80 % of questions; local 50, basic 40. 100 questions on "
        "1 index, all answered and judged.",
        "Lead over local: 17 to 42 points. Holds for more questions on this index; other",
        "Cost: 9,000 tokens a question, 2.2 times as much as local.",
        "label the answers to 60 questions to check the judge",
    ),
    "what needs least of an index is shown to lose little": (
        partial(evaluate, {"tog": range(1200), "basic": range(2, 1200)}, 2000),
        "TIED: Use basic: as good as tog here, and it needs no graph. basic is right on 60 % of "
        "questions;",
        "It loses less than 5 points to tog, if any. Holds for",
        "Cost: basic takes 1,000 tokens a question, 0.11 times as much as tog.",
        "label the answers to 60",
    ),
    "nothing is shown": (
        partial(evaluate, {"tog": range(60), "local": range(3, 60), "basic": range(10)}, usd=1e-6),
        "TOO FEW: Undecided between tog and local. Right, in percent: tog 60, local 57, basic",
        "local may be up to 8.6 points worse than tog, or 2.7 better. basic is shown to be worse.",
        "Cost: local takes $0.0040 a question, 0.44 times as much as tog.",
        "about 210 more questions decide if the difference stays this large; else about 260",
    ),
    "the cheapest with the highest score is not taken on one question": (
        partial(evaluate, {"tog": range(0), "basic": range(1)}, n=1),
        "TOO FEW: Undecided between basic and tog. Of 1 question right: basic 1, tog 0. 1 question",
        "basic may be up to 73.4 points worse than tog, or 100.0 better.",
        "Cost: basic",
        "hundreds more questions decide",
    ),
    "a difference was seen that more questions would show": (
        partial(
            evaluate,
            {
                "tog": range(19),
                "bm25": range(15),
                "ppr": range(4, 17),
                "basic": range(10),
            },
            n=20,
        ),
        "TOO FEW: Undecided between tog, bm25 and ppr.",
        "",
        "Cost",
        "about 30 more questions decide if the difference stays this large; else hundreds",
    ),
    # On the questions that both were asked tog is right in 60 and basic in 30 of 100.
    "a higher mean on other questions is no reason": (
        partial(
            evaluate, {"tog": range(60), "basic": range(30, 300)}, 300, asked={"tog": range(100)}
        ),
        "TOO FEW: Undecided between basic and tog.",
        "Missing: 200 of 300 searches are not made of tog. Methods were asked different questions",
        "Cost",
        "get what is missing",
    ),
    # Local has not the highest mean, but was asked little: it may be far better than basic.
    "the cheapest is held against every contender": (
        partial(
            evaluate,
            {"tog": range(2, 2000), "local": range(1, 40), "basic": range(3, 2000)},
            2000,
            asked={"local": range(40)},
        ),
        "TOO FEW: Undecided between tog, basic and local. Right, in percent: tog 99.9, ",
        "Missing: 1,960 of 2,000 searches are not made of local.",
        "Cost",
        "get",
    ),
    "missing verdicts may all be losses": (
        partial(evaluate, dict.fromkeys(("tog", "basic"), ALL), 2000, unread={"basic": range(200)}),
        "TOO FEW: Undecided",
        "Missing: 200 of 2,000 verdicts are missing of basic.",
        "Cost",
        "get",
    ),
    "a few of them do not matter": (
        partial(evaluate, dict.fromkeys(("tog", "basic"), ALL), 2000, unread={"basic": range(20)}),
        "TIED: Use basic",
        "It loses",
        "Cost",
        "label",
    ),
    "a method without any verdict is not beaten": (
        partial(evaluate, dict.fromkeys(("tog", "basic"), range(100)), unread={"tog": range(100)}),
        "TOO FEW: Undecided. Right, in percent: basic 100. 100 questions on 1 index, 100 v",
        "Missing: 100 of 100 verdicts are missing of tog.",
        "Cost",
        "get",
    ),
    # B is worse wherever both have a verdict.
    "a winner needs the verdicts": (
        partial(evaluate, {"a": range(60), "b": range(0)}, n=60, unread={"b": range(4)}),
        "TOO FEW: Undecided",
        "Missing: 4 of 60 verdicts are missing of b.",
        "Cost",
        "get",
    ),
    "but not every one": (
        partial(evaluate, {"a": range(60), "b": range(0)}, n=60, unread={"b": range(3)}),
        "WINNER: Use a. a is right on 100 % of questions; b 0. 60 questions on 1 index, 3 verdicts",
        "Lead over b: 90 to 100 points.",
        "Cost",
        "label",
    ),
    "one method has its score": (
        partial(evaluate, {"basic": range(30)}, n=50),
        "basic is right on 30 of 50 questions. 50 questions on 1 index, all",
        "95 % sure: 46.1 to 72.4 %. This is for this index; other indexes may differ.",
        "Cost: 1,000 tokens a question.",
        "compare it with another method",
    ),
    "an oracle is not what others are held against": (
        partial(evaluate, {"oracle": ALL, "tog": range(1200), "basic": range(2, 1200)}, 2000),
        "TIED: Use basic: as good as tog here, and it needs no graph. basic is right on 60 % of "
        "questions; oracle 100, tog 60. 2,000",
        "It loses less than 5 points to tog, if any. Holds for",
        "Cost: basic takes 1,000 tokens a question, 0.11 times as much as tog.",
        "label the answers to 60",
    ),
    "what an oracle lacks keeps nobody from a winner": (
        partial(
            evaluate,
            {"oracle": range(60), "a": range(60), "b": range(0)},
            n=60,
            asked={"oracle": range(40)},
        ),
        "WINNER: Use a. a is right on 100 % of questions; oracle 100, b 0. 60 questions",
        "Lead over b: 88 to 100 points. Holds",
        "Cost: 9,000",
        "get",
    ),
    "one method beside an oracle has its score": (
        partial(evaluate, {"oracle": range(50), "basic": range(30)}, n=50),
        "basic is right on 30 of 50 questions. 50 questions on 1 index, all",
        "95 % sure: 46.1 to 72.4 %. This is for this index; other indexes may differ.",
        "Cost: 1,000 tokens a question.",
        "compare it with another method",
    ),
    "an oracle alone has its score": (
        partial(evaluate, {"oracle": range(30)}, n=50),
        "oracle is right on 30 of 50 questions. 50 questions on 1 index, all",
        *("95 % sure", "Cost: 300 tokens", "compare"),
    ),
    "what people can use is wrong": (
        partial(evaluate, {"oracle": range(100), "tog": range(0), "basic": range(0)}),
        "No answer: correctness is 0 % for every method. 100 questions",
        *("", "", ""),
    ),
    "everything is wrong": (
        partial(evaluate, {"tog": range(0), "basic": range(0)}),
        "No answer: correctness is 0 % for every method. 100 questions",
        *("", "", ""),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_says_what_to_do_how_sure_that_is_and_what_next(case):
    evaluated, line, lead, cost, next_ = CASES[case]
    answer = answer_of(evaluated())
    assert answer.line.startswith(line)
    assert answer.lead.startswith(lead)
    assert answer.cost.startswith(cost)
    assert answer.next.startswith(next_)
    n_words = len(f"{answer.line} {' '.join(answer.reasons)}".split())
    assert n_words <= 70


TIES = {
    ("tog", "bm25"): "Use bm25: as good as tog here, and it needs no graph.",
    ("bm25", "basic"): "Use bm25: as good as basic here, and it needs no vectors.",
    ("tog", "basic", "bm25"): (
        "Use bm25: as good as tog and basic here, and it needs no graph and no vectors."
    ),
    ("tog", "basic", "hybrid"): (
        "Use basic: as good as tog and hybrid here, and it needs no graph and takes fewer tokens "
        "than hybrid."
    ),
    ("tog", "ppr"): "Use ppr: as good as tog here, and it takes fewer tokens.",
    ("tog", "closed_book"): "Use closed_book: as good as tog here, and it needs no index.",
    ("b", "bm25"): "Use bm25: as good as b here, and it needs only text units.",
    ("b", "tog"): "Use b: as good as tog here, and it takes fewer tokens.",
    ("b", "small"): "Use small: as good as b here, and it needs only text units.",
}


@pytest.mark.parametrize("methods", TIES)
def test_a_tie_goes_to_what_needs_least_of_an_index_then_costs_least(methods):
    conditions = Conditions({"small": "bm25"})
    results = evaluate(dict.fromkeys(methods, range(90))).under_conditions(conditions)
    answer = answer_of(results)
    assert (answer.chip, answer.headline) == ("TIED", TIES[methods])
    dear = answer_of(
        evaluate(dict.fromkeys(methods, range(90)), usd=1e-6).under_conditions(conditions)
    )
    assert dear.headline == TIES[methods].replace("takes fewer tokens", "costs less")
    right = {**dict.fromkeys(methods, range(50)), methods[0]: range(90)}
    assert answer_of(evaluate(right)).line.startswith(f"WINNER: Use {methods[0]}.")


@pytest.mark.parametrize(
    ("method", "workflow", "what"),
    [
        ("ppr", "extract_graph", "ppr's graph took 345,678 tokens to build."),
        ("basic", "generate_text_embeddings", "basic's vectors took 345,678 tokens to build."),
    ],
)
def test_what_an_index_took_stands_beside_what_a_question_costs(method, workflow, what):
    kind = "completion" if method == "ppr" else "embedding"
    step = StepCost(workflow, "m", kind, 9, 0, 300_000, 45_678, 0.0)
    costs = {"a": IndexCost("f", {}, steps=(step,))}
    conditions = Conditions({method: method, "bm25": "bm25"}, index_costs=costs)
    results = evaluate(dict.fromkeys((method, "bm25"), range(90))).under_conditions(conditions)
    assert answer_of(results).cost.endswith(what)
    paid = {"a": IndexCost("f", {}, steps=(replace(step, cost_usd=2.5),))}
    right = {method: range(90), "bm25": range(40)}
    results = evaluate(right).under_conditions(replace(conditions, index_costs=paid))
    whose = " ".join(what.split()[:2])
    assert answer_of(results).cost.endswith(f"{whose} took $2.5000 to build.")


def test_of_methods_on_different_indexes_that_tie_the_cheapest_in_all_is_taken():
    step = StepCost("extract_graph", "m", "completion", 9, 0, 300_000, 45_678, 9.0)
    dear, cheap = (IndexCost("f", {}, steps=(replace(step, cost_usd=usd),)) for usd in (9.0, 1.0))
    indexes = {"tog": {"a": "a"}, "ppr": {"a": "a-600"}}
    conditions = Conditions({}, index_costs={"a": cheap, "a-600": dear}, indexes=indexes)
    conditions = replace(conditions, search_methods={"tog": "tog", "ppr": "ppr"})
    results = evaluate({"tog": range(90), "ppr": range(90)}, usd=1e-6)
    answer = answer_of(results.under_conditions(conditions))
    # ppr's questions cost less, and its index more than a thousand of them save.
    assert (answer.chip, answer.headline) == (
        "TIED",
        "Use tog: as good as ppr here, and it is cheapest in all: 1,000 questions and the index "
        "take $10.0000 against $11.0000 or more.",
    )
    assert answer.cost == (
        "Cost: tog takes $0.0090 a question, 4.5 times as much as ppr. ppr's index took $9.0000 "
        "to build, tog's $1.0000."
    )
    never = replace(conditions, index_costs={"a": dear, "a-600": cheap})
    answer = answer_of(results.under_conditions(never))
    assert answer.headline.startswith("Use ppr: as good as tog here, and it is cheapest in all")
    assert answer.cost.endswith("tog's index took $9.0000 to build, ppr's $1.0000.")
    for lacking in ({"a": cheap}, {"a": cheap, "a-600": IndexCost("f", {"all": 7.0})}):
        unknown = answer_of(results.under_conditions(replace(conditions, index_costs=lacking)))
        assert unknown.headline == "tog and ppr tie, and which of them is cheaper is not known."
        winner = evaluate({"tog": range(90), "ppr": range(30)}, usd=1e-6)
        told = answer_of(winner.under_conditions(replace(conditions, index_costs=lacking))).cost
        assert told.endswith("What the index of ppr took to build is not known.")
    # Of two that share an index the need decides, whatever a third method asks.
    three = {"bm25": range(90), "ppr": range(90), "tog": range(10)}
    shared = {"bm25": {"a": "a"}, "ppr": {"a": "a"}, "tog": {"a": "a-600"}}
    searches = {name: name for name in three}
    told = answer_of(
        evaluate(three, usd=1e-6).under_conditions(
            replace(conditions, search_methods=searches, indexes=shared)
        )
    )
    assert told.headline == "Use bm25: as good as ppr here, and it needs no graph."
    # Searches of text units take nothing to build, whatever else their index took.
    texts = replace(conditions, search_methods={"tog": "bm25", "ppr": "bm25"}, index_costs={})
    assert answer_of(results.under_conditions(texts)).headline.startswith("Use ppr: ")


def test_budgets_that_differ_are_said_first_and_nothing_is_compared_across_them():
    budgets = {"tog": {"a": 8000}, "ppr": {"a": 8000}, "bm25": {"a": 12000}}
    told = "Budgets of context differ: tog and ppr 8,000; bm25 12,000 tokens. "
    results = evaluate({"tog": range(90), "ppr": range(50), "bm25": range(60)})
    assert answer_of(results).cost == "Cost: 9,000 tokens a question, 3 times as much as bm25."
    results = results.under_conditions(Conditions(budgets=budgets))
    answer = answer_of(results)
    assert answer.line.startswith(f"WINNER: {told}Use tog. tog is right on")
    assert answer.cost == "Cost: 9,000 tokens a question."
    assert answer.next.startswith("give all methods one budget: equal_terms")
    assert results.metadata["context_budgets"] == budgets
    assert results.analysis is not None
    # Those of variants of one search differ on purpose.
    variants = Conditions(
        budgets=budgets, search_methods={"tog": "bm25", "ppr": "ppr", "bm25": "bm25"}
    )
    answer = answer_of(results.under_conditions(variants))
    assert answer.line.startswith(f"WINNER: {told}Use tog.")
    assert "one budget" not in answer.next
    assert {of.is_pareto for of in results.analysis.efficiency.values()} == {None}
    # Of methods that tie and need the same, tokens decide only where budgets are equal.
    tie = evaluate(dict.fromkeys(("tog", "ppr"), range(90)))
    unequal = tie.under_conditions(Conditions(budgets={"tog": {"a": 8000}, "ppr": {"a": 4000}}))
    answer = answer_of(unequal)
    assert answer.chip == "TIED"
    assert answer.headline.endswith("tog and ppr tie, and which of them is cheaper is not known.")
    assert answer.cost == ""
    equal = tie.under_conditions(Conditions(budgets={m: {"a": 8000} for m in ("tog", "ppr")}))
    assert answer_of(equal) == answer_of(tie)


def test_what_is_behind_the_answer_is_told_to_who_doubts(monkeypatch):
    apart = {"tog": range(50), "basic": range(100, 200)}
    asked = {"tog": range(100), "basic": range(100, 200)}
    answer = answer_of(evaluate(apart, n=200, asked=asked))
    assert answer.chip == "TOO FEW"
    how = " ".join(answer.how)
    assert "tog and basic share 0 of 200." in how
    assert "Every p and interval is for this index only." in how
    assert "p is corrected by Holm" in how
    monkeypatch.setitem(TOKENS, "basic", 9001)
    results = evaluate({"tog": range(90), "basic": range(10)})
    assert answer_of(results).cost == "Cost: 9,000 tokens a question, about as much as basic."
    assert json.loads(results.to_json())["best"] == {
        "winner": "tog",
        "contenders": ["tog"],
        "beaten": {"basic": "tog"},
    }


def test_an_oracle_stays_in_the_tables_and_in_the_family():
    results = evaluate({"oracle": range(100), "tog": range(90), "basic": range(10)})
    best = {"winner": "tog", "contenders": ["tog"], "beaten": {"basic": "tog"}}
    assert json.loads(results.to_json())["best"] == best
    assert results.analysis is not None
    family = [{each.a, each.b} for each in results.analysis.comparisons if each.in_family]
    assert len(family) == 3
    assert [row[0] for row in score_table(results, results.analysis).texts] == [
        *("oracle", "tog", "basic")
    ]
    marked = {m: of.is_pareto for m, of in results.analysis.efficiency.items()}
    assert marked == {"oracle": None, "tog": True, "basic": True}
    assert "oracle" not in answer_of(results).cost


@pytest.mark.parametrize("methods", [["tog"], ["tog", "basic"]])
def test_without_a_verdict_there_is_no_answer(methods):
    assert answer_run(evaluate(dict.fromkeys(methods, range(0)), n=0)) is None
    unjudged = [QueryResult("a", "Q", m, "x", MetricScores(), NOTHING) for m in methods]
    answer = answer_of(aggregate_results(unjudged))
    assert answer.headline == "No question has an answer, so correctness is not judged."
    unjudged = [replace(each, ground_truth="x") for each in unjudged]
    answer = answer_of(aggregate_results(unjudged))
    assert answer.headline == "No answer: no response has a verdict on correctness."
    failed = {"scores": failed_search_scores(), "failure": Failure("search", "error", "x")}
    answer = answer_of(aggregate_results([replace(each, **failed) for each in unjudged]))
    n = len(methods)
    assert answer.headline == f"No answer: every search failed ({n} of {n})."


def test_a_failed_search_counts_whether_or_not_its_question_has_an_answer():
    no_answer = [judged("a", f"no {n}", "tog", True) for n in range(3)]
    failure, nothing = Failure("search", "error", "x"), MetricScores.of({})
    no_answer = [replace(each, ground_truth="", scores=nothing) for each in no_answer]
    failed = [replace(each, failure=failure) for each in no_answer[:2]]
    right = [judged("a", f"Q{n}", "tog", True) for n in range(4)]
    score = answer_of(aggregate_results([*right, *failed, no_answer[2]])).score
    assert score == "7 questions on 1 index, 2 searches failed, 1 answer not judged."


@pytest.mark.parametrize(("n_failed", "is_told"), [(4, False), (5, True)])
def test_of_a_method_that_failed_often_it_is_told_what_its_cost_counts(n_failed, is_told):
    results = evaluate({"tog": range(10, 90), "basic": range(30)})
    cost = answer_of(with_failures(results, {"basic": range(90, 90 + n_failed)})).cost
    told = f" {n_failed} of 100 searches of basic failed, and count in its mean, not in"
    taken = "Cost: 9,000 tokens a question, 9 times as much as basic."
    assert cost == taken + f"{told} comparisons." * is_told


def with_failures(results: EvaluationResults, failed: dict[str, range]) -> EvaluationResults:
    """Return results of which some searches failed before they took a token."""

    def fail(each: QueryResult) -> QueryResult:
        if int(each.question.removeprefix("Q")) not in failed.get(each.method, ()):
            return each
        failure, took = Failure("search", "error", "x"), replace(each.efficiency, prompt_tokens=0)
        scores = failed_search_scores()
        return replace(each, scores=scores, failure=failure, efficiency=took, usage=Usage())

    return aggregate_results([fail(each) for each in results.results])


@pytest.mark.parametrize("usd", [0.0, 1e-6])
def test_a_method_that_fails_fast_is_not_the_cheaper_one(monkeypatch, usd):
    monkeypatch.setitem(TOKENS, "tog", 2010)
    tie = evaluate(dict.fromkeys(("ppr", "tog"), range(90)), usd=usd)
    answer = answer_of(with_failures(tie, {"tog": range(90, 100)}))
    taken = "costs less" if usd else "takes fewer tokens"
    assert answer.headline == f"Use ppr: as good as tog here, and it {taken}."
    assert ", about as much as tog. 10 of 100 searches of tog failed" in answer.cost


def test_of_methods_that_answered_no_question_both_none_is_the_cheaper_one():
    tie = evaluate(dict.fromkeys(("ppr", "tog"), range(0)), n=40)
    results = with_failures(tie, {"ppr": range(20), "tog": range(20, 40)})
    assert results.analysis is not None
    prices = Prices(results, results.analysis)
    assert prices.cheapest(["ppr", "tog"]) is None
    assert prices.reason("ppr", ["tog"]) == ""
    assert prices.line("ppr", "tog").startswith("Cost: 1,000 tokens a question. 20 of 40 searches")


@pytest.mark.parametrize(
    ("right", "dead", "said"),
    [
        ({"basic": 3, "tog": 0}, ["tog"], ": basic is right on 3 % of questions."),
        ({"basic": 60, "tog": 0}, ["tog"], "WINNER: Use basic."),
        (
            {"basic": 3, "bm25": 0, "tog": 2},
            ["bm25"],
            "TIED: Use basic: as good as tog here, and it needs no graph.",
        ),
        ({"tog": 1, "basic": 80, "ppr": 40, "bm25": 0}, ["tog", "bm25"], "WINNER: Use basic."),
        ({"oracle": 9, "tog": 0, "bm25": 0}, ["tog", "bm25"], ": No answer: every search of tog"),
    ],
)
def test_a_method_whose_searches_all_failed_ties_with_nobody(right, dead, said):
    asked = evaluate({method: range(n) for method, n in right.items()})
    answer = answer_of(with_failures(asked, dict.fromkeys(dead, range(100))))
    assert f"{answer.chip}: {answer.headline}".startswith(said)
    if "No answer" in said:
        assert answer.headline == "No answer: every search of tog and bm25 failed (200 of 200)."
        assert answer.next == "see why"
        return
    listed = ", ".join(f"{method} 100 of 100" for method in dead)
    assert answer.lead.startswith(f"Failed searches: {listed}. ")
    assert answer.next == f"see why the searches of {dead[0]} failed"
    if "ppr" in right:
        assert "Lead over ppr" in answer.lead


@pytest.mark.parametrize(
    ("right", "failing", "said"),
    [
        ({"basic": 3, "bm25": 2, "tog": 3}, ["bm25"], "TIED: Use basic: as good as tog here"),
        ({"basic": 3, "bm25": 2}, ["bm25"], ": basic is right on 3 % of questions."),
        ({"basic": 0, "bm25": 2}, ["bm25"], ": basic is right on 0 % of questions."),
        (
            {"basic": 0, "tog": 0, "bm25": 2},
            ["bm25"],
            ": No answer: correctness is 0 % for every method that mostly answered.",
        ),
        (
            {"basic": 0, "tog": 0, "bm25": 30, "ppr": 30},
            ["bm25", "ppr"],
            ": No answer: most searches of bm25 and ppr failed (140 of 200), and no other",
        ),
        ({"basic": 80, "bm25": 2, "tog": 40}, ["bm25"], "WINNER: Use basic."),
        ({"bm25": 2}, ["bm25"], ": No answer: most searches failed (95 of 100)."),
        ({"oracle": 9, "bm25": 2}, ["bm25"], ": No answer: most searches of bm25 failed (95 of"),
        ({"basic": 1, "bm25": 30, "tog": 2}, ["bm25"], "WINNER: Use bm25."),
    ],
)
def test_a_method_most_of_whose_searches_failed_ties_with_nobody(right, failing, said):
    asked = evaluate({method: range(n) for method, n in right.items()})
    n_answered = max(5, right["bm25"])
    answer = answer_of(with_failures(asked, dict.fromkeys(failing, range(n_answered, 100))))
    assert f"{answer.chip}: {answer.headline}".startswith(said)
    if "searches" in said:
        assert answer.next == "see why"
    elif "No answer" not in said:
        assert answer.lead.startswith(f"Failed searches: bm25 {100 - n_answered} of 100. ")
        assert answer.next == "see why the searches of bm25 failed"


def judged(key: str, question: str, method: str, is_right: bool) -> QueryResult:
    scores = MetricScores(*[JudgeResult(int(is_right), "")] * 4)
    return QueryResult(key, question, method, "x", scores, NOTHING)


def test_a_lead_says_on_how_many_documents_it_is_one():
    results = [
        judged(f"d{document}", f"Q{i}", method, method == "tog" or document == 2)
        for document in range(3)
        for i in range(40)
        for method in ("tog", "basic")
    ]
    answer = answer_of(aggregate_results(results))
    assert answer.line.startswith(
        "WINNER: Use tog. tog is right on 100 % of questions; basic 33. 120"
    )
    assert answer.lead.endswith(
        "Holds for more questions on these 3 indexes; other indexes may differ (tog led on 2 of 3)."
    )


def test_of_methods_that_tie_none_leads():
    results = [
        judged(f"d{document}", f"Q{i}", method, is_right=i % 3 > 0)
        for document in range(3)
        for i in range(40)
        for method in ("bm25", "ppr")
    ]
    answer = answer_of(aggregate_results(results))
    assert answer.chip == "TIED"
    assert answer.lead.endswith("these 3 indexes; other indexes may differ.")


def test_an_open_answer_holds_the_price_to_the_best_not_to_the_least_known():
    right = {"bm25": 10, "ppr": 11, "local": 9}
    results = [
        judged("d", f"Q{i}", method, is_right=(i if method != "local" else 19 - i) < right[method])
        for i in range(20)
        for n, method in enumerate(right)
    ]
    answer = answer_of(aggregate_results(results))
    assert answer.chip == "TOO FEW"
    assert "worse than local" in answer.lead
    assert "ppr" in answer.cost
    assert "local" not in answer.cost


def test_a_row_for_each_of_many_documents_does_not_hide_the_answer():
    results = [
        judged(f"d{i}", "Q", method, is_right=True)
        for i in range(21)
        for method in ("tog", "basic")
    ]
    console = Console(record=True, width=400)
    show(console, list_run(aggregate_results(results), full=True))
    shown = console.export_text()
    assert "d20" not in shown
    assert "The summary file has the means on each of the 21 indexes." in shown


@pytest.mark.parametrize(
    ("names", "scope"),
    [
        ([f"d{i}" for i in range(9)], "these 9 indexes; other indexes may differ"),
        ([f"d{i}" for i in range(10)], "indexes like these 10."),
        (["", *(f"d{i}" for i in range(10))], "these 11 indexes; other indexes may differ"),
    ],
)
def test_ten_indexes_speak_for_others_whatever_their_interval_is_called(names, scope):
    results = aggregate_results(
        [
            judged(name, f"Q{i}", method, is_right=method == "tog" or i > 2)
            for name in names
            for i in range(5)
            for method in ("tog", "basic")
        ]
    )
    assert results.analysis is not None
    for outcomes in results.analysis.outcomes.values():
        for metric, of in outcomes.items():
            renamed = replace(of.end_to_end, method="an interval")
            outcomes[metric] = replace(of, end_to_end=renamed)
    assert f"Holds for more questions on {scope}" in answer_of(results).lead


def test_what_was_not_planned_is_refused_by_name():
    result = QueryResult("d", "Q", "tog", "x", MetricScores(), NOTHING)
    for planned in ({"basic": {"d": 1}}, {"tog": {"e": 1}}):
        with pytest.raises(ValueError, match="the plan asks tog nothing about 'd'"):
            aggregate_results([result], planned=planned)


def test_nothing_is_said_by_kind_where_too_much_is_missing():
    right = {"tog": range(0, 100, 2), "basic": range(1, 100, 2)}
    samples = [Sample(str(i), "a", "q", "x", tags={"kind": f"kind {i % 2}"}) for i in range(100)]
    scored = {"correctness": State.SCORED}
    rows = [
        with_every_metric(Row(str(i), "a", method, scored, {"correctness": int(i in of)}, tokens=9))
        for i in range(100)
        for method, of in right.items()
    ]
    kinds = group_questions(rows, dict.fromkeys(right, samples), "correctness")
    assert "Shown to be better" in answer_of(replace(evaluate(right), kinds=kinds)).by_kind
    lacking = evaluate(right, unread={"basic": range(20)})
    assert answer_of(replace(lacking, kinds=kinds)).by_kind == ""


def test_verdicts_that_only_pairs_lack_too_many_of_are_to_be_got_first():
    unread = {"tog": range(4), "ppr": range(96, 100)}
    answer = answer_of(evaluate({"tog": range(50), "ppr": range(2, 50)}, unread=unread))
    assert answer.chip == "TOO FEW"
    assert answer.lead.startswith("Too many verdicts are missing.")
    assert answer.next == "get what is missing"


@pytest.mark.parametrize(
    ("label", "next_"),
    [
        ("offline baseline models", "your own documents and models"),
        ("answers and embeddings: offline baseline models", "your own documents and models"),
        ("some verdicts: offline baseline model", "name a language model as judge.model"),
        ("embeddings: offline baseline model", "label the answers to 60 questions"),
    ],
)
def test_what_is_next_goes_by_what_the_embedded_models_did(label, next_):
    results = evaluate({"tog": range(90), "basic": range(20)})
    results.metadata["embedded_models"] = label
    answer = answer_of(results)
    assert answer.next.startswith(next_)
    assert answer.command.endswith(" init --root PROJECT") == ("documents" in next_)


def test_nothing_is_answered_while_a_method_has_no_result():
    results = evaluate({"tog": range(9), "basic": range(0)}, 10)
    complete = answer_run(results)
    assert complete is not None
    assert complete.chip == "WINNER"
    asked = {"questions": 10, "methods": ["tog", "local", "basic"]}
    results.metadata.update(is_complete=False, n_planned=30, n_done=20, asked=asked)
    answer = answer_run(results)
    assert answer is not None
    assert "No answer: local has no result yet. 10 questions on 1 index, 10 sea" in answer.line
    assert answer.lead == "Missing: all of local."
    assert answer.next == "get what is missing"


def test_searches_that_an_unfinished_run_lacks_are_not_got_by_judging_it_again():
    half = evaluate({"tog": range(9), "ppr": range(3)}, 10).results
    results = aggregate_results(half, planned={"tog": {"a": 20}, "ppr": {"a": 20}})
    results = replace(results, command="graphrag eval judge later")
    assert answer_of(results).command == "graphrag eval judge later --retry-errors"
    results.metadata["setup"] = {"responses_of": "earlier"}
    answer = answer_of(results)
    assert answer.lead.startswith("Missing: 10 of 20 searches are not made of tog")
    assert answer.next == "finish the run whose answers were judged, and judge it again"
    assert answer.command == "graphrag eval show earlier"


def test_all_judged_is_said_of_the_first_metric_where_others_lack_verdicts():
    whole = evaluate({"tog": range(80), "ppr": range(40)})
    first, *others = whole.results
    lost = JudgeResult(None, "", Failure("judge", "unreadable", "?"))
    scores = replace(first.scores, faithfulness=lost)
    partly = aggregate_results([replace(first, scores=scores), *others])
    for results, said in ((whole, "all answered and judged."), (partly, "judged on correctness.")):
        assert answer_of(results).score.endswith(said)


def test_a_metric_without_a_word_for_what_an_answer_is_reads_as_what_it_has(monkeypatch):
    monkeypatch.delitem(RIGHT, "correctness")
    results = evaluate({"basic": range(30)}, n=50)
    assert answer_of(results).headline == "basic has correctness on 30 of 50 questions."
