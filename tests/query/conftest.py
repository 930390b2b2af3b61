"""A small index, built once, and projects that ask for the same tables through a local server."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.lighthouse import TEXT, SpiedServer
from support.openai_server import offline_reply, running_server
from support.projects import OFFLINE_SETTINGS, server_settings

from graphrag.eval.runner.index_building import build_index
from graphrag.query.graph_index import GraphIndex

MakeProject = Callable[..., Path]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a built project whose models are the embedded ones."""
    root = tmp_path_factory.mktemp("lighthouse")
    (root / "input").mkdir()
    (root / "input" / "isle.txt").write_text(TEXT, encoding="utf-8")
    (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(build_index(root, lambda _: None))
    loop.close()
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

    def make(extra: str = "", name: str = "remote", **values: Any) -> Path:
        root = tmp_path / name
        shutil.copytree(project / "output", root / "output")
        given = {"base_url": server.base_url, "max_retries": 6, **values}
        settings = server_settings(**given) + extra
        (root / "settings.yaml").write_text(settings, encoding="utf-8")
        return root

    return make


@pytest.fixture
async def remote(make_project: MakeProject) -> GraphIndex:
    """Return the index opened with models that ask the server."""
    return await GraphIndex.open(make_project())
