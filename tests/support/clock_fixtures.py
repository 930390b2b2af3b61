"""A small index, built once, and evaluations of it: offline, or through a local server."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clock_evaluation import ROWS, TEXT, Evaluation, MakeEvaluation, judging
from support.openai_server import Behaviour, LocalServer, offline_reply, running_server
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.eval.runner.index_building import build_index


def shared_folder(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """Return a folder that one worker makes and all of them read."""
    base = factory.getbasetemp()
    top = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = top / name, top / f"{name}.done"
    with (top / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def built_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built index of the session, which is copied and never changed."""

    def make(root: Path) -> None:
        (root / "input").mkdir()
        (root / "input" / "clock.txt").write_text(TEXT, encoding="utf-8")
        (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
        asyncio.run(build_index(root, lambda _: None))

    return shared_folder(tmp_path_factory, "clock", make)


@pytest.fixture
def make_evaluation(built_project: Path, tmp_path: Path) -> MakeEvaluation:
    """Return a function that makes an evaluation; with a base URL its models ask that server."""
    return maker(built_project, tmp_path)


def maker(built_project: Path, folder: Path) -> MakeEvaluation:
    """Return a function that makes evaluations in a folder."""

    def make(base_url: str | None = None, name: str = "evaluation", **config: Any) -> Evaluation:
        made = Evaluation(folder / name)
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
def _pinned_once(
    built_project: Path, tmp_path_factory: pytest.TempPathFactory, _server: LocalServer
) -> Callable[[int], Evaluation]:
    """Return a function that makes the pinned run of so many questions, once."""

    @cache
    def make(n: int) -> Evaluation:
        evaluation = maker(built_project, tmp_path_factory.mktemp("pinned"))(
            _server.base_url, methods=["basic"], metrics=["correctness"], concurrency=1
        )
        evaluation.write_rows(
            [
                {"id": f"q{i}", "question": f"Who is number {i}?", "answer": "Idris"}
                for i in range(n)
            ]
        )
        _server.behaviour = Behaviour(judging(lambda number: True))
        assert evaluation.run("-q").exit_code == 0
        assert evaluation.run("compare", "latest", "--pin").exit_code == 0
        return evaluation

    return make


@pytest.fixture
def pinned_run(
    _pinned_once: Callable[[int], Evaluation], server: LocalServer, tmp_path: Path
) -> Callable[[int], Evaluation]:
    """Return a function for an evaluation whose pinned run answered n questions rightly.

    The run is made once; each test has a copy of its own.
    """

    def make(n: int) -> Evaluation:
        made = Evaluation(tmp_path / "evaluation")
        shutil.copytree(_pinned_once(n).root, made.root)
        server.behaviour = Behaviour(judging(lambda number: True))
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


@pytest.fixture(scope="session")
def finished(built_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """Return an evaluation with one finished run, which tests only look at."""
    made = maker(built_project, tmp_path_factory.mktemp("finished"))()
    made.write_rows([{**ROWS[0], "evidence": ["Idris Vane built the tower clock"]}, *ROWS[1:]])
    assert made.run("-q").exit_code == 0
    return made


@pytest.fixture(scope="session")
def _asked_once(
    built_project: Path, tmp_path_factory: pytest.TempPathFactory, _server: LocalServer
) -> Evaluation:
    made = maker(built_project, tmp_path_factory.mktemp("asked"))(_server.base_url)
    _server.behaviour = Behaviour(offline_reply())
    assert made.run("-q").exit_code == 0
    return made


@pytest.fixture
def asked_copy(_asked_once: Evaluation, server: LocalServer, tmp_path: Path) -> Evaluation:
    """Return a copy of a finished run whose models are behind the session's server."""
    shutil.copytree(_asked_once.root, tmp_path / "asked")
    return Evaluation(tmp_path / "asked")


@pytest.fixture
def finished_copy(finished: Evaluation, tmp_path: Path) -> Evaluation:
    """Return a copy of the finished run, to be changed."""
    shutil.copytree(finished.root, tmp_path / "copy")
    return Evaluation(tmp_path / "copy")
