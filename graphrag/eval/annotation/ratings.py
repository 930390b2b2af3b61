"""What users say of answers: read from a file, joined with a run's rows, and what comes of it."""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Annotated, NamedTuple, cast

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from graphrag.eval.errors import UsageError
from graphrag.eval.report.cells import EACH_ALONE, percent, plain
from graphrag.eval.report.table import Line, Part, Table
from graphrag.eval.results.rows import Row
from graphrag.eval.stats.intervals import Estimate, grouped, mean_binary, mean_real
from graphrag.text.input_files import read_input

LOWEST, HIGHEST = 1, 5
SATISFIED = 4
_N_LISTED = 10


def _as_text(value: object) -> object:
    # A number may be an id; True, which would be taken for 1, is no rating and no id.
    return str(value) if isinstance(value, int) else value


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(str_strip_whitespace=True))
class Rating:
    """What one user says about one answer, from 1 to 5, 5 being best; ValueError for another.

    ``place`` is the row of the file, the header of a CSV being row 1, or the line of a JSONL file.
    """

    question_id: Annotated[str, BeforeValidator(_as_text), Field(min_length=1)]
    method: Annotated[str, Field(min_length=1)]
    rating: Annotated[int, BeforeValidator(_as_text), Field(ge=LOWEST, le=HIGHEST)]
    comment: Annotated[str, BeforeValidator(lambda text: "" if text is None else text)] = ""
    user: Annotated[str | None, BeforeValidator(_as_text)] = None
    place: int = 0


_COLUMNS = ("question_id", "method", "rating", "comment", "user")
_RATING = TypeAdapter(Rating)


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """One method's answer to one question, and what its raters say together, in their order.

    ``correctness`` is the judge's verdict, 0 or 1; None when the judge gave none, as for a failed
    search.
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


class UnjoinedRating(NamedTuple):
    """A rating of something that the run does not have, and why."""

    rating: Rating
    reason: str


def read_ratings(path: Path | str) -> list[Rating]:
    """Read ratings, at least one, from a CSV file with a header, or from JSON lines, in UTF-8.

    Commas or semicolons stand between the columns ``question_id``, ``method``, ``rating``, and if
    wanted ``comment`` and ``user``. UsageError, which names the row, if the file can't be read or
    is empty, a column is missing or unknown, a rating is not a whole number from 1 to 5, or a named
    user rates the same answer twice.
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
    for place, row in readers[file.suffix.lower()](file, text):
        rating = _parse(row, place, file)
        ratings.append(rating)
        if rating.user is None:
            continue
        first = rated.setdefault((rating.user, rating.question_id, rating.method), place)
        if first != place:
            raise UsageError(
                f"{file}, rows {first} and {place}: {rating.user} rates the answer of "
                f"{rating.method} to {rating.question_id} twice; keep one."
            )
    if not ratings:
        raise UsageError(f"{file} holds no rating.")
    return ratings


def join_ratings(
    ratings: Iterable[Rating], rows: Sequence[Row]
) -> tuple[tuple[RatedAnswer, ...], tuple[UnjoinedRating, ...]]:
    """Put ratings beside the answers of a run; what it does not have is listed with the reason.

    UsageError if two documents of the run number their questions alike: a rating names no document.
    """
    by_answer = {(row.question_id, row.method): row for row in rows}
    if len(by_answer) < len(rows):
        raise UsageError("A rated run needs question ids that differ, also between its documents.")
    questions, methods = ({key[side] for key in by_answer} for side in (0, 1))
    of_answer: dict[tuple[str, str], list[Rating]] = {}
    unjoined: list[UnjoinedRating] = []
    for rating in ratings:
        answer = (rating.question_id, rating.method)
        if answer in by_answer:
            of_answer.setdefault(answer, []).append(rating)
            continue
        reason = f"the run has no answer of {rating.method} to {rating.question_id!r}"
        if rating.question_id not in questions:
            reason = f"the run has no question {rating.question_id!r}"
        elif rating.method not in methods:
            reason = f"the run has no method {rating.method!r}"
        unjoined.append(UnjoinedRating(rating, reason))
    answers = tuple(
        RatedAnswer(
            question_id=row.question_id,
            document=row.document,
            method=row.method,
            ratings=tuple(rating.rating for rating in of_answer[answer]),
            comments=tuple(rating.comment for rating in of_answer[answer] if rating.comment),
            correctness=row.scores.get("correctness"),
        )
        for answer, row in by_answer.items()
        if answer in of_answer
    )
    return answers, tuple(unjoined)


def _csv_rows(file: Path, text: str) -> Iterator[tuple[int, object]]:
    header = text.partition("\n")[0]
    separator = ";" if header.count(";") > header.count(",") else ","
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if len(set(names)) < len(names):
            raise UsageError(f"{file}, row 1: two columns have the same name.")
        reader.fieldnames = names
        for place, row in enumerate(reader, 2):
            cells = list(row.values())
            if None in row or None in cells:
                msg = f"{file}, row {place} has more or fewer cells than the header has columns."
                raise UsageError(msg)
            if any(cell.strip() for cell in cells):
                yield place, {**row, "user": (row.get("user") or "").strip() or None}
    except csv.Error as error:
        raise UsageError(f"{file} can't be read as CSV: {error}.") from error


def _json_rows(file: Path, text: str) -> Iterator[tuple[int, object]]:
    for place, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file}, row {place} is not valid JSON: {error}.") from error
        yield place, row


def _parse(row: object, place: int, file: Path) -> Rating:
    where = f"{file}, row {place}"
    if not isinstance(row, Mapping):
        raise UsageError(f"{where} is not an object with fields but {type(row).__name__}.")
    values = cast("Mapping[str, object]", row)
    for name in values:
        if name not in _COLUMNS:
            near = get_close_matches(name, _COLUMNS, 1)
            hint = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(_COLUMNS)}."
            raise UsageError(f"{where}: there is no column {name!r}; {hint}")
    try:
        return _RATING.validate_python({**values, "place": place})
    except ValidationError as error:
        first = error.errors()[0]
        name, value = str(first["loc"][0]), first["input"]
        problem = f"{name} is wrong: {first['msg']}."
        if first["type"] == "missing" or value == "":
            problem = f"{name} is missing."
        elif name == "rating":
            problem = f"the rating is {value!r}; it is a whole number from {LOWEST} to {HIGHEST}."
        raise UsageError(f"{where}: {problem}") from error


@dataclass(frozen=True, slots=True)
class Satisfaction:
    """What users say of one method's answers.

    ``mean`` is over rated answers, in [1, 5], with a t interval; several raters of one count as
    one, with their mean. ``share_satisfied``, in [0, 1] with Wilson's interval, has 4 or more.
    ``distribution`` counts single ratings, 1 to 5.
    """

    n_answers: int
    n_rated: int
    n_ratings: int
    mean: Estimate
    share_satisfied: Estimate
    distribution: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class RatingAgreement:
    """The judge's verdicts on correctness beside the users' ratings of the same answers.

    Of rated answers ``n`` have a verdict. ``same``, in [0, 1], is the share on which both say the
    same: rated 4 or more and judged 1, or rated lower and judged 0; Wilson limits, over several
    methods those of the questions' mean shares, as answers to one question are not independent.
    """

    n: int
    n_unjudged: int
    same: Estimate


@dataclass(frozen=True, slots=True)
class RatingsReport:
    """Everything that ratings say of a run, named by its id or its file's path; see its parts.

    Satisfaction and agreement are by method.
    """

    run: str
    satisfaction: Mapping[str, Satisfaction]
    agreement: Mapping[str, RatingAgreement]
    overall: RatingAgreement
    answers: tuple[RatedAnswer, ...]
    unjoined: tuple[UnjoinedRating, ...]
    embedded_models: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values; undefined is None."""
        return {
            "run": self.run,
            "embedded_models": self.embedded_models,
            "satisfaction": {method: asdict(value) for method, value in self.satisfaction.items()},
            "agreement": {method: asdict(value) for method, value in self.agreement.items()},
            "agreement_overall": asdict(self.overall),
            "answers": [{**asdict(answer), "rating": answer.rating} for answer in self.answers],
            "unjoined": [{**asdict(row.rating), "reason": row.reason} for row in self.unjoined],
        }


def report_ratings(
    ratings: Iterable[Rating], rows: Sequence[Row], run: str, embedded_models: str | None = None
) -> RatingsReport:
    """Compute what ratings say of each method of a run, and how far the judge agrees.

    UsageError as of :func:`join_ratings`.
    """
    answers, unjoined = join_ratings(ratings, rows)
    n_answers = Counter(row.method for row in rows)
    by_method = {name: [a for a in answers if a.method == name] for name in n_answers}
    return RatingsReport(
        run=run,
        satisfaction={
            method: summarize_satisfaction(group, n_answers[method])
            for method, group in by_method.items()
        },
        agreement={method: judge_beside_users(group) for method, group in by_method.items()},
        overall=judge_beside_users(answers),
        answers=answers,
        unjoined=unjoined,
        embedded_models=embedded_models,
    )


def summarize_satisfaction(answers: Sequence[RatedAnswer], n_answers: int) -> Satisfaction:
    """Average the ratings of one method, which gave so many answers in all."""
    documents = [a.document or None for a in answers]
    satisfied = [a.rating >= SATISFIED for a in answers]
    counts = Counter(rating for answer in answers for rating in answer.ratings)
    return Satisfaction(
        n_answers=n_answers,
        n_rated=len(answers),
        n_ratings=counts.total(),
        mean=mean_real([a.rating for a in answers], documents, (LOWEST, HIGHEST)),
        share_satisfied=mean_binary(satisfied, documents),
        distribution={rating: counts[rating] for rating in range(LOWEST, HIGHEST + 1)},
    )


def judge_beside_users(answers: Sequence[RatedAnswer]) -> RatingAgreement:
    """Compare the judge's verdicts on correctness with ratings, of one method or several."""
    of_question = grouped(
        ((answer.document, answer.question_id), (answer.rating >= SATISFIED) == answer.correctness)
        for answer in answers
        if answer.correctness is not None
    )
    n = sum(map(len, of_question.values()))
    return RatingAgreement(
        n=n,
        n_unjudged=len(answers) - n,
        same=mean_binary(
            [sum(same) / len(same) for same in of_question.values()],
            [document or None for document, _ in of_question],
        ),
    )


def list_ratings(report: RatingsReport) -> list[Part]:
    """Return satisfaction, the judge beside the users, and what did not join."""
    note = f" ({report.embedded_models})" if report.embedded_models else ""
    overall = {"all methods": report.overall} if len(report.agreement) > 1 else {}
    return [
        Table(
            f"User ratings, run {report.run} (95 % interval){note}",
            [
                *(("method", "text"), ("answers rated", "count"), ("ratings", "count")),
                *(("mean of 5", "percent"), ("4 or more %", "percent")),
                ("1 / 2 / 3 / 4 / 5", "count"),
            ],
            [
                [
                    *(method, f"{summary.n_rated} of {summary.n_answers}", summary.n_ratings),
                    *(plain(summary.mean, limits=".1f"), percent(summary.share_satisfied)),
                    " / ".join(map(str, summary.distribution.values())),
                ]
                for method, summary in report.satisfaction.items()
            ],
            EACH_ALONE,
        ),
        Table(
            "The judge beside the users: correct, and rated 4 or more (95 % interval)" + note,
            [
                *(("method", "text"), ("answers", "count"), ("unjudged", "count")),
                ("same %", "percent"),
            ],
            [
                [method, agreement.n, agreement.n_unjudged, percent(agreement.same)]
                for method, agreement in {**report.agreement, **overall}.items()
            ],
            EACH_ALONE,
        ),
        *_list_unjoined(report.unjoined),
    ]


def _list_unjoined(unjoined: Sequence[UnjoinedRating]) -> Iterator[Line]:
    """Yield what did not join: how many, then each with its row, the first ten of them."""
    if unjoined:
        yield Line(f"{len(unjoined)} of the ratings are of no answer of this run:")
    for row in unjoined[:_N_LISTED]:
        yield Line(f"  row {row.rating.place}: {row.reason}")
    if len(unjoined) > _N_LISTED:
        yield Line(f"  and {len(unjoined) - _N_LISTED} more, listed in ratings.json")
