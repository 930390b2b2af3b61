"""A small index, built once, and projects that ask for the same tables through a local server."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from support.lighthouse import TEXT, MakeProject, SpiedServer
from support.openai_server import offline_reply, running_server
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.eval.runner.index_building import build_index
from graphrag.query.graph_index import GraphIndex


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a built project whose models are the embedded ones."""
    base = tmp_path_factory.getbasetemp()
    # The first of a run's processes builds it, and each has a copy.
    built = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lighthouse"
    with FileLock(f"{built}.lock"):
        if not (built / "output").is_dir():
            (built / "input").mkdir(parents=True, exist_ok=True)
            (built / "input" / "isle.txt").write_text(TEXT, encoding="utf-8")
            (built / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
            with asyncio.Runner() as runner:
                runner.run(build_index(built, lambda _: None))
    root = tmp_path_factory.mktemp("project") / "lighthouse"
    shutil.copytree(built, root)
    return root


@pytest.fixture(scope="session")
def _server() -> Iterator[SpiedServer]:
    with running_server() as server:
        yield SpiedServer(server)


@pytest.fixture
def server(_server: SpiedServer) -> SpiedServer:
    """Return the server with nothing counted yet and no fault planned."""
    _server.reset(offline_reply())
    return _server


@pytest.fixture
def make_project(project: Path, server: SpiedServer, tmp_path: Path) -> MakeProject:
    """Return a function that makes a project beside the built one, asking the server."""

    def make(extra: str = "", name: str = "remote", **values: object) -> Path:
        root = tmp_path / name
        shutil.copytree(project / "output", root / "output")
        given = {"base_url": server.base_url, "max_retries": 6, **values}
        settings = server_settings(**given) + extra
        (root / "settings.yaml").write_text(settings, encoding="utf-8")
        return root

    return make


@pytest.fixture(scope="session")
def _remote(project: Path, _server: SpiedServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("remote")
    shutil.copytree(project / "output", root / "output")
    settings = server_settings(_server.base_url, max_retries=6)
    (root / "settings.yaml").write_text(settings, encoding="utf-8")
    return root


@pytest.fixture
async def remote(_remote: Path, server: SpiedServer) -> GraphIndex:
    """Return the index, whose files all tests share, opened with models that ask the server."""
    return await GraphIndex.open(_remote)
