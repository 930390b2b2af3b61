"""The flags of ``graphrag eval show``, apart from what they start: that is slow to import."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from graphrag.eval.cli.command import Full, Quiet, option


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
        str | None, option("With --failed, --question or --changed: this method alone.")
    ] = None
    changed: Annotated[
        str | None, option("Show answers that changed since this run, latest or pinned.")
    ] = None
    calls: Annotated[
        bool,
        option("With --question: print what models were told and what they said.", "--calls"),
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
