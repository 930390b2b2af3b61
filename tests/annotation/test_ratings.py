"""Ratings by users, read strictly from a file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag.eval.annotation.ratings import Rating, read_ratings
from graphrag.eval.errors import UsageError


def write(folder: Path, text: str, name: str = "ratings.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding=encoding, newline="")
    return path


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
    "question_id,method,rating\n": r"has no rating",
    "": r"has no rating",
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
