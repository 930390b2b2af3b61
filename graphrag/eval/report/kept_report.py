"""What is shown of a finished run, kept in eval.db so that it is computed once.

Kept are the lines and tables of the terminal, and digests of the files that were written with them,
the page among these. They hold as long as nothing has changed that a figure hangs on: the rows of
the run, labels, the indexes, and the code that computes.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import escape

from graphrag.eval.errors import StoreError
from graphrag.eval.report.table import Line, Part, part_from_json, part_to_json
from graphrag.eval.store.atomic_files import label_file, run_folder
from graphrag.eval.store.kept_figures import (
    OUTDATED,
    KeptFigures,
    begin_keeping,
    can_keep,
    keep_figures,
    uses_own_code,
)
from graphrag.eval.store.records import Run
from graphrag.eval.types.code_digest import digest_code
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.text.cli_hints import Invocation, as_given_here, complete_lines
from graphrag.text.phrases import join_names

WHOLE, IN_PART = "report", "report without indexes"
"""The names by which a report is kept: with every index that was searched, and without some."""


@dataclass(frozen=True, slots=True)
class KeptReport:
    """What a run's end and ``show`` print, with command lines made :func:`anywhere`.

    ``brief``, ``full``: the lines and tables; ``answer``: the answer in a line, "" without one;
    ``unread``: what can't be read any more. ``files``: name -> digest of each file in the run's
    folder that shows these figures. ``folder``: the folder of the results where a line names it.
    ``commands``: command lines of the page; ``program``, ``place``: how they begin and end there,
    see ``Invocation``.
    """

    brief: Sequence[Part]
    full: Sequence[Part]
    answer: str
    unread: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: str | None = None
    commands: Sequence[str] = ()
    program: Sequence[str] = ()
    place: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def written_by(self) -> Invocation:
        """The command whose program and place the page names."""
        return Invocation(tuple(self.program), place=self.place)

    def parts(self, full: bool) -> list[Part]:
        """Return the lines and tables, with command lines as the command given now has them."""
        return [
            Line(as_given_here(part.text), part.style, part.is_command)
            if isinstance(part, Line) and part.is_command
            else part
            for part in (self.full if full else self.brief)
        ]

    def as_given_here(self, page: str) -> str:
        """Return the page with command lines as the command given now has them."""
        for line in self.commands:
            old, new = complete_lines(line, self.written_by), as_given_here(line)
            page = page.replace(str(escape(old)), str(escape(new)))
        return page

    def to_json(self) -> str:
        """Return it as :func:`read_report` reads it."""
        values = {name: getattr(self, name) for name in self.__slots__}
        for name in ("brief", "full"):
            values[name] = [part_to_json(part) for part in values[name]]
        return json.dumps(values, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Keeping:
    """A report that is being computed and is to be kept; see :func:`begin_keeping`."""

    store_path: Path
    run: Run
    name: str
    key: str
    token: str

    @classmethod
    def begin(cls, store_path: Path, run: Run, states: Mapping[str, str]) -> "Keeping | None":
        """Begin before anything is read; None of a run whose report can't be kept.

        ``states``: see ``find_searched``.
        """
        if uses_own_code(run) or not can_keep(store_path):
            return None
        name, key = name_report(run, states), key_report(run, store_path.parent, states)
        with suppress(StoreError):  # where nothing can be written, it is computed again
            return cls(store_path, run, name, key, begin_keeping(store_path, name, [run.run_id]))
        return None

    def keep(self, states: Mapping[str, str], report: KeptReport) -> None:
        """Keep the report unless labels, an index or a row have changed since; StoreError."""
        if key_report(self.run, self.store_path.parent, states) == self.key:
            kept = KeptFigures(self.key, report.to_json())
            keep_figures(self.store_path, self.name, self.token, {self.run.run_id: kept})


def name_report(run: Run, states: Mapping[str, str]) -> str:
    """Return the name by which a report is kept; ``states``: see ``find_searched``."""
    return WHOLE if _list_same(run, states) == set(states) else IN_PART


def _list_same(run: Run, states: Mapping[str, str]) -> set[str]:
    searched = run.setup.searched()
    return {name for name, state in states.items() if searched[name] <= {state}}


def key_report(run: Run, output_dir: Path, states: Mapping[str, str]) -> str:
    """Return a key of all that a report hangs on beside the rows of its run."""
    folder = run_folder(output_dir, run.run_id)
    files = {metric: folder / label_file(metric) for metric in METRICS}
    # Where a sheet lies is said of labels that can't be used.
    labels = {m: [_digest(f), f.with_suffix(".csv").exists()] for m, f in files.items()}
    values = {
        "code": digest_code(),
        "labels": {metric: label for metric, label in labels.items() if label[0]},
        "indexes": dict(states),
    }
    return json.dumps(values, sort_keys=True)


def read_report(kept: KeptFigures | None, key: str, output_dir: Path) -> KeptReport | None:
    """Return a report as it is kept; None where it does not hold any more, or is of elsewhere."""
    if kept is None or kept.key != key:
        return None
    values: dict[str, Any] = json.loads(kept.value)
    if values["folder"] not in (None, str(output_dir.absolute())):
        return None
    for name in ("brief", "full"):
        values[name] = [part_from_json(part) for part in values[name]]
    return KeptReport(**values)


def explain_change(kept: KeptFigures | None, key: str) -> str:
    """Say why figures that are kept don't hold any more; "" if there are none, or these hold."""
    if kept is None or kept.key == key or kept.key.startswith("computing"):
        return ""
    if kept.key == OUTDATED:
        return "what eval.db holds of the run has changed"
    before: dict[str, Any] = {}
    with suppress(ValueError):  # a key that was damaged explains nothing
        before = json.loads(kept.key)
    now = json.loads(key)
    reasons: list[str] = []
    if changed := _list_differing(before, now, "labels"):
        reasons.append(f"the labels on {join_names(changed)} have changed")
    if changed := _list_differing(before, now, "indexes"):
        what = f"index {changed[0]} has" if len(changed) == 1 else f"{len(changed)} indexes have"
        reasons.append(f"{what} changed")
    if before.get("code") != now["code"]:
        reasons.append("another version computed them")
    return join_names(reasons)


def _list_differing(before: Mapping[str, Any], now: Mapping[str, Any], what: str) -> list[str]:
    old, new = before.get(what, {}), now[what]
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def digest_files(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Return name -> digest of files in a folder; "" of one that can't be read."""
    return {name: _digest(folder / name) for name in names}


def list_changed(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files that are not there, or not as they were written."""
    for name, digest in files.items():
        if not digest or _digest(folder / name) != digest:
            yield name


def list_apart(folder: Path, own: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files in a folder that are none of a run's own, nor like them."""
    for name, digest in files.items():
        try:
            is_one = (folder / name).samefile(own / name)
        except OSError:
            is_one = False
        if not is_one and _digest(folder / name) != digest:
            yield name


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return ""
