"""A project as ``graphrag init`` makes it: every command and every search works on it.

Its own model settings stay as they are, sent to a server on this machine.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.lighthouse import METHODS, QUESTION, TEXT
from support.openai_server import running_server
from support.released_commands import undone
from typer.testing import CliRunner, Result

# asyncio.run, which graphrag_llm patches, leaves its event loops open, for any collection to find.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <(function BaseEventLoop|socket.socket fd=[0-9]+, family=1)"
        ":pytest.PytestUnraisableExceptionWarning"
    ),
]

ANSWER = "Marta Quill repaired the great lamp with Jonas Feld."
SIZE = 3072


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stock")


@pytest.fixture(scope="module")
def graphrag(root: Path) -> Iterator[Callable[..., Result]]:
    """Run commands in a project that nobody has edited but for the address of its models."""
    from graphrag.cli.main import app

    def run(*words: str) -> Result:
        with undone(), contextlib.chdir(root):
            result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, f"{words}\n{result.output}\n{result.exception!r}"
        return result

    with pytest.MonkeyPatch.context() as patch, running_server(vector_size=SIZE) as server:
        patch.delenv("GRAPHRAG_API_KEY", raising=False)
        # Their default root is the folder in which graphrag was imported.
        here = ("--root", str(root))
        run("init", *here, "--model", "gpt-4.1", "--embedding", "text-embedding-3-large")
        (root / "input" / "isle.txt").write_text(TEXT, encoding="utf-8")
        settings = root / "settings.yaml"
        text = settings.read_text(encoding="utf-8")
        key = "    auth_method: api_key"
        text = text.replace(key, f"    api_base: {server.base_url}\n{key}")
        settings.write_text(text, encoding="utf-8")
        run("index", *here)
        yield run
        patch.setenv("GRAPHRAG_API_KEY", "")  # what the release took from .env is undone with it


@pytest.mark.parametrize("method", METHODS)
def test_every_search_answers(method, graphrag):
    how = ["--streaming"] if method in ("local", "tog", "drift", "hybrid") else []
    result = graphrag("query", QUESTION, "--method", method, *how)

    assert result.stdout.strip()
    if method in ("local", "basic", "tog"):
        assert ANSWER in result.stdout
    assert "Error" not in result.output
    assert "offline" not in result.stderr


def test_every_command_of_the_evaluation_works(root, graphrag):
    graphrag("eval", "init")
    rows = [{"question": QUESTION, "answer": "Jonas Feld", "id": "q1"}]
    (root / "eval" / "questions.json").write_text(json.dumps(rows), encoding="utf-8")
    config = root / "eval_config.yaml"
    text = config.read_text(encoding="utf-8").replace("questions.csv", "questions.json")
    config.write_text(text, encoding="utf-8")
    methods = ",".join(METHODS)

    graphrag("eval", "--methods", methods, "--dry-run")
    ran = graphrag("eval", "--methods", methods)
    for method in METHODS:
        assert method in ran.stdout
    graphrag("eval", "show")
    graphrag("eval", "compare", "--plan", "0.2")
    graphrag("eval", "validate", "--fix")
    # So short a text has more entities a text unit than is reasonable: a warning.
    found = graphrag("eval", "validate").output
    assert "failed: 0; with a warning: 1; not applicable: 2; warnings: 1" in found
    graphrag("eval", "judge", "latest")
