"""Small indexes, built once, and evaluations of one: offline, or through a local server."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clock_evaluation import ROWS, TEXT, Evaluation, MakeEvaluation
from support.lighthouse import TEXT as ISLE
from support.openai_server import Behaviour, LocalServer, offline_reply, running_server
from support.projects import build_project, server_settings


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
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def built_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built index of the session, which is copied and never changed."""
    return shared_folder(tmp_path_factory, "clock", lambda root: build_project(root, clock=TEXT))


@pytest.fixture(scope="session")
def lighthouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return this process's copy of a built project about an isle, whose models are embedded."""
    built = shared_folder(tmp_path_factory, "isle", lambda root: build_project(root, isle=ISLE))
    return shutil.copytree(built, tmp_path_factory.mktemp("project") / "lighthouse")


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
