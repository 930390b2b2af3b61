"""What users say: ratings of answers, read from a file and joined with a run's rows."""

import csv
import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphrag.eval.errors import UsageError
from graphrag.eval.results.rows import Row

LOWEST, HIGHEST = 1, 5


@dataclass(frozen=True, slots=True)
class Rating:
    """What one user says about one answer.

    Attributes
    ----------
    question_id, method : str
        Of the answer, as the run names them.
    rating : int
        From 1 to 5, 5 being best.
    comment : str
        "" without one.
    user : str or None
        Who rated; None when the file does not say.
    place : int
        Row of the file, the header of a CSV being row 1; line of a JSONL file.
    """

    question_id: str
    method: str
    rating: int
    comment: str = ""
    user: str | None = None
    place: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """One method's answer to one question, and what its raters say together.

    Attributes
    ----------
    question_id, document, method : str
    ratings : tuple of int
        From 1 to 5, at least one, in the order of the file.
    comments : tuple of str
        Those that are not blank.
    correctness : int or None
        The judge's verdict, 0 or 1; None when the judge gave none, as for a failed search.
    """

    question_id: str
    document: str
    method: str
    ratings: tuple[int, ...]
    comments: tuple[str, ...]
    correctness: int | None

    @property
    def rating(self) -> float:
        """Mean over the raters, in [1, 5]: the answer counts once, however many rate it."""
        return fmean(self.ratings)

    def to_dict(self) -> dict[str, object]:
        """Return the fields and the mean as JSON-ready values."""
        return {**asdict(self), "rating": self.rating}


@dataclass(frozen=True, slots=True)
class UnjoinedRating:
    """A rating of something that the run does not have, and why."""

    rating: Rating
    reason: str

    def to_dict(self) -> dict[str, object]:
        """Return the rating's fields and the reason."""
        return {**self.rating.to_dict(), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class JoinedRatings:
    """Ratings beside the answers of a run.

    Attributes
    ----------
    answers : tuple of RatedAnswer
        In the order of the run's rows; an answer that nobody rated is left out.
    unjoined : tuple of UnjoinedRating
        In the order of the file. Every rating is in an answer or here.
    n_answers : dict
        Every method of the run, in its order -> its answers, rated or not.
    """

    answers: tuple[RatedAnswer, ...]
    unjoined: tuple[UnjoinedRating, ...]
    n_answers: Mapping[str, int]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    question_id: str = Field(min_length=1)
    method: str = Field(min_length=1)
    rating: int = Field(ge=LOWEST, le=HIGHEST)
    comment: str = ""
    user: str | None = None

    @field_validator("question_id", "user", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("rating", mode="before")
    @classmethod
    def _no_truth_value(cls, value: object) -> object:
        # True would be taken for 1.
        return str(value) if isinstance(value, bool) else value

    @field_validator("comment", mode="before")
    @classmethod
    def _none_as_blank(cls, value: object) -> object:
        return "" if value is None else value


_COLUMNS = tuple(_Row.model_fields)


def read_ratings(path: Path | str) -> list[Rating]:
    """Read ratings from a CSV file with a header, or from JSON lines.

    Parameters
    ----------
    path : Path or str
        UTF-8; ends in .csv (commas or semicolons) or .jsonl. The columns are ``question_id``,
        ``method``, ``rating``, and if wanted ``comment`` and ``user``.

    Returns
    -------
    list of Rating
        In the order of the file, at least one.

    Raises
    ------
    UsageError
        If the file can't be read or is empty, a column is missing or unknown, a rating is not a
        whole number from 1 to 5, or a named user rates the same answer twice; names the row.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        msg = f"{file} does not exist; name a .csv or .jsonl file of ratings."
        raise UsageError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{file} can't be read as text in UTF-8: {error}."
        raise UsageError(msg) from error
    readers = {".csv": _csv_rows, ".jsonl": _json_rows}
    if file.suffix.lower() not in readers:
        msg = f"{file} ends in {file.suffix or 'nothing'}; ratings are a .csv or .jsonl file."
        raise UsageError(msg)
    ratings = [_parse(row, place, file) for place, row in readers[file.suffix.lower()](file, text)]
    if not ratings:
        msg = f"{file} holds no rating."
        raise UsageError(msg)
    _refuse_repeated(ratings, file)
    return ratings


def join_ratings(ratings: Iterable[Rating], rows: Sequence[Row]) -> JoinedRatings:
    """Put ratings beside the answers that they are about.

    Parameters
    ----------
    ratings : iterable of Rating
        Several of one answer count as one, with their mean.
    rows : sequence of Row
        Of a run; one for each question and method.

    Returns
    -------
    JoinedRatings
        No rating is dropped: what the run does not have is listed with the reason.

    Raises
    ------
    UsageError
        If two documents of the run number their questions alike: a rating names no document.
    """
    by_answer = {(row.question_id, row.method): row for row in rows}
    if len(by_answer) < len(rows):
        msg = "A rated run needs question ids that differ, also between its documents."
        raise UsageError(msg)
    questions = {row.question_id for row in rows}
    n_answers = Counter(method for _, method in by_answer)
    given: dict[tuple[str, str], list[Rating]] = {}
    unjoined: list[UnjoinedRating] = []
    for rating in ratings:
        answer = (rating.question_id, rating.method)
        if answer in by_answer:
            given.setdefault(answer, []).append(rating)
        else:
            unjoined.append(UnjoinedRating(rating, _explain(rating, questions, n_answers)))
    answers = tuple(
        RatedAnswer(
            question_id=row.question_id,
            document=row.document,
            method=row.method,
            ratings=tuple(rating.rating for rating in given[answer]),
            comments=tuple(rating.comment for rating in given[answer] if rating.comment),
            correctness=row.scores.get("correctness"),
        )
        for answer, row in by_answer.items()
        if answer in given
    )
    return JoinedRatings(answers, tuple(unjoined), dict(n_answers))


def _csv_rows(file: Path, text: str) -> list[tuple[int, object]]:
    header = text.partition("\n")[0]
    separator = ";" if header.count(";") > header.count(",") else ","
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[tuple[int, object]] = []
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if len(set(names)) < len(names):
            msg = f"{file}, row 1: two columns have the same name."
            raise UsageError(msg)
        reader.fieldnames = names
        for place, row in enumerate(reader, 2):
            cells = list(row.values())
            if None in row or None in cells:
                msg = f"{file}, row {place} has more or fewer cells than the header has columns."
                raise UsageError(msg)
            if any(cell.strip() for cell in cells):
                rows.append((place, {**row, "user": (row.get("user") or "").strip() or None}))
    except csv.Error as error:
        msg = f"{file} can't be read as CSV: {error}."
        raise UsageError(msg) from error
    return rows


def _json_rows(file: Path, text: str) -> list[tuple[int, object]]:
    rows: list[tuple[int, object]] = []
    for place, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append((place, json.loads(line)))
        except ValueError as error:
            msg = f"{file}, row {place} is not valid JSON: {error}."
            raise UsageError(msg) from error
    return rows


def _parse(row: object, place: int, file: Path) -> Rating:
    where = f"{file}, row {place}"
    if not isinstance(row, Mapping):
        msg = f"{where} is not an object with fields but {type(row).__name__}."
        raise UsageError(msg)
    try:
        read = _Row.model_validate(dict(cast("Mapping[str, object]", row)))
    except ValidationError as error:
        msg = f"{where}: {_describe(error)}"
        raise UsageError(msg) from error
    return Rating(**read.model_dump(), place=place)


def _describe(error: ValidationError) -> str:
    first = error.errors()[0]
    name, given = str(first["loc"][0]), first["input"]
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, _COLUMNS, 1)
        hint = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(_COLUMNS)}."
        return f"there is no column {name!r}; {hint}"
    if first["type"] == "missing" or given == "":
        return f"{name} is missing."
    if name == "rating":
        return f"the rating is {given!r}; it is a whole number from {LOWEST} to {HIGHEST}."
    return f"{name} is wrong: {first['msg']}."


def _refuse_repeated(ratings: Iterable[Rating], file: Path) -> None:
    seen: dict[tuple[str, str, str], int] = {}
    for rating in ratings:
        if rating.user is None:
            continue
        key = (rating.user, rating.question_id, rating.method)
        if key in seen:
            msg = (
                f"{file}, rows {seen[key]} and {rating.place}: {rating.user} rates the answer of "
                f"{rating.method} to {rating.question_id} twice; keep one."
            )
            raise UsageError(msg)
        seen[key] = rating.place


def _explain(rating: Rating, questions: Container[str], methods: Container[str]) -> str:
    if rating.question_id not in questions:
        return f"the run has no question {rating.question_id!r}"
    if rating.method not in methods:
        return f"the run has no method {rating.method!r}"
    return f"the run has no answer of {rating.method} to {rating.question_id!r}"
