"""Methods that are watched for a winner: what is counted, and what is then said."""

import random
from dataclasses import replace

import pytest

from graphrag.eval import (
    EfficiencyMetrics,
    JudgeResult,
    MetricScores,
    QueryResult,
    aggregate_results,
)
from graphrag.eval.analysis import EarlyStop, MethodRace, RunRows, rows_of
from graphrag.eval.analysis.runs import RunMetadata
from graphrag.eval.dataset import Sample
from graphrag.eval.records import Failure
from graphrag.eval.run import asked_order
from graphrag.eval.statistics import PairedCounts, anytime_p

N = 120
METHODS = ("tog", "local", "basic")


def result(score, question, method):
    failure = Failure("judge", "error", "x") if score is None else None
    return QueryResult(
        imdb_key="a",
        question=question,
        method=method,
        response="Ann",
        scores=MetricScores(*[JudgeResult(score, "r", failure)] * 4),
        efficiency=EfficiencyMetrics(1.0, 1, 10, 1),
        sample_id=f"a-{question}",
    )


def answers(wrong):
    """Return results in which method m is wrong on the questions that ``wrong[m]`` names."""
    return [
        result(int(not wrong[method](n)), str(n), method) for n in range(N) for method in METHODS
    ]


ORDER = asked_order([Sample(f"a-{n}", "a", str(n), "x") for n in range(N)], METHODS)
CLEAR = {"tog": lambda n: n % 10 == 0, "local": lambda n: n % 2 == 0, "basic": lambda n: n % 2}


def run_race(results):
    race = MethodRace(ORDER, METHODS, "correctness")
    reasons = [race.watch(each) for each in results]
    return race, reasons


def test_the_order_of_arrival_does_not_matter():
    results = answers(CLEAR)
    ends = set()
    for seed in range(4):
        random.Random(seed).shuffle(results)
        race, _ = run_race(results)
        ends.add((race.reason, race.end().winner))
    ((reason, winner),) = ends
    assert winner == "tog"
    assert reason.startswith("tog beats every other method on correctness, by the first ")


def test_a_question_waits_for_those_before_it_and_for_every_method():
    first, *others = ORDER
    by_question = {question: [] for question in ORDER}
    for each in answers(CLEAR):
        by_question["a", each.sample_id].append(each)
    race, reasons = run_race([each for q in others for each in by_question[q]])
    assert set(reasons) == {None}
    assert not race.end().counted
    *two, last = by_question[first]
    assert [race.watch(each) for each in two] == [None, None]
    assert race.watch(last) is not None
    assert race.end().is_complete  # everything was there by then


def test_alike_methods_are_asked_to_the_end_and_tested_at_half_the_level():
    results = answers({method: lambda n: n % 3 == 0 for method in METHODS})
    race, reasons = run_race(results)
    assert set(reasons) == {None}
    found = aggregate_results(results, race=race.end())
    plain = aggregate_results(results)
    assert found.metadata["early_stop"]["stopped_early"] is False
    assert "early_stop" not in plain.metadata
    watched, alone = (f.analysis.comparisons[0] for f in (found, plain))
    assert watched.family.high_simultaneous > alone.family.high_simultaneous


def test_a_stopped_run_says_only_what_holds_at_a_stop():
    race = MethodRace(ORDER, METHODS, "correctness")
    by_question = {question: [] for question in ORDER}
    for each in answers(CLEAR):
        by_question["a", each.sample_id].append(each)
    asked = []
    for question in ORDER:
        asked += by_question[question]
        *_, reason = (race.watch(each) for each in by_question[question])
        if reason is not None:
            break
    n = len(asked) // 3
    assert 15 < n < N
    in_flight = by_question[list(ORDER)[n]]  # arrived after the stop, and is not counted
    for each in in_flight:
        race.watch(each)
    end = race.end()
    assert (len(end.counted), end.winner) == (n, "tog")
    found = aggregate_results([*asked, *in_flight], race=end)
    assert found.metadata["early_stop"] == {
        "stopped_early": True,
        "winner": "tog",
        "reason": race.reason,
        "questions_counted": n,
        "questions_planned": N,
        "level": 0.025,
    }
    first, second, third = found.analysis.comparisons[:3]
    assert first.result.n_pairs == n
    pair = first.result
    assert pair.p == anytime_p(PairedCounts(n, pair.n10, pair.n01)) > 1e-12
    assert pair.detectable_at_80 is None
    for compared in (first, second):
        assert compared.verdict.startswith("tog better than")
        assert compared.result.p_holm <= 0.05
        assert compared.family.low_simultaneous >= 0
    assert third.verdict.startswith("unknown: no difference shown before the run ended")
    assert all(c.result.test == "betting e-process" for c in found.analysis.comparisons)


def test_what_was_not_judged_speaks_against_the_winner():
    results = [
        each if each.method != "local" else result(None, each.question, "local")
        for each in answers(CLEAR)
    ]
    race, reasons = run_race(results)
    assert set(reasons) == {None}
    assert race.end().winner is None


def test_equal_ids_in_two_documents_are_two_questions():
    samples = [Sample("q0", key, "?", "x") for key in ("a", "b")]
    order = asked_order(samples, METHODS)
    assert set(order) == {("a", "q0"), ("b", "q0")}
    assert set(order.values()) == {METHODS}


@pytest.mark.parametrize("evidence", [(), ("said",)])
def test_an_oracle_is_waited_for_where_it_is_asked(evidence):
    sample = Sample("q0", "a", "?", "x", evidence=evidence)
    (methods,) = asked_order([sample], ("tog", "oracle")).values()
    assert methods == (("tog", "oracle") if evidence else ("tog",))


def test_a_baseline_is_joined_on_document_and_id():
    # The new run has the answers of document b wrong, whose ids are those of document a.
    def in_both(score_of_b):
        return [
            replace(result(score, str(n), "tog"), imdb_key=key, sample_id=f"q{n}")
            for n in range(30)
            for key, score in (("b", score_of_b), ("a", 1))
        ]

    baseline = RunRows(rows_of(in_both(1)), RunMetadata("old"))
    early = EarlyStop(baseline, "correctness")
    assert {early.watch(each) for each in in_both(1)} == {None}
    # Joined on the id alone, the later document would stand for both.
    mixed = [
        replace(row, scores=dict.fromkeys(row.scores, int(row.document == "a")))
        for row in baseline.rows
    ]
    early = EarlyStop(RunRows(mixed, RunMetadata("old")), "correctness")
    assert {early.watch(each) for each in in_both(0)} == {None}
    early = EarlyStop(baseline, "correctness")
    assert any(early.watch(each) for each in in_both(0))
    # One that does not know its documents is joined on the id.
    blank = [replace(row, document="") for row in rows_of(in_both(1)) if row.document == "b"]
    early = EarlyStop(RunRows(blank, RunMetadata("old")), "correctness")
    assert any(early.watch(each) for each in in_both(0))
