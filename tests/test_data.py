"""The shipped questions and texts are what the docs say they are."""

import json
import re
from collections import Counter

import pytest

KEYS = {"tt0097576": 102, "tt0102798": 51, "tt2278388": 206}
TYPES = {"person", "place", "object", "reason", "time", "event"}
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at by and or his her their its is was are were he she it they that "
        "with for from as him them",
    )
)


@pytest.fixture(scope="module")
def rows(project_root):
    return json.loads((project_root / "eval" / "qa_eval.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def scenes(project_root):
    def split(key):
        text = (project_root / "eval" / f"{key}.txt").read_text(encoding="utf-8")
        return re.split(r"^Scene \d+: .*$", text, flags=re.MULTILINE)[1:]

    return {key: split(key) for key in KEYS}


def words(text):
    return set(re.findall(r"\w+", text.casefold()))


def test_counts_and_order(rows):
    assert [row["imdb_key"] for row in rows] == [k for k, n in KEYS.items() for _ in range(n)]


def test_ids_and_questions_are_unique(rows):
    assert len({row["id"] for row in rows}) == len(rows)
    asked = Counter(" ".join(sorted(words(row["question"]))) for row in rows)
    assert [question for question, n in asked.items() if n > 1] == []


def test_every_quote_stands_in_its_text(rows, scenes):
    for row in rows:
        assert row["evidence"], row["id"]
        for quote in row["evidence"]:
            assert any(quote in scene for scene in scenes[row["imdb_key"]]), (row["id"], quote)


def test_no_answer_is_in_its_question(rows):
    for row in rows:
        content = words(row["answer"]) - STOP_WORDS
        assert content - words(row["question"]) or not content, row["id"]


def test_multi_hop_evidence_comes_from_different_scenes(rows, scenes):
    multi = [row for row in rows if row["tags"][0] == "multi-hop"]
    assert len(multi) >= 80
    for row in multi:
        places = {
            number
            for quote in row["evidence"]
            for number, scene in enumerate(scenes[row["imdb_key"]])
            if quote in scene
        }
        assert len(places) >= 2, row["id"]


def test_tags(rows):
    assert {row["tags"][0] for row in rows} == {"single-hop", "multi-hop"}
    assert {row["tags"][1] for row in rows} == TYPES


@pytest.mark.parametrize("key", KEYS)
def test_texts_have_their_length_and_stand_in_their_project(project_root, key):
    text = (project_root / "eval" / f"{key}.txt").read_bytes()
    assert 3500 <= len(text.split()) <= 6000
    assert (project_root / key / "input" / f"{key}.txt").read_bytes() == text
