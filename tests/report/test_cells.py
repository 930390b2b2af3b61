"""How figures read: one word where one is missing, one form of 100 %."""

from math import fsum

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from graphrag.eval.report.comparison import runs_table
from graphrag.eval.report.formatting import (
    figure,
    money,
    p_value,
    percent,
    plain,
    seconds,
    share,
    span,
    unfinished,
)
from graphrag.eval.report.table import show
from graphrag.eval.results.runs import StoredRun
from graphrag.eval.stats.intervals import Estimate
from graphrag.eval.stats.latency import Latency, latency_quantile
from graphrag.text.float_compare import number_beside


def test_a_run_without_figures_has_a_dash_for_each():
    correctness = {"tog": None, "basic": 1.0}
    about = {"cost_usd": None, "is_pinned": False, "embedded_models": None, "origin": "command"}
    run = StoredRun("r1", "2026-01-02T03:04:05", "finished", 3, correctness, **about)
    console = Console(record=True, width=120)
    show(console, [runs_table([run])])
    row, below = console.export_text().splitlines()[3:5]
    assert row.split()[-3:] == ["tog", "-", "-"]
    assert "basic 100" in below


def test_the_list_of_runs_shows_what_people_call_a_run():
    about = {"cost_usd": None, "is_pinned": False, "label": "before the move", "note": "x " * 99}
    run = StoredRun("r1", "2026-01-02T03:04:05", "finished", 3, {"tog": 0.5829}, **about)
    console = Console(record=True, width=120)
    show(console, [runs_table([run])])
    lines = [line.strip() for line in console.export_text().splitlines()[3:]]
    assert lines[0].startswith("before the move")
    assert "tog 58.3" in lines[0]
    assert lines[-1] == f"{'x ' * 28}x..."


def test_one_form_for_each_figure():
    forms = {
        "correctness": "58.3",
        "hit_rate_at_5": "58.3",
        "rubric.overall_score": "0.58",
        "combined_score": "0.58",
        "median_latency_s": "0.58",
        "cost_usd": "0.5829",
    }
    assert {name: figure(name, 0.5829) for name in forms} == forms
    assert (figure("tokens", 10_204.4), figure("tokens", None)) == ("10,204", "-")


def test_only_a_share_of_exactly_1_is_100():
    shares = (None, 0, 0.5, 0.9996, 1)
    assert [share(value) for value in shares] == ["-", "0.0", "50.0", "100.0", "100"]
    assert [share(value, "%", "none") for value in shares[::4]] == ["none", "100%"]


def test_a_p_value_is_never_0():
    shown = [p_value(p) for p in (0.0, 0.00099, 0.001, 0.0163, 1.0, None)]
    assert shown[:3] == ["p < 0.001", "p < 0.001", "p = 0.001"]
    assert shown[3:] == ["p = 0.016", "p = 1.000", "p unknown"]


def test_a_figure_beside_a_bound_has_the_digits_that_tell_them_apart():
    assert number_beside(0.6497, 0.65) == "0.6497"
    assert number_beside(0.5, 0.65) == "0.500"
    assert number_beside(0.65 - 1e-16, 0.65) == "0.650"  # equal, but for the arithmetic
    assert number_beside(0.6499996, 0.65, 0.7) == "0.6499996"
    assert number_beside(0.05004, 0.05, digits=3, kind="g") == "0.05004"


def test_limits_are_rounded_outwards():
    assert percent(Estimate(0.618, 359, 0.5669, 0.6631, "t")) == "61.8 (56-67)"
    assert percent(Estimate(0.57, 10, 0.57, 0.57, "t")) == "57.0 (57-57)"
    assert plain(Estimate(3.5, 9, 3.111, 3.889, "t")) == "3.50 (3.11-3.89)"
    assert plain(Estimate(3.5, 9, 3.119, 3.881, "t"), limits=".1f") == "3.50 (3.1-3.9)"
    assert span(-0.04641, 0.01841) == "-4.7 to +1.9"
    assert span(-0.3, -0.00001) == "-30.0 to -0.0"
    assert span(None, 0.1) == "-"


@given(st.lists(st.integers(100, 9_000), max_size=40), st.randoms())
def test_dollars_are_shown_alike_in_whatever_order_they_are_added_up(tokens, random):
    left = -sum(tokens) % 250 + 125  # so that the sum ends in half of a ten-thousandth
    costs = [number * 4e-7 for number in (*tokens, left)]
    shown = money(fsum(costs))
    random.shuffle(costs)
    assert money(sum(costs)) == shown


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_an_interval_is_never_shown_narrower(a, b):
    low, high = sorted((a, b))
    shown_low, shown_high = map(float, span(low, high).split(" to "))
    assert shown_low <= 100 * low + 1e-6
    assert shown_high >= 100 * high - 1e-6
    assert 100 * low - shown_low < 0.1 + 1e-6 > shown_high - 100 * high


def test_a_latency_says_how_many_searches_did_not_end():
    rows = [Latency(float(i), censored=i > 91) for i in range(100)]
    median, p95 = latency_quantile(rows, 0.5), latency_quantile(rows, 0.95)
    assert seconds(median) + unfinished(median) == "49.50 (8 % unfinished)"
    assert seconds(p95) + unfinished(p95) == ">= 94.05 (8 % unfinished)"
    assert unfinished(latency_quantile(rows[:50], 0.5)) == ""
    assert (
        unfinished(latency_quantile([Latency(1.0)] * 300 + rows[-1:], 0.5)) == " (<1 % unfinished)"
    )
