"""Reads users' ratings of answers from a CSV or JSON lines file."""

import csv
import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Annotated, cast

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from graphrag.eval.errors import UsageError
from graphrag.text.input_files import read_input

LOWEST, HIGHEST = 1, 5


def _as_text(value: object) -> object:
    # A number may be an id; True, which would be taken for 1, is no rating and no id.
    return str(value) if isinstance(value, int) else value


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(str_strip_whitespace=True))
class Rating:
    """One user's rating of one answer, from 1 to 5, where 5 is best.

    ``place`` is the row in the file (the header of a CSV is row 1), or the line of a JSON lines
    file. Raises ValueError for another rating.

    Examples
    --------
    >>> Rating(question_id="q1", method="tog", rating=5).rating
    5
    """

    question_id: Annotated[str, BeforeValidator(_as_text), Field(min_length=1)]
    method: Annotated[str, Field(min_length=1)]
    rating: Annotated[int, BeforeValidator(_as_text), Field(ge=LOWEST, le=HIGHEST)]
    comment: Annotated[str, BeforeValidator(lambda text: "" if text is None else text)] = ""
    user: Annotated[str | None, BeforeValidator(_as_text)] = None
    place: int = 0


_COLUMNS = ("question_id", "method", "rating", "comment", "user")
_RATING = TypeAdapter(Rating)


def read_ratings(path: Path | str) -> list[Rating]:
    """Read ratings, at least one, from a CSV file with a header, or from JSON lines, in UTF-8.

    The columns are ``question_id``, ``method``, ``rating``, and optionally ``comment`` and
    ``user``, with commas or semicolons between them. Raises UsageError, which names the row, if the
    file can't be read or is empty, a column is missing or unknown, a rating is not a whole number
    from 1 to 5, or a named user rates the same answer twice.

    Examples
    --------
    >>> ratings = read_ratings(path="ratings.csv")
    >>> ratings[0].method, ratings[0].rating
    ('tog', 5)
    """
    file = Path(path)
    readers = {".csv": _csv_rows, ".jsonl": _json_rows}
    try:
        text = read_input(file).decode("utf-8-sig")
    except FileNotFoundError as error:
        msg = f"{file} does not exist; name a .csv or .jsonl file of ratings."
        raise UsageError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} can't be read as text in UTF-8: {error}.") from error
    if file.suffix.lower() not in readers:
        msg = f"{file} ends in {file.suffix or 'nothing'}; ratings are a .csv or .jsonl file."
        raise UsageError(msg)
    ratings: list[Rating] = []
    rated: dict[tuple[str, str, str], int] = {}
    for number, row in readers[file.suffix.lower()](file, text):
        rating = _parse(row, number, file)
        ratings.append(rating)
        if rating.user is None:
            continue
        first = rated.setdefault((rating.user, rating.question_id, rating.method), number)
        if first != number:
            raise UsageError(
                f"{file}, rows {first} and {number}: {rating.user} rates the answer of "
                f"{rating.method} to {rating.question_id} twice; keep one."
            )
    if not ratings:
        raise UsageError(f"{file} has no rating.")
    return ratings


def _csv_rows(file: Path, text: str) -> Iterator[tuple[int, object]]:
    header = text.partition("\n")[0]
    separator = ";" if header.count(";") > header.count(",") else ","
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if len(set(names)) < len(names):
            raise UsageError(f"{file}, row 1: two columns have the same name.")
        reader.fieldnames = names
        for number, row in enumerate(reader, 2):
            cells = list(row.values())
            if None in row or None in cells:
                msg = f"{file}, row {number} has more or fewer cells than the header has columns."
                raise UsageError(msg)
            if any(cell.strip() for cell in cells):
                yield number, {**row, "user": (row.get("user") or "").strip() or None}
    except csv.Error as error:
        raise UsageError(f"{file} can't be read as CSV: {error}.") from error


def _json_rows(file: Path, text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file}, row {number} is not valid JSON: {error}.") from error
        yield number, row


def _parse(row: object, number: int, file: Path) -> Rating:
    where = f"{file}, row {number}"
    if not isinstance(row, Mapping):
        raise UsageError(f"{where} is not an object with fields but {type(row).__name__}.")
    values = cast("Mapping[str, object]", row)
    for name in values:
        if name not in _COLUMNS:
            near = get_close_matches(name, _COLUMNS, 1)
            hint = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(_COLUMNS)}."
            raise UsageError(f"{where}: there is no column {name!r}; {hint}")
    try:
        return _RATING.validate_python({**values, "place": number})
    except ValidationError as error:
        first = error.errors()[0]
        name, value = str(first["loc"][0]), first["input"]
        problem = f"{name} is wrong: {first['msg']}."
        if first["type"] == "missing" or value == "":
            problem = f"{name} is missing."
        elif name == "rating":
            problem = f"the rating is {value!r}; it is a whole number from {LOWEST} to {HIGHEST}."
        raise UsageError(f"{where}: {problem}") from error
