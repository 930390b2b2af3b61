"""Lets a person review a dataset: each row is accepted, mended or rejected in its file at once."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field

from graphrag.eval.annotation.sheet import locked
from graphrag.eval.dataset.dataset_reader import VETTED, parse_samples
from graphrag.eval.dataset.files import ROWS_UNDER, field_of
from graphrag.eval.errors import UsageError
from graphrag.eval.runner.draft_materials import Materials, find_quote
from graphrag.eval.store.atomic_files import write_file
from graphrag.eval.store.records import now
from graphrag.text.input_files import read_input

Row: TypeAlias = dict[str, object]
_ANY = "the index"
_SUFFIXES = (".json", ".jsonl", ".ndjson")
_SHOWN = ("question", "answer", "evidence")
_ABOUT = ("id", "tags", "kind", "hops", "difficulty", "documents", "answerable")


class Decision(BaseModel):
    """A person's decision on one row.

    ``seen`` is the code of the row as it was shown. ``question``, ``answer`` and ``evidence`` are
    the new values of a mended row. If its question or answer changes, the row's assertions were
    made for another one: a row with an answer keeps them only in the record of its earlier values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    seen: str
    decision: Literal["accepted", "mended", "rejected"]
    question: str = Field("", max_length=20_000)
    answer: str = Field("", max_length=20_000)
    evidence: tuple[str, ...] = ()


class RowChanged(UsageError):
    """The row is no longer in the file as it was shown."""


@dataclass(frozen=True, slots=True)
class Review:
    """The review of one dataset by one person.

    - ``path``: the dataset, as JSON or JSON lines.
    - ``materials``: index key -> its text units. Empty if no index can be read: quotes are then
      shown without their position, and can't be mended.
    - ``name``: the person's name.
    - ``doubts``: question -> why a judge doubts its row; these rows come first.
    """

    path: Path
    materials: Mapping[str, Materials]
    name: str
    doubts: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def rejected_path(self) -> Path:
        """The file with the rejected rows."""
        return self.path.with_suffix(".rejected.jsonl")

    def check(self) -> None:
        """Raise UsageError or DatasetError if the file is not a dataset that can be reviewed."""
        parse_samples(_File.read(self.path).rows, _ANY, str(self.path))

    def rows(self) -> list[Row]:
        """Return each row as the page shows it; raises UsageError if the file can't be read."""
        rows = [self._describe(row) for row in _File.read(self.path).rows]
        return sorted(rows, key=lambda row: not row["doubt"])

    def texts(self, seen: str) -> dict[str, list[object]]:
        """Return the text units that contain a row's quotes, and the quotes that none contains.

        ``texts`` has each with its document and ``marks``, the positions of its quotes; ``missing``
        has the other quotes. For a row without quotes, ``texts`` are the text units that BM25 ranks
        highest for its question. Raises RowChanged if there is no such row.
        """
        row = _File.read(self.path).find(seen)
        quotes, materials = _quotes(row), self._find_materials(row)
        if materials is None:
            return {"texts": [], "missing": []}
        best = () if quotes else materials.best(str(row.get(_heading(row, "question"), "")))
        by_passage = {passage: list[str]() for passage in best}
        missing: list[object] = []
        for quote in quotes:
            passage = next((p for p in by_passage if quote in p.text), materials.find(quote))
            if passage is None:
                missing.append(quote)
            else:
                by_passage.setdefault(passage, []).append(quote)
        texts = [
            {"document": p.document, "text": p.text, "marks": _marks(p.text, own)}
            for p, own in by_passage.items()
        ]
        return {"texts": [*texts], "missing": missing}

    def decide(self, change: Decision) -> Row | None:
        """Write a decision into the file, replacing it at once, and return the row as it is now.

        Returns None for a rejected row, which is moved to :attr:`rejected_path`. Raises RowChanged
        if the row is not as the person saw it, UsageError if a mended row would not be valid,
        StoreError if nothing can be written.
        """
        with locked(self.path):
            path = self.path.resolve()  # a link stays one
            file = _File.read(path)
            row = file.find(change.seen)
            vetted: Row = {"name": self.name, "decision": change.decision, "time": now()}
            decided: Row = {**row, VETTED: vetted}
            if change.decision == "mended":
                decided |= self._mend(row, change)
                before = {name: row.get(_heading(row, name)) for name in _SHOWN}
                earlier = (before["question"], before["answer"])
                is_other = earlier != (change.question, change.answer)
                if is_other and change.answer and decided.get("assertions"):
                    before["assertions"] = decided.pop("assertions")
                vetted["before"] = {**before, **_before(row)}
                as_is = [decided if other is row else other for other in file.rows]
                parse_samples(as_is, _ANY, str(self.path))
            if path.read_bytes() != file.content:
                msg = "Another program changed the file at this moment; nothing was written."
                raise RowChanged(msg)
            if change.decision != "rejected":
                file.write(path, row, decided)
                return self._describe(decided)
            kept = self.rejected_path.resolve()
            lines = kept.read_bytes() if kept.exists() else b""
            write_file(kept, lines + (json.dumps(decided, ensure_ascii=False) + "\n").encode())
            file.write(path, row, None)
            return None

    def _describe(self, row: Row) -> Row:
        values = {name: row.get(_heading(row, name)) for name in _SHOWN}
        about = {name: row.get(_heading(row, name)) for name in _ABOUT}
        return {
            **values,
            "seen": _code(row),
            "evidence": _quotes(row),
            "about": {k: v for k, v in about.items() if v is not None},
            "proofs": row.get("proofs"),
            "assertions": row.get("assertions") or [],
            "vetted_by": row.get(VETTED),
            "doubt": self.doubts.get(str(values["question"]), ""),
        }

    def _mend(self, row: Row, change: Decision) -> Row:
        quotes = [quote for quote in change.evidence if quote]
        if not change.question:
            raise UsageError("Write a question; one that is no good can be rejected.")
        had = row.get(_heading(row, "answer"))
        if had and not change.answer and row.get("answerable") is not False:
            raise UsageError("Write an answer; a question without one can be rejected.")
        materials = self._find_materials(row)
        if quotes != _quotes(row) and materials is None:
            msg = "The index can't be read, so nobody can check a new quote; leave the quotes."
            raise UsageError(msg)
        if materials is not None:
            quotes = [_as_written(materials, quote) for quote in quotes]
        values = (change.question, change.answer, quotes)
        return {_heading(row, name): v for name, v in zip(_SHOWN, values, strict=True)}

    def _find_materials(self, row: Row) -> Materials | None:
        key = row.get(_heading(row, "imdb_key"))
        only = next(iter(self.materials.values()), None) if len(self.materials) == 1 else None
        return self.materials.get(str(key), only)


def _as_written(materials: Materials, quote: str) -> str:
    """Return a quote with the white space of its text; raises UsageError if no text has it."""
    passage = materials.find(quote)
    if passage is None:
        raise UsageError(f"No text unit contains this quote letter by letter: {quote[:200]!r}.")
    return find_quote(passage.text, quote)


@dataclass(frozen=True, slots=True)
class _File:
    """A dataset's file; ``lines``: the lines of JSON lines, None for JSON."""

    content: bytes
    value: object
    rows: list[Row]
    lines: list[str] | None

    @classmethod
    def read(cls, path: Path) -> "_File":
        if path.suffix.lower() not in _SUFFIXES:
            msg = f"{path} ends in {path.suffix or 'nothing'}; a review needs JSON or JSON lines."
            raise UsageError(msg)
        lines: list[str] | None = None
        try:
            content = read_input(path)
            text = content.decode("utf-8-sig")
            if path.suffix.lower() == ".json":
                value: object = json.loads(text)
            else:
                lines = [f"{line}\n" for line in text.split("\n") if line.strip()]
                value = [json.loads(line) for line in lines]
        except FileNotFoundError as error:
            msg = f"{path} does not exist; name the dataset that draft wrote."
            raise UsageError(msg) from error
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{path} can't be read as a dataset: {error}.") from error
        return cls(content, value, _list_rows(value, path), lines)

    def find(self, seen: str) -> Row:
        row = next((row for row in self.rows if _code(row) == seen), None)
        if row is None:
            msg = "Another program changed this question in the file; nothing was written."
            raise RowChanged(msg)
        return row

    def write(self, path: Path, row: Row, new: Row | None) -> None:
        """Replace a row by another one, or remove it; everything else stays as it is."""
        position = next(n for n, other in enumerate(self.rows) if other is row)
        if self.lines is not None:
            line = "" if new is None else json.dumps(new, ensure_ascii=False) + "\n"
            text = "".join([*self.lines[:position], line, *self.lines[position + 1 :]])
        else:
            self.rows[position : position + 1] = [] if new is None else [new]
            indent = re.search(rb"\n( +)\S", self.content)
            width = None if indent is None else len(indent[1])
            text = json.dumps(self.value, ensure_ascii=False, indent=width) + "\n"
        write_file(path, text.encode())


def _list_rows(value: object, path: Path) -> list[Row]:
    rows = value
    if isinstance(rows, dict):
        values = cast("Row", rows)
        rows = next((values[k] for k in ROWS_UNDER if isinstance(values.get(k), list)), None)
    listed = cast("list[object]", rows) if isinstance(rows, list) else [None]
    if not all(isinstance(row, dict) for row in listed):
        raise UsageError(f"{path} has no list of rows.")
    return cast("list[Row]", listed)


def _code(row: Row) -> str:
    """Return a code of everything that a row contains."""
    return blake2b(json.dumps(row, sort_keys=True).encode(), digest_size=12).hexdigest()


def _heading(row: Row, name: str) -> str:
    """Return the heading under which a row has a field; the field's name if it has none."""
    return name if name in row else next((k for k in row if field_of(k) == name), name)


def _quotes(row: Row) -> list[str]:
    quotes = row.get(_heading(row, "evidence"))
    listed = cast("list[object]", quotes) if isinstance(quotes, list) else [quotes]
    return [quote.strip() for quote in listed if isinstance(quote, str) and quote.strip()]


def _marks(text: str, quotes: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of quotes in a text, as (start, end) in characters, without overlaps."""
    positions = sorted((start, start + len(q)) for q in quotes for start in [text.index(q)])
    marks: list[tuple[int, int]] = []
    for start, end in positions:
        if marks and start <= marks[-1][1]:
            marks[-1] = (marks[-1][0], max(end, marks[-1][1]))
        else:
            marks.append((start, end))
    return marks


def keep_decisions(
    path: Path, drafted: Sequence[Mapping[str, object]]
) -> list[Mapping[str, object]]:
    """Return drafted rows, replaced by a person's decisions on them in a file.

    Vetted rows stay as they are in the file, and rejected rows are left out.
    """
    vetted = [r for r in _File.read(path).rows if r.get(VETTED)] if path.exists() else []
    kept = Review(path=path, materials={}, name="").rejected_path
    away = _File.read(kept).rows if kept.exists() else []
    # The question of a row, and its question before it was mended.
    questions = (
        (row.get(_heading(row, "question")), _before(row).get("question"))
        for row in [*vetted, *away]
    )
    decided = {str(question) for pair in questions for question in pair}
    return [*vetted, *(row for row in drafted if str(row["question"]) not in decided)]


def _before(row: Row) -> Row:
    """Return the earlier values of a mended row; {} for any other row."""
    vetted = row.get(VETTED)
    before = cast("Row", vetted).get("before") if isinstance(vetted, dict) else None
    return cast("Row", before) if isinstance(before, dict) else {}
