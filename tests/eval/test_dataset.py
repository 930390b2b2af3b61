import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.dataset import fingerprint_samples, parse_samples, read_samples
from graphrag.eval.errors import DatasetError

ROW = {"question": "Who?", "answer": "Ann", "imdb_key": "a"}


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_three_formats_read_alike(tmp_path):
    rows = [
        {"id": "1", "question": "Who?", "answer": "Ann", "imdb_key": "a", "evidence": ["x", "y"]},
        {"id": "2", "question": "Where?", "answer": "Rome", "imdb_key": "b", "evidence": []},
    ]
    as_json = write(tmp_path, "d.json", json.dumps(rows))
    as_lines = write(tmp_path, "d.jsonl", "\n".join(json.dumps(row) for row in rows) + "\n")
    as_csv = write(
        tmp_path,
        "d.csv",
        "id,question,answer,imdb_key,evidence\n1,Who?,Ann,a,x | y\n2,Where?,Rome,b,\n",
    )
    assert read_samples(as_json) == read_samples(as_lines) == read_samples(as_csv)


def test_other_names_of_the_same_fields():
    row = {"question_id": 7, "question_text": "Who?", "ground_truth": "Ann", "index": "a"}
    (sample,) = parse_samples([row])
    assert (sample.id, sample.question, sample.ground_truth, sample.imdb_key) == (
        "7",
        "Who?",
        "Ann",
        "a",
    )


def test_unknown_columns_are_kept_as_tags():
    (sample,) = parse_samples([{**ROW, "difficulty": 3}])
    assert sample.tags == {"difficulty": 3}


def test_the_only_index_is_the_default_key():
    (sample,) = parse_samples([{"question": "Who?", "answer": "Ann"}], only_key="a")
    assert sample.imdb_key == "a"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW, {"answer": "x", "imdb_key": "a"}], "row 2: question is missing"),
        ([{**ROW, "answer": ""}], "row 1: answer is wrong"),
        ([{**ROW, "evidence": 3}], "row 1: evidence is wrong"),
        ([{**ROW, "question": "   "}], "row 1: question is wrong"),
        ([{"question": "Who?", "answer": "Ann"}], "row 1: imdb_key is missing"),
        (["text"], "row 1 is not an object"),
        ([ROW, {**ROW, "question": "WHO? "}], "rows 1 and 2 ask the same question"),
        (
            [{**ROW, "id": "1"}, {**ROW, "id": "1", "question": "Why?"}],
            "rows 1 and 2 have the same",
        ),
        ([], "holds no rows"),
        ([{**ROW, "time_limit_s": "soon"}], "row 1: time_limit_s must be seconds above 0"),
        ([{**ROW, "time_limit_s": 0}], "row 1: time_limit_s must be seconds above 0"),
        ([{**ROW, "time_limit_s": [1]}], "row 1: time_limit_s must be seconds above 0"),
        ([{**ROW, "time_limit_s": float("nan")}], "row 1: time_limit_s must be seconds above 0"),
    ],
)
def test_a_bad_row_is_named(rows, message):
    with pytest.raises(DatasetError, match=message):
        parse_samples(rows)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.json", "{", "not valid JSON"),
        ("d.json", '{"a": 1}', "must hold a JSON list"),
        ("d.jsonl", '{"question": "a"\n', "line 1 is not valid JSON"),
        ("d.json", '[{"question": "Who?", "answer": "Ann", "score": NaN}]', "NaN is not a value"),
        ("d.csv", "question,answer\nWho?,Ann,extra\n", "row 1 has more cells"),
        ("d.txt", "", r"use \.json, \.jsonl or \.csv"),
    ],
)
def test_a_bad_file_is_named(tmp_path, name, text, message):
    with pytest.raises(DatasetError, match=message):
        read_samples(write(tmp_path, name, text))


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(DatasetError, match=r"dataset\.path"):
        read_samples(tmp_path / "none.json")


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_the_fingerprint_changes_with_every_field(question, answer):
    one = parse_samples([{**ROW, "question": question, "answer": answer}])
    other = parse_samples([{**ROW, "question": question, "answer": answer, "note": "x"}])
    again = parse_samples([{**ROW, "question": question, "answer": answer}])
    assert fingerprint_samples(one) == fingerprint_samples(again)
    assert fingerprint_samples(one) != fingerprint_samples(other)
