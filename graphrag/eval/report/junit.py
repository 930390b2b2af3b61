"""A comparison of two runs as JUnit XML, which CI servers show as tests.

The form is that of the schema ``junit-10.xsd`` of Jenkins' xUnit plugin, which GitLab and others
read as well: a suite of the gate's own answers, then one with a test case for each question.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from graphrag.eval.report.gate_cells import label_of, list_decided
from graphrag.eval.report.gate_lines import list_reasons, shortened
from graphrag.eval.stats.gates import GateOutcome
from graphrag.redaction import redact

if TYPE_CHECKING:
    from graphrag.eval.compare.compare import RunComparison
    from graphrag.eval.compare.pairing import QuestionChange

_OUTCOMES = {GateOutcome.FAIL: "failure", GateOutcome.INCONCLUSIVE: "skipped"}
_CHANGES = {
    "newly wrong": "failure",
    "search failed": "error",
    "unscored": "skipped",
    "not compared": "skipped",
}
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may hold, not even escaped."""


def render_junit(comparison: "RunComparison") -> str:
    """Return JUnit XML: test cases of the gate's answers, and one for each question.

    Of the gate there is one for each method and metric, INCONCLUSIVE as skipped. A question that
    is newly wrong is a failure, one whose search failed an error, one without a verdict or a
    counterpart is skipped; its class is the metric and the method.
    """
    suites = ElementTree.Element("testsuites")
    suites.append(_gate_suite(comparison))
    if comparison.questions:
        suites.append(_question_suite(comparison.questions, label_of(comparison)))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _gate_suite(comparison: "RunComparison") -> ElementTree.Element:
    cases: list[ElementTree.Element] = []
    reasons = list_reasons(comparison)
    for (method, name, outcome), reason in zip(list_decided(comparison), reasons, strict=True):
        case = _case(f"graphrag.eval.{name}", method)
        if outcome in _OUTCOMES:
            ElementTree.SubElement(case, _OUTCOMES[outcome], message=_allowed(reason))
        cases.append(case)
    return _suite(f"graphrag eval compare{label_of(comparison)}", cases)


def _question_suite(questions: "Sequence[QuestionChange]", label: str) -> ElementTree.Element:
    cases: list[ElementTree.Element] = []
    for each in questions:
        where = f" of {each.document}" if each.document else ""
        words = "" if each.question is None else f": {shortened(each.question, 120)}"
        case = _case(
            f"graphrag.eval.{each.metric}.{each.method}", f"{each.question_id}{where}{words}"
        )
        if each.seconds is not None:
            case.set("time", f"{each.seconds:.3f}")
        told = f"{each.method}: {each.change}: {each.told}{label}"
        if each.change in _CHANGES:
            ended = ElementTree.SubElement(case, _CHANGES[each.change], message=_allowed(told))
            ended.set("type", each.change)
            ended.text = _allowed(each.question or "") or None
        elif each.change == "newly right":
            ElementTree.SubElement(case, "system-out").text = _allowed(told)
        cases.append(case)
    return _suite(f"questions{label}", cases)


def _case(group: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=_allowed(group), name=_allowed(name))


def _suite(name: str, cases: list[ElementTree.Element]) -> ElementTree.Element:
    ends = Counter(ended.tag for case in cases for ended in case)
    suite = ElementTree.Element(
        "testsuite",
        name=_allowed(name),
        tests=str(len(cases)),
        failures=str(ends["failure"]),
        errors=str(ends["error"]),
        skipped=str(ends["skipped"]),
    )
    suite.extend(cases)
    return suite


def _allowed(text: str) -> str:
    """Return a text without keys, and with a mark for each character that XML forbids."""
    return _FORBIDDEN.sub("\ufffd", redact(text))
