"""Ratings by users: read strictly, joined with a run, and summed up beside the judge."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from support.commands import code_of

from graphrag.eval.annotation.ratings import (
    RatedAnswer,
    Rating,
    join_ratings,
    judge_beside_users,
    read_ratings,
    report_ratings,
)
from graphrag.eval.cli.judge import import_ratings
from graphrag.eval.cli.location import Place
from graphrag.eval.errors import UsageError
from graphrag.eval.results.rows import Row
from graphrag.eval.stats.outcomes import State

DONE, USAGE = 0, 2


def write(folder: Path, text: str, name: str = "ratings.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding=encoding, newline="")
    return path


def row(question: str, method: str, score: int | None = 1, document: str = "film") -> Row:
    state = State.SEARCH_FAILED if score is None else State.SCORED
    return Row(question, document, method, {"correctness": state}, {"correctness": score})


def answers_of(pairs: list[tuple[int | None, float]], method: str = "tog") -> list[RatedAnswer]:
    """Make one answer of each (verdict, rating); a half rating comes from two raters."""
    return [
        RatedAnswer(
            f"q{number}",
            "film",
            method,
            (int(rating),) if rating == int(rating) else (int(rating), int(rating) + 1),
            (),
            verdict,
        )
        for number, (verdict, rating) in enumerate(pairs)
    ]


# Reading


def test_csv_and_jsonl_hold_the_same(tmp_path):
    csv = write(
        tmp_path,
        "question_id,method,rating,comment,user\r\n"
        'q1,tog,5,"Right, and\nshort",ann\r\n'
        "12,local, 2 ,,\r\n"
        ",,,,\r\n"
        "q3,basic,4,\u2028gut,ann\r\n",
        encoding="utf-8-sig",
    )
    lines = [
        {"question_id": "q1", "method": "tog", "rating": 5, "comment": "Right, and\nshort"},
        {"question_id": 12, "method": "local", "rating": 2, "comment": None, "user": None},
        {"question_id": "q3", "method": "basic", "rating": 4, "comment": "gut", "user": "ann"},
    ]
    lines[0]["user"] = "ann"
    jsonl = write(tmp_path, "\n\n".join(map(json.dumps, lines)), "ratings.jsonl")
    from_csv, from_jsonl = read_ratings(csv), read_ratings(jsonl)
    assert [rating.place for rating in from_csv] == [2, 3, 5]
    assert [rating.place for rating in from_jsonl] == [1, 3, 5]
    assert from_csv[0] == Rating("q1", "tog", 5, "Right, and\nshort", "ann", 2)
    assert from_csv[1] == Rating("12", "local", 2, "", None, 3)
    for a, b in zip(from_csv, from_jsonl, strict=True):
        assert replace(a, place=0) == replace(b, place=0)
    # A spreadsheet may separate by semicolons.
    found = read_ratings(write(tmp_path, "question_id;method;rating\nq1;tog;3\n"))
    assert found == [Rating("q1", "tog", 3, place=2)]


HEAD = "question_id,method,rating\nq1,tog,5\n"
JSON = '{"question_id": "q0", "method": "tog", "rating": 3}\n'
FAULTS = {
    HEAD + "q2,tog,6\n": r"row 3: the rating is '6'; it is a whole number from 1 to 5",
    HEAD + "q2,tog,0\n": r"row 3: the rating is '0'",
    HEAD + "q2,tog,4.5\n": r"row 3: the rating is '4.5'",
    HEAD + "q2,tog,\n": r"row 3: rating is missing",
    HEAD + ",tog,4\n": r"row 3: question_id is missing",
    HEAD + "q2,tog\n": r"row 3 has more or fewer cells",
    HEAD + "q2,tog,4,5\n": r"row 3 has more or fewer cells",
    HEAD + '"q2,tog,4\n': r"can't be read as CSV",
    "question_id,method\nq1,tog\n": r"row 2: rating is missing",
    "question_id,method,rating,coment\nq1,tog,5,x\n": r"'coment'; did you mean comment\?",
    "question_id,method,rating,zzz\nq1,tog,5,x\n": r"'zzz'; the columns are question_id,",
    "question_id,method,rating,rating\nq1,tog,5,4\n": r"two columns have the same name",
    "question_id,method,rating\n": r"holds no rating",
    "": r"holds no rating",
    JSON + JSON.replace("}", ', "place": 1}'): r"row 2.*no column 'place'",
    JSON + JSON.replace("3", "true"): r"row 2.*the rating is (True|'True')",
    JSON + JSON.replace("3", "null"): r"row 2.*the rating is None",
    JSON + JSON.replace('"tog"', "7"): r"row 2.*method is wrong",
    JSON + JSON.replace("rating", "rate"): r"row 2.*(rating is missing|did you mean)",
    JSON + "[1]": r"row 2.*is not an object with fields but list",
    JSON + "{": r"row 2.*is not valid JSON",
    JSON + "[" * 100_000: r"row 2.*is not valid JSON",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_stops_and_names_the_row(tmp_path, text):
    name = "ratings.jsonl" if text.startswith("{") else "ratings.csv"
    with pytest.raises(UsageError, match=FAULTS[text]):
        read_ratings(write(tmp_path, text, name))


def test_a_named_user_rates_an_answer_once_and_a_nameless_one_may_be_several(tmp_path):
    head = "question_id,method,rating,user\nq1,tog,5,ann\nq1,tog,1,\nq1,tog,2,\nq1,tog,4,bob\n"
    assert len(read_ratings(write(tmp_path, head))) == 4
    with pytest.raises(UsageError, match="rows 2 and 6: ann rates the answer of tog to q1 twice"):
        read_ratings(write(tmp_path, head + "q1,tog,5,ann\n"))


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        read_ratings(tmp_path / "no.csv")
    with pytest.raises(UsageError, match=r"ends in \.xlsx"):
        read_ratings(write(tmp_path, "x", "ratings.xlsx"))
    path = tmp_path / "latin.csv"
    path.write_bytes("question_id,method,rating,comment\nq,tog,5,für\n".encode("latin-1"))
    with pytest.raises(UsageError, match="UTF-8"):
        read_ratings(path)


# Joining


def test_every_rating_is_in_an_answer_or_listed_with_the_reason():
    rows = [row("q1", "tog", 1), row("q1", "basic", 0), row("q2", "tog", None)]
    ratings = [
        Rating("q1", "tog", 5, "good", "ann", 2),
        Rating("q1", "tog", 2, "", "bob", 3),
        Rating("q9", "tog", 1, place=4),
        Rating("q1", "drift", 1, place=5),
        Rating("q2", "basic", 1, place=6),
        Rating("q2", "tog", 1, place=7),
    ]
    answers, unjoined = join_ratings(ratings, rows)
    assert answers == (
        RatedAnswer("q1", "film", "tog", (5, 2), ("good",), 1),
        RatedAnswer("q2", "film", "tog", (1,), (), None),
    )
    assert answers[0].rating == 3.5
    assert [(each.rating.place, each.reason) for each in unjoined] == [
        (4, "the run has no question 'q9'"),
        (5, "the run has no method 'drift'"),
        (6, "the run has no answer of basic to 'q2'"),
    ]


RATINGS = st.lists(
    st.builds(
        Rating,
        question_id=st.sampled_from(["q1", "q2", "q3", "q4"]),
        method=st.sampled_from(["tog", "basic", "other"]),
        rating=st.integers(1, 5),
    ),
    max_size=25,
)
ROWS = [
    row(question, method, score)
    for question, scores in (("q1", (1, 0)), ("q2", (1, 1)), ("q3", (0, None)))
    for method, score in zip(("tog", "basic"), scores, strict=True)
]


@given(RATINGS.flatmap(lambda given: st.tuples(st.just(given), st.permutations(given))))
def test_no_rating_is_lost_and_the_order_does_not_matter(orders):
    ratings, other_order = orders
    report = report_ratings(ratings, ROWS, "run")
    n_joined = sum(found.n_ratings for found in report.satisfaction.values())
    assert n_joined + len(report.unjoined) == len(ratings)
    mixed = report_ratings(other_order, ROWS, "run")
    for method, found in report.satisfaction.items():
        assert found.distribution == mixed.satisfaction[method].distribution
        assert found.mean.mean == pytest.approx(mixed.satisfaction[method].mean.mean)
        assert found.mean.mean is None or 1 <= found.mean.mean <= 5
        assert sum(found.distribution.values()) == found.n_ratings
    same = report.overall.same.mean
    assert same is None or 0 <= same <= 1
    json.dumps(report.to_dict(), allow_nan=False)


# Figures


def test_satisfaction_is_what_scipy_and_statsmodels_say():
    ratings = [5, 4, 4, 2, 1, 3, 5, 4]
    rows = [row(f"q{n}", "tog") for n in range(10)]
    given_ratings = [Rating(f"q{n}", "tog", r) for n, r in enumerate(ratings)]
    given_ratings.append(Rating("q3", "tog", 5))  # q3: (2 + 5) / 2
    report = report_ratings(given_ratings, rows, "run")
    found = report.satisfaction["tog"]
    items = np.array([5, 4, 4, 3.5, 1, 3, 5, 4])
    assert (found.n_answers, found.n_rated, found.n_ratings) == (10, 8, 9)
    assert found.distribution == {1: 1, 2: 1, 3: 1, 4: 3, 5: 3}
    assert found.mean.mean == pytest.approx(items.mean())
    limits = stats.t.interval(0.95, 7, items.mean(), stats.sem(items))
    assert (found.mean.low, found.mean.high) == pytest.approx((limits[0], min(5, limits[1])))
    assert found.share_satisfied.mean == 5 / 8
    wilson = proportion_confint(5, 8, method="wilson")
    assert (found.share_satisfied.low, found.share_satisfied.high) == pytest.approx(wilson)


def test_agreement_is_the_share_of_one_opinion_with_wilsons_interval():
    same = [*[(1, 5.0)] * 6, *[(1, 4.0)] * 5, *[(0, 1.0)] * 4, (0, 2.5)]
    other = [(1, 3.5), (1, 2.0), (0, 4.0), (0, 4.0)]
    found = judge_beside_users(answers_of([*same, *other, (None, 1.0)]))
    assert (found.n, found.n_unjudged) == (20, 1)
    assert found.same.mean == len(same) / 20 == 0.8
    wilson = proportion_confint(len(same), 20, method="wilson")
    assert (found.same.low, found.same.high) == pytest.approx(wilson)


def test_answers_to_one_question_are_not_taken_for_independent():
    one, other = (
        answers_of([(1, 5.0), (0, 5.0), (1, 4.0), (0, 1.0)], name) for name in ("tog", "basic")
    )
    alone, both = judge_beside_users(one), judge_beside_users([*one, *other])
    assert (both.n, both.same) == (8, alone.same)
    for unknown in ([], answers_of([(None, 3.0)])):
        assert judge_beside_users(unknown).same.mean is None


# The command


@pytest.fixture
def place(make_run) -> Place:
    """Return where a run of two methods is: tog right but for q3, basic wrong but for q0."""
    ends = {"q0": (1, 1), "q1": (1, 0), "q2": (1, 0), "q3": (0, "search")}
    return make_run(ends, model="offline/rules").place


RATED = """question_id,method,rating,comment,user
q0,tog,5,fine,ann
q0,tog,4,,bob
q1,tog,4,,ann
q3,tog,1,wrong,ann
q0,basic,2,,ann
q3,basic,1,nothing came,ann
q7,tog,5,,ann
"""


def test_the_command_shows_and_writes_what_users_say(place, tmp_path, capsys):
    assert code_of(import_ratings, place, write(tmp_path, RATED)) == DONE
    said = capsys.readouterr().out
    assert "3 of 4" in said
    assert "1 of the ratings are of no answer of this run:" in said
    assert "row 8: the run has no question 'q7'" in said
    values = json.loads((place.output / "ratings.json").read_text(encoding="utf-8"))
    tog = values["satisfaction"]["tog"]
    assert tog["mean"]["mean"] == pytest.approx((4.5 + 4 + 1) / 3)
    assert tog["distribution"] == {"1": 1, "2": 0, "3": 0, "4": 2, "5": 1}
    assert values["agreement"]["tog"]["same"]["mean"] == 1
    assert (values["agreement"]["basic"]["n"], values["agreement"]["basic"]["n_unjudged"]) == (1, 1)
    assert values["agreement_overall"]["n"] == 4
    assert values["embedded_models"]
    assert " ".join(said.split()).count(values["embedded_models"]) == 2  # on both tables
    assert values["answers"][0]["comments"] == ["fine"]
    assert [each["place"] for each in values["unjoined"]] == [8]


def test_ratings_of_another_run_stop_the_command_and_write_nothing(place, tmp_path, capsys):
    path = write(tmp_path, "question_id,method,rating\nq7,tog,5\n")
    assert code_of(import_ratings, place, path) == USAGE
    assert "row 2: the run has no question 'q7'" in capsys.readouterr().err
    assert code_of(import_ratings, place, write(tmp_path, RATED), "no-such-run") == USAGE
    assert not (place.output / "ratings.json").exists()
