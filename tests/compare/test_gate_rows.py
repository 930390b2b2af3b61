"""The gate over rows as they may come: other questions, failed searches, rebuilt indexes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.errors import UsageError
from graphrag.eval.report.comparison import describe_decision, list_unjoined
from graphrag.eval.results.runs import RunMetadata, RunRows
from graphrag.eval.results.scored_rows import Row
from graphrag.eval.stats.gates import GateOutcome
from graphrag.eval.stats.outcomes import State
from graphrag.eval.store.records import RunSetup
from graphrag.eval.types.metric_definitions import METRICS

FAIL, PASS, INCONCLUSIVE = GateOutcome.FAIL, GateOutcome.PASS, GateOutcome.INCONCLUSIVE


def row(number: int, score: int | None = 1, document: str = "A", **changes: Any) -> Row:
    """Return a row of method m; a missing score is a verdict that the judge failed to give."""
    state = State.JUDGE_FAILED if score is None else State.SCORED
    values: dict[str, Any] = {
        "question_id": f"q{number}",
        "document": document,
        "method": "m",
        "states": dict.fromkeys(METRICS, state),
        "scores": dict.fromkeys(METRICS, score),
        "question": f"Who is {number} of {document}?",
        "reference": "a",
    }
    return Row(**{**values, **changes})


def failed(number: int, **changes: Any) -> Row:
    states = dict.fromkeys(METRICS, State.SEARCH_FAILED)
    return row(number, 0, states=states, scores=dict.fromkeys(METRICS), censored=True, **changes)


def abstained(number: int, correct: int = 0) -> Row:
    states = {
        m: State.SCORED if m in ("correctness", "completeness") else State.ABSTAINED
        for m in METRICS
    }
    scores = {m: correct if state is State.SCORED else None for m, state in states.items()}
    return row(number, correct, states=states, scores=scores)


def run(rows: Sequence[Row], name: str = "new", **setup: Any) -> RunRows:
    return RunRows(list(rows), RunMetadata(name, name, setup=RunSetup(setup)))


def gate(new: Sequence[Row], old: Sequence[Row], *metrics: str):
    return compare_runs(run(new), run(old, "old"), metrics=metrics or ["correctness"])


def test_the_same_id_in_two_documents_is_two_questions():
    old = [row(i, int(document == "A"), document) for i in range(60) for document in "AB"]
    comparison = gate(old[::-1], old)
    (item,) = comparison.items
    assert (item.difference.n_pairs, item.difference.difference) == (120, 0)
    assert (item.only_new, item.only_baseline) == ((), ())
    elsewhere = [row(i, document="B") for i in range(10)]
    with pytest.raises(UsageError, match=r"10 questions are in another document .* in B now, in"):
        gate(elsewhere, [row(i) for i in range(10)])


def test_that_of_repeated_searches_the_first_counts_is_said():
    rows = [row(i) for i in range(9)]
    compared = compare_runs(run(rows, trials=3), run(rows, "old"), metrics=["correctness"])
    said = "of the 3 searches of each question in the new run the first one is compared"
    assert compared.warnings[0] == said


def test_several_responses_to_one_question_are_refused():
    old = [row(i) for i in range(100)]
    with pytest.raises(UsageError, match="200 responses of m to 100 question ids"):
        gate([*old, *old], old)


def test_a_run_of_few_of_the_baselines_questions_does_not_pass():
    old = [row(i, int(i >= 40)) for i in range(359)]
    comparison = gate([row(i) for i in range(100, 160)], old)
    decision = comparison.items[0].decision
    assert decision.outcome is INCONCLUSIVE
    assert str(decision.reason).startswith("60 of the baseline's 359 scored questions")
    assert (decision.n_baseline, decision.n_pairs) == (359, 60)
    assert comparison.items[0].difference.n_dropped_pairs == decision.n_dropped_pairs == 299
    assert "299 only in the baseline" in describe_decision(comparison.items[0])


@pytest.mark.parametrize(("n_wrong", "outcome"), [(60, FAIL), (10, INCONCLUSIVE)])
def test_it_fails_where_the_missing_questions_can_not_save_it(n_wrong, outcome):
    old = [row(i, int(i < 340)) for i in range(359)]
    new = [row(i, int(i >= n_wrong)) for i in range(200)]
    decision = gate(new, old).items[0].decision
    assert decision.outcome is outcome
    # 140 missing ones were right before, and 19 can be newly right
    assert ("even with all that is missing" in str(decision.reason)) == (outcome is FAIL)


def test_questions_that_only_the_new_run_holds_are_no_gap():
    comparison = gate([row(i) for i in range(160)], [row(i) for i in range(100)])
    assert (comparison.outcome, len(comparison.items[0].only_new)) == (PASS, 60)
    assert "60 only in the new run" in describe_decision(comparison.items[0])


def test_a_failed_search_counts_in_every_metric():
    old = [row(i) for i in range(200)]
    new = [failed(i) if i < 150 else row(i) for i in range(200)]
    for item in gate(new, old, *METRICS).items:
        assert item.decision.outcome is FAIL
        assert (item.decision.newly_wrong, item.decision.n_pairs) == (150, 200)
        assert (item.difference.n01, item.difference.n_pairs) == (150, 200)
        assert item.n_unanswered == (150, 0)
    assert {item.decision.newly_right for item in gate(old, new, *METRICS).items} == {150}


def test_questions_without_an_answer_are_no_verdicts_that_the_judge_owes():
    rest = dict.fromkeys(METRICS, State.SCORED)
    no_answer = [
        row(i, reference=None, states=rest | {"correctness": State.NOT_JUDGED}, scores=scores)
        for i in range(100, 120)
        for scores in [dict.fromkeys(METRICS, 1) | {"correctness": None}]
    ]
    rows = [row(i) for i in range(100)]
    assert gate([*rows, *no_answer], [*rows, *no_answer]).items[0].decision.outcome is PASS
    for new, old in ((rows, [*rows, *no_answer]), ([*rows, *no_answer], rows)):
        (item,) = gate(new, old).items
        assert (item.difference.n_dropped_pairs, item.n_without_verdict) == (0, 0)
        assert (item.difference.coverage, item.only_baseline, item.only_new) == (1, (), ())
    both = gate(rows, [*rows, *no_answer], "correctness", "completeness")
    (told,) = list_unjoined(both)
    assert told.startswith("Only in the baseline (m), 20 not compared, e.g. q100, ")
    (item,) = gate(no_answer, no_answer).items
    assert str(item.decision.reason) == "there is no question with both verdicts"


def test_questions_whose_context_is_not_judged_are_no_missing_verdicts():
    states = dict.fromkeys(METRICS, State.SCORED) | {"relevance": State.NOT_JUDGED}
    scores = dict.fromkeys(METRICS, 1) | {"relevance": None}
    rows = [row(i) for i in range(90)]
    rows += [row(i, states=states, scores=scores) for i in range(90, 100)]  # not answerable
    (item,) = gate(rows, rows, "relevance").items
    assert (item.decision.outcome, item.decision.coverage) == (PASS, 1)
    assert (item.difference.n_pairs, item.difference.n_dropped_pairs) == (90, 0)
    assert (item.difference.coverage, item.n_without_verdict) == (1, 0)
    assert len(item.questions) == 100
    older = [row(i) for i in range(100)]  # 1.0.0 judged those, too
    newer = rows[:90] + [replace(each, answerable=False) for each in rows[90:]]
    (item,) = gate(newer, older, "relevance").items
    assert (item.decision.outcome, item.difference.n_pairs, item.decision.coverage) == (PASS, 90, 1)
    (item,) = gate([*rows[:90], *(row(i, None) for i in range(90, 100))], rows, "relevance").items
    assert (item.decision.coverage, item.difference.n_dropped_pairs) == (0.9, 10)


def test_an_abstention_counts_unless_it_is_the_right_answer():
    old = [row(i) for i in range(100)]
    refused = gate([abstained(i) if i < 30 else row(i) for i in range(100)], old, "faithfulness")
    assert refused.items[0].decision.newly_wrong == 30
    right = gate([abstained(i, 1) if i < 30 else row(i) for i in range(100)], old, "relevance")
    assert (right.outcome, right.items[0].decision.newly_wrong) == (PASS, 0)


def test_other_words_under_the_same_id_are_refused():
    old = [row(i) for i in range(10)]
    new = [replace(row(i), question=f"What is {i}?") if i < 3 else row(i) for i in range(10)]
    with pytest.raises(UsageError) as refused:
        gate(new, old)
    said = str(refused.value)
    assert "3 of 10 questions" in said
    assert "'What is 0?' now, 'Who is 0 of A?' then" in said
    assert "compare RUN --pin" in said
    upper = [replace(each, question=f"  {str(each.question).upper()}\n") for each in old]
    assert gate(upper, old).items[0].difference.n_pairs == 10  # case and blanks are no other words


def test_verdicts_by_other_accepted_answers_are_no_pair():
    old = [row(i) for i in range(100)]
    new = [replace(row(i), reference="b") if i < 8 else row(i) for i in range(100)]
    comparison = gate(new, old, *METRICS)
    assert any("accepted answers of 8 of 100 questions" in w for w in comparison.warnings)
    for item in comparison.items:
        reads = item.metric == "correctness"
        assert item.n_other_reference == (8 if reads else 0)
        assert item.decision.outcome is (INCONCLUSIVE if reads else PASS)


def indexed(name: str, *keys: str) -> dict[str, Any]:
    return {"indexes": {key: {"m": {"index": f"{name} {key}"}} for key in keys}}


def test_a_rebuilt_index_is_not_decided_unless_it_is_accepted():
    rows = [row(i) for i in range(200)]
    new, old = run(rows, **indexed("now", "A")), run(rows, "old", **indexed("then", "A"))
    (item,) = compare_runs(new, old).items
    assert item.decision.outcome is INCONCLUSIVE
    assert "the index of A changed" in str(item.decision.reason)
    assert item.changed_indexes == ("A",)
    assert compare_runs(new, old, accept_index_change=True).outcome is PASS
    worse = run([row(i, int(i > 50)) for i in range(200)], **indexed("now", "A"))
    assert compare_runs(worse, old).outcome is INCONCLUSIVE


def test_an_index_of_questions_that_are_not_compared_may_change():
    rows = [row(i) for i in range(200)]
    new, old = indexed("then", "A", "B"), indexed("then", "A", "B")
    new["indexes"]["B"]["m"]["index"] = "rebuilt"
    assert compare_runs(run(rows, **new), run(rows, "old", **old)).outcome is PASS


def test_an_index_that_only_one_run_knows_is_not_the_same():
    rows = [row(i, document=document) for i in range(100) for document in "AB"]
    known, unknown = indexed("then", "A", "B"), indexed("then", "A", "B")
    del unknown["indexes"]["B"]["m"]["index"]
    for new, old in ((known, unknown), (unknown, known)):
        comparison = compare_runs(run(rows, **new), run(rows, "old", **old))
        assert comparison.outcome is INCONCLUSIVE
        assert comparison.items[0].changed_indexes == ("B",)
    assert compare_runs(run(rows, **unknown), run(rows, "old", **unknown)).outcome is PASS
    silent = run(rows, "old")
    assert compare_runs(run(rows, **known), silent).items[0].changed_indexes == ("A", "B")
    assert compare_runs(run(rows), silent).outcome is PASS


def test_what_is_ruled_out_is_rounded_outwards():
    """The limits are -3.131 and -5.034 points; the second is more than 5, and reads so."""
    for n_wrong, n_right, told in ((9, 4, "a loss over 3.2"), (26, 19, "a loss of up to 5.1")):
        old = [row(i, int(i >= n_right)) for i in range(360)]
        new = [row(i, int(i < 360 - n_wrong)) for i in range(360)]
        assert f"{told} points" in str(gate(new, old).items[0].decision.reason)
    # A small p is no row of digits.
    comparison = gate([row(i, 0) for i in range(100)], [row(i) for i in range(100)])
    assert "(p < 0.001)" in str(comparison.items[0].decision.reason)
