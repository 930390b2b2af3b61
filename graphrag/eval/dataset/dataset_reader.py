"""Defines samples and their assertions; reads, checks and fingerprints datasets."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isnan
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from warnings import warn

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from graphrag.config.models.strict_section import as_sentence, name_problem, nearest
from graphrag.eval.dataset.files import (
    FIELDS,
    LIST_FIELDS,
    MAX_CHARACTERS,
    map_rows,
    read_rows,
    refuse_faults,
)
from graphrag.eval.errors import DatasetError, NoRowsError
from graphrag.text.accepted_answers import fold_wording, join_answers
from graphrag.text.cli_hints import config_name
from graphrag.text.json_records import Stored
from graphrag.text.message_phrases import shorten

TIME_LIMIT_TAG = "time_limit_s"
"""The column with the seconds that a sample may take."""
VETTED = "vetted_by"
"""The column with the person who accepted or mended a row; null if nobody has yet."""
_TAGS = "tags"
Weight = Literal["vital", "okay"]
_AUTOQ = {"id", "text", "question_type", "attributes"}
DECLINED = "The documents do not say."
"""The answer to a question that the documents do not answer."""


class Statement(BaseModel):
    """A statement that is true or false by itself.

    ``weight``: "vital" if an answer without it is incomplete, "okay" if it is welcome but not
    needed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)

    text: str = Field(min_length=1)
    weight: Weight = "vital"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value


class Assertion(Statement):
    """A statement that an answer is checked against.

    ``must``: "say", or "not_say" for a mistake that an answer must not make.
    """

    must: Literal["say", "not_say"] = "say"


def _unfold_assertion(value: object) -> object:
    """Refuse unknown keys of an assertion, except with BenchmarkQED's ``statement``.

    Null values, as in the columns of a Parquet file, are left out.
    """
    if not isinstance(value, Mapping):
        if not isinstance(value, str):
            raise ValueError("it must be a text, or an object with text, weight and must")
        return value
    fields = {k: v for k, v in cast("Mapping[str, object]", value).items() if v is not None}
    if "statement" in fields:
        return {"text": fields["statement"]}
    keys = list(Assertion.model_fields)
    for key in fields:
        if key not in keys:
            msg = f"there is no key {key!r}{nearest(key, keys)} (keys: {', '.join(keys)})"
            raise ValueError(msg)
    return fields


RowAssertion = Annotated[Assertion, BeforeValidator(_unfold_assertion)]
"""An assertion in a dataset's row; a plain text is vital and must be said."""


def unfold_autoq(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return a question that AutoQ wrote as a row of a dataset, and any other row as it is."""
    attributes = row.get("attributes")
    if not row.keys() >= _AUTOQ or not (attributes is None or isinstance(attributes, Mapping)):
        return row
    within = cast("Mapping[str, object]", attributes or {})
    return {
        "question_id": row["id"],
        "question_text": row["text"],
        "question_type": row["question_type"],
        "assertions": within.get("assertions") or [],
    }


@dataclass(frozen=True, slots=True)
class Sample(Stored):
    """One row of a dataset: a question, and what a right answer is.

    - ``id``: the row's own id, else a hash of its key and question.
    - ``imdb_key``: the key of the index that is asked.
    - ``ground_truth``: "" if the row says only where the answer is, or what it must say.
    - ``answerable``: False if the right answer is that the documents do not say.
    - ``tags``: every other column, and the row's own tags under ``tags``.
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
    assertions: tuple[Assertion, ...] = ()
    answerable: bool = True
    tags: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def lacks_answer(self) -> bool:
        """Whether the row only says where the answer is or what it must say, not what it is."""
        return not self.ground_truth and bool(self.expected_sources or self.assertions)

    @property
    def name(self) -> str:
        """The name of the sample in messages."""
        return name_question(self.id, self.imdb_key, self.question)

    def values_of(self, column: str) -> tuple[str, ...]:
        """Return the texts and numbers that the row has in a column that is no field.

        A list gives each of its values. ``tags`` of a table are split at commas and bars.
        """
        if column not in self.tags:
            return ()
        value = self.tags[column]
        if column == _TAGS and isinstance(value, str):
            value = re.split(r"[,|]", value)
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        texts = (str(item).strip() for item in values if isinstance(item, str | int | float))
        return tuple(dict.fromkeys(text for text in texts if text))

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON-ready values."""
        return json.loads(json.dumps(asdict(self), default=_plain))


def _plain(value: object) -> object:
    return value.model_dump() if isinstance(value, Assertion) else str(value)


def name_question(sample_id: str, imdb_key: str, question: str) -> str:
    """Return the name of a question in messages: its row's id, else its first words in quotes."""
    return (
        repr(shorten(question, 60)) if sample_id in ("", _hash(imdb_key, question)) else sample_id
    )


def _hash(imdb_key: str, question: str) -> str:
    return hashlib.blake2b(f"{imdb_key}\n{question}".encode(), digest_size=8).hexdigest()


def _check_text(value: str) -> str:
    if len(value) > MAX_CHARACTERS:
        raise ValueError(f"it has {len(value):,} characters, and may have {MAX_CHARACTERS:,}")
    if "\x00" in value:
        raise ValueError("it contains a NUL character")
    return value


Text = Annotated[str, AfterValidator(_check_text)]
"""A text of at most ``MAX_CHARACTERS``."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="allow", str_strip_whitespace=True, coerce_numbers_to_str=True)

    question: Text = Field(min_length=1)
    answer: Text = ""
    imdb_key: Text | None = None
    id: Text | None = None
    evidence: list[Text] = []
    expected_sources: list[Text] = []
    expected_entities: list[Text] = []
    keywords: list[Text] = []
    aspects: list[Text] = []
    assertions: list[RowAssertion] = []
    answerable: bool = True

    @field_validator(*LIST_FIELDS, mode="before")
    @classmethod
    def _one_or_none(cls, value: object) -> object:
        as_list = getattr(value, "tolist", None)  # an array, as a data frame has for lists
        return [value] if isinstance(value, str) else as_list() if as_list else value


@dataclass(frozen=True, slots=True)
class Dataset:
    """The samples of a dataset, and warnings about how they were read."""

    samples: list[Sample]
    warnings: tuple[str, ...] = ()


def read_samples(
    path: Path | str, only_key: str | None = None, columns: Mapping[str, str] | None = None
) -> list[Sample]:
    """Read the samples of a dataset as :func:`read_dataset` does; warnings are UserWarnings."""
    return _issue_warnings(read_dataset(path, only_key, columns))


def read_dataset(
    path: Path | str,
    only_key: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Dataset:
    """Read a dataset: JSON, JSON lines, a table with a header (CSV, TSV), or Parquet.

    - ``only_key``: the key for rows that name none, if only one index is configured.
    - ``columns``: field -> heading of its column, where the headings do not show it.
    - ``encoding``: the encoding of the file; None: it is detected.

    An exact repetition of a row is asked once. A question that occurs with several answers is asked
    once, and each answer is accepted. Both give a warning. Raises DatasetError, which names every
    faulty row and its field, if the file is missing, empty or malformed, or two rows contradict
    each other in another way.
    """
    file = Path(path)
    columns = columns or {}
    read = read_rows(file, columns, encoding)
    parsed = _parse_rows(read.rows, only_key, str(file), columns, read.headings, merges=True)
    return Dataset(parsed.samples, (*read.warnings, *parsed.warnings))


def parse_samples(
    rows: Iterable[Mapping[str, object]], only_key: str | None = None, source: str = "the dataset"
) -> list[Sample]:
    """Make samples of rows and check them, as :func:`read_samples` does with those of a file."""
    return _parse_rows(list(rows), only_key, source, {}, ()).samples


def fingerprint_samples(samples: Sequence[Sample]) -> str:
    """Return a hash of every field of every sample, in order, except who has vetted it."""
    values = [asdict(sample) for sample in samples]
    for value in values:
        value["tags"].pop(VETTED, None)
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def count_gold(samples: Sequence[Sample]) -> int | None:
    """Return how many samples a person has vetted; None if no row says whether one has."""
    vetted = [sample.tags[VETTED] for sample in samples if VETTED in sample.tags]
    return sum(map(bool, vetted)) if vetted else None


def _issue_warnings(dataset: Dataset) -> list[Sample]:
    for warning in dataset.warnings:
        warn(warning, stacklevel=3)
    return dataset.samples


def _parse_rows(
    rows: Sequence[object],
    only_key: str | None,
    source: str,
    columns: Mapping[str, str],
    headings: Sequence[str],
    merges: bool = False,
) -> Dataset:
    refuse_faults(
        source,
        [
            f"{source}: row {number} is not an object with fields but {type(row).__name__}."
            for number, row in enumerate(rows, 1)
            if not isinstance(row, Mapping)
        ],
    )
    if not rows:
        raise NoRowsError(f"{source} has no rows; add at least one question.")
    rows = [  # a missing value is None, not NaN or NA as in a data frame
        {k: _plain_value(v) for k, v in row.items()}
        for row in cast("Sequence[Mapping[str, object]]", rows)
    ]
    flat = [unfold_autoq(row) for row in rows]
    collected = _Samples(source=source, merges=merges)
    # AutoQ finds no assertions for some of its questions.
    bare = {n for n, row in enumerate(flat, 1) if row is not rows[n - 1] and not row["assertions"]}
    bare = bare if len(bare) < len(rows) else set[int]()
    for number, row in enumerate(map_rows(flat, columns, source, headings), 1):
        if number in bare:
            continue
        try:
            collected.add(number, parse_sample(row, f"{source}: row {number}", only_key))
        except DatasetError as error:
            collected.faults.append(str(error))
    refuse_faults(source, collected.faults)
    warnings = collected.warnings()
    if bare:
        left_out = f"{source}: {len(bare)} of AutoQ's questions have no assertions: left out"
        warnings.insert(0, left_out)
    return Dataset([sample for _, sample in collected.first_row.values()], tuple(warnings))


def _plain_value(value: object) -> object:
    """Return a value of a data frame as Python has it; None for a missing one."""
    kind = type(value).__module__.partition(".")[0]
    if kind == "pandas" and type(value).__name__ in ("NAType", "NaTType"):
        return None
    if kind == "numpy" and getattr(value, "ndim", 1) == 0:
        value = cast("Any", value).item()
    return None if isinstance(value, float) and isnan(value) else value


@dataclass(slots=True)
class _Samples:
    """Collects the samples of rows, each question once.

    ``first_row``: key and question -> the number of the first row, and its sample. ``merges``:
    whether a question may occur with several answers.
    """

    source: str
    merges: bool
    faults: list[str] = field(default_factory=list[str])
    first_row: dict[tuple[str, str], tuple[int, Sample]] = field(
        default_factory=dict[tuple[str, str], tuple[int, Sample]]
    )
    _ids: dict[str, int] = field(default_factory=dict[str, int])
    _repeated: list[str] = field(default_factory=list[str])
    _merged: list[str] = field(default_factory=list[str])

    def add(self, number: int, sample: Sample) -> None:
        """Add the sample of a row; raises DatasetError if it contradicts another one."""
        key = (sample.imdb_key, fold_wording(sample.question))
        if key not in self.first_row:
            if sample.id in self._ids:
                raise DatasetError(
                    f"{self.source}: rows {self._ids[sample.id]} and {number} have the same id "
                    f"{sample.id!r}, but ask different questions; ids must be unique."
                )
            self._ids[sample.id] = number
            self.first_row[key] = (number, sample)
            return
        before, first = self.first_row[key]
        if _expects(first) == _expects(sample):
            self._repeated.append(f"{before} and {number}")
        elif self.merges and _may_merge(first, sample):
            self._merged.append(f"{before} and {number}")
            self.first_row[key] = (before, _merge(first, sample))
        else:
            raise DatasetError(_describe_contradiction(self.source, before, first, number, sample))

    def warnings(self) -> list[str]:
        """Return warnings about questions that occur more than once."""
        warnings: list[str] = []
        for rows, how in (
            (self._repeated, "with the same answer, and asked once"),
            (self._merged, "with another answer, and asked once: each answer is accepted"),
        ):
            if rows:
                times = "question is" if len(rows) == 1 else "questions are"
                n = f"{len(rows)} {times} there again {how}"
                warnings.append(f"{self.source}: {n} (e.g. rows {rows[0]})")
        return warnings


def _may_merge(first: Sample, second: Sample) -> bool:
    """Return whether two rows of one question differ only in the wording of their answers."""
    both_answer = first.ground_truth and second.ground_truth
    same = first.answerable == second.answerable and first.assertions == second.assertions
    return bool(both_answer) and same and first.answerable


def _merge(first: Sample, second: Sample) -> Sample:
    """Return a sample that accepts the answers of two, and has the evidence of both."""
    evidence = tuple(dict.fromkeys((*first.evidence, *second.evidence)))
    answer = join_answers((first.ground_truth, second.ground_truth))
    return replace(first, ground_truth=answer, evidence=evidence)


def _expects(sample: Sample) -> tuple[object, ...]:
    """Return the values that rows of one question must share: answer, assertions, else sources."""
    sources = sample.expected_sources if sample.lacks_answer else ()
    return fold_wording(sample.ground_truth), sample.assertions, sources


def _describe_contradiction(
    source: str, before: int, first: Sample, number: int, second: Sample
) -> str:
    names = ("answers", "assertions", "expected_sources, and no answer")
    parts = zip(names, _expects(first), _expects(second), strict=True)
    differing = next(name for name, one, other in parts if one != other)
    if differing == "answers":
        truths = (shorten(sample.ground_truth, 60) for sample in (first, second))
        differing += f", {' and '.join(repr(truth) if truth else 'none' for truth in truths)}"
    return (
        f"{source}: rows {before} (id {first.id!r}) and {number} (id {second.id!r}) ask the same "
        f"question of {first.imdb_key}, but have different {differing}; keep one."
    )


def parse_sample(row: Mapping[str, object], where: str, only_key: str | None) -> Sample:
    """Make a sample of a row with the fields' own names; a DatasetError begins with ``where``."""
    try:
        json.dumps(row, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        msg = f"{where} contains half of a character (a lone surrogate); mend its text."
        raise DatasetError(msg) from error
    try:
        read = _Row.model_validate(
            {k: v for k, v in row.items() if v is not None or k not in FIELDS}
        )
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"is wrong: {name_problem(first)}"
        problem = "is missing" if first["type"] == "missing" else problem
        if first["type"].startswith("bool_"):
            problem = f"must be true or false, not {first['input']!r}"
        name, *path = first["loc"]
        if name == "assertions" and path:
            name = " ".join(["assertion", str(int(path[0]) + 1), *map(str, path[1:])])
        raise DatasetError(f"{where}: {name} {problem}.") from error
    tags = dict(read.model_extra or {})
    key = read.imdb_key or only_key
    answer = read.answer if read.answerable else read.answer or DECLINED
    if not (answer or any(read.expected_sources) or read.assertions):
        problem = (
            "answer is missing; give it, or expected_sources, where the answer is, or "
            "assertions, what it must say"
        )
        raise DatasetError(f"{where}: {problem}.")
    limit = tags.get(TIME_LIMIT_TAG)
    if limit is not None and not _is_seconds(limit):
        raise DatasetError(f"{where}: {TIME_LIMIT_TAG} must be seconds above 0, not {limit!r}.")
    if key is None:
        raise DatasetError(f"{where}: imdb_key is missing, and several indexes are configured.")
    return Sample(
        id=read.id or _hash(key, read.question),
        imdb_key=key,
        question=read.question,
        ground_truth=answer,
        answerable=read.answerable,
        tags=tags,
        **{name: tuple(getattr(read, name)) for name in LIST_FIELDS},
    )


def _is_seconds(value: object) -> bool:
    try:
        return not isinstance(value, bool) and 0 < float(cast("str", value)) < inf
    except (TypeError, ValueError, OverflowError):
        return False


def as_samples(
    dataset: Iterable[Sample | Mapping[str, object]], keys: Sequence[str]
) -> list[Sample]:
    """Return samples as they are, and rows as samples; ``keys`` are those of the indexes.

    An exact repetition of a row is asked once, with a UserWarning. Raises DatasetError if a row
    can't be used, samples are mixed with rows, or two samples share an id.
    """
    kind = type(dataset).__name__
    if isinstance(dataset, str | Path | Mapping) or hasattr(dataset, "columns"):
        raise DatasetError(
            f"the dataset is a {kind}, not a list of rows; give what json.load reads from a file, "
            "or to_dict('records') of a data frame."
        )
    rows = list(dataset)
    samples = [row for row in rows if isinstance(row, Sample)]
    if rows and len(samples) == len(rows):
        ((sample_id, times),) = Counter(sample.id for sample in samples).most_common(1)
        if times > 1:  # the judgments of scorers are stored under it
            raise DatasetError(f"{times} samples have the id {sample_id!r}; ids must be unique.")
        return samples
    if samples:  # samples among rows would not be asked
        msg = f"the dataset mixes samples ({len(samples)} of {len(rows)}) and rows; give one kind."
        raise DatasetError(msg)
    only_key = keys[0] if len(keys) == 1 else None
    return _issue_warnings(_parse_rows(rows, only_key, "the dataset", {}, ()))


def check_keys(samples: Sequence[Sample], keys: Collection[str]) -> None:
    """Raise DatasetError for a sample whose index is not configured; it names the nearest key."""
    for sample in samples:
        if sample.imdb_key not in keys:
            msg = (
                f"Question {sample.name} is asked of index {sample.imdb_key!r}, which "
                f"{config_name()} does not configure; add it to indexes"
                f"{nearest(sample.imdb_key, list(keys))}"
            )
            raise DatasetError(as_sentence(msg))
