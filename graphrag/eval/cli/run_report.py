"""What is made of a run when it ends or is shown again: its results, figures and files."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from graphrag.command_lines import eval_line_here, has_place
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.report.files import render_files
from graphrag.eval.results.analysis import Analysis
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.results.figures import Figures, FigureSources, compute_figures
from graphrag.eval.results.labels import correct_comparisons, read_labels
from graphrag.eval.results.rows import rows_of
from graphrag.eval.results.usage import describe_forgotten, label_embedded
from graphrag.eval.runner.checks import AVERAGES
from graphrag.eval.runner.plan import is_asked
from graphrag.eval.runner.queue import RunOutcome
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.store.records import Run, RunDetails
from graphrag.eval.store.whole_files import PAGE_FILE, Content
from graphrag.eval.web.run_page import Baseline, ReportInput, report_pieces
from graphrag.query.usage import Usage


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What a run's files and its end say about it.

    Attributes
    ----------
    run : Run
        With its details.
    config : EvaluationConfig
    samples : sequence of Sample
    views : mapping
        Index key -> view, for the measures that need no model.
    recorded_at : str or None
        When its latest result was kept, ISO 8601; None: now.
    is_stored : bool
        Whether the run is in eval.db.
    file : Path or None
        Where the summary is written besides.
    forgotten : sequence of Usage
        Of failed searches that were asked again, and of calls that are part of nothing kept.
    unread : sequence of str
        What can't be read any more of what the run was, a line each.
    made_of : str or None
        A digest of what the store holds of the run; None where it is not to be read by.
    """

    run: Run
    config: EvaluationConfig
    samples: Sequence[Sample] = ()
    views: Mapping[str, IndexView] = field(default_factory=dict[str, IndexView])
    recorded_at: str | None = None
    is_stored: bool = True
    file: Path | None = None
    forgotten: Sequence[Usage] = ()
    unread: Sequence[str] = ()
    made_of: str | None = None

    @property
    def details(self) -> RunDetails:
        """The run's details."""
        return self.run.details


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's figures, as its tables and files show them; ``notes`` are lines below the tables.

    Files are made while the run's store is open: contexts are read from it.
    """

    results: EvaluationResults
    figures: Figures
    notes: tuple[str, ...]
    description: RunDescription

    def files(self) -> dict[str, Content]:
        """Return name -> content of the run's files, made when it is written, once."""
        files = render_files(self.results, self.figures.retrieval, self.figures.evaluations)
        return {**files, PAGE_FILE: self.page()}

    def page(self, baseline: Baseline | None = None) -> Iterator[str]:
        """Yield the run's page in pieces; with a baseline, which it is held against."""
        told = self.description
        no_root = has_place() or told.config.root == Path()
        place = () if no_root else ("--root", told.config.root)
        run_id = told.run.run_id
        commands = {
            "Ask the same again": told.details.command,
            "Print its tables": eval_line_here("show", run_id, *place) if told.is_stored else "",
            "Write this page": eval_line_here("report", run_id, *place) if told.is_stored else "",
        }
        return report_pieces(
            ReportInput(
                self.results,
                self.figures,
                told.samples,
                self.notes,
                {name: line for name, line in commands.items() if line},
                told.details.config,
                baseline,
                told.details.validated,
                told.unread,
            )
        )


def make_report(description: RunDescription, outcome: RunOutcome) -> RunReport:
    """Compute what a run's tables and files show."""
    results = _describe_run(description, outcome)
    figures = compute_figures(
        description.config,
        outcome.results,
        FigureSources(
            description.samples,
            description.views,
            description.details.search_methods,
            outcome.judged,
            {m: {**found, **_averages(results, m)} for m, found in results.by_method.items()},
            is_judged=not description.details.skip_judge,
            read_whole=outcome.read_whole,
        ),
        results.metadata,
    )
    results = replace(results, figures=figures.to_dict(), curves=figures.curves)
    return RunReport(results, figures, tuple(_describe_unjudged(outcome)), description)


def _averages(results: EvaluationResults, method: str) -> dict[str, float | None]:
    return {name: results.efficiency[method][name] for name in AVERAGES}


def _describe_unjudged(outcome: RunOutcome) -> list[str]:
    failed = [found for _, found in outcome.judged if found.failed]
    kinds = Counter(found.kind for found in failed)
    return [f"{kind}: {n} judgements are unscored, in full or in part" for kind, n in kinds.items()]


def _describe_run(description: RunDescription, outcome: RunOutcome) -> EvaluationResults:
    config, run, details = description.config, description.run, description.details
    planned = {
        method: Counter(
            sample.imdb_key
            for sample in description.samples
            if is_asked(method, sample)
            for _ in range(config.trials)
        )
        for method in run.setup.methods
    }
    results = aggregate_results(
        outcome.results,
        config.metrics,
        planned if description.samples else None,
        config.equivalence_margin,
        config.curves,
    )
    if results.analysis is not None and outcome.results:
        analysis = _correct(results.analysis, description, outcome)
        results = replace(results, analysis=analysis)
    models = sorted({*results.metadata["models"], *details.models})
    order = list(run.setup.methods)
    timestamp = results.metadata["timestamp"]
    if description.recorded_at is not None:
        recorded = datetime.fromisoformat(description.recorded_at)
        timestamp = recorded.isoformat(timespec="seconds")
    return replace(
        results,
        read_whole=outcome.read_whole,
        command=details.command,
        metadata={
            **results.metadata,
            "timestamp": timestamp,
            "methods": results.metadata["methods"] if outcome.results else order,
            "models": models,
            "embedded_models": label_embedded(
                outcome.results, [judgement.usage for _, judgement in outcome.judged]
            ),
            "setup": run.setup.root,
            "judge": run.setup.root["judge"],
            "equal_terms": run.setup.root.get("equal_terms"),
            "warnings": list(details.warnings),
            "run_id": run.run_id,
            "origin": details.origin,
            "asked": {"questions": run.setup.n_questions, "methods": order},
            "is_complete": outcome.is_complete,
            "n_planned": outcome.n_planned,
            "n_done": len(outcome.results),
            "concurrency": config.concurrency,
            **describe_forgotten(description.forgotten),
        },
    )


def _correct(analysis: Analysis, description: RunDescription, outcome: RunOutcome) -> Analysis:
    """Return the analysis with its comparisons corrected by the labels of an audit, if any."""
    rows = rows_of(outcome.results)
    first = [row for row in rows if not row.trial]  # which is what people labelled
    labels = read_labels(description.config.output_folder, description.run.run_id, first)
    if not labels:
        return analysis
    return correct_comparisons(analysis, labels)
