"""Reading, checking and fingerprinting samples."""

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphrag.eval.errors import DatasetError

_LISTS = ("evidence", "expected_sources", "expected_entities", "keywords", "aspects")
TIME_LIMIT_TAG = "time_limit_s"
"""The column that holds the seconds a sample may take."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One dataset row.

    Attributes
    ----------
    id : str
        The row's own id, else a hash of its key and question.
    imdb_key : str
        Key of the index that is asked.
    question, ground_truth : str
    evidence, expected_sources, expected_entities, keywords, aspects : tuple of str
        Empty when the row names none.
    answerable : bool
        False when the right answer is that the documents do not say.
    tags : dict
        Every other column, and the row's own tags under ``tags``.
    """

    id: str
    imdb_key: str
    question: str
    ground_truth: str
    evidence: tuple[str, ...] = ()
    expected_sources: tuple[str, ...] = ()
    expected_entities: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    aspects: tuple[str, ...] = ()
    answerable: bool = True
    tags: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Sample":
        """Read what :meth:`to_dict` gave."""
        given: dict[str, Any] = {**values, **{name: tuple(values[name]) for name in _LISTS}}
        return cls(**given)


class _Row(BaseModel):
    model_config = ConfigDict(extra="allow", str_strip_whitespace=True, populate_by_name=True)

    question: str = Field(min_length=1, validation_alias=AliasChoices("question", "question_text"))
    answer: str = Field(min_length=1, validation_alias=AliasChoices("answer", "ground_truth"))
    imdb_key: str | None = Field(None, validation_alias=AliasChoices("imdb_key", "index"))
    id: str | None = Field(None, validation_alias=AliasChoices("id", "question_id"))
    evidence: list[str] = []
    expected_sources: list[str] = []
    expected_entities: list[str] = []
    keywords: list[str] = []
    aspects: list[str] = []
    answerable: bool = True

    @field_validator("id", mode="before")
    @classmethod
    def _number_as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _one_or_none(cls, value: Any) -> Any:
        if value is None:
            return []
        return [value] if isinstance(value, str) else value


def read_samples(path: Path | str, only_key: str | None = None) -> list[Sample]:
    """Read a dataset: a JSON list, JSON lines, or CSV with a header.

    Parameters
    ----------
    path : Path or str
        The file; its ending tells the format (.json, .jsonl, .csv).
    only_key : str or None
        The key of rows that name none, when one index is configured.

    Raises
    ------
    DatasetError
        If the file is missing, empty or malformed; names the row and the field.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        msg = f"The dataset {file} does not exist; set dataset.path in eval_config.yaml."
        raise DatasetError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The dataset {file} can't be read: {error}."
        raise DatasetError(msg) from error
    return parse_samples(_rows(file, text), only_key, source=str(file))


def parse_samples(
    rows: Iterable[Mapping[str, Any]], only_key: str | None = None, source: str = "the dataset"
) -> list[Sample]:
    """Check rows and make samples of them; same errors as :func:`read_samples`."""
    samples: list[Sample] = []
    first_row: dict[tuple[str, str], int] = {}
    ids: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        sample = _parse(row, number, only_key, source)
        asked = (sample.imdb_key, " ".join(sample.question.casefold().split()))
        if asked in first_row:
            pair = f"rows {first_row[asked]} and {number}"
            msg = f"{source}: {pair} ask the same question of {asked[0]}; keep one."
            raise DatasetError(msg)
        if sample.id in ids:
            pair = f"rows {ids[sample.id]} and {number}"
            msg = f"{source}: {pair} have the same id {sample.id!r}; ids must be unique."
            raise DatasetError(msg)
        first_row[asked] = ids[sample.id] = number
        samples.append(sample)
    if not samples:
        msg = f"{source} holds no rows; add at least one question."
        raise DatasetError(msg)
    return samples


def fingerprint_samples(samples: Sequence[Sample]) -> str:
    """Return a hash over every field of every sample, in order."""
    text = json.dumps([asdict(s) for s in samples], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _rows(file: Path, text: str) -> list[Mapping[str, Any]]:
    kind = file.suffix.lower()
    if kind == ".csv":
        return _csv_rows(file, text)
    if kind == ".jsonl":
        return [
            _json(line, f"{file}, line {number}")
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
    if kind != ".json":
        msg = f"The dataset {file} ends in {kind or 'nothing'}; use .json, .jsonl or .csv."
        raise DatasetError(msg)
    values = _json(text, str(file))
    if not isinstance(values, list):
        msg = f"{file} must hold a JSON list of rows, not {type(values).__name__}."
        raise DatasetError(msg)
    return cast("list[Mapping[str, Any]]", values)


def _csv_rows(file: Path, text: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for number, row in enumerate(csv.DictReader(text.splitlines(keepends=True)), 1):
        if None in row:
            msg = f"{file}: row {number} has more cells than the header has columns."
            raise DatasetError(msg)
        values: dict[str, Any] = {k: v for k, v in row.items() if v not in (None, "")}
        for name in _LISTS:
            if name in values:
                values[name] = [part.strip() for part in values[name].split("|") if part.strip()]
        rows.append(values)
    return rows


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        msg = f"{where} is not valid JSON: {error}."
        raise DatasetError(msg) from error


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which JSON lacks and no results file could hold."""
    msg = f"{name} is not a value; use null"
    raise ValueError(msg)


def _parse(row: Any, number: int, only_key: str | None, source: str) -> Sample:
    if not isinstance(row, Mapping):
        msg = f"{source}: row {number} is not an object with fields but {type(row).__name__}."
        raise DatasetError(msg)
    try:
        read = _Row.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        problem = "is missing" if first["type"] == "missing" else f"is wrong: {first['msg']}"
        msg = f"{source}: row {number}: {name} {problem}."
        raise DatasetError(msg) from error
    limit: Any = (read.model_extra or {}).get(TIME_LIMIT_TAG)
    if limit is not None and not _is_seconds(limit):
        msg = f"{source}: row {number}: {TIME_LIMIT_TAG} must be seconds above 0, not {limit!r}."
        raise DatasetError(msg)
    key = read.imdb_key or only_key
    if key is None:
        msg = f"{source}: row {number}: imdb_key is missing, and several indexes are configured."
        raise DatasetError(msg)
    fallback = hashlib.blake2b(f"{key}\n{read.question}".encode(), digest_size=8).hexdigest()
    return Sample(
        id=read.id or fallback,
        imdb_key=key,
        question=read.question,
        ground_truth=read.answer,
        evidence=tuple(read.evidence),
        expected_sources=tuple(read.expected_sources),
        expected_entities=tuple(read.expected_entities),
        keywords=tuple(read.keywords),
        aspects=tuple(read.aspects),
        answerable=read.answerable,
        tags=dict(read.model_extra or {}),
    )


def _is_seconds(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and 0 < float(value) < inf
    except (TypeError, ValueError, OverflowError):
        return False
