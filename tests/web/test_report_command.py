"""``graphrag eval show --html``: the page of a run that is in the store."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from graphrag_llm.config import ModelConfig
from support.small_runs import SmallRun
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.scorers.judge import LLMJudge
from graphrag.eval.store.database import EvaluationStore
from graphrag.query.models import open_completion

DONE, USAGE = 0, 2
Report = Callable[..., Result]


async def mine(question: str) -> str:
    return f"Said of {question}"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with two runs of a method of one's own, and their ids, the newest first."""
    folder = tmp_path_factory.mktemp("stored")
    model = open_completion(
        ModelConfig(type="at_once", model_provider="openai", model="gpt-4o", api_key="k")
    )
    small = SmallRun(folder)
    for _ in range(2):
        runner = EvaluationRunner(small.config, LLMJudge(model), {}, {"mine": mine})
        asyncio.run(runner.run_evaluation(small.samples, methods=["mine"]))
    with EvaluationStore(small.path) as store:
        return folder, [run.run_id for run in store.runs()]


@pytest.fixture
def report(stored: tuple[Path, list[str]]) -> Report:
    folder, _ = stored

    def run(*flags: str) -> Result:
        return CliRunner().invoke(
            app, ["eval", "show", *flags, "--root", str(folder), "--output", str(folder)]
        )

    return run


def test_it_writes_the_page_of_the_newest_run(
    report: Report, stored: tuple[Path, list[str]], tmp_path: Path
):
    _, (newest, _) = stored
    written = tmp_path / "a.html"
    shown = report("--html", str(written))
    assert shown.exit_code == DONE, shown.output
    assert f"Report: {written}" in shown.output.replace("\n", "")
    assert f"graphrag eval show {newest}" in written.read_text("utf-8")


def test_it_holds_a_run_against_another(
    report: Report, stored: tuple[Path, list[str]], tmp_path: Path
):
    _, (_, older) = stored
    shown = report("--changed", older, "--html", str(tmp_path / "a.html"))
    assert shown.exit_code == DONE, shown.output
    page = (tmp_path / "a.html").read_text("utf-8")
    assert f"against <bdi>{older}</bdi>" in page
    assert "0 newly wrong, 0 newly right" in page


def test_it_writes_nothing_else(report: Report, tmp_path: Path):
    refused = report("--failed", "--html", str(tmp_path / "a.html"))
    assert refused.exit_code == USAGE
    assert "writes a page alone" in refused.output.replace("\n", " ")
