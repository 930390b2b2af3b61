"""Renders a run comparison for a pull request: Markdown, workflow annotations and JUnit XML.

The JUnit form follows the schema ``junit-10.xsd`` of Jenkins' xUnit plugin, which GitLab and others
read as well: one suite with the gate's decisions, and one with a case for each question.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from graphrag.eval.compare.compare import BASELINE, NEW, QuestionChange, RunComparison
from graphrag.eval.report.comparison import (
    answer_comparison,
    describe_decision,
    describe_flip,
    differences_table,
    label_of,
    list_weaknesses,
    name_asked,
)
from graphrag.eval.report.formatting import in_brackets
from graphrag.eval.report.recommendation import list_lines
from graphrag.eval.report.table import escape, markdown_table
from graphrag.eval.stats.gates import GateOutcome
from graphrag.query.client.usage import Usage
from graphrag.text.message_phrases import counted
from graphrag.text.redaction import redact

_MOST_FLIPS = 10
_MOST_BYTES = 60_000  # GitHub takes 65,536 characters, and a workflow adds lines of its own
_OUTCOMES = {GateOutcome.FAIL: "failure", GateOutcome.INCONCLUSIVE: "skipped"}
_CHANGES = {
    "newly wrong": "failure",
    "search failed": "error",
    "unscored": "skipped",
    "not compared": "skipped",
}
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may contain, not even escaped."""


def render_markdown(comparison: RunComparison, usages: Mapping[str, Usage] | None = None) -> str:
    """Return a comparison as Markdown: the answer, a table, the flips.

    At most 60,000 bytes; if lines are left out, the text has their number. ``usages``: run id ->
    all that the run took.
    """
    rooms: dict[str, list[str]] = {}  # warnings, once for both runs
    for side, run in ((NEW, comparison.new), (BASELINE, comparison.baseline)):
        for line in run.roomy:
            rooms.setdefault(line, []).append(side)
    warnings = [
        *comparison.warnings,
        *(f"{' and '.join(sides)}: {line}" for line, sides in rooms.items()),
    ]
    table, answer = differences_table(comparison), answer_comparison(comparison, usages)
    first, *others = list_lines(answer)
    visible = [
        *(f"### Evaluation gate: {answer.chip}", "", f"**{escape(first.text)}**  "),
        *(f"{escape(line.text)}  " for line in others),
        *("", escape(table.title), "", *markdown_table(table), ""),
        *(f"- Warning: {escape(line)}" for line in warnings),
    ]
    notes = [f"- {escape(line)}" for line in (*answer.how, *list_weaknesses(comparison))]
    return _fit(visible, _flips(comparison.flips), _details("How sure this is", notes))


def list_annotations(comparison: RunComparison) -> list[str]:
    """Return GitHub workflow commands: an error for FAIL, a warning for INCONCLUSIVE."""
    kinds = {GateOutcome.FAIL: "error", GateOutcome.INCONCLUSIVE: "warning"}
    label = in_brackets(label_of(comparison))
    lines = [
        *(
            (kinds[item.decision.outcome], f"{describe_decision(item)}{label}")
            for item in comparison.items
            if item.decision.outcome in kinds
        ),
        *(("warning", line) for line in comparison.warnings),
    ]
    escapes = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
    return [f"::{kind} title=graphrag eval compare::{t.translate(escapes)}" for kind, t in lines]


def _flips(flips: Sequence[QuestionChange]) -> list[str]:
    n_wrong = sum(flip.newly == "wrong" for flip in flips)
    ordered = sorted(flips, key=lambda flip: flip.newly == "right")
    lines = [f"- newly {escape(describe_flip(flip, 200))}" for flip in ordered[:_MOST_FLIPS]]
    if len(flips) > _MOST_FLIPS:
        lines.append(f"- ... and {len(flips) - _MOST_FLIPS:,} more")
    name = f"Answers that flipped: {n_wrong:,} newly wrong, {len(flips) - n_wrong:,} newly right"
    return _details(name, lines)


def _details(name: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return ["", "<details>", f"<summary>{name}</summary>", "", *lines, "", "</details>"]


def _fit(visible: Sequence[str], *folded: Sequence[str]) -> str:
    """Join lines, then folded blocks, within the limit; a block is there in full or not at all."""
    page: list[str] = []
    room, n_out = _MOST_BYTES, 0
    for block in (*([line] for line in visible), *folded):
        size = sum(len(line.encode()) + 1 for line in block)
        if size <= room:
            page += block
            room -= size
        else:
            n_out += len(block)
    if n_out:
        page += ["", f"{counted(n_out, 'line')} left out here: `graphrag eval compare` prints all."]
    return "\n".join(page) + "\n"


def render_junit(comparison: RunComparison) -> str:
    """Return JUnit XML with a test case for each gate decision and for each question.

    The gate decides once for each method and metric; INCONCLUSIVE is skipped. A question that is
    newly wrong is a failure, one whose search failed is an error, and one without a verdict or a
    counterpart is skipped. The class of its case names the metric and the method.
    """
    suites, label = ElementTree.Element("testsuites"), in_brackets(label_of(comparison))
    cases: list[ElementTree.Element] = []
    for item in comparison.items:
        cases.append(_case(f"graphrag.eval.{item.metric}", item.method))
        if (end := _OUTCOMES.get(item.decision.outcome)) is not None:
            ElementTree.SubElement(cases[-1], end, message=_allowed(describe_decision(item)))
    suites.append(_suite(f"graphrag eval compare{label}", cases))
    cases = []
    for change in (change for item in comparison.items for change in item.questions):
        case = _case(f"graphrag.eval.{change.metric}.{change.method}", name_asked(change, 120))
        if change.seconds is not None:
            case.set("time", f"{change.seconds:.3f}")
        message = _allowed(f"{change.method}: {change.change}: {change.text}{label}")
        if change.change in _CHANGES:
            end = ElementTree.SubElement(case, _CHANGES[change.change], message=message)
            end.set("type", change.change)
            end.text = _allowed(change.question or "") or None
        elif change.change == "newly right":
            ElementTree.SubElement(case, "system-out").text = message
        cases.append(case)
    if cases:
        suites.append(_suite(f"questions{label}", cases))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _case(group: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=_allowed(group), name=_allowed(name))


def _suite(name: str, cases: list[ElementTree.Element]) -> ElementTree.Element:
    ends = Counter(end.tag for case in cases for end in case)
    counts = {"tests": len(cases), "failures": ends["failure"], "errors": ends["error"]}
    suite = ElementTree.Element("testsuite", name=_allowed(name))
    for key, n in {**counts, "skipped": ends["skipped"]}.items():
        suite.set(key, str(n))
    suite.extend(cases)
    return suite


def _allowed(text: str) -> str:
    """Return a text without API keys, and with a mark for each character that XML forbids."""
    return _FORBIDDEN.sub("\ufffd", redact(text))
