"""``graphrag query``: the added method, and the released ones as they were."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.lighthouse import SpiedServer
from support.projects import OFFLINE_SETTINGS
from typer.testing import CliRunner, Result

QUESTION = "Who repaired the great lamp with Marta Quill?"
ANSWER = "Marta Quill repaired the great lamp with Jonas Feld."


pytestmark = pytest.mark.usefixtures("as_before")


def query(*arguments: str) -> Result:
    from graphrag.cli.main import app

    return CliRunner().invoke(app, ["query", *arguments])


def test_tog_answers(project: Path) -> None:
    result = query(QUESTION, "--root", str(project), "--method", "tog")

    assert result.exit_code == 0, result.output
    assert ANSWER in result.stdout
    assert "[Data: " in result.stdout
    assert "offline" in result.stderr.lower(), "an answer of the embedded models must say so"


def test_tog_streams_the_same_text(project: Path) -> None:
    whole = query(QUESTION, "-r", str(project), "-m", "tog")
    streamed = query(QUESTION, "-r", str(project), "-m", "tog", "--streaming")

    assert streamed.exit_code == 0, streamed.output
    assert streamed.stdout == whole.stdout


def test_verbose_says_what_it_cost(project: Path) -> None:
    result = query(QUESTION, "-r", str(project), "-m", "ppr", "--verbose")

    assert result.exit_code == 0, result.output
    for line in (
        "completions: 1 calls",
        "  reasoning: 1 calls",
        "embeddings: 0 calls",
        "cost:",
    ):
        assert line in result.stderr
    assert "completions: " not in result.stdout


@pytest.mark.parametrize("settings", [None, OFFLINE_SETTINGS, "tog_search: {widht: 3}\n"])
def test_a_folder_that_cannot_be_searched_is_wrong_usage(
    settings: str | None, tmp_path: Path
) -> None:
    if settings is not None:
        (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
    result = query(QUESTION, "-r", str(tmp_path), "-m", "tog")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    assert query(QUESTION, "-r", str(tmp_path / "nowhere"), "-m", "tog").exit_code == 2


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
def test_the_rankings_of_basic_search_answer(method: str, project: Path) -> None:
    result = query(QUESTION, "-r", str(project), "-m", method, "--verbose")

    assert result.exit_code == 0, result.output
    assert ANSWER in result.stdout
    assert "embeddings: 0 calls" in result.stderr
    assert "offline" in result.stderr.lower()
    streamed = query(QUESTION, "-r", str(project), "-m", method, "--streaming")
    assert streamed.stdout == result.stdout
    assert query(QUESTION, "-r", str(project), "-m", method, "--connect").exit_code == 2


def test_agentic_search_says_what_it_searched_for(project: Path) -> None:
    question = "Who taught the glassmaker that repaired the lamp?"
    result = query(question, "-r", str(project), "-m", "agentic", "--verbose")

    assert result.exit_code == 0, result.output
    assert f"search 1: {question}; missing: Not in the texts: " in result.stderr
    assert "search 2: Marta Quill Jonas Feld" in result.stderr
    assert "  exploration: " in result.stderr
    quiet = query(question, "-r", str(project), "-m", "agentic", "--streaming")
    assert quiet.stdout == result.stdout
    assert "search 1" not in quiet.output


def test_a_failed_search_is_an_error(project: Path) -> None:
    result = query(" ", "-r", str(project), "-m", "tog")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: the search failed: ")


@pytest.mark.parametrize("method", ["local", "basic", "global", "drift"])
def test_the_other_methods_still_answer(method: str, project: Path) -> None:
    result = query(QUESTION, "-r", str(project), "-m", method)

    assert result.exit_code == 0, result.output
    assert (ANSWER if method != "drift" else "could not find") in result.stdout


def test_an_unknown_method_is_wrong_usage(project: Path) -> None:
    assert query(QUESTION, "-r", str(project), "-m", "tok").exit_code == 2


def test_verbose_shows_what_was_walked(project: Path) -> None:
    result = query(QUESTION, "-r", str(project), "-m", "tog", "--verbose")

    arrows = [line for line in result.stderr.splitlines() if "-[" in line]
    assert arrows
    assert "Paths\n" in result.stderr
    assert "Paths" not in result.stdout


@pytest.mark.parametrize("method", ["bm25", "basic"])
@pytest.mark.parametrize("how", [(), ("--streaming",)])
def test_an_answer_steers_no_terminal(
    method: str, how: tuple[str, ...], make_project: Callable[..., Path], server: SpiedServer
) -> None:
    """Also where a sequence of it arrives in two pieces."""
    server.reset(lambda _: "The lamp \x1b]0;owned\x07 is \x1b[2J lit \x9b31m by \u202e night.")
    result = query(QUESTION, "-r", str(make_project()), "-m", method, *how)
    assert "]0;owned is" in " ".join(result.stdout.split())
    assert not {*"\x1b\x07\x9b\u202e"} & {*result.output}


_LOADED = """
import json, sys
from graphrag.cli.main import app
try:
    app()
except SystemExit as ended:
    large = {"lancedb", "litellm", "networkx", "nltk", "openai", "scipy", "sklearn", "spacy"}
    print(json.dumps([ended.code, sorted(large & set(sys.modules))]))
"""


@pytest.mark.parametrize(
    ("method", "allowed"),
    [
        ("tog", {"scipy"}),
        ("ppr", {"scipy"}),
        ("bm25", {"scipy"}),
        ("local", {"lancedb", "networkx", "openai"}),
    ],
)
def test_a_question_loads_what_its_search_needs(
    method: str, allowed: set[str], make_project: Callable[..., Path], server: SpiedServer
) -> None:
    words = ["query", QUESTION, "-r", str(make_project()), "-m", method]
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *words], capture_output=True, text=True, check=False
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert set(loaded) <= allowed
    assert len(server.of("chat")) > 0
