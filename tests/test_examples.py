"""The worked examples, run as a reader would run them."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from support.commands import copy_compiled
from support.http_service import serving
from support.openai_server import Fault, running_server
from support.projects import server_settings
from typer.testing import CliRunner
from uv import find_uv_bin

from graphrag.cli.main import app
from graphrag.config.project_settings import read_settings
from graphrag.eval.config.evaluation import parse_config
from graphrag.eval.runner.custom_methods import MethodSet, ask_method, load_method
from graphrag.query.client.usage import Usage, measure_calls
from graphrag.query.index.header import IndexHeader
from graphrag.query.structured_search.base import SearchResult

pytestmark = pytest.mark.slow

SHIPPED = Path(__file__).parent.parent
FILM = "tt0097576"
QUESTIONS = 6


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the example's module back, as it knows the folder that it was imported from."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("examples", "my_rag")]:
        del sys.modules[name]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a copy of the shipped project with one film and the first questions about it."""
    shutil.copytree(SHIPPED / "examples", tmp_path / "examples")
    shutil.copytree(SHIPPED / FILM / "input", tmp_path / FILM / "input")
    shutil.copy(SHIPPED / FILM / "settings.yaml", tmp_path / FILM)
    rows = json.loads((SHIPPED / "eval" / "qa_eval.json").read_text(encoding="utf-8"))
    of_film = [row for row in rows if row["imdb_key"] == FILM][:QUESTIONS]
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "qa_eval.json").write_text(json.dumps(of_film), encoding="utf-8")
    config = yaml.safe_load((SHIPPED / "eval_config.yaml").read_text(encoding="utf-8"))
    config["indexes"] = {FILM: FILM}
    config["methods"] = ["basic", {"name": "haystack", "function": "examples.haystack_rag:answer"}]
    (tmp_path / "eval_config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("imports")
def test_a_second_library_is_compared_in_the_same_run(root):
    result = CliRunner().invoke(app, ["eval", "--root", str(root), "--index"])
    assert result.exit_code == 0, result.output
    assert "haystack" in result.output
    folder = root / "eval" / "results"
    detailed = json.loads((folder / "eval_results_detailed.json").read_text(encoding="utf-8"))
    assert len(detailed["results"]) == QUESTIONS
    answered = [entry["methods"]["haystack"] for entry in detailed["results"]]
    for entry in answered:
        assert entry.get("failure") is None
        assert entry["scores"]["correctness"] in (0, 1)
        assert entry["efficiency"]["llm_calls"] == 1
        assert entry["efficiency"]["prompt_tokens"] > 1_000
    assert any("[Data: Sources (" in entry["response"] for entry in answered)
    assert sum(entry["scores"]["correctness"] for entry in answered) >= 2
    summary = json.loads((folder / "eval_results_summary.json").read_text(encoding="utf-8"))
    assert set(summary["by_method"]) == {"basic", "haystack"}
    assert summary["by_method"]["haystack"]["relevance"] > 0
    assert next((c["a"], c["b"]) for c in summary["comparisons"]) == ("basic", "haystack")


@pytest.mark.usefixtures("imports")
async def test_llamaindex_answers_from_an_index_of_these_texts(root):
    project = root / FILM
    text = (project / "input" / f"{FILM}.txt").read_text(encoding="utf-8")
    (project / "output").mkdir()
    pd.DataFrame({"text": [text]}).to_parquet(project / "output" / "documents.parquet")
    method = load_method("examples.llamaindex_rag:answer", root)

    async def ask(question: str) -> tuple[SearchResult, Usage]:
        with measure_calls() as log:
            result = await ask_method(method, question, FILM, lambda: project)
        return result, log.usage()

    rows = json.loads((root / "eval" / "qa_eval.json").read_text(encoding="utf-8"))
    with pytest.raises(FileNotFoundError, match="index first"):
        await ask(rows[0]["question"])
    sys.modules["examples.llamaindex_rag"].open_system(project, build=True)
    answered = await asyncio.gather(*(ask(row["question"]) for row in rows))
    for result, usage in answered:
        assert (usage.llm_calls, usage.embedding_calls) == (1, 1)
        assert usage.prompt_tokens > 1_000
        assert len(result.context_text) == 10
        assert all(" ".join(t.split()) in " ".join(text.split()) for t in result.context_text)
    assert any("[Data: Sources (" in result.response for result, _ in answered)


@pytest.mark.usefixtures("imports")
async def test_the_passages_that_were_read_come_back(root):
    method = load_method("examples.haystack_rag:answer", root)
    text = (root / FILM / "input" / f"{FILM}.txt").read_text(encoding="utf-8")
    row = json.loads((root / "eval" / "qa_eval.json").read_text(encoding="utf-8"))[0]
    found = await ask_method(method, row["question"], FILM)
    passages = found.context_text
    assert 0 < len(passages) <= 10
    assert all(" ".join(passage.split()) in " ".join(text.split()) for passage in passages)
    quote = " ".join(row["evidence"][0].split())
    assert any(quote in " ".join(passage.split()) for passage in passages)


_ASK_LIGHTRAG = """
import asyncio, json, sys
from pathlib import Path
from graphrag.eval.runner.custom_methods import ask_method, load_method
from graphrag.query.client.usage import measure_calls

async def ask(method, question):
    with measure_calls() as log:
        result = await ask_method(method, question, "index", lambda: Path(sys.argv[1]))
    usage = log.usage()
    counts = [usage.llm_calls, usage.prompt_tokens, usage.output_tokens, usage.embedding_calls]
    return [result.response, result.context_text, counts]

async def main():
    method = load_method("examples.lightrag_rag:answer", Path("."))
    return await asyncio.gather(*(ask(method, f"Who taught {n}?") for n in ("Ben", "Ben", "Cy")))

print(json.dumps(asyncio.run(main())))
"""


def _reply_to_lightrag(request: dict[str, Any]) -> str:
    asked = request["messages"][-1]["content"]
    if "high_level_keywords" in asked:
        return json.dumps({"high_level_keywords": ["teaching"], "low_level_keywords": ["Ada"]})
    if "---Input Text---" in asked or "extraction" in asked:
        relation = "relation<|#|>Ada<|#|>Ben<|#|>teaching<|#|>Ada taught Ben to sail."
        entities = (f"entity<|#|>{name}<|#|>person<|#|>{name} sails." for name in ("Ada", "Ben"))
        return "\n".join([*entities, relation, "<|COMPLETE|>"])
    return "Ada did."


def test_lightrag_has_each_question_counted_by_itself(tmp_path):
    # It goes into an environment of its own, as it brings other versions of packages with it.
    python = tmp_path / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}

    def run(*command: object, fails: bool = False) -> str:
        made = subprocess.run(
            [str(part) for part in command],
            cwd=SHIPPED, env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert (made.returncode != 0) == fails, made.stdout + made.stderr
        return made.stdout + made.stderr if fails else made.stdout

    run(find_uv_bin(), "venv", "--python", sys.executable, tmp_path / "env")
    (wanted,) = re.findall(r"pip install (lightrag\S+)", _example("lightrag_rag"))
    run(find_uv_bin(), "pip", "install", "--python", python, SHIPPED, wanted)
    copy_compiled(next((tmp_path / "env").rglob("site-packages")))
    project = tmp_path / "project"
    (project / "output").mkdir(parents=True)
    texts = pd.DataFrame({"text": ["Ada taught Ben to sail.", "Ben taught nobody."]})
    texts.to_parquet(project / "output" / "documents.parquet")
    build = (python, "-m", "examples.lightrag_rag", project)

    def faults(n: int, request: dict[str, Any]) -> Fault | None:
        return Fault(status=400) if n == 1 else None

    with running_server(_reply_to_lightrag, faults=faults) as server:
        (project / "settings.yaml").write_text(server_settings(server.base_url))
        assert "LightRAG indexed 1 of 2 texts" in run(*build, fails=True)
        run(*build)
        before = len(server.records)
        answered = json.loads(run(python, "-c", _ASK_LIGHTRAG, project).splitlines()[-1])
        totals = server.totals(before)
    for response, contexts, _ in answered:
        assert response == "Ada did."
        assert {"Ada taught Ben to sail.", "Ada sails."} <= set(contexts)
    # Equal questions are asked again, and none is counted in another's figures.
    assert [(calls, vectors) for _, _, (calls, _, _, vectors) in answered] == [(2, 1)] * 3
    assert sum(counts[1] for _, _, counts in answered) == totals["chat"].prompt_tokens
    assert sum(counts[2] for _, _, counts in answered) == totals["chat"].output_tokens
    assert totals["chat"].calls == 6


def _example(name: str) -> str:
    return (SHIPPED / "examples" / f"{name}.py").read_text(encoding="utf-8")


def test_the_example_sends_no_telemetry(imports, root):
    load_method("examples.haystack_rag:answer", root)
    from haystack.telemetry import _telemetry

    assert _telemetry.telemetry is None


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve what the function in the docs asks."""

    def answer(_: str, body: bytes, headers: object) -> tuple[int, bytes]:
        asked, tokens = json.loads(body), {"prompt_tokens": 11, "output_tokens": 3}
        said = {"answer": f"{asked['q']} of {asked['corpus']}", "passages": ["First.", "Second."]}
        return 200, json.dumps({**said, **tokens}).encode()

    with serving(answer) as address:
        monkeypatch.setenv("RAG_URL", f"{address}/ask")
        yield


def _blocks(language: str) -> list[str]:
    text = (SHIPPED / "docs" / "methods.md").read_text(encoding="utf-8")
    text = text[: text.index("## Code of your own")]  # that part runs in tests/run/test_own_code.py
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("imports", "service")
async def test_what_the_docs_say_of_methods_can_be_run(root):
    (source,) = _blocks("python")
    (root / "my_rag.py").write_text(source, encoding="utf-8")
    header = IndexHeader(read_settings(root / FILM))
    changed: set[str] = set()
    for block in _blocks("yaml"):
        config = parse_config({**yaml.safe_load(block), "root": root}, "docs/methods.md")
        methods = MethodSet(config)
        for name in config.variants:
            if methods.function(name) is None:
                method = methods.search_method(name)
                varied = methods.header(name, header).section(method)
                changed |= {name} if varied != header.section(method) else set()
        if methods.function("my-rag") is not None:
            answered = await ask_method(methods.function("my-rag"), "Who?", FILM)
            assert answered.response == f"Who? of {FILM}"
            assert answered.context_text == ["First.", "Second."]
            assert answered.usage.prompt_tokens == 11
    assert changed == {"tog-wide", "ppr-4000", "basic-20", "hybrid-20"}
