"""Computes the content of a run's tables, files and page from stored results; writes the page."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile

from graphrag.eval.dataset.dataset_reader import Sample, count_gold
from graphrag.eval.report.recommendation import answer_run
from graphrag.eval.report.report_cache import KeptReport
from graphrag.eval.report.run import analysis_of, list_both, make_sections
from graphrag.eval.report.run_tables import LOST, label_results
from graphrag.eval.report.table import Line
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.results.handicaps import read_handicaps
from graphrag.eval.results.human_labels import correct_comparisons, read_labels
from graphrag.eval.results.method_conditions import read_conditions
from graphrag.eval.results.question_groups import group_questions
from graphrag.eval.results.run_figures import (
    Figures,
    compute_figures,
    evaluation_names,
    retrieval_pieces,
)
from graphrag.eval.results.usage import describe_beside, label_embedded
from graphrag.eval.runner.run_setup import is_asked
from graphrag.eval.runner.stored_run import RunDescription
from graphrag.eval.store.atomic_files import (
    DETAILED_FILE,
    PAGE_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    Content,
)
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
from graphrag.query.client.usage import Usage
from graphrag.text.cli_hints import anywhere, current_command, eval_line_here, find_lines
from graphrag.text.json_records import json_pieces, whole_json
from graphrag.text.message_phrases import counted
from graphrag.text.redaction import redact_data

_SCRIPTS = ("report.js", "list.js", "context.js", "walk.js", "calls.js", "question.js")
_COMPACT = (",", ":")
_PIECE = 1 << 16
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT, allow_nan=False)
_NO_FIGURES = Figures(
    measures={}, loss=[], criteria=[], scores={}, usage=Usage(), retrieval={}, evaluations={}
)
_NOTHING: Mapping[str, str] = {}
_SETTINGS = ("origin", "metrics", "concurrency", "equal_terms", "n_planned", "n_done")


@dataclass(frozen=True, slots=True)
class Report:
    """A run's figures as its tables and files show them; ``notes`` are lines below the tables.

    Make files while the run's store is open, because contexts are read from it.
    """

    results: EvaluationResults
    figures: Figures
    notes: tuple[str, ...]
    description: RunDescription

    def files(self) -> dict[str, Content]:
        """Return name -> content of the run's files; a content is made once, when it is written."""
        results, figures = self.results, self.figures
        names, answer = evaluation_names(list(figures.evaluations)), answer_run(results)
        section = {"answer": None if answer is None else answer.to_dict()}
        return {
            **{names[method]: whole_json(report) for method, report in figures.evaluations.items()},
            SUMMARY_FILE: replace(results, figures={**section, **results.figures}).to_json(),
            DETAILED_FILE: results.detailed_pieces(),
            REPORT_FILE: retrieval_pieces(figures.retrieval, results.results, results.read_whole),
            PAGE_FILE: self.page(),
        }

    def shown(self) -> KeptReport:
        """Return the lines and tables of the terminal."""
        about, command = self.description, current_command()
        with anywhere():
            brief, full = list_both(self.results, self.figures, self.notes)
            answer = answer_run(self.results)
            show = eval_line_here("show", about.run.run_id)
        lines = [part.text for part in full if isinstance(part, Line)]
        folder = str(about.config.output_folder.absolute())
        return KeptReport(
            brief=brief,
            full=full,
            answer="" if answer is None else answer.line,
            unread=list(about.unread),
            folder=folder if any(folder in line for line in lines) else None,
            commands=list(dict.fromkeys([show, *chain(*map(find_lines, lines))])),
            program=command.program,
            place=command.paths,
        )

    def page(self) -> Iterator[str]:
        """Yield the run's page in pieces."""
        about = self.description
        no_root = bool(current_command().paths) or about.config.root == Path()
        root = () if no_root else ("--root", about.config.root)
        show = eval_line_here("show", about.run.run_id, *root) if about.is_stored else ""
        commands = {
            "Ask the same again": about.run.details.command,
            "Print its tables, and write this page": show,
        }
        return report_pieces(
            self.results,
            self.figures,
            about.samples,
            self.notes,
            {name: line for name, line in commands.items() if line},
            about.run.details.config,
            about.unread,
        )


def make_report(description: RunDescription) -> Report:
    """Compute the content of a run's tables and files."""
    results, judged = _describe_run(description), description.outcome.judged
    figures = compute_figures(
        description.config,
        results,
        description.samples,
        description.views,
        judged,
        is_judged=not description.run.details.skip_judge,
    )
    results = replace(results, figures=figures.to_dict())
    failed = [judgement for _, judgement in judged if judgement.failed]
    kinds = Counter(judgement.kind for judgement in failed if not judgement.cause)
    causes = Counter(judgement.cause for judgement in failed if judgement.cause)
    failures = Counter(why for answer, _ in figures.traced for why in answer.failures.values())
    notes = (
        *(
            f"{kind}: {counted(n, 'judgment')} unscored, in full or in part"
            for kind, n in kinds.items()
        ),
        *(f"{counted(n, 'answer')} ungraded: {why}" for why, n in causes.items()),
        *(f"{counted(n, 'answer')} unmeasured: {why}" for why, n in failures.items()),
    )
    return Report(results=results, figures=figures, notes=notes, description=description)


def _describe_run(description: RunDescription) -> EvaluationResults:
    config, run = description.config, description.run
    details = run.details
    samples, outcome = description.samples, description.outcome
    by_method = {m: [s for s in samples if is_asked(m, s)] for m in run.setup.methods}
    planned = {
        method: Counter(sample.imdb_key for sample in method_samples for _ in range(config.trials))
        for method, method_samples in by_method.items()
    }
    conditions = read_conditions(
        run.setup,
        details.search_methods,
        {key: details.index_costs.get(key) for key in run.setup.searched()},
    )
    conditions = replace(conditions, handicaps=read_handicaps(outcome.results, details.lacking))
    results = aggregate_results(
        outcome.results,
        config.metrics,
        planned if samples else None,
        config.equivalence_margin,
    ).under_conditions(conditions)
    if results.analysis is not None and outcome.results:
        rows = results.rows
        first = [row for row in rows if not row.trial]  # people label the first trial
        labels = read_labels(config.output_folder, run.run_id, first)
        analysis = correct_comparisons(results.analysis, labels)
        kinds = ()
        if config.metrics:
            kinds = group_questions(rows, by_method, config.metrics[0])
        results = replace(results, analysis=analysis, kinds=kinds)
    models = sorted({*results.metadata["models"], *details.models})
    order = list(run.setup.methods)
    timestamp, label = results.metadata["timestamp"], results.metadata["embedded_models"]
    if outcome.judged:
        further = [judgement.usage for _, judgement in outcome.judged]
        label = label_embedded(outcome.results, further)
    if description.recorded_at is not None:
        recorded = datetime.fromisoformat(description.recorded_at)
        timestamp = recorded.isoformat(timespec="seconds")
    return replace(
        results,
        read_whole=outcome.read_whole,
        read_calls=outcome.read_calls,
        command=details.command,
        roomy=details.roomy,
        metadata={
            **results.metadata,
            "timestamp": timestamp,
            "methods": results.metadata["methods"] if outcome.results else order,
            "models": models,
            "embedded_models": label,
            "setup": run.setup.root,
            "judge": run.setup.root["judge"],
            "equal_terms": run.setup.root.get("equal_terms"),
            "warnings": list(details.warnings),
            "run_id": run.run_id,
            "origin": details.origin,
            "n_gold": count_gold(samples),
            "asked": {"questions": run.setup.n_questions, "methods": order},
            "is_complete": outcome.is_complete,
            "n_planned": outcome.n_planned,
            "n_done": len(outcome.results),
            "concurrency": config.concurrency,
            **describe_beside(description.forgotten, description.unfinished),
        },
    )


def report_pieces(
    results: EvaluationResults,
    figures: Figures = _NO_FIGURES,
    samples: Sequence[Sample] = (),
    notes: Sequence[str] = (),
    commands: Mapping[str, str] = _NOTHING,
    config: Mapping[str, object] = _NOTHING,
    unread: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the page, in pieces, as HTML that needs no network.

    - ``samples``: for tags and evidence; may be empty.
    - ``notes``: further lines to show.
    - ``commands``: the purpose of a command -> its line.
    - ``config``: the run's configuration, JSON-ready.
    - ``unread``: the parts that could not be read, so that figures are missing.

    Raises ValueError if the results have no analysis.
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
            # Redacted before it is packed: a scan for keys would not find one in packed data.
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
    """Return name -> JSON of the run's settings, including fingerprints."""
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
    """Yield the lines of all texts, each once, then the details that refer to them, by question."""
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
