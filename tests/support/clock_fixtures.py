"""A small index, built once, and evaluations of it: offline, or through a local server."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clock_evaluation import ROWS, TEXT, Evaluation, MakeEvaluation
from support.openai_server import Behaviour, LocalServer, offline_reply, running_server
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.eval.run import build_index


@pytest.fixture(scope="session")
def built_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clock")
    (root / "input").mkdir()
    (root / "input" / "clock.txt").write_text(TEXT, encoding="utf-8")
    (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    asyncio.run(build_index(root, lambda _: None))
    return root


@pytest.fixture
def make_evaluation(built_project: Path, tmp_path: Path) -> MakeEvaluation:
    """Return a function that makes an evaluation; with a base URL its models ask that server."""

    def make(base_url: str | None = None, name: str = "evaluation", **config: Any) -> Evaluation:
        made = Evaluation(tmp_path / name)
        shutil.copytree(built_project, made.project)
        given = {
            "dataset": {"path": "questions.json"},
            "indexes": {"clock": "clock"},
            "methods": ["tog", "basic"],
            **config,
        }
        (made.root / "eval_config.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
        made.write_rows(ROWS)
        if base_url is not None:
            made.write_settings(server_settings(base_url))
        return made

    return make


@pytest.fixture(scope="session")
def _server() -> Iterator[LocalServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def server(_server: LocalServer) -> LocalServer:
    """Return the session's server, answering as the embedded models do."""
    _server.behaviour = Behaviour(offline_reply())
    return _server
