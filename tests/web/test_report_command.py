"""``graphrag eval report``: the page of a run that is in the store."""

import asyncio
import sys
import webbrowser
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
            app, ["eval", "report", *flags, "--root", str(folder), "--output", str(folder)]
        )

    return run


def test_it_writes_the_page_of_the_newest_run(report: Report, stored: tuple[Path, list[str]]):
    folder, (newest, _) = stored
    shown = report()
    assert shown.exit_code == DONE, shown.output
    written = folder / "runs" / newest / "report.html"
    assert f"Report: {written}" in shown.output
    assert f"graphrag eval report {newest}" in written.read_text("utf-8")


def test_it_holds_a_run_against_another(
    report: Report, stored: tuple[Path, list[str]], tmp_path: Path
):
    _, (_, older) = stored
    shown = report("--compare", older, "--to", str(tmp_path / "a.html"))
    assert shown.exit_code == DONE, shown.output
    assert f"Against <bdi>{older}</bdi>" in (tmp_path / "a.html").read_text("utf-8")


def test_a_run_that_is_not_there_is_named(report: Report):
    missing = report("no-such-run")
    assert missing.exit_code == USAGE
    assert "no-such-run" in missing.output


def test_it_is_opened_in_the_users_browser(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script, page, asked = (tmp_path / name for name in ("browser.py", "a b.html", "asked.txt"))
    script.write_text(f"import sys; open({str(asked)!r}, 'w').write(sys.argv[1])")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {script} %s")
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # read anew
    shown = report("--to", str(page), "--open")
    assert shown.exit_code == DONE, shown.output
    assert asked.read_text() == page.as_uri()


def test_without_a_browser_it_says_which_file_to_open(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webbrowser, "open", lambda *_: False)
    page = tmp_path / "a.html"
    shown = report("--to", str(page), "--open")
    assert shown.exit_code == USAGE
    assert f"open {page} yourself" in shown.output.replace("\n", " ")
    assert page.exists()
