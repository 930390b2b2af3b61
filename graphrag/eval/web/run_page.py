"""The page of a run, put together: figures, plots and questions in one HTML file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphrag.eval.compare.compare import RunComparison
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.report.comparison import (
    differences_table,
    label_of,
    list_notes,
    list_reasons,
    word_of,
)
from graphrag.eval.report.run import analysis_of, list_answer
from graphrag.eval.report.run_lines import (
    describe_abstentions,
    describe_comparisons,
    describe_costs,
    describe_documents,
    describe_firsts,
    describe_lost_areas,
    describe_oddities,
    describe_uncorrected,
    label_results,
)
from graphrag.eval.report.run_tables import (
    areas_table,
    criteria_table,
    curves_table,
    documents_table,
    efficiency_table,
    failures_table,
    loss_table,
    metrics_table,
    pairs_table,
    score_table,
    spent_table,
    validated_table,
)
from graphrag.eval.report.table import Table
from graphrag.eval.results.analysis import Analysis
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.figures import Figures
from graphrag.eval.results.rows import Row
from graphrag.eval.web.page import Aside, pack, stream
from graphrag.eval.web.plots import plot_run
from graphrag.eval.web.questions import Json, detail_questions, list_questions
from graphrag.redaction import redact_data
from graphrag.text.json_pieces import json_pieces

_SCRIPTS = ("report.js", "list.js", "context.js", "walk.js", "question.js")
_COMPACT = (",", ":")
_SETTINGS = ("origin", "metrics", "concurrency", "equal_terms", "n_planned", "n_done")


@dataclass(frozen=True, slots=True)
class Baseline:
    """The comparison with another run, and its rows, by which questions that changed are found."""

    comparison: RunComparison
    rows: list[Row] = field(repr=False)

    @property
    def name(self) -> str:
        """The baseline's run id, or its file."""
        return self.comparison.baseline.name

    def lines(self) -> list[str]:
        """Return what the gate says, with its reasons and warnings."""
        of = self.comparison
        return [
            f"The gate says {word_of(of.outcome)}, for this run less {self.name}{label_of(of)}.",
            *list_reasons(of),
            *list_notes(of),
            *(f"Warning: {line}" for line in of.warnings),
        ]


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
    config: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
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
    results, analysis = given.results, analysis_of(given.results)
    index = list_questions(results.results, given.samples, results.metrics)
    if given.baseline is not None:
        _add_baseline(index, given.baseline)
    metadata = results.metadata
    yield from stream(
        "report.html.j2",
        _SCRIPTS,
        packed={"index": pack(_index_pieces(index)), "details": pack(_detail_pieces(results))},
        plots=plot_run(results, analysis),
        run_id=metadata.get("run_id", ""),
        metadata=metadata,
        label=label_results(results),
        answer=list_answer(results) or ["No metric was to be judged."],
        sure=[
            *describe_comparisons(analysis),
            *describe_documents(analysis),
            *describe_uncorrected(analysis),
            *([] if results.curves is None else describe_lost_areas(results.curves)),
        ],
        costs=describe_costs(results),
        oddities=[
            *describe_abstentions(results),
            *describe_firsts(results),
            *describe_oddities(results),
            *given.notes,
        ],
        tables=_tables(given, analysis),
        unread=given.unread,
        commands=given.commands,
        baseline=given.baseline,
        settings=_settings(given),
    )


def _tables(given: ReportInput, analysis: Analysis) -> dict[str, Table | None]:
    results, figures, curves = given.results, given.figures, given.results.curves
    judged = bool(results.metrics)
    return {
        "score": score_table(results, analysis),
        "means": metrics_table(results.metrics, analysis.outcomes) if judged else None,
        "pairs": pairs_table(analysis) if analysis.comparisons else None,
        "curves": None if curves is None else curves_table(curves),
        "areas": None if curves is None else areas_table(curves),
        "spent": spent_table(results),
        "cost": efficiency_table(results, analysis),
        "documents": documents_table(analysis) if judged else None,
        "failures": failures_table(results),
        "loss": None if figures is None else loss_table(figures),
        "validated": validated_table(given.validated),
        "criteria": None if figures is None else criteria_table(figures),
        "baseline": None
        if given.baseline is None
        else differences_table(given.baseline.comparison),
    }


def _settings(given: ReportInput) -> dict[str, str]:
    """Return name -> JSON of what the run was, its fingerprints among it."""
    metadata = given.results.metadata
    settings = {
        "This run": {name: metadata[name] for name in _SETTINGS if name in metadata},
        "What was evaluated, with fingerprints": metadata.get("setup"),
        "Configuration": dict(given.config),
    }
    return {
        name: json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=str)
        for name, value in settings.items()
        if value
    }


def _add_baseline(index: Json, baseline: Baseline) -> None:
    """Give each answer what its scores were in the other run: 1, 0, or why there is none."""
    ours = {(q["film"], each["method"]) for q in index["questions"] for each in q["answers"]}
    theirs = {(row.document, row.method) for row in baseline.rows}
    # As the gate joins them: on the id where a run does not know its documents.
    by_id = {method for document, method in ours | theirs if not document}
    before = {
        ("" if row.method in by_id else row.document, row.question_id, row.method): row
        for row in baseline.rows
    }
    index["baseline"] = baseline.name
    for question in index["questions"]:
        for answer in question["answers"]:
            document = "" if answer["method"] in by_id else question["film"]
            row = before.get((document, question["id"], answer["method"]))
            if row is None or answer.get("trial"):
                continue
            scores = {m: row.scores[m] for m in row.states}
            answer["before"] = [
                None if m not in scores else row.states[m].value if scores[m] is None else scores[m]
                for m in index["metrics"]
            ]


def _index_pieces(index: Json) -> Iterator[str]:
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
