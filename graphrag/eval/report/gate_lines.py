"""What the gate says of a comparison, line by line, and as JSON."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from graphrag.command_lines import eval_line_here
from graphrag.eval.compare.pairing import BASELINE, NEW
from graphrag.eval.records import METRICS
from graphrag.eval.report.cells import plain_amount
from graphrag.eval.report.judge_error import list_corrections

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import RunComparison
    from graphrag.eval.compare.figures import FigureComparison
    from graphrag.eval.stats.gates import GateDecision, GateOutcome

_FEW = 5  # ids that are named


def word_of(outcome: "GateOutcome") -> str:
    """Return an answer of the gate as it is shown."""
    return outcome.value.upper()


def list_notes(comparison: "RunComparison") -> list[str]:
    """Return everything beside the gate's reasons, a line each."""
    return [
        *list_weaknesses(comparison),
        *list_corrections(comparison),
    ]


def list_weaknesses(comparison: "RunComparison") -> list[str]:
    """Return which searches and questions the answer does not rest on, a line each."""
    return [*list_unanswered(comparison), *list_unjoined(comparison)]


def list_reasons(comparison: "RunComparison") -> list[str]:
    """Return why the gate answered as it did, one line each method and metric or figure."""
    return [
        f"{item.method}, {item.metric}: {word_of(item.decision.outcome)}: {item.decision.reason} "
        f"({item.decision.newly_wrong} newly wrong, {item.decision.newly_right} newly right, "
        f"{_dropped(item.decision)})"
        for item in comparison.items
    ] + [_figure_reason(each) for each in comparison.figures]


def list_flips(comparison: "RunComparison", full: bool = False) -> list[str]:
    """Name the questions that flipped, a line each: a few that are newly wrong, or all."""
    flips = [each for each in comparison.flips if full or each.newly == "wrong"]
    shown = flips if full else flips[:_FEW]
    lines = [
        f"Newly {each.newly}: {each.method}, {each.metric}: {each.question_id}"
        f"{f' of {each.document}' if each.document else ''}"
        f"{'' if each.question is None else f': {shortened(each.question)}'}"
        for each in shown
    ]
    if len(flips) > len(shown):
        lines.append(f"... and {len(flips) - len(shown):,} more newly wrong; --full names all.")
    new, old = comparison.new.run_id, comparison.baseline.run_id
    if not flips or new is None or old is None:
        return lines
    if comparison.baseline.name == old and _are_of_default(comparison):
        lines.append(f"Look at them with: {eval_line_here('show', new, '--changed', old)}")
    else:
        line = eval_line_here("show", new, "--question", flips[0].question_id)
        lines.append(f"Look at the first with: {line}")
    return lines


def _are_of_default(comparison: "RunComparison") -> bool:
    """Whether the comparison is on the metric that one without named metrics is on."""
    compared = {item.metric for item in comparison.items}
    if "correctness" in compared:
        return len(compared) == 1
    theirs = comparison.baseline.setup.metrics or ()
    shared = [m for m in comparison.new.setup.metrics or () if m in theirs and m in METRICS]
    return "correctness" not in shared and compared == set(shared[:1])


def shortened(text: str, n_chars: int = 90) -> str:
    """Return a text as one line of so many characters at most."""
    line = " ".join(text.split())
    return line if len(line) <= n_chars else f"{line[: n_chars - 3]}..."


def list_unanswered(comparison: "RunComparison") -> list[str]:
    """Say of which searches that gave no answer the gate takes account, a line each item."""
    return [
        f"{item.method}, {item.metric}: {item.n_unanswered[0]:,} failed searches or abstentions of "
        f"the new run and {item.n_unanswered[1]:,} of the baseline count as not done well (an "
        "abstention that was judged correct counts as done well)"
        for item in comparison.items
        if any(item.n_unanswered)
    ]


def _dropped(decision: "GateDecision") -> str:
    """Say how many questions make no pair, and why."""
    why = [
        f"{number:,} {reason}"
        for number, reason in (
            (decision.n_without_verdict, "without both verdicts"),
            (decision.n_only_baseline, "only in the baseline"),
            (decision.n_only_new, "only in the new run"),
            (decision.n_other_reference, "with another accepted answer now"),
        )
        if number
    ]
    return ", ".join(why) or "0 without both verdicts"


def list_unjoined(comparison: "RunComparison") -> list[str]:
    """Say how many questions only one run holds, a line each run and set of methods."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for item in comparison.items:
        for side, ids in ((NEW, item.only_new), (BASELINE, item.only_baseline)):
            methods = found.setdefault((side, ids), [])
            if ids and item.method not in methods:
                methods.append(item.method)
    return [
        f"Only in the {side} ({', '.join(methods)}), {len(ids):,} not compared"
        f"{': ' if len(ids) <= _FEW else ', e.g. '}{', '.join(ids[:_FEW])}"
        for (side, ids), methods in found.items()
        if ids
    ]


def _figure_reason(each: "FigureComparison") -> str:
    decision = each.decision
    means = "no pairs"
    if decision.baseline is not None and decision.new is not None:
        values = " -> ".join(plain_amount(value) for value in (decision.baseline, decision.new))
        means = f"{values} over {decision.n_pairs:,} pairs"
    dropped = f", {decision.n_dropped_pairs:,} without both values" * bool(decision.n_dropped_pairs)
    note = "" if each.note is None else f"; {each.note}"
    return (
        f"{each.method}, {each.figure}: {word_of(decision.outcome)}: {decision.reason} "
        f"({means}{dropped}){note}"
    )


def render_json(comparison: "RunComparison") -> str:
    """Return the comparison as JSON, with every number behind the gate's answer."""
    values = {
        "outcome": comparison.outcome.value,
        "new": comparison.new.name,
        "baseline": comparison.baseline.name,
        "embedded_models": {
            "new": comparison.new.embedded_models,
            "baseline": comparison.baseline.embedded_models,
        },
        "items": [asdict(item) for item in comparison.items],
        "figures": [asdict(each) for each in comparison.figures],
        "warnings": list(comparison.warnings),
    }
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
