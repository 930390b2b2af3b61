import asyncio
from pathlib import Path

import pytest
from support.damaged_index import FERRY, ISLE, DamagedIndex, copy_index
from support.projects import OFFLINE_SETTINGS

from graphrag.eval.runner.index_building import build_index


@pytest.fixture(scope="session")
def sound_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a built project of two documents."""
    root = tmp_path_factory.mktemp("sound")
    (root / "input").mkdir()
    for name, text in (("isle", ISLE), ("ferry", FERRY)):
        (root / "input" / f"{name}.txt").write_text(text, encoding="utf-8")
    (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    asyncio.run(build_index(root, lambda _: None))
    return root


@pytest.fixture
def index(sound_project: Path, tmp_path: Path) -> DamagedIndex:
    """Return a copy of the built project that may be damaged."""
    return copy_index(sound_project, tmp_path / "damaged")
