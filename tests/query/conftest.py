"""A small index, and projects that ask for the same tables through a local server."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lighthouse import MakeProject, SpiedServer
from support.openai_server import offline_reply, running_server
from support.projects import server_settings

from graphrag.query.graph_index import GraphIndex


@pytest.fixture(scope="session")
def project(lighthouse: Path) -> Path:
    """Return a built project whose models are the embedded ones."""
    return lighthouse


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
