"""How figures read: one word where one is missing, one form of 100 %."""

from rich.console import Console

from graphrag.eval.analysis import StoredRun
from graphrag.eval.reports import share, show_runs


def test_a_run_without_figures_has_a_dash_for_each():
    run = StoredRun(
        run_id="r1",
        started_at="2026-01-02T03:04:05",
        status="finished",
        n_questions=3,
        correctness={"tog": None, "basic": 1.0},
        cost_usd=None,
        is_pinned=False,
        embedded_models=None,
        origin="command",
    )
    console = Console(record=True, width=120)
    show_runs(console, [run])
    row, below = console.export_text().splitlines()[4:6]
    assert [cell.strip() for cell in row.split("│")[-3:-1]] == ["tog -", "-"]
    assert "basic 1.000" in below


def test_only_a_share_of_exactly_1_is_100():
    shares = (None, 0, 0.5, 0.9996, 1)
    assert [share(value) for value in shares] == ["-", "0.0", "50.0", "100.0", "100"]
    assert [share(value, "%", "none") for value in shares[::4]] == ["none", "100%"]
