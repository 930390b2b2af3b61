"""The page of a run, put together: figures, plots and questions in one HTML file."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from tempfile import TemporaryFile

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.report.answer import answer_run
from graphrag.eval.report.run import analysis_of, make_sections
from graphrag.eval.report.run_tables import LOST, label_results
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.figures import Figures
from graphrag.eval.web.page import pack, stream
from graphrag.eval.web.plots import plot_run
from graphrag.eval.web.questions import (
    by_question,
    detail_questions,
    list_calls,
    list_questions,
    order_metrics,
    trace_answers,
)
from graphrag.query.usage import Usage
from graphrag.text.json_pieces import json_pieces
from graphrag.text.redaction import redact_data

_SCRIPTS = ("report.js", "list.js", "context.js", "walk.js", "calls.js", "question.js")
_COMPACT = (",", ":")
_PIECE = 1 << 16
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT, allow_nan=False)
_NO_FIGURES = Figures({}, [], [], {}, Usage(), {}, {})
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
    analysis = analysis_of(results)
    traces, questions = trace_answers(figures), by_question(results.results)
    judged = order_metrics(results.results, results.metrics)
    index: Mapping[str, object] = {
        "methods": list(dict.fromkeys(result.method for result in results.results)),
        "metrics": judged,
        "films": list(dict.fromkeys(result.imdb_key for result in results.results)),
        "lost": LOST,
        "questions": iter(list_questions(results.results, samples, judged, traces)),
    }
    metadata = results.metadata
    yield from stream(
        "report.html.j2",
        _SCRIPTS,
        packed={
            # Packed, a key would be hidden from those who look for keys in what is written.
            "index": pack(map(redact_data, json_pieces(index, separators=_COMPACT))),
            "details": pack(
                _pieces(partial(detail_questions, questions, judged, results.read_whole))
            ),
            "calls": pack(_pieces(partial(list_calls, questions, results.read_calls))),
        },
        plots=plot_run(results, analysis),
        run_id=metadata.get("run_id", ""),
        metadata=metadata,
        label=label_results(results),
        answer=answer_run(results),
        parts=make_sections(results, figures, notes),
        unread=unread,
        commands=commands,
        settings=_settings(metadata, config),
    )


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
