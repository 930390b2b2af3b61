"""What ``graphrag eval compare``, ``history`` and ``baseline set`` do."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from graphrag.eval.compare import RunComparison, compare_runs
from graphrag.eval.config import EvaluationConfig
from graphrag.eval.errors import EvalError, StoreError, UsageError
from graphrag.eval.gate import MARGIN, GateOutcome
from graphrag.eval.gate_report import (
    list_annotations,
    render_junit,
    render_markdown,
    show_comparison,
    show_runs,
)
from graphrag.eval.results import DETAILED_FILE
from graphrag.eval.run_rows import PINNED, list_runs, pin_baseline, read_rows

EXIT_CODES = {GateOutcome.PASS: 0, GateOutcome.INCONCLUSIVE: 3, GateOutcome.FAIL: 100}
_DONE, _ERROR, _USAGE, _BELOW_THRESHOLD = 0, 1, 2, 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where the results are, as the flags name it: ``output``, else what the configuration says."""

    root: Path = Path()
    config: Path | None = None
    output: Path | None = None

    def store_path(self) -> Path:
        """Return the eval.db of the output folder.

        Raises
        ------
        ConfigError
            If the configuration is needed and can't be read.
        """
        folder = self.read_config().output_dir if self.output is None else self.output
        return folder / "eval.db"

    def read_config(self) -> EvaluationConfig:
        """Return the configuration; raises ConfigError when it can't be read."""
        path = self.config or self.root / "eval_config.yaml"
        return EvaluationConfig.from_yaml(path, self.root)


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The flags of ``graphrag eval compare``; ``metrics`` and ``methods`` are comma-separated."""

    new: str
    baseline: str = PINNED
    metrics: str = "correctness"
    methods: str | None = None
    margin: float = MARGIN
    junit: Path | None = None


def run_compare(place: Place, options: CompareOptions) -> int:
    """Compare two runs, show the answer everywhere it is wanted, and return its exit code."""

    def compare() -> int:
        store_path = place.store_path()
        comparison = compare_runs(
            read_rows(options.new, store_path),
            read_rows(options.baseline, store_path),
            None if options.methods is None else _names(options.methods),
            _names(options.metrics),
            options.margin,
        )
        _show(comparison, Console(), options.junit)
        return EXIT_CODES[comparison.outcome]

    return _explain(compare)


def run_with_baseline(
    place: Place, source: str, evaluate: Callable[[], int], quiet: bool = False
) -> int:
    """Evaluate, then compare what was written with a baseline, which is read beforehand.

    Returns
    -------
    int
        The evaluation's exit code unless that is 0, else the gate's; an evaluation that stopped
        early or left verdicts unscored is not compared.
    """

    def run() -> int:
        config, store_path = place.read_config(), place.store_path()
        baseline = read_rows(source, store_path)
        code = evaluate()
        if code not in (_DONE, _BELOW_THRESHOLD):
            return code
        new = read_rows(str(store_path.with_name(DETAILED_FILE)), store_path)
        comparison = compare_runs(new, baseline, metrics=config.metrics[:1])
        _show(comparison, Console(quiet=quiet), None)
        return code or EXIT_CODES[comparison.outcome]

    return _explain(run)


def run_history(place: Place) -> int:
    """Show the runs of the output folder."""

    def show() -> int:
        show_runs(Console(), list_runs(place.store_path()))
        return _DONE

    return _explain(show)


def run_baseline_set(place: Place, source: str) -> int:
    """Pin a run as the baseline of the output folder."""

    def pin() -> int:
        store_path = place.store_path()
        run = read_rows(source, store_path)
        path = pin_baseline(run, store_path)
        if run.metadata.status == "unfinished":
            _complain(f"Warning: {run.metadata.name} is unfinished", "yellow")
        line = f"Pinned {run.metadata.name} in {path}."
        Console().print(line, highlight=False, markup=False, soft_wrap=True)
        return _DONE

    return _explain(pin)


def _show(comparison: RunComparison, console: Console, junit: Path | None) -> None:
    for warning in comparison.warnings:
        _complain(f"Warning: {warning}", "yellow", console.quiet)
    show_comparison(console, comparison)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in list_annotations(comparison):
            Console().print(line, highlight=False, markup=False, soft_wrap=True)
    if junit is not None:
        _write(junit, render_junit(comparison), "w")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        _write(Path(summary), render_markdown(comparison), "a")


def _explain(command: Callable[[], int]) -> int:
    try:
        return command()
    except EvalError as error:
        _complain(f"Error: {error}", "red")
        return _USAGE if isinstance(error, UsageError) else _ERROR


def _complain(text: str, style: str, quiet: bool = False) -> None:
    console = Console(stderr=True, quiet=quiet)
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _write(path: Path, text: str, mode: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror}."
        raise StoreError(msg) from error
