"""The page of a run, put together: figures, plots and questions in one HTML file."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from tempfile import TemporaryFile
from typing import TypeAlias
from urllib.parse import urlencode

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.report import run, run_tables
from graphrag.eval.report.answer import answer_run
from graphrag.eval.report.kinds import kinds_table
from graphrag.eval.report.table import Table, Value
from graphrag.eval.results.analysis import Analysis
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.figures import Figures
from graphrag.eval.web.page import pack, stream
from graphrag.eval.web.plots import plot_run
from graphrag.eval.web.questions import (
    QuestionIndex,
    by_question,
    detail_questions,
    list_calls,
    list_questions,
    trace_answers,
)
from graphrag.query.usage import Usage
from graphrag.text.json_pieces import json_pieces
from graphrag.text.redaction import redact_data

_Links: TypeAlias = dict[tuple[int, int], str]
_SCRIPTS = ("report.js", "list.js", "context.js", "walk.js", "calls.js", "question.js")
_COMPACT = (",", ":")
_PIECE = 1 << 16
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT, allow_nan=False)
_NO_FIGURES = Figures({}, [], [], {}, {}, Usage(), {}, {})
_NOTHING: Mapping[str, str] = {}
_SETTINGS = ("origin", "metrics", "concurrency", "equal_terms", "n_planned", "n_done")


def report_pieces(
    results: EvaluationResults,
    figures: Figures = _NO_FIGURES,
    samples: Sequence[Sample] = (),
    notes: Sequence[str] = (),
    commands: Mapping[str, str] = _NOTHING,
    config: Mapping[str, object] = _NOTHING,
    unread: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the page, in pieces, as HTML that needs nothing from a network.

    ``samples``, for tags and evidence, may be empty; ``notes``: what else is to be said;
    ``commands``: what it is for -> a command line; ``config``: the run's, JSON-ready; ``unread``:
    what could not be read any more, so that figures are missing. ValueError if the results hold no
    analysis.
    """
    analysis = run.analysis_of(results)
    traces, questions = trace_answers(figures), by_question(results.results)
    index = list_questions(results.results, samples, results.metrics, traces)
    metadata, tables = results.metadata, _tables(results, figures, analysis)
    yield from stream(
        "report.html.j2",
        _SCRIPTS,
        packed={
            "index": pack(_index_pieces(index)),
            "details": pack(
                _pieces(partial(detail_questions, questions, index["metrics"], results.read_whole))
            ),
            "calls": pack(_pieces(partial(list_calls, questions, results.read_calls))),
        },
        plots=plot_run(results, analysis),
        run_id=metadata.get("run_id", ""),
        metadata=metadata,
        label=run_tables.label_results(results),
        scores=run_tables.score_tables(figures),
        answer=answer_run(results),
        sure=[
            *run.describe_comparisons(analysis),
            *run.describe_documents(analysis),
            *run.describe_uncorrected(analysis),
            *([] if results.curves is None else run.describe_lost_areas(results.curves)),
        ],
        gold=run.describe_gold(results),
        costs=[*run.describe_costs(results), *run.list_index_notes(figures)],
        oddities=[
            *run.describe_abstentions(results),
            *run.describe_firsts(results),
            *run.describe_oddities(results),
            *notes,
        ],
        tables=tables,
        links=_links(tables, figures, analysis.primary),
        unread=unread,
        commands=commands,
        settings=_settings(metadata, config),
    )


def _links(tables: Mapping[str, Table | None], figures: Figures, primary: str) -> dict[str, _Links]:
    """Return table -> (line, column) -> the address of the questions that a figure counts."""
    links: dict[str, _Links] = {
        name: {} for name in ("score", "failures", "loss", "lost", "documents")
    }
    for name, cell, row in _cells(tables["score"]):
        if outcome := {"failed": "search_failed", "declined": "declined"}.get(name):
            links["score"][cell] = _address({f"is:{row[0]}": outcome})
    for name, cell, (method, what, _, cause) in _cells(tables["failures"]):
        if name == "times":
            metric = str(what).partition(" unscored")[0]
            query = {} if metric == what else {"metric": metric, f"is:{method}": "unscored"}
            links["failures"][cell] = _address({"cause": cause, **query})
    for name, cell, row in _cells(tables["documents"]):
        if name != "document":
            query = {"film": row[0], f"is:{name}": "0", "metric": primary}
            links["documents"][cell] = _address(query)
    stages = {heading: stage for stage, heading in run_tables.STAGE_NAMES.items()}
    past = {
        name: name.replace(" ", "_") for name in ("unknown", "right", "right anyway", "unjudged")
    }
    lost = {run_tables.loss_label(row): row for row in figures.loss}
    for table in ("loss", "lost"):
        for name, cell, row in _cells(tables[table]):
            loss, stage = lost[str(row[0])], {**stages, **past}.get(name)
            if stage is not None:
                query = {"lost": f"{loss.method}|{stage}", "film": loss.imdb_key or ""}
                links[table][cell] = _address(query)
    return links


def _cells(table: Table | None) -> Iterator[tuple[str, tuple[int, int], Sequence[Value]]]:
    """Yield the column's name, place and line of each cell that is a count above 0, or a text."""
    if table is None:
        return
    for line, row in enumerate(table.rows):
        for column, (name, value) in enumerate(zip(table.names, row, strict=True)):
            if column and value not in (0, "0", None):
                yield name, (line, column), row


def _address(query: Mapping[str, Value]) -> str:
    return f"#f?{urlencode({name: value for name, value in query.items() if value})}"


def _tables(
    results: EvaluationResults, figures: Figures, analysis: Analysis
) -> dict[str, Table | None]:
    curves, judged = results.curves, bool(results.metrics)
    return {
        "score": run_tables.score_table(results, analysis),
        "means": run_tables.metrics_table(results.metrics, analysis) if judged else None,
        "pairs": run_tables.pairs_table(analysis) if analysis.comparisons else None,
        "curves": None if curves is None else run_tables.curves_table(curves),
        "areas": None if curves is None else run_tables.areas_table(curves),
        "spent": run_tables.spent_table(results),
        "cost": run_tables.efficiency_table(results, analysis),
        "index": run.index_cost_table(figures.index_costs),
        "documents": run_tables.documents_table(analysis) if judged else None,
        "kinds": kinds_table(results),
        "failures": run_tables.failures_table(results),
        **_split_loss(figures),
        "criteria": run_tables.criteria_table(figures),
    }


def _split_loss(figures: Figures) -> dict[str, Table | None]:
    """Return the table of losses over all documents, and that of each where there are several."""
    whole = run_tables.loss_table(figures)
    if whole is None:
        return {"loss": None, "lost": None}
    of_all = {run_tables.loss_label(row) for row in figures.loss if row.imdb_key is None}
    over = [row for row in whole.rows if row[0] in of_all]
    if not over:
        return {"loss": whole, "lost": None}
    by_document = [row for row in whole.rows if row[0] not in of_all]
    return {
        "loss": replace(whole, rows=over),
        "lost": replace(whole, title="The same by document", rows=by_document, note=""),
    }


def _settings(metadata: Mapping[str, object], config: Mapping[str, object]) -> dict[str, str]:
    """Return name -> JSON of what the run was, its fingerprints among it."""
    settings = {
        "This run": {name: metadata[name] for name in _SETTINGS if name in metadata},
        "What was evaluated, with fingerprints": metadata.get("setup"),
        "Configuration": dict(config),
    }
    return {
        name: json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=str)
        for name, value in settings.items()
        if value
    }


def _index_pieces(index: QuestionIndex) -> Iterator[str]:
    values = {**index, "questions": iter(index["questions"])}
    # Packed, a key would be hidden from those who look for keys in what is written.
    return map(redact_data, json_pieces(values, separators=_COMPACT))


def _pieces(
    list_answers: Callable[[Callable[[str], None]], Iterator[Sequence[object]]],
) -> Iterator[str]:
    """Yield the lines of all texts, each once, and then what names them, question by question."""
    new: list[str] = []
    comma = ""
    with TemporaryFile("w+", encoding="utf-8", errors="replace", newline="") as aside:
        yield '{"lines":['
        for position, answer in enumerate(list_answers(new.append)):
            aside.write(f"{',' if position else ''}{_json(answer)}")
            for line in new:
                yield f"{comma}{_json(line)}"
                comma = ","
            new.clear()
        aside.seek(0)
        yield '],"answers":['
        yield from iter(partial(aside.read, _PIECE), "")
        yield "]}"


def _json(value: object) -> str:
    return redact_data(_ENCODER.encode(value))
