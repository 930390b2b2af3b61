"""A comparison of two runs as a table, and as annotations of a GitHub workflow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.report.cells import EACH_ALONE, money, number, p_value, plain_amount
from graphrag.eval.report.gate_cells import COLUMNS, cells_of, label_of, list_decided, title_of
from graphrag.eval.report.gate_lines import (
    list_flips,
    list_notes,
    list_reasons,
    list_weaknesses,
    word_of,
)
from graphrag.eval.report.lines import plain_table, say, show_table, tell
from graphrag.eval.stats.family import describe_tests
from graphrag.eval.stats.gates import GateOutcome
from graphrag.redaction import redact

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import RunComparison
    from graphrag.eval.compare.figures import FigureChange
    from graphrag.eval.results.runs import StoredRun

_STYLES = {"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow"}
_TEXT_COLUMNS = {"method", "metric", "verdict", "gate"}


def show_comparison(console: Console, comparison: "RunComparison", full: bool = False) -> None:
    """Print the gate's answer and its reasons, the differences, and which questions flipped.

    ``full`` adds the verdicts, the tests, and every flip.
    """
    console.print(answer_line(comparison), soft_wrap=not console.is_terminal)
    for line in list_reasons(comparison):
        console.print(_coloured(line), soft_wrap=not console.is_terminal)
    if comparison.items:
        show_table(console, _differences_table(comparison, full))
    verdicts = [f"{item.method}, {item.metric}: {item.verdict}" for item in comparison.items]
    told = describe_tests([item.difference for item in comparison.items])
    notes = list_notes(comparison) if full else list_weaknesses(comparison)
    for line in [*verdicts, *told, *notes] if full else notes:
        tell(console, line)
    for line in list_flips(comparison, full):
        say(console, line)  # the last one is a command


def answer_line(comparison: "RunComparison") -> Text:
    """Return the gate's answer as one line."""
    methods = dict.fromkeys(each.method for each in (*comparison.items, *comparison.figures))
    line = f"Gate: {word_of(comparison.outcome)} for {', '.join(methods)}{label_of(comparison)}"
    answer = _coloured(line)
    answer.stylize("bold")
    return answer


def _differences_table(comparison: "RunComparison", full: bool) -> Table:
    table = plain_table("method", title_of(comparison))
    if full:
        table.caption = EACH_ALONE
    shown = [place for place, name in enumerate(COLUMNS) if name != "verdict"]
    for name in (COLUMNS[place] for place in shown[1:]):
        table.add_column(
            name,
            justify="left" if name in _TEXT_COLUMNS else "right",
            no_wrap=name != "metric",
            overflow="fold",
        )
    for item in comparison.items:
        cells = cells_of(item)
        table.add_row(*(_coloured(cells[place]) for place in shown))
    return table


def _coloured(line: str) -> Text:
    """Return a line with the answers of the gate in their colours."""
    text = Text(redact(line))
    for word, style in _STYLES.items():
        text.highlight_words([word], style)
    return text


def show_runs(console: Console, runs: "Sequence[StoredRun]") -> None:
    """Print the runs of a store, one row each."""
    table = plain_table("run, started", "Runs, the newest first")
    paid = any(run.cost_usd != 0 for run in runs)
    for name in ("status", "questions", "correctness", *(["cost $"] if paid else [])):
        table.add_column(name, justify="right" if name in ("questions", "cost $") else "left")
    for run in runs:
        started = run.started_at[:16].replace("T", " ")
        notes = "".join(f"\n{note}" for note in (run.embedded_models,) if note)
        table.add_row(
            f"{run.run_id}\n{started}{', pinned' if run.is_pinned else ''}\nby {run.origin}{notes}",
            run.status,
            str(run.n_questions),
            "\n".join(
                f"{method} {number(mean, '.3f')}{_n(run, method)}"
                for method, mean in run.correctness.items()
            ),
            *([money(run.cost_usd)] if paid else []),
        )
    show_table(console, table)


def _n(run: "StoredRun", method: str) -> str:
    n = run.n.get(method, {}).get("correctness", 0)
    return f" (n {n:,})" if n else ""


def list_figure_changes(changes: "Sequence[FigureChange]") -> list[str]:
    """Return which of all figures changed beyond chance, a line each; empty without figures."""
    if not changes:
        return []
    certain = sorted((c for c in changes if c.is_certain), key=lambda c: not c.is_worse)
    n_tested = sum(c.p_holm is not None for c in changes)
    n_worse = sum(c.is_worse for c in certain)
    return [
        f"Of {n_tested} figures (every method and metric, rubric, quality, tokens, cost, "
        f"retrieval), beyond chance: {n_worse} worse, {len(certain) - n_worse} better "
        "(exploratory, Holm over all; the gate does not look at them)",
        *(
            f"{'Worse' if c.is_worse else 'Better'}: {c.method}, {c.figure}: {_change(c)} over "
            f"{c.n_pairs} pairs ({p_value(c.p_holm)})"
            for c in certain
        ),
        *(
            f"Latency: {c.method}: {_change(c)} s on average (not tested, as the answers of a run "
            "share the load of its hour)"
            for c in changes
            if c.figure == "latency_s"
        ),
    ]


def _change(change: "FigureChange") -> str:
    return f"{plain_amount(change.baseline)} -> {plain_amount(change.new)}"


def list_annotations(comparison: "RunComparison") -> list[str]:
    """Return GitHub workflow commands: an error for FAIL, a warning for INCONCLUSIVE."""
    kinds = {GateOutcome.FAIL: "error", GateOutcome.INCONCLUSIVE: "warning"}
    reasons = zip(list_decided(comparison), list_reasons(comparison), strict=True)
    return [
        *(
            _annotation(kinds[outcome], f"{reason}{label_of(comparison)}")
            for (_, _, outcome), reason in reasons
            if outcome in kinds
        ),
        *(_annotation("warning", line) for line in comparison.warnings),
    ]


def _annotation(kind: str, text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{kind} title=graphrag eval compare::{escaped}"
