"""What users said, as tables."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.report.cells import EACH_ALONE, UNKNOWN, number, p_value, percent, plain, span

if TYPE_CHECKING:
    from graphrag.eval.annotation.satisfaction import RatingAgreement, RatingsReport

_ALL = "all methods"
_N_LISTED = 10


def render_ratings(console: Console, report: "RatingsReport") -> None:
    """Print satisfaction, the judge beside the users, differences, and what did not join."""
    console.print(_satisfaction_table(report))
    console.print(_agreement_table(report))
    for line in [*list_differences(report), *list_unjoined(report)]:
        console.print(line, soft_wrap=True)


def list_differences(report: "RatingsReport") -> list[str]:
    """Return a line for each pair of methods."""
    lines: list[str] = []
    for each in report.differences:
        found = each.result
        if found.difference is None:
            lines.append(f"{each.a} - {each.b}: no question is rated for both.")
            continue
        questions = "question" if found.n_pairs == 1 else "questions"
        lines.append(
            f"{each.a} - {each.b}: {found.difference:+.2f} "
            f"({span(found.low, found.high, _stars, 2, f'interval {UNKNOWN}')}), "
            f"{p_value(found.p)}, {found.n_pairs} {questions} rated for both; exploratory: neither "
            "the interval nor p is corrected for the number of pairs."
        )
    return lines


def _stars(difference: float) -> str:
    return f"{difference:+.2f}"


def list_unjoined(report: "RatingsReport") -> list[str]:
    """Return what did not join: how many, then each with its row, the first ten of them."""
    unjoined = report.unjoined
    if not unjoined:
        return []
    lines = [f"{len(unjoined)} of the ratings are of no answer of this run:"]
    lines += [f"  row {each.rating.place}: {each.reason}" for each in unjoined[:_N_LISTED]]
    if len(unjoined) > _N_LISTED:
        lines.append(f"  and {len(unjoined) - _N_LISTED} more, listed in ratings.json")
    return lines


def _note(report: "RatingsReport") -> str:
    return f" ({report.embedded_models})" if report.embedded_models else ""


def _satisfaction_table(report: "RatingsReport") -> Table:
    table = Table(
        title=Text(f"User ratings, run {report.run} (95 % interval){_note(report)}"),
        title_justify="left",
        caption=EACH_ALONE,
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    for name in ("answers rated", "ratings", "mean of 5", "4 or more %", "1 / 2 / 3 / 4 / 5"):
        table.add_column(name, justify="right")
    for method, found in report.satisfaction.items():
        table.add_row(
            method,
            f"{found.n_rated} of {found.n_answers}",
            str(found.n_ratings),
            plain(found.mean, limits=".1f"),
            percent(found.share_satisfied),
            " / ".join(str(n) for n in found.distribution.values()),
        )
    return table


def _agreement_table(report: "RatingsReport") -> Table:
    title = (
        f"The judge beside the users: correct, and rated 4 or more (95 % interval){_note(report)}"
    )
    table = Table(title=title, title_justify="left", caption=EACH_ALONE, caption_justify="left")
    table.add_column("method", no_wrap=True)
    for name in ("answers", "unjudged", "same %", "AUC", "point-biserial, Spearman"):
        table.add_column(name, justify="right")
    for method, found in report.agreement.items():
        table.add_row(method, *_agreement_cells(found))
    if len(report.agreement) > 1:
        table.add_row(_ALL, *_agreement_cells(report.overall))
    return table


def _agreement_cells(found: "RatingAgreement") -> list[str]:
    correlations = (found.point_biserial, found.spearman)
    return [
        str(found.n),
        str(found.n_unjudged),
        percent(found.same),
        plain(found.auc),
        ", ".join(map(number, correlations)),
    ]
