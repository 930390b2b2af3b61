"""A small built index with two documents, and copies of it that are damaged on purpose."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from support.lighthouse import TEXT

from graphrag.eval.validation.report import PipelineValidationReport
from graphrag.eval.validation.validators import validate_index

_ISLE, FERRY = TEXT.split("\n\n")
ISLE = f"{_ISLE} Oswin Tarrant admired Berta Lindqvist.\n"
Frame = Any


@dataclass(frozen=True)
class DamagedIndex:
    """A copy of a project whose tables can be changed."""

    root: Path

    @property
    def output(self) -> Path:
        return self.root / "output"

    def read(self, table: str) -> Frame:
        return pd.read_parquet(self.output / f"{table}.parquet")

    def change(self, table: str, edit: Callable[[Frame], Frame]) -> None:
        """Write what ``edit`` makes of a table."""
        edit(self.read(table)).to_parquet(self.output / f"{table}.parquet")

    def set_cell(self, table: str, row: int, column: str, value: Any) -> str:
        """Change one cell and return the row's id."""
        changed: list[str] = []

        def edit(frame: Frame) -> Frame:
            values = list(frame[column]) if column in frame else [None] * len(frame)
            values[row] = value
            changed.append(str(frame["id"].iloc[row]))
            return frame.assign(**{column: values})

        self.change(table, edit)
        return changed[0]

    def add_row(self, table: str, like: int = 0, **values: Any) -> None:
        """Append a copy of a row with some cells changed."""

        def edit(frame: Frame) -> Frame:
            row = {**frame.iloc[like].to_dict(), **values}
            return pd.concat([frame, pd.DataFrame([row])], ignore_index=True)

        self.change(table, edit)

    def validate(self, **options: Any) -> PipelineValidationReport:
        return validate_index(self.root, **options)


def copy_index(project: Path, target: Path) -> DamagedIndex:
    """Copy a built project."""
    shutil.copytree(project, target)
    return DamagedIndex(target)


def failed(report: PipelineValidationReport) -> set[str]:
    """Return the names of the checks that did not pass: failed ones and warnings."""
    names = {check.name for check in report.checks() if check.status in ("failed", "warning")}
    ratio = "entity_chunk_ratio_reasonable"  # it is warned of in words as well
    return names - {c.name for c in report.checks() if (c.name, c.status) == (ratio, "warning")}


def kinds(report: PipelineValidationReport) -> set[str]:
    """Return the beginnings of the warnings, up to the colon."""
    return {warning.partition(":")[0] for warning in report.all_warnings()}


def examples(report: PipelineValidationReport, name: str) -> tuple[str, ...]:
    """Return the examples of a check."""
    return next(check.examples for check in report.checks() if check.name == name)
