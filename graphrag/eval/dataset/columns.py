"""Which column of a dataset is which field: names, other names for them, and a user's own."""

import re
from collections.abc import Iterable, Mapping, Sequence

from graphrag.command_lines import config_name
from graphrag.config.models.strict_section import nearest
from graphrag.eval.errors import DatasetError

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
NEEDED = ("question", "answer")
OR_ELSE = {"answer": ("expected_sources", "assertions")}
"""A needed field -> the fields that may stand in for it."""
_FIELD_OF = {name: field for field, names in FIELDS.items() for name in names}


def heading_key(heading: str) -> str:
    """Return a heading without case, and with one underscore for blanks, hyphens and the like."""
    return re.sub(r"[\s_-]+", "_", heading.strip().casefold()).strip("_")


def field_of(heading: str) -> str | None:
    """Return the field that a heading names, None when it names none."""
    return _FIELD_OF.get(heading_key(heading))


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse (ValueError) a mapping of what is no field, or of one heading to two fields."""
    for field in columns:
        if field not in FIELDS:
            known = list(FIELDS)
            msg = f"there is no field {field!r}{nearest(field, known)} (fields: {', '.join(known)})"
            raise ValueError(msg)
    headings = list(columns.values())
    for heading in headings:
        if headings.count(heading) > 1:
            raise ValueError(f"the column {heading!r} is given for two fields")


def map_rows(
    rows: Sequence[Mapping[str, object]],
    columns: Mapping[str, str],
    source: str,
    headings: Sequence[str] = (),
) -> list[dict[str, object]]:
    """Give the columns of rows the names of their fields; further columns keep their names.

    ``columns``, field -> heading, says what the headings do not tell; ``headings`` are those of
    columns that may be blank in every row. A DatasetError says how to map what is missing.
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
        if own and field != "answer":  # an answer beside a reference may be what a system said
            named[field] = own
    found = {*columns, *named}
    missing = [field for field in NEEDED if found.isdisjoint({field, *OR_ELSE.get(field, ())})]
    if missing and rows:
        raise DatasetError(_describe_missing(missing, headings, source))
    mapped: list[dict[str, object]] = []
    for number, row in enumerate(rows, 1):
        fields = {field: row[heading] for heading, field in chosen.items() if heading in row}
        for field, candidates in named.items():
            given = [heading for heading in candidates if not _is_blank(row.get(heading))]
            if given:
                _refuse_two(field, given, row, f"{source}: row {number}")
                fields[field] = row[given[0]]
            elif any(heading in row for heading in candidates):
                fields[field] = next(row[h] for h in candidates if h in row)
        used = {*chosen, *(heading for candidates in named.values() for heading in candidates)}
        rest = {heading: value for heading, value in row.items() if heading not in used}
        mapped.append({**{k: v for k, v in rest.items() if k not in fields}, **fields})
    return mapped


def _find(heading: str, headings: Iterable[str], field: str, source: str) -> str:
    found = [each for each in headings if each == heading] or [
        each for each in headings if heading_key(each) == heading_key(heading)
    ]
    if len(found) == 1:
        return found[0]
    msg = f"{source}: no column is called {heading!r}, which is to be the {field}"
    if len(found) > 1:
        msg = f"{source}: {' and '.join(found)} may both be the column {heading!r}"
    raise DatasetError(f"{msg}; columns found: {_listed(headings)}.")


def _refuse_two(field: str, given: list[str], row: Mapping[str, object], where: str) -> None:
    """Refuse columns that may both be the field and differ, such as an answer and a reference."""
    if any(row[heading] != row[given[0]] for heading in given[1:]):
        raise DatasetError(
            f"{where}: the columns {' and '.join(given)} may both be the {field}, and differ; "
            f"say which in {config_name()}, under dataset.columns: {field}: {given[0]}, or "
            f"{field}: {given[1]}."
        )


def _describe_missing(missing: list[str], headings: Iterable[str], source: str) -> str:
    example = ", ".join(f"{field}: COLUMN" for field in missing)
    names = "; ".join(f"{field}: {', '.join(FIELDS[field])}" for field in missing)
    stand_ins = [(" or ".join(OR_ELSE[field]), field) for field in missing if field in OR_ELSE]
    other = "".join(f" {names} may stand in for the {field}." for names, field in stand_ins)
    return (
        f"{source} has no column for the {' and the '.join(missing)} (columns found: "
        f"{_listed(headings)}; names known: {names}); say which in {config_name()}, under "
        f"dataset.columns: {example}.{other}"
    )


def _listed(headings: Iterable[str]) -> str:
    names = [heading if len(heading) <= 40 else f"{heading[:40]}..." for heading in headings]
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
