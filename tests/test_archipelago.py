"""The questions about the archipelago are what its README says they are, and its command runs."""

import json
import shutil
from collections import Counter
from itertools import combinations

import pytest
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.text.words import share_covered, terms

KINDS = {"single": 30, "bridge": 34, "comparison": 9, "set": 7, "unanswerable": 20}


@pytest.fixture(scope="module")
def folder(project_root):
    return project_root / "examples" / "archipelago"


@pytest.fixture(scope="module")
def articles(folder):
    return {path.name: path.read_text("utf-8") for path in (folder / "input").iterdir()}


@pytest.fixture(scope="module")
def rows(folder):
    return json.loads((folder / "questions.json").read_text("utf-8"))


def by_kind(rows, *kinds):
    return [row for row in rows if row["tags"][0] in kinds]


@pytest.fixture(scope="module")
def titles(articles):
    return {name: article.split("\n\n")[0] for name, article in articles.items()}


@pytest.fixture(scope="module")
def holding(articles):
    """Return what names the articles that hold all words of a text."""
    held = {name: set(terms(article)) for name, article in articles.items()}
    return lambda text: {name for name in held if held[name] >= set(terms(text))}


def test_articles_are_short_and_begin_with_their_titles(articles, titles):
    assert len(articles) == len({*titles.values()}) == 150
    for name, article in articles.items():
        title, text = article.split("\n\n")
        assert title.lower().replace("'", "").replace(" ", "-") == name.removesuffix(".txt")
        assert 60 <= len(text.split()) <= 140, name
    assert sum(map(len, articles.values())) < 150_000


def test_counts_and_ids(rows):
    assert Counter(row["tags"][0] for row in rows) == KINDS
    assert len({row["id"] for row in rows}) == len(rows) == 100
    asked = [(row["id"], set(terms(row["question"]))) for row in rows]
    for (one, first), (other, second) in combinations(asked, 2):
        assert len(first & second) / len(first | second) < 0.7, (one, other)
    for row in rows:
        assert row.get("answerable", True) is (row["tags"][0] != "unanswerable")
        assert ("evidence" in row) is row.get("answerable", True)


def test_every_quote_stands_in_one_article_and_that_is_named(rows, articles):
    for row in rows:
        sources = {}
        for quote in row.get("evidence", []):
            (name,) = [name for name in articles if quote in articles[name]]
            sources[name] = True
        assert list(sources) == row.get("expected_sources", []), row["id"]


def test_the_evidence_holds_the_answer_and_the_question_does_not(rows, titles):
    for row in by_kind(rows, "single", "bridge", "comparison", "set"):
        wanted = terms(row["answer"])
        shown = [*row["evidence"], *(titles[name] for name in row["expected_sources"])]
        assert share_covered(wanted, terms(" ".join(shown))) >= 0.6, row["id"]
        if row["tags"][0] != "comparison":  # whose answer is one of two that are named
            assert share_covered(wanted, terms(row["question"])) < 0.6, row["id"]


def test_one_article_answers_single_questions_and_no_others(rows, titles, holding):
    for row in by_kind(rows, "single", "bridge", "comparison", "set"):
        kind, hops = row["tags"]
        n_articles = len(row["expected_sources"])
        assert n_articles == 1 if kind == "single" else 2 <= n_articles <= 3, row["id"]
        assert hops == ("1 article" if n_articles == 1 else f"{n_articles} articles")
        if kind == "comparison":
            question = row["question"].lower()
            assert all(titles[name].lower() in question for name in row["expected_sources"])
        if kind == "set":
            assert not holding(row["answer"]), row["id"]


def test_no_article_joins_what_a_bridge_question_asks_with_its_answer(rows, titles, holding):
    short = {name: title.removeprefix("The ").lower() for name, title in titles.items()}
    for row in by_kind(rows, "bridge"):
        question = row["question"].lower()
        assert not [name for name in row["expected_sources"][1:] if short[name] in question]
        subject = max((title for title in short.values() if title in question), key=len)
        assert not holding(f"{subject} {row['answer']}"), row["id"]


@pytest.mark.slow
def test_the_command_of_the_readme_runs(folder, rows, tmp_path):
    """On the articles of three questions, as an index of all of them takes half a minute."""
    asked = by_kind(rows, "bridge")[:2] + by_kind(rows, "unanswerable")[:1]
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
