"""What is shown of suites: their answers, tables, cases and recommendations."""

from collections.abc import Iterator

from graphrag.eval.report.cells import (
    EACH_ALONE,
    UNKNOWN,
    in_brackets,
    money,
    number,
    seconds,
    span,
    unfinished,
)
from graphrag.eval.report.table import STYLES, Line, Part, Table
from graphrag.eval.suite.summary import Performance, SuiteOutcome
from graphrag.text.phrases import counted


def list_suite_answers(outcome: SuiteOutcome) -> list[Line]:
    """Return the answer of each suite, a line each."""
    label = in_brackets(outcome.embedded_models)
    return [
        Line(
            f"Suite {report.name}: {report.status}{label}: overall score "
            f"{number(report.score.mean, '.3f', UNKNOWN)} (passing {report.thresholds.passing:g}, "
            f"warning {report.thresholds.warning:g}), {report.n_passed} of {report.n_total} "
            "passed.",
            STYLES[report.status],
        )
        for report in outcome.reports
    ]


def list_suites(outcome: SuiteOutcome, every_case: bool = False) -> Iterator[Part]:
    """Yield each suite's table, the cases that did not pass, or all, and the recommendations."""
    for report in outcome.reports:
        yield Table(
            f"Suite {report.name}{in_brackets(outcome.embedded_models)}",
            [
                *(("method", "text"), ("result", "text"), ("score", "percent")),
                *(("95 % interval", "interval"), ("passed", "count"), ("no score", "count")),
            ],
            [
                [
                    *(method.method, method.status, number(method.score.mean, ".3f")),
                    span(method.score.low, method.score.high, lambda limit: number(limit, ".3f")),
                    *(f"{method.n_passed}/{method.n_total}", method.n_unscored),
                ]
                for method in report.methods
            ],
            EACH_ALONE,
        )
        for method in report.methods:
            yield Line(f"{method.method} took {_performance(method.performance)}.")
        for result in report.results:
            if every_case or not report.thresholds.passes(result.score):
                score = "" if result.score is None else f" {result.score:.2f}"
                where = f"{result.case_id} ({result.method})"
                yield Line(f"  {result.status}{score} {where}: {result.reason}")
        for recommendation in report.recommendations:
            yield Line(recommendation, is_command=True)


def _performance(took: Performance) -> str:
    is_known = took.cost_usd is not None and took.judge_cost_usd is not None
    total = (took.cost_usd or 0) + (took.judge_cost_usd or 0)
    return (
        f"a median of {seconds(took.latency_median, '.3f', UNKNOWN)} s, "
        f"p95 {seconds(took.latency_p95, '.3f', UNKNOWN)} s{unfinished(took.latency_p95)}, "
        f"{_tell_count(took.llm_calls, 'model call')}, {_tell_count(took.tokens, 'token')}, "
        f"$ {money(total if is_known else None, missing=UNKNOWN)} with the judge"
    )


def _tell_count(n: int | None, noun: str) -> str:
    return f"{UNKNOWN} {noun}s" if n is None else counted(n, noun)
