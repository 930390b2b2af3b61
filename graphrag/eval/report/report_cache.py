"""Keeps the report of a finished run in eval.db, so that it is computed only once.

Kept are the lines and tables of the terminal, and digests of the files that were written with them,
such as the page. A report is valid until something changes that its figures depend on. If a row of
the run changes, eval.db marks the report as outdated. Labels, indexes and gtog's code are part of
the report's key. Its name shows whether every index could be measured.
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
from graphrag.eval.store.figure_cache import (
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
from graphrag.text.message_phrases import join_names

COMPLETE, PARTIAL = "report", "report without indexes"
"""The names of a report that is kept: with every index that was searched, and without some."""


@dataclass(frozen=True, slots=True)
class KeptReport:
    """The printed report of a run, as it is kept.

    Its command lines have no program or paths yet, see :func:`anywhere` in ``cli_hints``: the lines
    that are printed get those of the command that prints them.

    - ``brief``, ``full``: the lines and tables of either form.
    - ``answer``: the answer in one line, "" if there is none.
    - ``unread``: the parts that can't be read any more.
    - ``files``: name -> digest of each file in the run's folder that shows these figures.
    - ``folder``: the folder of the results if a line names it, else None.
    - ``commands``: the command lines on the page. ``program``, ``place``: the words with which they
      begin and end there, see ``Invocation``.
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
        """The command whose program and paths the page's command lines have."""
        return Invocation(tuple(self.program), paths=self.place)

    def parts(self, full: bool) -> list[Part]:
        """Return the lines and tables, with command lines as the running command has them."""
        return [
            Line(as_given_here(part.text), part.style, part.is_command)
            if isinstance(part, Line) and part.is_command
            else part
            for part in (self.full if full else self.brief)
        ]

    def as_given_here(self, page: str) -> str:
        """Return the page with command lines as the running command has them."""
        for line in self.commands:
            old, new = complete_lines(line, self.written_by), as_given_here(line)
            page = page.replace(str(escape(old)), str(escape(new)))
        return page

    def to_json(self) -> str:
        """Return the report as JSON text, which :func:`read_report` reads."""
        values = {name: getattr(self, name) for name in self.__slots__}
        for name in ("brief", "full"):
            values[name] = [part_to_json(part) for part in values[name]]
        return json.dumps(values, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Keeping:
    """A report that is being computed and will be kept; see :func:`begin_keeping`."""

    store_path: Path
    run: Run
    name: str
    key: str
    token: str

    @classmethod
    def begin(cls, store_path: Path, run: Run, states: Mapping[str, str]) -> "Keeping | None":
        """Begin, before anything is read; return None if the report can't be kept.

        ``states``: index name -> its fingerprint, or why it can't be read; see ``find_searched``.
        """
        if uses_own_code(run) or not can_keep(store_path):
            return None
        name, key = name_report(run, states), key_report(run, store_path.parent, states)
        with suppress(StoreError):  # where nothing can be written, it is computed again
            return cls(store_path, run, name, key, begin_keeping(store_path, name, [run.run_id]))
        return None

    def keep(self, states: Mapping[str, str], report: KeptReport) -> None:
        """Keep the report unless labels, an index or a row have changed since :meth:`begin`.

        Raises StoreError if it can't be written.
        """
        if key_report(self.run, self.store_path.parent, states) == self.key:
            kept = KeptFigures(self.key, report.to_json())
            keep_figures(self.store_path, self.name, self.token, {self.run.run_id: kept})


def name_report(run: Run, states: Mapping[str, str]) -> str:
    """Return the name of a report: COMPLETE if every index is as it was searched, else PARTIAL."""
    return COMPLETE if _list_same(run, states) == set(states) else PARTIAL


def _list_same(run: Run, states: Mapping[str, str]) -> set[str]:
    searched = run.setup.searched()
    return {name for name, state in states.items() if searched[name] <= {state}}


def key_report(run: Run, output_dir: Path, states: Mapping[str, str]) -> str:
    """Return a key of all that a report depends on except rows: labels, indexes, gtog's code."""
    folder = run_folder(output_dir, run.run_id)
    files = {metric: folder / label_file(metric) for metric in METRICS}
    # Labels that can't be used are reported with the path of their sheet.
    labels = {m: [_digest(f), f.with_suffix(".csv").exists()] for m, f in files.items()}
    values = {
        "code": digest_code(),
        "labels": {metric: label for metric, label in labels.items() if label[0]},
        "indexes": dict(states),
    }
    return json.dumps(values, sort_keys=True)


def read_report(kept: KeptFigures | None, key: str, output_dir: Path) -> KeptReport | None:
    """Return a kept report; None if it is outdated, or names another folder of results."""
    if kept is None or kept.key != key:
        return None
    values: dict[str, Any] = json.loads(kept.value)
    if values["folder"] not in (None, str(output_dir.absolute())):
        return None
    for name in ("brief", "full"):
        values[name] = [part_from_json(part) for part in values[name]]
    return KeptReport(**values)


def explain_change(kept: KeptFigures | None, key: str) -> str:
    """Return why kept figures are outdated; "" if none are kept, or they are valid."""
    if kept is None or kept.key == key or kept.key.startswith("computing"):
        return ""
    if kept.key == OUTDATED:
        return "the run in eval.db has changed"
    before: dict[str, Any] = {}
    with suppress(ValueError):  # a key that was damaged explains nothing
        before = json.loads(kept.key)
    now = json.loads(key)
    reasons: list[str] = []
    if changed := _list_differing(before, now, "labels"):
        reasons.append(f"the labels on {join_names(changed)} have changed")
    if changed := _list_differing(before, now, "indexes"):
        subject = f"index {changed[0]} has" if len(changed) == 1 else f"{len(changed)} indexes have"
        reasons.append(f"{subject} changed")
    if before.get("code") != now["code"]:
        reasons.append("another version computed them")
    return join_names(reasons)


def _list_differing(before: Mapping[str, Any], now: Mapping[str, Any], part: str) -> list[str]:
    old, new = before.get(part, {}), now[part]
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def digest_files(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Return name -> digest of files in a folder; "" for a file that can't be read."""
    return {name: _digest(folder / name) for name in names}


def list_changed(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files that are missing or have changed since they were written."""
    for name, digest in files.items():
        if not digest or _digest(folder / name) != digest:
            yield name


def list_apart(folder: Path, own: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files in ``folder`` that are neither the run's own nor equal to them.

    ``own``: the run's folder. ``files``: name -> digest of its files.
    """
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
