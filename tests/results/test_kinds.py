"""Figures by kind of question."""

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.report.recommendation_by_group import answer_kinds
from graphrag.eval.report.run import kinds_table
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.question_groups import group_questions
from graphrag.eval.results.scored_rows import Row, with_every_metric
from graphrag.eval.stats.outcomes import State


def _sample(number: int, **tags: object) -> Sample:
    return Sample(str(number), "film", f"question {number}", "answer", tags=tags)


def _row(number: int, method: str, score: int | None) -> Row:
    state = State.NOT_JUDGED if score is None else State.SCORED
    states, scores = {"correctness": state}, {"correctness": score}
    return with_every_metric(Row(str(number), "film", method, states, scores, tokens=100))


def _group(rows, samples):
    return group_questions(rows, dict.fromkeys(("tog", "basic"), samples), "correctness")


def test_each_method_is_best_on_its_kind():
    kinds = ["fact"] * 30 + ["link"] * 25 + ["rare"] * 5
    samples = [_sample(i, kind=kind, note=f"n{i}") for i, kind in enumerate(kinds)]
    rows = [
        _row(i, method, int((kind == "fact") == (method == "basic")))
        for i, kind in enumerate(kinds)
        for method in ("tog", "basic")
    ]
    (by_kind,) = _group(rows, samples)
    assert by_kind.column == "kind"
    assert by_kind.n_in_none == 5
    assert [(g.value, g.n, g.winner) for g in by_kind.groups] == [
        ("fact", 30, "basic"),
        ("link", 25, "tog"),
    ]
    assert by_kind.to_dict()["groups"]["fact"]["methods"]["basic"]["n"] == 30


def test_a_question_may_have_several_tags():
    samples = [_sample(i, tags=["names"] if i % 2 else ["names", "dates"]) for i in range(40)]
    rows = [_row(i, method, 1) for i in range(40) for method in ("tog", "basic")]
    (by_tag,) = _group(rows, samples)
    assert [(group.value, group.n) for group in by_tag.groups] == [("names", 40), ("dates", 20)]
    assert by_tag.n_in_none == 0


def test_nothing_is_said_of_few_questions_or_without_verdicts():
    few = [_sample(i, kind="fact" if i % 2 else "link") for i in range(38)]
    rows = [_row(i, method, 1) for i in range(40) for method in ("tog", "basic")]
    assert _group(rows, few) == ()
    enough = [_sample(i, kind="fact" if i % 2 else "link") for i in range(40)]
    unjudged = [_row(i, method, None) for i in range(40) for method in ("tog", "basic")]
    assert _group(unjudged, enough) == ()


def _results(right):
    """Return 200 questions, half of them links; ``right``: method -> the shares of facts, links."""
    samples = [_sample(i, kind="link" if i % 2 else "fact", time_limit_s=5) for i in range(200)]
    rows = [_row(i, m, int(i // 2 < of[i % 2])) for i in range(200) for m, of in right.items()]
    kinds = group_questions(rows, dict.fromkeys(right, samples), "correctness")
    return EvaluationResults({"metrics": ["correctness"]}, [], {}, {}, {}, kinds=kinds)


def test_the_answer_names_the_kind_on_which_another_method_is_better():
    results = _results({"tog": (40, 80), "basic": (90, 40)})
    table = kinds_table(results)
    assert table.texts[0] == ["kind fact", "40.0 (30-50) n 100", "90.0 (82-95) n 100", "basic"]
    said = answer_kinds(results, "basic")
    assert said.startswith("Shown to be better than basic: tog on kind link (+27.")
    assert said.endswith("100 questions).")


def test_kinds_that_change_nothing_are_not_in_the_answer():
    results = _results({"tog": (40, 40), "basic": (90, 80)})
    assert answer_kinds(results, "basic") == ""
    assert answer_kinds(_results({"tog": (40, 40)}), "tog") == ""
