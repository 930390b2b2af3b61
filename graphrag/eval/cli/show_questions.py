"""What ``graphrag eval show`` does when it is asked for questions: answers, verdicts, paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from graphrag.command_lines import again
from graphrag.eval.cli.run_report import RunDescription, make_report
from graphrag.eval.cli.terminal import open_console, working
from graphrag.eval.compare.compare import compare_runs
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import QueryResult
from graphrag.eval.report.questions import ShownQuestion, is_wrong, show_question
from graphrag.eval.report.table import say
from graphrag.eval.results.runs import read_rows
from graphrag.eval.results.usage import label_embedded
from graphrag.eval.runner.stored_outcome import ReadRun
from graphrag.text.phrases import counted

_MOST = 10  # questions that are shown unless all are asked for


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which questions are to be shown: of this id, that failed, that changed since a baseline."""

    question: str | None = None
    failed: bool = False
    baseline: str | None = None
    full: bool = False

    @property
    def is_any(self) -> bool:
        """Whether questions are asked for at all."""
        return self.question is not None or self.failed or self.baseline is not None


def show_questions(
    console: Console,
    description: RunDescription,
    found: ReadRun,
    wanted: Wanted,
    store_path: Path,
    before: ReadRun | None = None,
) -> None:
    """Print the questions of a run that are wanted, while its store is open.

    Raises
    ------
    UsageError
        If the runs can't be compared.
    """
    notes = open_console(stderr=True, quiet=console.quiet)
    with working(notes, "Looking for the questions"):
        chosen = _choose(found, wanted, store_path)
    ids = list(dict.fromkeys(result.sample_id for result in chosen))
    shown = ids if wanted.full else ids[:_MOST]
    samples = [sample for sample in description.samples if sample.id in shown]
    of_these = [result for result in found.outcome.results if result.sample_id in shown]
    if not of_these:
        say(console, "No question of the run is one of these.")
        return
    outcome = replace(found.outcome, results=of_these, judged=())
    with working(notes, f"Computing the figures of {counted(len(of_these), 'result')}"):
        report = make_report(replace(description, samples=samples), outcome)
    measures = {
        each["id"]: {name: told["measures"] for name, told in each["methods"].items()}
        for each in report.figures.retrieval["results"]
    }
    label = report.results.metadata["embedded_models"]
    earlier = _by_answer([] if before is None else before.outcome.results)
    theirs = "" if before is None else _label(before)
    run_of = {} if before is None else {id(result): before for result in earlier.values()}
    for sample in samples:
        told = _answers(sample, chosen if wanted.baseline is not None else of_these, earlier)
        show_question(
            console,
            ShownQuestion(
                sample,
                [(name, _whole(result, run_of.get(id(result), found))) for name, result in told],
                measures.get(sample.id, {}),
                {name: theirs for name, result in told if id(result) in run_of},
            ),
            f" ({label})" if label else "",
            wanted.full,
        )
    if len(shown) < len(ids):
        left = counted(len(ids) - len(shown), "more question")
        say(console, f"... and {left}; all of them with: {again('--full')}")


def _whole(result: QueryResult, run: ReadRun) -> QueryResult:
    (whole,) = run.outcome.read_whole([result])
    return whole


def _label(before: ReadRun) -> str:
    """Return the label of a whole run's embedded models in brackets; "" without any."""
    outcome = before.outcome
    label = label_embedded(outcome.results, [judged.usage for _, judged in outcome.judged])
    return f" ({label})" if label else ""


def _choose(found: ReadRun, wanted: Wanted, store_path: Path) -> list[QueryResult]:
    results = found.outcome.results
    if wanted.question is not None:
        results = [result for result in results if result.sample_id == wanted.question]
    if wanted.failed:
        results = [result for result in results if is_wrong(result)]
    if wanted.baseline is not None:
        new = read_rows(found.run.run_id, store_path)
        old = read_rows(wanted.baseline, store_path)
        comparison = compare_runs(new, old)
        flipped = {(flip.question_id, flip.method) for flip in comparison.flips}
        results = [r for r in results if (r.sample_id, r.method) in flipped]
    return list(results)


def _by_answer(results: Sequence[QueryResult]) -> Mapping[tuple[str, str], QueryResult]:
    return {(r.sample_id, r.method): r for r in results if r.trial == 0}


def _answers(
    sample: Sample,
    results: Sequence[QueryResult],
    earlier: Mapping[tuple[str, str], QueryResult],
) -> list[tuple[str, QueryResult]]:
    """Return what the methods answered, each after what it answered in the baseline."""
    found: list[tuple[str, QueryResult]] = []
    for result in results:
        if result.sample_id != sample.id:
            continue
        old = earlier.get((sample.id, result.method))
        if old is not None and result.trial == 0:
            found.append((f"{result.method}, in the baseline", old))
        which = f", search {result.trial + 1}" if result.trial else ""
        found.append((f"{result.method}{which}", result))
    return found
