from pathlib import Path

import pytest
from support.damaged_index import FERRY, ISLE, DamagedIndex, copy_index
from support.projects import build_project


@pytest.fixture(scope="session")
def sound_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a built project of two documents."""
    return build_project(tmp_path_factory.mktemp("sound"), isle=ISLE, ferry=FERRY)


@pytest.fixture
def index(sound_project: Path, tmp_path: Path) -> DamagedIndex:
    """Return a copy of the built project that may be damaged."""
    return copy_index(sound_project, tmp_path / "damaged")
