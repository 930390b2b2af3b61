"""The shipped questions and texts are what the docs say they are."""

import json
import re
import shutil
from collections import Counter
from itertools import combinations

import pytest
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.text.stems import share_covered, terms

FILMS = {"tt0097576": 102, "tt0102798": 51, "tt2278388": 206}
TYPES = {"person", "place", "object", "reason", "time", "event"}
KINDS = {"single": 30, "bridge": 34, "comparison": 9, "set": 7, "unanswerable": 20}


@pytest.fixture(scope="module")
def rows(project_root):
    return json.loads((project_root / "eval" / "qa_eval.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(project_root):
    return project_root / "examples" / "archipelago"


@pytest.fixture(scope="module")
def questions(folder):
    return json.loads((folder / "questions.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def paraphrases(folder):
    return json.loads((folder / "paraphrases.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def articles(folder):
    return {path.name: path.read_text("utf-8") for path in (folder / "input").iterdir()}


def check_questions(rows, most_alike):
    assert len({row["id"] for row in rows}) == len(rows)
    asked = [(row["id"], set(terms(row["question"]))) for row in rows]
    for (one, first), (other, second) in combinations(asked, 2):
        assert len(first & second) / len(first | second) < most_alike, (one, other)
    for row in rows:
        wanted = set(terms(row["answer"]))
        two_are_named = row["tags"][0] == "comparison"
        assert two_are_named or not wanted or wanted - set(terms(row["question"])), row["id"]


def check_evidence(row, articles):
    """Each quote stands in one article, and they and the articles' titles tell the answer."""
    sources = {}
    for quote in row["evidence"]:
        (name,) = [name for name in articles if quote in articles[name]]
        sources[name] = articles[name].split("\n\n")[0]
    assert list(sources) == row["expected_sources"], row["id"]
    shown = " ".join([*row["evidence"], *sources.values()])
    assert share_covered(terms(row["answer"]), terms(shown)) >= 0.6, row["id"]
    assert (len(sources) == 1) == (row["tags"][0] == "single"), row["id"]
    assert row["tags"][1] == ("1 article" if len(sources) == 1 else f"{len(sources)} articles")


def test_questions_about_films_quote_their_texts_and_tell_their_kind(rows, project_root):
    assert [row["imdb_key"] for row in rows] == [k for k, n in FILMS.items() for _ in range(n)]
    check_questions(rows, 1)
    assert {row["tags"][1] for row in rows} == TYPES
    scenes = {}
    for key in FILMS:
        text = (project_root / "eval" / f"{key}.txt").read_bytes()
        assert 3500 <= len(text.split()) <= 6000
        assert (project_root / key / "input" / f"{key}.txt").read_bytes() == text
        scenes[key] = re.split(r"^Scene \d+: .*$", text.decode(), flags=re.MULTILINE)[1:]
    for row in rows:
        of_film = scenes[row["imdb_key"]]
        places = [{n for n, s in enumerate(of_film) if quote in s} for quote in row["evidence"]]
        assert places, row["id"]
        assert all(places), row["id"]
        assert row["tags"][0] in ("single-hop", "multi-hop")
        assert row["tags"][0] == "single-hop" or len(set().union(*places)) >= 2, row["id"]
    assert sum(row["tags"][0] == "multi-hop" for row in rows) >= 80


def test_articles_of_the_archipelago_are_short_and_begin_with_their_titles(articles):
    assert len(articles) == 150
    for name, article in articles.items():
        title, text = article.split("\n\n")
        assert title.lower().replace("'", "").replace(" ", "-") == name.removesuffix(".txt")
        assert 60 <= len(text.split()) <= 140, name
    assert sum(map(len, articles.values())) < 150_000


def test_questions_about_the_archipelago_need_as_many_articles_as_they_say(questions, articles):
    assert Counter(row["tags"][0] for row in questions) == KINDS
    check_questions(questions, 0.7)
    titles = {name: article.split("\n\n")[0] for name, article in articles.items()}
    short = {name: title.removeprefix("The ").lower() for name, title in titles.items()}
    words = {name: set(terms(article)) for name, article in articles.items()}

    def is_matched(text):
        return any(held >= set(terms(text)) for held in words.values())

    for row in questions:
        kind = row["tags"][0]
        assert row.get("answerable", True) is (kind != "unanswerable")
        assert ("evidence" in row) is (kind != "unanswerable")
        if kind == "unanswerable":
            continue
        check_evidence(row, articles)
        sources = row["expected_sources"]
        question = row["question"].lower()
        if kind == "comparison":
            assert all(titles[name].lower() in question for name in sources)
        if kind == "set":
            assert not is_matched(row["answer"]), row["id"]
        if kind == "bridge":  # no article joins what it asks with its answer
            assert not [name for name in sources[1:] if short[name] in question]
            subject = max((title for title in short.values() if title in question), key=len)
            assert not is_matched(f"{subject} {row['answer']}"), row["id"]


def test_paraphrases_share_no_content_word_with_the_articles_that_answer_them(
    paraphrases, questions, articles
):
    assert Counter(row["tags"][0] for row in paraphrases) == {"single": 30, "bridge": 10}
    check_questions(paraphrases + [row for row in questions if "evidence" in row], 0.7)
    for row in paraphrases:
        check_evidence(row, articles)
        asked = set(terms(row["question"]))
        assert len(asked) >= 4, row["id"]
        for name in row["expected_sources"]:
            assert not asked & set(terms(articles[name])), (row["id"], name)


@pytest.mark.slow
def test_the_command_of_the_archipelago_runs(folder, questions, tmp_path):
    """On the articles of three questions, as an index of all of them takes half a minute."""
    by_kind = {kind: [r for r in questions if r["tags"][0] == kind] for kind in KINDS}
    asked = by_kind["bridge"][:2] + by_kind["unanswerable"][:1]
    root = tmp_path / "archipelago"
    (root / "input").mkdir(parents=True)
    for name in ("settings.yaml", "eval_config.yaml"):
        shutil.copy(folder / name, root)
    for name in {name for row in asked for name in row.get("expected_sources", [])}:
        shutil.copy(folder / "input" / name, root / "input")
    (root / "questions.json").write_text(json.dumps(asked), encoding="utf-8")
    result = CliRunner().invoke(app, ["eval", "--root", str(root), "--index"])
    assert result.exit_code == 0, result.output
    summary = json.loads((root / "results" / "eval_results_summary.json").read_text("utf-8"))
    for measured in summary["measures"].values():
        assert measured["n_with_unmatched_sources"] == 0
        assert measured["measures"]["recall"]["estimate"]["n"] == 2
