"""A project as ``graphrag init`` makes it: every command and every search works on it.

Its own model settings stay as they are, sent to a server on this machine.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.lighthouse import METHODS, QUESTION, TEXT
from support.openai_server import running_server
from support.released_commands import undo_logging_and_loops
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


@dataclass(frozen=True)
class Stock:
    """An indexed project that nobody has edited but for the address of its models."""

    root: Path

    def graphrag(self, *words: str, code: int = 0) -> Result:
        """Run a command in the project's folder."""
        result = run(self.root, *words)
        assert result.exit_code == code, f"{words}\n{result.output}\n{result.exception!r}"
        return result


def run(root: Path, *words: str) -> Result:
    from graphrag.cli.main import app

    before = Path.cwd()
    os.chdir(root)
    try:
        return CliRunner().invoke(app, list(words))
    finally:
        os.chdir(before)
        undo_logging_and_loops()


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    root = tmp_path_factory.mktemp("stock")
    made = Stock(root)
    with pytest.MonkeyPatch.context() as patch, running_server(vector_size=SIZE) as server:
        patch.delenv("GRAPHRAG_API_KEY", raising=False)
        # Their default root is the folder in which graphrag was imported.
        here = ("--root", str(root))
        made.graphrag("init", *here, "--model", "gpt-4.1", "--embedding", "text-embedding-3-large")
        (root / "input" / "isle.txt").write_text(TEXT, encoding="utf-8")
        settings = root / "settings.yaml"
        text = settings.read_text(encoding="utf-8")
        key = "    auth_method: api_key"
        text = text.replace(key, f"    api_base: {server.base_url}\n{key}")
        settings.write_text(text, encoding="utf-8")
        made.graphrag("index", *here)
        yield made
        patch.setenv("GRAPHRAG_API_KEY", "")  # what the release took from .env is undone with it


@pytest.mark.parametrize("method", METHODS)
def test_every_search_answers(method, stock):
    how = ["--streaming"] if method in ("local", "tog", "drift", "hybrid") else []
    result = stock.graphrag("query", QUESTION, "--method", method, *how)

    assert result.stdout.strip()
    if method in ("local", "basic", "tog"):
        assert ANSWER in result.stdout
    assert "Error" not in result.output
    assert "offline" not in result.stderr


def test_every_command_of_the_evaluation_works(stock):
    stock.graphrag("eval", "init")
    rows = [{"question": QUESTION, "answer": "Jonas Feld", "id": "q1"}]
    (stock.root / "eval" / "questions.json").write_text(json.dumps(rows), encoding="utf-8")
    config = stock.root / "eval_config.yaml"
    text = config.read_text(encoding="utf-8").replace("questions.csv", "questions.json")
    config.write_text(text, encoding="utf-8")
    methods = ",".join(METHODS)

    stock.graphrag("eval", "--methods", methods, "--dry-run")
    ran = stock.graphrag("eval", "--methods", methods)
    for method in METHODS:
        assert method in ran.stdout
    stock.graphrag("eval", "show")
    stock.graphrag("eval", "compare", "--plan", "0.2")
    stock.graphrag("eval", "validate", "--fix")
    # So short a text has more entities a text unit than is reasonable: a warning.
    assert "failed: 0; not applicable: 2; warnings: 1" in stock.graphrag("eval", "validate").output
    stock.graphrag("eval", "judge", "latest")


def test_only_the_prompt_of_the_method_that_is_asked_is_needed(stock):
    prompt = stock.root / "prompts" / "basic_search_system_prompt.txt"
    kept = prompt.read_bytes()
    prompt.unlink()
    try:
        assert ANSWER in stock.graphrag("query", QUESTION, "--method", "tog").stdout
        # The release takes its own prompt for a file that is missing.
        assert ANSWER in stock.graphrag("query", QUESTION, "--method", "basic").stdout
        stock.graphrag("eval", "--methods", "tog,local", "--dry-run")
        refused = stock.graphrag("eval", "--methods", "tog,basic", "--dry-run", code=2)
    finally:
        prompt.write_bytes(kept)

    assert refused.stdout == ""
    assert "basic_search.prompt: the prompt file" in refused.stderr
    assert "basic_search_system_prompt.txt does not exist" in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.output
