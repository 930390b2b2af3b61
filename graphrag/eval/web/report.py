"""The page of a run, put together: figures, plots and questions in one HTML file."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.report.answer import describe_answer
from graphrag.eval.report.judge_error import describe_uncorrected
from graphrag.eval.report.pair_lines import describe_comparisons, describe_documents
from graphrag.eval.report.run_lines import (
    describe_abstentions,
    describe_costs,
    describe_firsts,
    describe_oddities,
    label_results,
)
from graphrag.eval.report.tables import (
    Table,
    efficiency_table,
    metrics_table,
    score_table,
    spent_table,
)
from graphrag.eval.results.analysis import Analysis
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.figures import Figures
from graphrag.eval.web.baseline import Baseline
from graphrag.eval.web.library import drawing_library
from graphrag.eval.web.packing import Aside, pack
from graphrag.eval.web.plots import N_STYLES, make_plots, title_plots
from graphrag.eval.web.questions import detail_questions, list_questions
from graphrag.eval.web.tables import (
    areas_table,
    criteria_table,
    curves_table,
    failures_table,
    films_table,
    loss_table,
    pairs_table,
    validated_table,
)
from graphrag.redaction import redact_data
from graphrag.text.json_pieces import json_pieces

_SCRIPTS = ("report.js", "list.js", "context.js", "walk.js", "question.js")
_COMPACT = (",", ":")
_SETTINGS = ("origin", "metrics", "concurrency", "equal_terms", "n_planned", "n_done")


@dataclass(frozen=True, slots=True)
class ReportInput:
    """What a page is made of.

    Attributes
    ----------
    results : EvaluationResults
        With its analysis.
    figures : Figures or None
    samples : sequence of Sample
        For the questions' tags; may be empty.
    notes : sequence of str
        What else is to be said of the run.
    commands : mapping
        What it is for -> a command line.
    config : mapping
        The run's configuration, JSON-ready.
    baseline : Baseline or None
        The run that it is held against.
    validated : mapping
        Index key -> what a validation before the run found, a line each.
    unread : sequence of str
        What could not be read any more, so that figures are missing.
    """

    results: EvaluationResults
    figures: Figures | None = None
    samples: Sequence[Sample] = field(default=(), repr=False)
    notes: Sequence[str] = ()
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    config: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    baseline: Baseline | None = None
    validated: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    unread: Sequence[str] = ()


def render_report(given: ReportInput) -> str:
    """Return the page as HTML; see :func:`report_pieces`."""
    return "".join(report_pieces(given))


def report_pieces(given: ReportInput) -> Iterator[str]:
    """Yield the page, in pieces, as HTML that needs nothing from a network.

    Raises
    ------
    ValueError
        If the results hold no analysis.
    """
    results, analysis = given.results, given.results.analysis
    if analysis is None:
        msg = "these results hold no analysis; make them with aggregate_results"
        raise ValueError(msg)
    index = list_questions(results.results, given.samples, results.metrics)
    if given.baseline is not None:
        _add_baseline(index, given.baseline)
    # The style's colours and shapes go by the methods' places.
    index["styles"] = N_STYLES
    page = {
        "plots": make_plots(results, analysis),
        "tree": json.loads(_read("tree.vg.json")),
    }
    style, script = _read("report.css"), _script()
    library = drawing_library()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    metadata, label = results.metadata, label_results(results)
    yield from environment.from_string(_read("report.html.j2")).generate(
        policy=_policy(style, (script, library)),
        style=Markup(style),
        script=Markup(script),
        packed={
            "index": pack(_index_pieces(index)),
            "details": pack(_detail_pieces(results)),
            "library": pack([library]),
        },
        page=page,
        titles=title_plots(results, analysis),
        run_id=metadata.get("run_id", ""),
        metadata=metadata,
        label=label,
        answer=describe_answer(results, f" ({label})" if label else "")
        or ["No metric was to be judged."],
        sure=_list_sure(results, analysis),
        costs=describe_costs(results),
        oddities=[*describe_abstentions(results), *describe_firsts(results)],
        cut=describe_oddities(results),
        tables=_tables(given, analysis),
        primary=analysis.primary,
        notes=given.notes,
        unread=given.unread,
        commands=given.commands,
        baseline=given.baseline,
        settings=_settings(given),
    )


def _list_sure(results: EvaluationResults, analysis: Analysis) -> list[str]:
    return [
        *describe_comparisons(analysis),
        *describe_documents(analysis),
        *describe_uncorrected(analysis),
    ]


def _tables(given: ReportInput, analysis: Analysis) -> dict[str, Table | None]:
    results, figures = given.results, given.figures
    return {
        "score": score_table(results, analysis),
        "means": metrics_table(
            "Every metric in % (95 % interval each), n questions",
            results.metrics,
            list(analysis.outcomes.items()),
        )
        if results.metrics
        else None,
        "pairs": pairs_table(analysis) if analysis.comparisons else None,
        "curves": None if results.curves is None else curves_table(results.curves),
        "areas": None if results.curves is None else areas_table(results.curves),
        "spent": spent_table(results),
        "cost": efficiency_table(results, analysis),
        "films": films_table(results, analysis) if results.metrics else None,
        "failures": failures_table(results),
        "loss": None if figures is None else loss_table(figures),
        "validated": validated_table(given.validated) if given.validated else None,
        "criteria": None if figures is None else criteria_table(figures),
        "baseline": None if given.baseline is None else given.baseline.table(),
    }


def _settings(given: ReportInput) -> list[tuple[str, str]]:
    """Return name -> JSON of what the run was, its fingerprints among it."""
    metadata = given.results.metadata
    told: dict[str, Any] = {name: metadata[name] for name in _SETTINGS if name in metadata}
    return [
        (name, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=str))
        for name, value in (
            ("This run", told),
            ("What was evaluated, with fingerprints", metadata.get("setup")),
            ("Configuration", dict(given.config)),
        )
        if value
    ]


def _add_baseline(index: dict[str, Any], baseline: Baseline) -> None:
    before = baseline.states()
    ours = ((q["film"], each["method"]) for q in index["questions"] for each in q["answers"])
    theirs = ((film, method) for film, _, method in before)
    # As the gate joins them: on the id where a run does not know its documents.
    by_id = {method for film, method in (*ours, *theirs) if not film}
    before = {
        ("" if method in by_id else film, question_id, method): states
        for (film, question_id, method), states in before.items()
    }
    index["baseline"] = baseline.name
    for question in index["questions"]:
        for answer in question["answers"]:
            if answer.get("trial"):
                continue
            film = "" if answer["method"] in by_id else question["film"]
            states = before.get((film, question["id"], answer["method"]))
            if states is not None:
                answer["before"] = [states.get(metric) for metric in index["metrics"]]


def _index_pieces(index: Mapping[str, Any]) -> Iterator[str]:
    given = {**index, "questions": iter(index["questions"])}
    # Packed, a key would be hidden from those who look for keys in what is written.
    return map(redact_data, json_pieces(given, separators=_COMPACT))


def _detail_pieces(results: EvaluationResults) -> Iterator[str | bytes]:
    """Yield the lines of all contexts, each once, and then the details that name them."""
    new: list[str] = []
    aside, comma = Aside(), ""
    yield '{"lines":['
    details = detail_questions(results.results, results.metrics, results.read_whole, new.append)
    for position, each in enumerate(details):
        aside.put(f"{',' if position else ''}{_json(each)}")
        for line in new:
            yield f"{comma}{_json(line)}"
            comma = ","
        new.clear()
    yield '],"details":['
    yield from aside.take()
    yield "]}"


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=_COMPACT, allow_nan=False)
    return redact_data(text)


def _policy(style: str, scripts: Sequence[str]) -> str:
    hashes = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script() -> str:
    # In a function of its own, so that its names do not become the page's.
    parts = "\n".join(_read(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _read(name: str) -> str:
    text = files("graphrag.eval.web").joinpath(name).read_text("utf-8")
    return text.replace("\r\n", "\n")
