"""The flags of the commands that hand them on, without what they start: that loads slowly."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from graphrag.eval.cli.command import (
    Address,
    Full,
    MaxCost,
    Quiet,
    Resume,
    RetryErrors,
    Verbose,
    Workers,
    option,
)
from graphrag.eval.errors import UsageError

if TYPE_CHECKING:
    from graphrag.eval.monitoring.watch import NextRound

DRAFT_FILE = Path("eval") / "drafted_questions.json"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True, slots=True)
class RunFlags:
    """The flags of ``graphrag eval`` beside those of its place.

    ``round`` makes it a round of a watch: of these questions, without thresholds.
    """

    methods: Annotated[str | None, option("E.g. tog,local,basic.", "--methods", "-m")] = None
    imdb_key: Annotated[str | None, option("Ask only the questions on this index.")] = None
    limit: Annotated[int | None, option("Ask only the first N questions.", min=1)] = None
    index: Annotated[bool, option("Build missing indexes first.", "--index")] = False
    dry_run: Annotated[bool, option("Show what a run would take; send nothing.", "--dry-run")] = (
        False
    )
    max_cost: MaxCost = None
    resume: Resume = False
    retry_errors: RetryErrors = False
    full: Full = False
    quiet: Quiet = False
    verbose: Verbose = False
    metrics: Annotated[str | None, option("E.g. correctness,relevance; or none.")] = None
    repeat: Annotated[int | None, option("Ask everything N times.", min=1)] = None
    skip_judge: Annotated[
        bool, option("Collect responses now, judge them later.", "--skip-judge")
    ] = False
    otel: Annotated[bool, option("Send spans to an OTLP collector.", "--otel")] = False
    workers: Workers = None
    address: Address = None
    round: "NextRound | None" = None


@dataclass(frozen=True, slots=True)
class ShowFlags:
    """The flags of ``graphrag eval show`` that speak of a run, and how much is printed."""

    question: Annotated[
        str | None, option("Show this question, by its id or the beginning of its text.")
    ] = None
    failed: Annotated[
        bool,
        option(
            "List what the method that the answer names has wrong, then where methods differ; "
            "--full: in full.",
            "--failed",
        ),
    ] = False
    method: Annotated[
        str | None, option("With --failed, --question or --changed: only this method.")
    ] = None
    changed: Annotated[
        str | None, option("Show answers that changed since this run, latest or pinned.")
    ] = None
    calls: Annotated[
        bool, option("With --question: print what models were told and what they said.", "--calls")
    ] = False
    html: Annotated[
        Path | None,
        option("Write the run's page to this file; with --changed, the page of both runs."),
    ] = None
    to: Annotated[
        Path | None, option("Write the files to this folder instead of the run's own.")
    ] = None
    export: Annotated[
        Path | None, option("Also write every row to this FILE.csv or FILE.parquet.")
    ] = None
    mlflow: Annotated[bool, option("Log the run to MLflow.", "--mlflow")] = False
    full: Full = False
    quiet: Quiet = False

    @property
    def asks(self) -> bool:
        """Whether questions are asked for."""
        return self.question is not None or self.failed or self.changed is not None

    @property
    def lists(self) -> bool:
        """Whether they are listed, a line each."""
        others = self.question is not None or self.changed is not None or self.full
        return self.failed and not others

    @property
    def writes(self) -> bool:
        """Whether files are asked for beside the run's own."""
        return self.mlflow or self.to is not None or self.export is not None


def split_names(text: str) -> list[str]:
    """Return the names of a list that is divided by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True, slots=True)
class DraftFlags:
    """What is drafted."""

    n: Annotated[int, option("Questions to draft.", "--n", "-n", min=1)] = 60
    kinds: Annotated[str, option("What to draft.")] = "fact,link,global,unanswerable"
    personas: Annotated[
        list[str] | None, option('Who asks, such as "new employee"; repeat it for more.', "--for")
    ] = None
    styles: Annotated[
        str | None, option("How they ask: any of question,keywords,vague; default: no style.")
    ] = None
    assertions: Annotated[
        Path | None,
        option("Draft no questions, but assertions for the rows of this dataset.", "--assertions"),
    ] = None
    keep_known: Annotated[
        bool, option("Keep, tagged known, what the model answers without a text.", "--keep-known")
    ] = False
    dry_run: Annotated[bool, option("Show what it would take; send nothing.", "--dry-run")] = False
    max_cost: MaxCost = None
    quiet: Quiet = False
    verbose: Verbose = False


@dataclass(frozen=True, slots=True)
class MonitorFlags:
    """The flags of ``graphrag eval monitor``; ``baseline_runs`` counts the pinned one."""

    every: Annotated[str | None, option("Repeat every 30m, 6h, 1d. Default: one round.")] = None
    rounds: Annotated[int | None, option("With --every: stop after N rounds.", min=1)] = None
    sample: Annotated[int | None, option("Ask N questions per round, drawn anew.", min=1)] = None
    seed: Annotated[int, option("Another number draws other ones.")] = 0
    baseline: Annotated[str, option("Run id, file, latest or pinned.")] = "pinned"
    baseline_runs: Annotated[
        int,
        option("Runs of the baseline; a new watch makes those beside the pinned one.", min=1),
    ] = 3
    alarm: Annotated[Path | None, option("Write an alarm to this file, as JSON.")] = None
    methods: Annotated[str | None, option("Default: the configuration's.", "--methods", "-m")] = (
        None
    )
    max_cost: MaxCost = None
    verbose: Verbose = False
    quiet: Quiet = False

    @property
    def every_s(self) -> float | None:
        """The seconds between rounds, such as those of 90s, 30m, 6h, 1d or 2w; UsageError if none.

        None: there is one round.
        """
        if self.every is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", self.every.strip().lower())
        seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
        if seconds <= 0:
            raise UsageError(
                f"--every {self.every}: give a number and a unit (s, m, h, d, w), such as 30m, 6h "
                "or 1d."
            )
        return seconds
