"""What an audit found, as tables."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.report.cells import EACH_ALONE, number, percent, points, share, span

if TYPE_CHECKING:
    from graphrag.eval.annotation.audit import Audit, JudgeAgreement
    from graphrag.eval.stats.agreement import BinaryAgreement
    from graphrag.eval.stats.correction import Corrected

_ALL = "all methods"


def show_audit(console: Console, audit: "Audit") -> None:
    """Print the judge's agreement with the labels, and the corrected figures beside the judge's."""
    console.print(_agreement_table(audit))
    console.print(_corrected_table(audit))
    for line in list_refusals(audit):
        console.print(line, soft_wrap=True)


def list_refusals(audit: "Audit") -> list[str]:
    """Return why figures were not corrected, a line each reason."""
    of_reason: dict[str, list[str]] = {}
    for name, corrected in _figures(audit):
        if corrected.refused is not None:
            of_reason.setdefault(corrected.refused, []).append(name)
    return [f"Not corrected ({', '.join(names)}): {why}." for why, names in of_reason.items()]


def _note(audit: "Audit") -> str:
    return f" ({audit.embedded_models})" if audit.embedded_models else ""


def _agreement_table(audit: "Audit") -> Table:
    subject = f"{audit.n_labels} labels: {audit.metric}, run {audit.run_id}"
    title = f"The judge against {subject} (95 % interval){_note(audit)}"
    table = Table(
        title=Text(title), title_justify="left", caption=EACH_ALONE, caption_justify="left"
    )
    table.add_column("method", no_wrap=True)
    for name in ("labels", "sensitivity %", "specificity %", "agreement %", "kappa, AC1, alpha"):
        table.add_column(name, justify="right")
    for method, agreement in audit.agreement.items():
        table.add_row(method, *_agreement_cells(agreement))
    if len(audit.agreement) > 1:
        table.add_row(_ALL, *_agreement_cells(audit.overall))
    return table


def _agreement_cells(agreement: "JudgeAgreement") -> list[str]:
    found: BinaryAgreement = agreement.weighted
    alpha = agreement.alpha_unweighted if found.alpha is None else found.alpha
    return [
        str(found.n),
        percent(found.sensitivity),
        percent(found.specificity),
        percent(found.raw_agreement),
        ", ".join(map(number, (found.kappa, found.ac1, alpha))),
    ]


def _corrected_table(audit: "Audit") -> Table:
    title = f"Means and differences in percentage points{_note(audit)}"
    table = Table(title=title, title_justify="left", caption=EACH_ALONE, caption_justify="left")
    table.add_column("", no_wrap=True)
    for name in ("labels", "by the judge", "corrected", "95 % interval"):
        table.add_column(name, justify="right")
    n_methods = len(audit.means)
    for row, (name, corrected) in enumerate(_figures(audit)):
        if row == n_methods:
            table.add_section()
        shown = share if row < n_methods else points
        estimate = corrected.estimate
        table.add_row(
            name,
            str(corrected.n_labels),
            shown(corrected.uncorrected),
            shown(estimate.mean),
            span(estimate.low, estimate.high, shown),
        )
    return table


def _figures(audit: "Audit") -> "list[tuple[str, Corrected]]":
    pairs = [(f"{each.a} - {each.b}", each.corrected) for each in audit.differences]
    return [*audit.means.items(), *pairs]
