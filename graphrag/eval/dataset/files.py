"""Reads the rows of dataset files, maps their columns to fields, and reads folders of texts."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from pydantic_core import to_json

from graphrag.config.models.strict_section import nearest
from graphrag.config.settings_files import read_yaml
from graphrag.config.table_files import LFS_HEAD
from graphrag.eval.errors import DatasetError
from graphrag.text.cli_hints import config_name
from graphrag.text.encodings import MARKS, UnknownEncodingError, decode
from graphrag.text.input_files import MOST_BYTES, read_input

MAX_CHARACTERS = 131_072
"""The most characters of a row's text; a longer one is a whole document or an unclosed quote."""

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_TEXT = ("", ".txt", ".text", ".md", ".markdown", ".rst", ".adoc", ".org")
ROWS_UNDER = ("questions", "data", "samples")
"""The keys under which a JSON object may have its list of rows."""
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
_WORKBOOK = "save the sheet as CSV (UTF-8)"
_NO_TEXT = {
    LFS_HEAD: "it is a pointer of Git LFS; fetch the file with: git lfs pull",
    b"PK\x03\x04": f"it is an Excel workbook or a ZIP archive; {_WORKBOOK}",
    b"\xd0\xcf\x11\xe0": f"it is an Excel workbook; {_WORKBOOK}",
    b"\x1f\x8b": "it is compressed; unpack it with: gunzip",
    b"PAR1": "it is a Parquet file; end its name in .parquet",
    b"<!doctype html": "it is a web page; download the file itself",
    b"<html": "it is a web page; download the file itself",
}
"""Beginning, in lower case, of files that are not text with rows -> what such a file is."""
LIST_FIELDS = (
    *("evidence", "expected_sources", "expected_entities", "keywords", "aspects", "assertions"),
)
# The first name is the field's own. Names that may as well mean something else are not taken:
# "context" is the quoted evidence in one dataset and what a system retrieved in the next.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "question_text", "query", "user_input"),
    "answer": (
        "answer",
        "ground_truth",
        "reference",
        "reference_answer",
        "expected_answer",
        "gold_answer",
    ),
    "imdb_key": ("imdb_key", "index"),
    "id": ("id", "question_id"),
    **{name: (name,) for name in LIST_FIELDS},
    **{name: (name,) for name in ("answerable", "tags", "time_limit_s")},
}
_INSTEAD_OF_ANSWER = ("expected_sources", "assertions")
_MOST_ROWS, _MOST_VALUES, _MOST_BYTES_A_ROW = 1_000_000, 20_000_000, 20_000_000
"""Limits of a Parquet file. The largest benchmark has 170,000 rows of some 60 values and 6,000
bytes."""
_BYTES_AT_ONCE = 200_000_000
_FIELD_OF = {name: field for field, names in FIELDS.items() for name in names}


class RowsRead(NamedTuple):
    """The rows of a file, heading -> value, and warnings about how they were read.

    ``headings`` are those of a table, also of columns that are blank; in other formats they are
    in the rows.
    """

    rows: list[object]
    warnings: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


def read_rows(file: Path, columns: Mapping[str, str], encoding: str | None = None) -> RowsRead:
    """Read the rows of a dataset file in the format that its ending names.

    ``columns``, field -> heading, helps to find the delimiter and the lists of a table.
    ``encoding`` is that of the file; None: it is detected. Raises DatasetError, which names the
    line or row, if the file can't be read.
    """
    kind = file.suffix.lower()
    if kind not in SUFFIXES:
        choices = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        hint = f"{_WORKBOOK}, or use" if kind in _WORKBOOKS else "use"
        raise DatasetError(f"The dataset {file} ends in {kind or 'nothing'}; {hint} {choices}.")
    content = _content(file, is_text=kind != ".parquet")
    if kind == ".parquet":
        return RowsRead(_parquet_rows(file, content))
    setting = f"dataset.encoding of {config_name()}"
    text, warnings = decode_text(file, content, encoding, setting)
    if kind in (".csv", ".tsv"):
        rows, headings = _table_rows(file, text, columns)
        return RowsRead(rows, warnings, headings)
    if kind == ".json":
        return RowsRead(_json_rows(file, text), warnings)
    return RowsRead(_json_lines(file, text), warnings)


def read_values(file: Path) -> tuple[object, tuple[str, ...]]:
    """Return the content of a JSON or YAML file, and warnings about how it was read."""
    text, warnings = decode_text(file, _content(file))
    if file.suffix.lower() == ".json":
        return _json(text, str(file)), warnings
    try:
        return read_yaml(text), warnings
    except yaml.YAMLError as error:
        raise DatasetError(f"{file} is not valid YAML: {error}.") from error


def _content(file: Path, is_text: bool = True) -> bytes:
    try:
        content = read_input(file)
    except FileNotFoundError as error:
        msg = f"The dataset {file} does not exist; set dataset.path in {config_name()}."
        raise DatasetError(msg) from error
    except OSError as error:
        raise DatasetError(f"The dataset {file} can't be read: {error.strerror}.") from error
    if not content.strip():
        raise DatasetError(f"The dataset {file} is empty; add at least one question.")
    start = content[:200].lstrip().lower()
    for head, reason in _NO_TEXT.items():
        if start.startswith(head.lower()) and (is_text or head == LFS_HEAD):
            raise DatasetError(f"The dataset {file} can't be read: {reason}.")
    return content


def decode_text(
    file: Path, content: bytes, encoding: str | None = None, setting: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Decode by the byte order mark, else as UTF-8, else by a guess that is sure, with a warning.

    ``encoding`` is the one that the user gives in ``setting``. Raises DatasetError if the content
    is not text, or no guess is sure.
    """
    named = f", or name its encoding in {setting}" if setting else ""
    try:
        text, guess = decode(content, encoding)
    except UnknownEncodingError as error:
        raise DatasetError(f"{file} can't be read: {error}; save it as UTF-8{named}.") from error
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise DatasetError(f"{file}, line {line} contains a NUL character; save it as UTF-8 text.")
    if guess is None:
        return text, ()
    return text, (
        f"{file} is not UTF-8; it was read as {guess.encoding} ({guess.sureness:.0%} sure), e.g. "
        f"{guess.word!r}; save it as UTF-8{named} if that looks wrong",
    )


def _json_lines(file: Path, text: str) -> list[object]:
    """Return the value of each line that is not blank; a DatasetError names all faulty lines."""
    rows: list[object] = []
    faults: list[str] = []
    # Not splitlines: a JSON text may contain other line separators.
    for number, line in enumerate(text.split("\n"), 1):
        try:
            rows += [_json(line, f"{file}, line {number}")] if line.strip() else []
        except DatasetError as error:
            faults.append(str(error))
    refuse_faults(file, faults, "lines")
    return rows


_MOST_FAULTS = 10


def refuse_faults(source: object, faults: Sequence[str], kind: str = "rows") -> None:
    """Raise one DatasetError for all faults of a source's rows, if there are any."""
    if len(faults) < 2:
        for fault in faults:
            raise DatasetError(fault)
        return
    shown = [
        fault.removeprefix(f"{source}").lstrip(":, ").rstrip(".") for fault in faults[:_MOST_FAULTS]
    ]
    more = f"; and {len(faults) - len(shown):,} more" if len(faults) > len(shown) else ""
    raise DatasetError(f"{source}: {len(faults):,} {kind} can't be used: {'; '.join(shown)}{more}.")


def _json_rows(file: Path, text: str) -> list[object]:
    values = _json(text, str(file))
    problem = f"not {type(values).__name__}"
    if isinstance(values, dict):
        mapping = cast("dict[str, object]", values)
        under = [key for key in ROWS_UNDER if isinstance(mapping.get(key), list)]
        values = mapping[under[0]] if len(under) == 1 else None
        listed = ", ".join(map(repr, list(mapping)[:10]))
        problem = (
            f"or an object with one under {', '.join(ROWS_UNDER[:-1])} or {ROWS_UNDER[-1]}; keys "
            f"found: {listed or 'none'}"
        )
    if not isinstance(values, list):
        raise DatasetError(f"{file} must contain a JSON list of rows, {problem}.")
    return cast("list[object]", values)


def _table_rows(
    file: Path, text: str, columns: Mapping[str, str]
) -> tuple[list[object], tuple[str, ...]]:
    declared = text.partition("\n")[0].strip()
    if declared.lower().startswith("sep=") and len(declared) == 5:  # as Excel writes it
        text, delimiter = text.partition("\n")[2], declared[-1]
    else:
        delimiter = "\t" if file.suffix.lower() == ".tsv" else _delimiter(file, text, columns)
    lines = _lines(file, text, delimiter)
    header = [name.strip() for name in next(iter(lines), (0, list[str]()))[1]]
    if header and not header[0] and all(cells[0].strip().isdigit() for _, cells in lines[1:]):
        # The numbers of rows, as a data frame writes them.
        header, lines = header[1:], [(line, cells[1:]) for line, cells in lines]
    if len(header) == 1 and len(lines) > 1 and field_of(header[0]) is None:
        raise DatasetError(
            f"{file} has one column, {header[0][:80]!r}; part columns by a comma, a semicolon or "
            "a tab."
        )
    named = [name for name in header if name]
    if twice := [name for name, n in Counter(named).items() if n > 1]:
        raise DatasetError(f"{file}: two columns are called {twice[0]!r}; rename one.")
    lists = {columns.get(name, name) for name in LIST_FIELDS}
    rows: list[object] = []
    for line, cells in lines[1:]:
        where = f"{file}: row {len(rows) + 1} (line {line})"
        extra = [cell for name, cell in zip(header, cells, strict=False) if not name and cell]
        if len(cells) < len(header) or any(cells[len(header) :]) or extra:
            raise DatasetError(
                f"{where} has {len(cells)} cells, the header has {len(named)} columns; is a cell "
                f"that contains {_DELIMITERS.get(delimiter, repr(delimiter))} not in double quotes?"
            )
        rows.append(
            {
                name: _to_list(cell) if name in lists or heading_key(name) in LIST_FIELDS else cell
                for name, cell in zip(header, cells, strict=False)
                if name and cell.strip()
            }
        )
    return rows, tuple(named)


def _lines(file: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return line number and cells of every row that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before = csv.field_size_limit(MAX_CHARACTERS)  # graphrag lifts it where it reads CSV
    try:
        return [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        problem = str(error)
        if "field larger" in problem:
            problem = (
                f"a cell has more than {MAX_CHARACTERS:,} characters; is a double quote before it "
                "not closed?"
            )
        raise DatasetError(f"{file}, line {reader.line_num}: {problem.rstrip('.')}.") from error
    finally:
        csv.field_size_limit(before)


def _delimiter(file: Path, text: str, columns: Mapping[str, str]) -> str:
    """Return the delimiter under which the header names the most fields; a comma if none does."""
    keys = {heading_key(heading) for heading in columns.values()}

    def n_known(delimiter: str) -> int:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            header = next((cells for cells in reader if any(cells)), list[str]())
        except csv.Error:
            return 0
        return sum(field_of(name) is not None or heading_key(name) in keys for name in header)

    best = max(_DELIMITERS, key=n_known)
    if n_known(best):
        return best
    # Nothing is known: the columns that the refusal shows should be complete.
    return max(_DELIMITERS, key=text.lstrip().partition("\n")[0].count)


def _to_list(cell: str) -> list[object]:
    """Read a cell with a list: a JSON list of texts or objects, or entries between bars."""
    if cell.lstrip().startswith(('["', "[{")):
        try:
            values = json.loads(cell)
        except ValueError:
            values = None
        if isinstance(values, list):
            listed = cast("list[object]", values)
            return [value if isinstance(value, dict) else str(value) for value in listed]
    return [part.strip() for part in cell.split("|") if part.strip()]


def _parquet_rows(file: Path, content: bytes) -> list[object]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[object] = []
    n_bytes = 0
    try:
        table = cast("Any", pq).ParquetFile(io.BytesIO(content), pre_buffer=False)
        for batch in table.iter_batches(_bounded_rows(file, table.metadata)):
            # As JSON has them: null for NaN, text for dates and the like.
            values = batch.to_pylist()
            text = to_json(values, inf_nan_mode="null", bytes_mode="base64", fallback=str)
            if len(text) > batch.num_rows * _MOST_BYTES_A_ROW:
                raise _size_error(file, f"rows of {len(text) // batch.num_rows:,} bytes")
            if (n_bytes := n_bytes + len(text)) > MOST_BYTES:
                raise _size_error(file, f"more than {n_bytes:,} bytes once unpacked")
            rows += json.loads(text)
        return rows
    except (cast("Any", pa).ArrowException, OSError, ValueError) as error:
        msg = f"The dataset {file} is no Parquet file that can be read; write it again."
        raise DatasetError(msg) from error


def _bounded_rows(file: Path, metadata: Any) -> int:
    """Return how many rows to read at once; refuse a table larger than any dataset.

    A few bytes may encode millions of equal rows or entries of a list, and each row of a group
    may contain all that the group contains.
    """
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    columns = (group.column(n) for group in groups for n in range(group.num_columns))
    if metadata.num_rows > _MOST_ROWS:
        raise _size_error(file, f"{metadata.num_rows:,} rows")
    if (n_values := sum(column.num_values for column in columns)) > _MOST_VALUES:
        raise _size_error(file, f"{n_values:,} values")
    largest = max((group.total_byte_size for group in groups), default=0)
    if largest > MOST_BYTES:
        raise _size_error(file, f"{largest:,} bytes")
    return max(1, min(1_000, _BYTES_AT_ONCE // max(1, largest)))


def _size_error(file: Path, content: str) -> DatasetError:
    most = f"{_MOST_ROWS:,} rows, {_MOST_VALUES:,} values, {MOST_BYTES:,} bytes"
    row = f"{_MOST_BYTES_A_ROW:,} in a row"
    return DatasetError(f"{file} has {content}; at most {most} and {row} are read. Write fewer.")


def _json(text: str, where: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else error
        has_lines = "\n{" in text and str(error).startswith("Extra data")
        hint = "; if each line has a row, end its name in .jsonl" if has_lines else ""
        raise DatasetError(f"{where} is not valid JSON: {problem}{hint}.") from error


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which JSON does not have and no results file could contain."""
    raise ValueError(f"{name} is not a value; use null")


def heading_key(heading: str) -> str:
    """Return a heading in lower case, with one underscore for blanks, hyphens and the like."""
    return re.sub(r"[\s_-]+", "_", heading.strip().casefold()).strip("_")


def field_of(heading: str) -> str | None:
    """Return the field that a heading names; None if it names none."""
    return _FIELD_OF.get(heading_key(heading))


def check_columns(columns: Mapping[str, str]) -> None:
    """Raise ValueError if an unknown field is mapped, or one heading to two fields."""
    for field in columns:
        if field not in FIELDS:
            names = list(FIELDS)
            msg = f"there is no field {field!r}{nearest(field, names)} (fields: {', '.join(names)})"
            raise ValueError(msg)
    if twice := [heading for heading, n in Counter(columns.values()).items() if n > 1]:
        raise ValueError(f"the column {twice[0]!r} is given for two fields")


def map_rows(
    rows: Sequence[Mapping[str, object]],
    columns: Mapping[str, str],
    source: str,
    headings: Sequence[str] = (),
) -> list[dict[str, object]]:
    """Rename the columns of rows to their fields; other columns keep their names.

    ``columns``: field -> heading, for headings that don't name their field. ``headings`` are those
    of columns that may be blank in every row. Raises DatasetError, which says how to map a field
    that is missing.
    """
    try:
        check_columns(columns)
    except ValueError as error:
        raise DatasetError(f"{source}: columns: {error}.") from error
    rows = [{str(heading): value for heading, value in row.items()} for row in rows]
    headings = list(dict.fromkeys([*headings, *(heading for row in rows for heading in row)]))
    chosen = {_find(heading, headings, field, source): field for field, heading in columns.items()}
    named: dict[str, list[str]] = {}
    for heading in headings:
        field = field_of(heading)
        if heading not in chosen and field is not None and field not in columns:
            named.setdefault(field, []).append(heading)
    for field, candidates in named.items():
        own = [heading for heading in candidates if heading_key(heading) == field]
        if own and field != "answer":  # an answer with a reference may be a system's response
            named[field] = own
    needed = {"question": ("question",), "answer": ("answer", *_INSTEAD_OF_ANSWER)}
    missing = [field for field, any_of in needed.items() if not {*columns, *named} & {*any_of}]
    if missing and rows:
        raise DatasetError(_describe_missing(missing, headings, source))
    mapped: list[dict[str, object]] = []
    used = {*chosen, *(heading for candidates in named.values() for heading in candidates)}
    for number, row in enumerate(rows, 1):
        fields = {field: row[heading] for heading, field in chosen.items() if heading in row}
        for field, candidates in named.items():
            there = [heading for heading in candidates if heading in row]
            filled = [heading for heading in there if not _is_blank(row[heading])]
            if any(row[heading] != row[filled[0]] for heading in filled[1:]):
                raise DatasetError(
                    f"{source}: row {number}: the columns {' and '.join(filled)} may both be the "
                    f"{field}, and differ; say which in {config_name()}, under dataset.columns: "
                    f"{field}: {filled[0]}, or {field}: {filled[1]}."
                )
            if there:
                fields[field] = row[(filled or there)[0]]
        rest = {k: value for k, value in row.items() if k not in used and k not in fields}
        mapped.append({**rest, **fields})
    return mapped


def _find(heading: str, headings: Iterable[str], field: str, source: str) -> str:
    matches = [name for name in headings if name == heading] or [
        name for name in headings if heading_key(name) == heading_key(heading)
    ]
    if len(matches) == 1:
        return matches[0]
    msg = f"{source}: no column is called {heading!r}, which is to be the {field}"
    if len(matches) > 1:
        msg = f"{source}: {' and '.join(matches)} may both be the column {heading!r}"
    raise DatasetError(f"{msg}; columns found: {_list_headings(headings)}.")


def _describe_missing(missing: list[str], headings: Iterable[str], source: str) -> str:
    example = ", ".join(f"{field}: COLUMN" for field in missing)
    names = "; ".join(f"{field}: {', '.join(FIELDS[field])}" for field in missing)
    other = f" {' or '.join(_INSTEAD_OF_ANSWER)} may replace the answer."
    return (
        f"{source} has no column for the {' and the '.join(missing)} (columns found: "
        f"{_list_headings(headings)}; names known: {names}); say which in {config_name()}, under "
        f"dataset.columns: {example}.{other if 'answer' in missing else ''}"
    )


def _list_headings(headings: Iterable[str]) -> str:
    names = [heading if len(heading) <= 40 else f"{heading[:40]}..." for heading in headings]
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts in a folder.

    ``documents``: name below a project's input -> text. ``left_out``: file -> why it is no
    document. ``warnings`` are about how texts were read.
    """

    documents: Mapping[str, str]
    left_out: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def read_texts(folder: Path, encoding: str | None = None) -> Texts:
    """Read every text file below a folder, except hidden ones.

    A name that does not end in .txt gets that ending, because graphrag indexes no other.
    ``encoding`` is that of the texts; None: it is detected. Raises DatasetError if the folder has
    no text (and says what it has), or if a text's encoding can't be detected.
    """
    if not folder.is_dir():
        fault = "is a file; name the folder that it is in" if folder.exists() else "does not exist"
        raise DatasetError(f"The folder {folder} {fault}.")
    documents: dict[str, str] = {}
    left_out: dict[str, str] = {}
    warnings: list[str] = []
    for path in _list_files(folder):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() not in _TEXT:
            left_out[name] = f"{path.suffix} is not read as text"
            continue
        try:
            content = path.read_bytes()
            if b"\x00" in content and not content.startswith(MARKS):
                raise ValueError
            text, further = decode_text(path, content, encoding, "--encoding")
        except ValueError:
            left_out[name] = "it is not text"
        except OSError as error:
            left_out[name] = error.strerror or type(error).__name__
        else:
            if text.strip():
                documents[name if path.suffix == ".txt" else f"{name}.txt"] = text
                warnings += further
            else:
                left_out[name] = "it is empty"
    if documents:
        return Texts(documents, left_out, tuple(warnings))
    if not left_out:
        raise DatasetError(f"The folder {folder} is empty; put your texts there, as .txt or .md.")
    name, why = next(iter(left_out.items()))
    n = f"none of its {len(left_out):,} files" if len(left_out) > 1 else "its only file is none"
    msg = f"The folder {folder} has no text: {n}, as in {name} ({why})"
    raise DatasetError(f"{msg}; save its content as .txt or .md.")


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder in order; links to folders are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path
