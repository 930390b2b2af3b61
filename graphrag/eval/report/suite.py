"""What the terminal shows of a suite."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.report.cells import EACH_ALONE, UNKNOWN, money, number, seconds, span, unfinished
from graphrag.eval.report.lines import say
from graphrag.eval.suite.summary import MethodReport, Performance, SuiteReport

_STYLES = {"passed": "green", "warning": "yellow", "incomplete": "yellow", "failed": "bold red"}
_COLUMNS = ("method", "result", "score", "95 % interval", "passed", "no score")


def show_suite_answers(
    console: Console, reports: Sequence[SuiteReport], label: str | None = None
) -> None:
    """Print the answer of each suite, a line each."""
    for report in reports:
        limits = f"passing {report.thresholds.passing:g}, warning {report.thresholds.warning:g}"
        score = number(report.score.mean, ".3f", UNKNOWN)
        line = (
            f"Suite {report.name}: {report.status}{_marked(label)}: overall score {score} "
            f"({limits}), {report.n_passed} of {report.n_total} passed."
        )
        say(console, line, _STYLES[report.status])


def show_suites(
    console: Console,
    reports: Sequence[SuiteReport],
    label: str | None = None,
    every_case: bool = False,
) -> None:
    """Print each suite's table, the cases that did not pass, or all, and the recommendations."""
    for report in reports:
        title = Text(f"Suite {report.name}{_marked(label)}")
        table = Table(title=title, title_justify="left", caption=EACH_ALONE, caption_justify="left")
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in ("method", "result") else "right")
        for method in report.methods:
            table.add_row(*_cells(method))
        console.print(table)
        for method in report.methods:
            say(console, f"{method.method} took {_performance(method.performance)}.")
        for result in report.results:
            if every_case or not report.thresholds.passes(result.score):
                score = "" if result.score is None else f" {result.score:.2f}"
                where = f"{result.case_id} ({result.method})"
                say(console, f"  {result.status}{score} {where}: {result.reason}")
        if report.recommendations:
            say(console, "What to look at:")
        for recommendation in report.recommendations:
            say(console, f"- {recommendation.text}")
        console.print()


def _marked(label: str | None) -> str:
    return f" ({label})" if label else ""


def _cells(method: MethodReport) -> list[Text]:
    given = [
        method.method,
        method.status,
        number(method.score.mean, ".3f"),
        span(method.score.low, method.score.high, lambda limit: number(limit, ".3f")),
        f"{method.n_passed}/{method.n_total}",
        str(method.n_unscored),
    ]
    return [Text(cell) for cell in given]


def _performance(took: Performance) -> str:
    calls = f"{UNKNOWN} calls" if took.llm_calls is None else f"{took.llm_calls:,} model calls"
    known = took.cost_usd is not None and took.judge_cost_usd is not None
    total = (took.cost_usd or 0) + (took.judge_cost_usd or 0)
    cost = money(total if known else None, missing=UNKNOWN)
    return (
        f"a median of {seconds(took.latency_median, '.3f', UNKNOWN)} s, "
        f"p95 {seconds(took.latency_p95, '.3f', UNKNOWN)} s{unfinished(took.latency_p95)}, "
        f"{calls}, {number(took.tokens, ',', UNKNOWN)} tokens, $ {cost} with the judge"
    )
